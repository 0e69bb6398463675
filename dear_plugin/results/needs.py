"""What must follow an action, and between which ends: the model is asked.

What the model accepts with just these changes, and refuses without any one of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.schema import Schema
from dear_plugin.problem.rules import ROUNDS
from dear_plugin.results.proposal import Proposal, Question, selected
from dear_plugin.results.worth import Worth

# Rows that are asked of the model at a time, and between two ends.
ROWS_AT_A_TIME = 1 << 16
ASKED = 32


def needed_ranges(question: Question, proposal: Proposal, worth: Worth) -> Tensor:
    """(n, p) where the changes that must follow begin; they end in the answer.

    The action is accepted with these changes from `Worth.least` on, see `between`, or else they
    are the answer's own; where it is accepted, it is refused, by the user's model or a rule, with
    any one of them left out. What is not needed beside the others has the value before.
    """
    x, relies = question.case.x, worth.reliance > 0.0
    out = torch.where(relies[:, None], worth.least, x)
    left = (relies & ~torch.from_numpy(worth.alone)).nonzero()[:, 0]
    for start in (worth.least, proposal.rows):
        if len(left):
            some, own = selected(question, left), selected(proposal, left)
            told = _told(some, own, start[left])
            last = own.rows.where(told | own.direct, x[left])
            first = start[left].where(told, last)
            out[left] = first
            left = left[~between(some, own, first, last, told)]
    return out


def between(
    question: Question, proposal: Proposal, first: Tensor, last: Tensor, told: Tensor
) -> Tensor:
    """(n,) bool, whether the model accepts first rows and all it is asked for up to last ones.

    Each number takes `ASKED` values from end to end, and these are combined at random.

    Args:
        question: of n rows.
        proposal: of the answers.
        first: (n, p) rows with the actions and what must follow.
        last: (n, p) likewise, of which only amounts count.
        told: (n, p) bool, what must follow.
    """
    x, wide = question.case.x, (first != last).any(1).nonzero()[:, 0]
    some = torch.rand(ASKED, x.shape[1], generator=torch.Generator().manual_seed(0))
    shares = torch.cat([some.argsort(0) / (ASKED - 1), torch.ones(1, x.shape[1])])
    low, high = first[wide, None], last[wide, None]
    rows = question.case.feasible.limits.rounded(x[wide], torch.lerp(low, high, shares.to(low)))
    rows = rows.where(question.encoder.amounts(low, high), low).flatten(0, 1)
    at = torch.cat([torch.arange(len(x)), wide.repeat_interleave(len(shares))])
    refused = ~accepted_parts(question, proposal, at, torch.cat([first, rows]), told[at])
    out = torch.ones(len(x), dtype=torch.bool)
    out[at[refused]] = False
    return out


def accepted_parts(
    question: Question, proposal: Proposal, at: Tensor, rows: Tensor, told: Tensor
) -> Tensor:
    """(m,) bool, whether the model accepts rows, (m, p), at positions, with what they force."""
    found, parts = [], (each.split(ROWS_AT_A_TIME) for each in (at, rows, told))
    for i, part, also in zip(*parts, strict=True):
        some, own = selected(question, i), selected(proposal, i)
        found.append(some.accepts_part(some.repaired(part, own.direct, also), own.rows))
    return torch.cat(found)


def _told(question: Question, proposal: Proposal, start: Tensor) -> Tensor:
    """(n, p) bool, the indirect changes up to some rows, (n, p), none of which can be left out.

    The smallest are left out first, as many as can be, until no single one can.
    """
    x, direct, encoder = question.case.x, proposal.direct, question.encoder
    told = (start != x) & ~direct
    for each in encoder.schema.definitions:
        own, *others = encoder.schema.index(each.members)
        # What follows moves what it defines.
        told[:, own] &= ~(told | direct)[:, others].any(1)
    sizes = encoder.distance(start, x) / question.trained.deviations.clamp_min(1e-9)

    def accepted(at: Tensor, some: Tensor) -> Tensor:
        rows = torch.where(direct[at], proposal.rows[at], torch.where(some, start[at], x[at]))
        return accepted_parts(question, proposal, at, rows, some)

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


def determined(schema: Schema, moved: Tensor, direct: Tensor) -> Tensor:
    """(n, p) bool, what an action sets to just one value, where an order would only bound it.

    Args:
        schema: of the features.
        moved: (n, p) bool, what the action alone changes.
        direct: (n, p) bool, what is acted on.
    """
    bounded = {name for pair in schema.orders for name in pair}
    known = direct | torch.tensor([feature.name not in bounded for feature in schema])
    defined = [[*schema.index(each.members)] for each in schema.definitions]
    for at in defined * ROUNDS:
        own, others = (moved & ~known)[:, at], (moved & known)[:, at]
        # What alone of its members is open has the value that they leave it.
        known[:, at] |= own & ((own.sum(1) == 1) & others.any(1))[:, None]
    return known
