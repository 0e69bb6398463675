"""Worth: what an answer is worth, by what no search optimises (DESIGN, section 8).

Every criterion is one function of a question and of some actions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.evaluation.plausibility import Plausibility
from dear_plugin.evaluation.support import Support
from dear_plugin.search.problem import SearchProblem

# Of the indirect change; from the half on, a category has changed.
SHARES = (0.0, 0.25, 0.5, 0.75)
HALF = 0.5
# Redraws that are asked first: an answer that fails some of these is not worth the others.
FIRST_REDRAWS = 4
CELLS_A_BATCH = 1 << 20
# So many rows are sooner asked about at once than some of them later.
FEW = 1 << 8


@dataclass(frozen=True)
class Evidence:
    """What answers are judged by besides the decoder: the training rows around them.

    Attributes:
        plausibility: how odd a row is among all of them.
        support: whether the nearest are accepted.
    """

    plausibility: Plausibility
    support: Support


@dataclass(frozen=True)
class Actions:
    """m actions, decoded.

    Attributes:
        rows: (m,) who acts.
        sets: (m,) on which set.
        values: (m, w) the new values of its features.
        reached: (m, p) where that leads.
    """

    rows: Tensor
    sets: Tensor
    values: Tensor
    reached: Tensor

    @classmethod
    def of(cls, problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor) -> Actions:
        """Decode actions: rows (m,), sets (m,), values (m, w)."""
        return cls(
            rows, sets, values, problem.decode_actions(rows, sets, values[:, None])[1][:, 0]
        )

    def __len__(self) -> int:
        """How many actions (m)."""
        return len(self.rows)

    def part(self, at: Tensor) -> Actions:
        """Some of them, (q,)."""
        return Actions(self.rows[at], self.sets[at], self.values[at], self.reached[at])


def confidence(
    problem: SearchProblem, actions: Actions, least: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The share of redraws of the decoder under which actions are still accepted.

    Args:
        problem: who asks what; its `redraws` are used.
        actions: m actions.
        least: the share to reach: what cannot reach it any more is told by the redraws so far,
            the others counted as failures.

    Returns:
        (m,) the share, and (m,) by how much the margin falls short of that in the redraw that
        decides whether `least` is reached; 0 where none does.
    """
    redraws, m = problem.redraws, len(actions)
    if redraws is None:
        return torch.ones(m), torch.zeros(m)
    count = redraws.count
    may_fail = int((1.0 - least) * count + 1e-6)
    held, margins = torch.zeros(m, count, dtype=torch.bool), torch.full((m, count), torch.inf)
    at, first = torch.arange(m), min(FIRST_REDRAWS, count)
    # Few are asked about in one call of the model, which costs as much.
    for which in torch.arange(count).split([first, count - first] if m * count > FEW else count):
        if not len(at) or not len(which):
            break
        cells = at[:, None], which
        margins[cells], held[cells] = _redrawn(problem, redraws, actions.part(at), which)
        lost = first - held[:, :first].sum(1) > may_fail
        at = (~lost).nonzero()[:, 0]
    # Whoever else was asked about, what the first redraws rule out has nothing of the others.
    if m:
        held[lost, first:], margins[lost, first:] = False, torch.inf
    short = -margins.kthvalue(min(may_fail, count - 1) + 1, dim=1).values
    return held.float().mean(1), torch.where(short.isfinite(), short, 0.0).clamp_min(0.0)


def _redrawn(
    problem: SearchProblem, redraws: Redraws, actions: Actions, which: Tensor
) -> tuple[Tensor, Tensor]:
    """(m, r) margins and (m, r) bool, what becomes of actions under some redraws, (r,)."""
    m, r, p = len(actions), len(which), problem.x.shape[1]
    margins, held = torch.empty(m, r), torch.empty(m, r, dtype=torch.bool)
    for at in torch.arange(m).split(max(1, CELLS_A_BATCH // (r * p))):
        part = actions.part(at)
        moved = redraws.decode(problem.x[part.rows], part.values, part.sets, which)
        reached = problem.admitted(part.rows, part.sets, moved).reshape(-1, p)
        margin, valid = problem.decide(reached, part.rows.repeat_interleave(r))
        margins[at], held[at] = margin.view(-1, r), valid.view(-1, r)
    return margins, held


def reliance(problem: SearchProblem, actions: Actions) -> Tensor:
    """(m,) the least share of the indirect change with which the decision holds, and all above it.

    One of 0, 1/4, 1/2, 3/4, 1. At 0 the action alone suffices; 1 says that all of it is needed.
    """
    p = actions.reached.shape[1]
    parts = torch.arange(len(actions)).split(max(1, CELLS_A_BATCH // (len(SHARES) * p)))
    return torch.cat([_reliance(problem, actions.part(at)) for at in parts])


def _reliance(problem: SearchProblem, actions: Actions) -> Tensor:
    x, whole = problem.x[actions.rows][:, None], actions.reached[:, None]
    (m, p), shares = actions.reached.shape, torch.tensor(SHARES)[:, None]
    number = (problem.numbers & ~is_special(x)) & ~is_special(whole)
    way = torch.where(number, x + shares * (whole - x), torch.where(shares >= HALF, whole, x))
    way = problem.feasible.project(x[:, 0], way, actions.rows)
    way = torch.where(problem.sets.masks[actions.sets][:, None], whole, way).reshape(-1, p)
    _, valid = problem.decide(way, actions.rows.repeat_interleave(len(SHARES)))
    # From the top down: how many shares in a row, besides the whole, are accepted.
    held = valid.view(m, len(SHARES)).flip(1).long().cumprod(1).sum(1)
    return torch.tensor([*SHARES, 1.0])[len(SHARES) - held]


def plausibility(problem: SearchProblem, actions: Actions, evidence: Evidence) -> Tensor:
    """(m,) the conformal p-values of where actions lead; see `Plausibility`."""
    return evidence.plausibility.of(actions.reached)


def support(problem: SearchProblem, actions: Actions, evidence: Evidence) -> Tensor:
    """(m,) the share of accepted neighbours of where actions lead; see `Support`."""
    return evidence.support.of(actions.reached, problem.goal.select(actions.rows))
