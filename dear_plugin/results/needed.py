"""Needed: answers that count on what follows in; up to where what follows must happen out."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Question
from dear_plugin.results.spread import Spread


def needed(question: Question, proposal: Proposal, spread: Spread) -> Tensor:
    """(n, p) `Spread.least`, with the value before where a change is not needed beside the others.

    The user's model refuses the action alone, and accepts it with these changes, and with none of
    them left out. Of several such choices it is one of the largest changes.
    """
    x, least, direct = question.case.x, spread.least.clone(), proposal.direct
    at = ((spread.reliance > 0.0) & ~spread.alone).nonzero()[:, 0]
    if len(at):
        kept = _kept(question.select(at), proposal.select(at), least[at])
        least[at] = torch.where(kept | direct[at], least[at], x[at])
    return least


def _kept(question: Question, proposal: Proposal, least: Tensor) -> Tensor:
    """(n, p) bool, the indirect changes up to some rows, (n, p), that are needed."""
    x, direct, schema = question.case.x, proposal.direct, question.method.encoder.schema
    moves, every = (least != x) & ~direct, torch.arange(len(x))
    for each in (relation for relation in schema.relations if relation.is_definition):
        own, *others = schema.index(each.members)
        # What follows moves what it defines.
        moves[:, own] &= ~(moves | direct)[:, others].any(1)
    sizes = (least - x).abs() / question.method.trained.deviations.clamp_min(1e-9)
    order, most = sizes.where(moves, -1.0).argsort(1, descending=True), int(moves.sum(1).max())

    def accepted(some: Tensor) -> Tensor:
        rows = torch.where(direct, proposal.rows, torch.where(some, least, x))
        return question.accepts_alone(question.repaired(rows, direct, some))

    kept, enough = torch.zeros_like(moves), torch.zeros(len(x), dtype=torch.bool)
    for k in range(most):
        kept[every, order[:, k]] |= moves[every, order[:, k]] & ~enough
        enough = accepted(kept)
        if enough.all():
            break
    for k in range(int(kept.sum(1).max())):
        fewer = kept.clone()
        fewer[every, order[:, k]] = False
        kept = torch.where(accepted(fewer)[:, None], fewer, kept)
    return kept
