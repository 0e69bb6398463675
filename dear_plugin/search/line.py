"""Line search: the smallest change of one feature that succeeds, for all rows and sets at once.

For one feature the problem is one-dimensional: scan its admissible values, then close in on the
smallest change that succeeds. It needs no gradient, finds non-monotone solutions, and cannot
stall on a plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.search.grids import Grids, others
from dear_plugin.search.question import Found, Question, Search
from dear_plugin.search.scan import Scan, foretold

# Brackets are cut into eighths, which is to halve them three times.
HALVINGS = 3
INSIDE = torch.arange(1, 1 << HALVINGS) / (1 << HALVINGS)

# As many values as one more call of the model is worth.
FEW = 1 << 10


def line_search(
    question: Question, grids: Grids, search: Search, found: Found, prune: bool = True
) -> None:
    """Note the cheapest success of every row and singleton.

    Args:
        question: who asks what.
        grids: the values to try first.
        search: how finely.
        found: where to note it.
        prune: ask only about what may still become a row's cheapest.
    """
    asked = question.may & grids.numeric
    coarse, between = _coarse_and_between(question, asked, grids, search.slack)
    look = Scan.search if prune else Scan.note
    # What the nearer half finds leaves little to ask of the other.
    for half in coarse.halves():
        look(half, question, found)
    deeper = between(asked & _promising(found, search.deepen))
    look(deeper, question, found)
    # To be of another category costs one: many rows have something cheaper by now.
    willing = question.may & (found.cost.amin(1) > 1.0)[:, None] if prune else question.may
    for rows, sets, values in others(question, willing, grids):
        found.note(rows, sets, values, question.ask(rows, sets, values, search.slack))
    scans, lost = [coarse, deeper], asked & ~found.solved[:, None]
    if bool(lost.any()):
        # Nothing yet: every value that is worth a name is tried before the row is given up.
        scans.append(Scan.of(question, lost, grids.dense, search.slack))
        for half in scans[-1].halves():
            look(half, question, found)
    bracket = _Bracket.of(question, scans, found)
    for _ in range(-(-search.refine // HALVINGS)):
        if not _close_in(question, bracket, search, found, prune):
            break


def _promising(found: Found, count: int) -> Tensor:
    """(n, s) bool: every set of unsolved rows, the cheapest few of solved ones.

    Successes need not be monotone: a window nearer to the factual may lie between coarse values.
    """
    if not count:
        return ~found.solved[:, None].expand(found.cost.shape)
    last = found.cost.kthvalue(min(count, found.cost.shape[1]), dim=1, keepdim=True).values
    return (found.cost <= last) & (found.cost.isfinite() | ~found.solved[:, None])


def _coarse_and_between(
    question: Question, asked: Tensor, grids: Grids, slack: float
) -> tuple[Scan, Callable[[Tensor], Scan]]:
    """The scan of the coarse values, and what gives that of those between for pairs, (n, s).

    A module is asked about few values all at once and in advance: a call costs as much as they do.
    """
    coarse, between = grids.values
    first = Scan.of(question, asked, coarse, slack)
    few = 0 < 2 * first.values.numel() <= FEW and question.classifier.is_module
    if not few:
        return first, lambda some: Scan.of(question, some, between, slack)
    first, second = foretold(question, [first, Scan.of(question, asked, between, slack)])
    return first, second.among


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
    def of(cls, question: Question, scans: Iterable[Scan], found: Found) -> _Bracket:
        """The brackets around the cheapest success of each pair that was scanned and has one.

        Args:
            question: who asks what.
            scans: what was scanned; the later ones are of pairs of the first.
            found: what came of it.
        """
        low, solved = question.x[:, question.sets.positions[:, 0]], found.solved_pairs
        first, *_ = parts = [scan.among(solved) for scan in scans]
        for done in parts:
            pair, x = (done.rows, done.sets), done.x
            gap, beyond = done.values - x, found.values[pair][:, :1] - x
            inner = (gap * beyond > 0) & (gap.abs() < beyond.abs())
            nearest, where = gap.abs().masked_fill_(~inner, -1.0).max(1)
            nearer = nearest > (low[pair] - x[:, 0]).abs()
            low[pair] = torch.where(nearer, done.values.gather(1, where[:, None])[:, 0], low[pair])
        pair = first.rows, first.sets
        return cls(*pair, low[pair], found.values[pair][:, 0], first.x[:, 0])

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
