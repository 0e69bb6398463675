"""Needed: answers that count on what follows in; between which values it must happen out."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Question
from dear_plugin.results.spread import ROWS_AT_A_TIME, Spread

# The rows that the model is asked for between two ends.
ASKED = 32


def needed(question: Question, proposal: Proposal, spread: Spread) -> Tensor:
    """(n, p) where the changes that must follow begin; they end in the answer.

    The action is accepted with these changes from `Spread.least` on, see `between`, or else they
    are the answer's own; where it is accepted, it is refused, by the user's model or a rule, with
    any one of them left out. What is not needed beside the others has the value before.
    """
    x, out = question.case.x, spread.least.clone()
    left = ((spread.reliance > 0.0) & ~spread.alone).nonzero()[:, 0]
    for start in (spread.least, proposal.rows):
        if len(left):
            some, own = question.select(left), proposal.select(left)
            told = _told(some, own, start[left])
            last = own.rows.where(told | own.direct, x[left])
            first = start[left].where(told, last)
            out[left] = first
            left = left[~between(some, first, last, own.direct, told)]
    return out


def between(
    question: Question, first: Tensor, last: Tensor, direct: Tensor, told: Tensor
) -> Tensor:
    """(n,) bool, whether the model accepts first rows and all it is asked for up to last ones.

    Each number takes `ASKED` values from end to end, and these are combined at random.

    Args:
        question: of n rows.
        first: (n, p) rows with the actions and what must follow.
        last: (n, p) likewise, of which only amounts count.
        direct: (n, p) bool, what is acted on.
        told: (n, p) bool, what must follow.
    """
    x, wide = question.case.x, (first != last).any(1).nonzero()[:, 0]
    some = torch.rand(ASKED, x.shape[1], generator=torch.Generator().manual_seed(0))
    shares = torch.cat([some.argsort(0) / (ASKED - 1), torch.ones(1, x.shape[1])])
    low, high = first[wide, None], last[wide, None]
    rows = question.case.feasible.limits.rounded(x[wide], torch.lerp(low, high, shares.to(low)))
    rows = rows.where(question.method.encoder.amounts(low, high), low).flatten(0, 1)
    at = torch.cat([torch.arange(len(x)), wide.repeat_interleave(len(shares))])
    refused = ~_accepted(question, at, torch.cat([first, rows]), direct[at], told[at])
    out = torch.ones(len(x), dtype=torch.bool)
    out[at[refused]] = False
    return out


def _accepted(
    question: Question, at: Tensor, rows: Tensor, direct: Tensor, told: Tensor
) -> Tensor:
    """(m,) bool, whether the model accepts rows, (m, p), at positions, with what they force."""
    parts = [each.split(ROWS_AT_A_TIME) for each in (at, rows, direct, told)]
    each = [(question.select(i), *rest) for i, *rest in zip(*parts, strict=True)]
    return torch.cat([some.accepts_alone(some.repaired(*rest)) for some, *rest in each])


def _told(question: Question, proposal: Proposal, start: Tensor) -> Tensor:
    """(n, p) bool, the indirect changes up to some rows, (n, p), none of which can be left out.

    The smallest are left out first, as many as can be, until no single one can.
    """
    x, direct, encoder = question.case.x, proposal.direct, question.method.encoder
    told = (start != x) & ~direct
    for each in (relation for relation in encoder.schema.relations if relation.is_definition):
        own, *others = encoder.schema.index(each.members)
        # What follows moves what it defines.
        told[:, own] &= ~(told | direct)[:, others].any(1)
    sizes = encoder.distance(start, x) / question.method.trained.deviations.clamp_min(1e-9)

    def accepted(at: Tensor, some: Tensor) -> Tensor:
        rows = torch.where(direct[at], proposal.rows[at], torch.where(some, start[at], x[at]))
        return _accepted(question, at, rows, direct[at], some)

    at, j = told.nonzero().T
    while len(at):
        fine = accepted(at, told[at].scatter(1, j[:, None], False))
        free = torch.zeros_like(told)
        free[at[fine], j[fine]] = True
        at, place = (torch.arange(told.shape[1]) < free.sum(1)[:, None]).nonzero().T
        if not len(at):
            break
        order = sizes.where(free, torch.inf).argsort(1).argsort(1)
        fine = accepted(at, told[at] & (order[at] > place[:, None]))
        # Each single one can be left out, the smallest as well.
        many = torch.zeros(len(x), dtype=torch.int64)
        many.scatter_reduce_(0, at, place * fine, "amax")
        told &= (order > many[:, None]) | ~free
        at, j = (told & free.any(1)[:, None]).nonzero().T
    return told
