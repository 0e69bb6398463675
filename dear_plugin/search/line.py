"""Line search: the smallest change of one feature that succeeds, for all rows and sets at once.

For one feature the problem is one-dimensional: scan its admissible values, then close in on the
smallest change that succeeds. It needs no gradient, finds non-monotone solutions, and cannot
stall on a plateau.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.search.grids import Grids, numbers, others
from dear_plugin.search.question import Answer, Found, Question, Search

# Brackets are quartered, which is to halve them twice.
HALVINGS = 2
QUARTERS = torch.tensor([0.25, 0.5, 0.75])


def line_search(
    question: Question, grids: Grids, search: Search, found: Found, prune: bool = True
) -> None:
    """Note the cheapest success of every row and singleton.

    Args:
        question: who asks what.
        grids: the values to try first.
        search: how finely.
        found: where to note it.
        prune: refine only sets that may still become a row's cheapest.
    """
    for rows, sets, values in others(question, grids):
        found.note(rows, sets, values, question.ask(rows, sets, values, search.slack))
    coarse, between = grids.values
    asked = question.may & grids.numeric
    _scan(question, asked, coarse, search, found, prune)
    _scan(question, asked & _promising(found, search.deepen), between, search, found, prune)
    # Nothing yet: every value that is worth a name is tried before the row is given up.
    _scan(question, asked & ~found.solved[:, None], grids.dense, search, found, prune)


def _promising(found: Found, count: int) -> Tensor:
    """(n, s) bool: every set of unsolved rows, the cheapest few of solved ones.

    Successes need not be monotone: a window nearer to the factual may lie between coarse values.
    """
    ranks = found.cost.argsort(dim=1, stable=True).argsort(dim=1)
    return ~found.solved[:, None] | ((ranks < count) & found.cost.isfinite())


def _scan(
    question: Question, asked: Tensor, grid: Tensor, search: Search, found: Found, prune: bool
) -> None:
    """Ask for the grid's values, then close in on the factual."""
    for rows, sets, values in numbers(question, asked, grid):
        wanted = _worth(question, rows, sets, values, found) if prune else None
        answer = question.ask(rows, sets, values, search.slack, wanted)
        found.note(rows, sets, values, answer)
        bracket = _Bracket.of(question, rows, sets, values[..., 0], answer)
        for _ in range(-(-search.refine // HALVINGS)):
            if not _close_in(question, bracket, search, found, prune):
                break


def _worth(question: Question, rows: Tensor, sets: Tensor, values: Tensor, found: Found) -> Tensor:
    """(m, c) bool: values that may still be a row's cheapest success.

    Direct cost alone bounds the whole from below, so nothing cheaper is missed.
    """
    gap = (values[..., 0] - question.x[rows, question.sets.positions[sets, 0], None]).abs()
    return gap < found.cost.amin(1)[rows, None]


@dataclass
class _Bracket:
    """Between the last failure and the first success of m pairs (row, set).

    Attributes:
        rows: (m,) who acts.
        sets: (m,) on which set.
        low: (m,) a value that fails, or the factual.
        high: (m,) a value that succeeds, farther from the factual.
        x: (m,) the factual.
    """

    rows: Tensor
    sets: Tensor
    low: Tensor
    high: Tensor
    x: Tensor

    @classmethod
    def of(
        cls, question: Question, rows: Tensor, sets: Tensor, values: Tensor, answer: Answer
    ) -> _Bracket:
        """The brackets around each pair's cheapest success, if it has one."""
        least, at = torch.where(answer.good, answer.cost, torch.inf).min(1)
        x = question.x[rows, question.sets.positions[sets, 0]]
        high = values.gather(1, at[:, None])
        gap, reach = values - x[:, None], high - x[:, None]
        inner = torch.where((gap * reach > 0) & (gap.abs() < reach.abs()), gap.abs(), -1.0)
        nearest, where = inner.max(1)
        some = nearest > 0
        low = torch.where(some, values.gather(1, where[:, None])[:, 0], x)
        solved = least.isfinite()
        return cls(rows[solved], sets[solved], low[solved], high[solved, 0], x[solved])

    @property
    def bound(self) -> Tensor:
        """(m,) no success beyond `low` costs less: its direct cost alone is as much.

        The whole cost at `low` would prune more, but indirect changes are not monotone.
        """
        return (self.low - self.x).abs()

    def narrow(self, at: Tensor, points: Tensor, good: Tensor) -> None:
        """Take in what came of points, (q, c), between the ends of some brackets, (q,)."""
        ladder = torch.cat([self.low[at, None], points, self.high[at, None]], 1)
        ends = torch.cat([good, good.new_ones(len(at), 1)], 1)
        first = ends.int().argmax(1)[:, None]
        self.low[at] = ladder.gather(1, first)[:, 0]
        self.high[at] = ladder.gather(1, first + 1)[:, 0]


def _close_in(
    question: Question, bracket: _Bracket, search: Search, found: Found, prune: bool
) -> bool:
    """Quarter the brackets once; False when none is left to quarter."""
    feature = question.sets.positions[bracket.sets, 0]
    inside = torch.lerp(bracket.low[:, None], bracket.high[:, None], QUARTERS)
    points = question.limits.snap(inside, feature, bracket.rows)
    room = question.limits.steps[feature, None] / 4.0
    between = torch.minimum(
        (points - bracket.low[:, None]).abs(), (points - bracket.high[:, None]).abs()
    )
    going = (between > room).any(1)
    if prune:
        going &= bracket.bound < found.cost.amin(1)[bracket.rows]
    at = going.nonzero()[:, 0]
    if not len(at):
        return False
    rows, sets, values = bracket.rows[at], bracket.sets[at], points[at]
    answer = question.ask(rows, sets, values[..., None], search.slack)
    found.note(rows, sets, values[..., None], answer)
    bracket.narrow(at, values, answer.good)
    return True
