"""Line search: the smallest change of one feature that succeeds, for all rows and sets at once.

For one feature the problem is one-dimensional: scan its admissible values, then close in on the
smallest change that succeeds. It needs no gradient, finds non-monotone solutions, and cannot
stall on a plateau.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.search.grids import Grids, numbers, others
from dear_plugin.search.question import Found, Question, Search

# Brackets are cut into eighths, which is to halve them three times.
HALVINGS = 3
INSIDE = torch.arange(1, 1 << HALVINGS) / (1 << HALVINGS)

# Which numeric singletons, (n, s) bool, were asked about which values, (s, c).
Scan = tuple[Tensor, Tensor]


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
    scans = [(asked, coarse)]
    _ask(question, scans[-1], search, found, prune)
    scans.append((asked & _promising(found, search.deepen), between))
    _ask(question, scans[-1], search, found, prune)
    # Nothing yet: every value that is worth a name is tried before the row is given up.
    scans.append((asked & ~found.solved[:, None], grids.dense))
    _ask(question, scans[-1], search, found, prune)
    bracket = _Bracket.of(question, scans, found)
    for _ in range(-(-search.refine // HALVINGS)):
        if not _close_in(question, bracket, search, found, prune):
            break


def _promising(found: Found, count: int) -> Tensor:
    """(n, s) bool: every set of unsolved rows, the cheapest few of solved ones.

    Successes need not be monotone: a window nearer to the factual may lie between coarse values.
    """
    ranks = found.cost.argsort(dim=1, stable=True).argsort(dim=1)
    return ~found.solved[:, None] | ((ranks < count) & found.cost.isfinite())


def _ask(question: Question, scan: Scan, search: Search, found: Found, prune: bool) -> None:
    """Ask for the values of a scan."""
    for rows, sets, values in numbers(question, *scan):
        wanted = _worth(question, rows, sets, values, found) if prune else None
        found.note(rows, sets, values, question.ask(rows, sets, values, search.slack, wanted))


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
    def of(cls, question: Question, scans: Sequence[Scan], found: Found) -> _Bracket:
        """The brackets around the cheapest success of each pair that was scanned and has one."""
        rows, sets = (scans[0][0] & found.solved_pairs).nonzero(as_tuple=True)
        feature, high = question.sets.positions[sets, 0], found.values[rows, sets, 0]
        x = question.x[rows, feature]
        low, reach = x.clone(), (high - x)[:, None]
        for asked, grid in scans:
            at = asked[rows, sets].nonzero()[:, 0]
            if not len(at):
                continue
            values = question.limits.snap(grid[sets[at]], feature[at], rows[at])
            gap, beyond = values - x[at, None], reach[at]
            inner = (gap * beyond > 0) & (gap.abs() < beyond.abs())
            nearest, where = torch.where(inner, gap.abs(), -1.0).max(1)
            nearer = nearest > (low[at] - x[at]).abs()
            low[at] = torch.where(nearer, values.gather(1, where[:, None])[:, 0], low[at])
        return cls(rows, sets, low, high, x)

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
    """Cut the brackets once; False when none is left to cut."""
    feature = question.sets.positions[bracket.sets, 0]
    inside = torch.lerp(bracket.low[:, None], bracket.high[:, None], INSIDE)
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
