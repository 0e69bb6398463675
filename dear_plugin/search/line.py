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
from dear_plugin.search.question import Answer, Found, Question, Search
from dear_plugin.search.scan import Scan, foretold

# Brackets are cut into eighths, which is to halve them three times.
HALVINGS = 3
PARTS = 1 << HALVINGS
INSIDE = torch.arange(1, PARTS) / PARTS

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
        scans += Scan.of(question, lost, [grids.dense], search.slack)
        for half in scans[-1].halves():
            look(half, question, found)
    _close_in(question, _Bracket.of(question, scans, found), search, found, prune)


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
    if _few(question, int(asked.sum()) * (coarse.shape[1] + between.shape[1])):
        both = Scan.of(question, asked, [coarse, between], slack)
        first, second = foretold(question, both)
        return first, second.among
    (first,) = Scan.of(question, asked, [coarse], slack)
    return first, lambda some: Scan.of(question, some, [between], slack)[0]


def _few(question: Question, count: int) -> bool:
    """Whether so many values are sooner asked about in advance than some of them later."""
    return 0 < count <= FEW and question.classifier.is_module


@dataclass(frozen=True)
class _Bracket:
    """Between the last failure and the first success of m pairs (row, set).

    Attributes:
        rows: (m,) who acts.
        sets: (m,) on which set.
        low: (m,) a value that fails, or the factual.
        high: (m,) a value that succeeds, farther from the factual.
        x: (m,) the factual.
        points: (m, 7) the values that cut it into eighths, as an action may set them.
    """

    rows: Tensor
    sets: Tensor
    low: Tensor
    high: Tensor
    x: Tensor
    points: Tensor

    @classmethod
    def of(cls, question: Question, scans: Iterable[Scan], found: Found) -> _Bracket:
        """The brackets around the cheapest success of each pair that was scanned and has one.

        Args:
            question: who asks what.
            scans: what was scanned; the later ones are of pairs of the first.
            found: what came of it.
        """
        low, solved = question.x[:, question.sets.positions[:, 0]], found.solved_pairs
        first, *_ = parts = [scan.tried(solved) for scan in scans]
        for pair, x, values in parts:
            gap, beyond = values - x, found.values[pair][:, :1] - x
            inner = (gap * beyond > 0) & (gap.abs() < beyond.abs())
            nearest, where = gap.abs().masked_fill_(~inner, -1.0).max(1)
            nearer = nearest > (low[pair] - x[:, 0]).abs()
            low[pair] = torch.where(nearer, values.gather(1, where[:, None])[:, 0], low[pair])
        pair, x, _ = first
        return cls.between(question, pair, low[pair], found.values[pair][:, 0], x[:, 0])

    @classmethod
    def between(
        cls, question: Question, pair: tuple[Tensor, Tensor], low: Tensor, high: Tensor, x: Tensor
    ) -> _Bracket:
        """Brackets of pairs, with the points that cut them; see the attributes."""
        inside = torch.lerp(low[:, None], high[:, None], INSIDE)
        rows, sets = pair
        points = question.limits.snap(inside, question.sets.positions[sets, 0], rows)
        return cls(rows, sets, low, high, x, points)

    @property
    def bound(self) -> Tensor:
        """(m,) no success beyond `low` costs less: its direct cost alone is as much.

        The whole cost at `low` would prune more, but indirect changes are not monotone.
        """
        return (self.low - self.x).abs()

    def going(self, question: Question, known: Tensor) -> Tensor:
        """(q,) those that may hold, at a point, something cheaper than is known, (n,)."""
        room = question.limits.steps[question.sets.positions[self.sets, 0], None] / 4.0
        low, high = ((self.points - end[:, None]).abs() for end in (self.low, self.high))
        wide = (torch.minimum(low, high) > room).any(1)
        return (wide & (self.bound < known[self.rows])).nonzero()[:, 0]

    def part(self, at: Tensor) -> _Bracket:
        """Some of them, (q,) ascending."""
        if len(at) == len(self.rows):
            return self
        return _Bracket(*(each[at] for each in vars(self).values()))

    def eighths(self, question: Question, at: Tensor) -> _Bracket:
        """Some, (q,), of their eighths, of which there are m * 8."""
        ends = torch.cat([self.low[:, None], self.points, self.high[:, None]], 1)
        low, high = (side.reshape(-1)[at] for side in (ends[:, :-1], ends[:, 1:]))
        whole = at // PARTS
        pair = self.rows[whole], self.sets[whole]
        return self.between(question, pair, low, high, self.x[whole])


def _close_in(
    question: Question, bracket: _Bracket, search: Search, found: Found, prune: bool
) -> None:
    """Cut brackets until they are narrow, or can hold nothing cheaper."""
    told: Answer | None = None
    for left in reversed(range(-(-search.refine // HALVINGS))):
        known = found.cost.amin(1) if prune else found.cost.new_full((len(question),), torch.inf)
        at = bracket.going(question, known)
        if not len(at):
            break
        bracket, inner = bracket.part(at), None
        every, values = torch.arange(len(at) * PARTS), bracket.points
        if told is not None:
            told = told.part(at)
        else:
            # Of few, all that the next cut may ask is asked about in advance.
            if left and _few(question, len(every) * values.shape[1]):
                inner = bracket.eighths(question, every)
                values = torch.cat([values, inner.points.view(len(at), -1)], 1)
            answer = question.ask(bracket.rows, bracket.sets, values[..., None], search.slack)
            told, later = answer.split([PARTS - 1, values.shape[1] - PARTS + 1])
        found.note(bracket.rows, bracket.sets, bracket.points[..., None], told)
        if not left:
            break
        # The eighth that ends in the first success; the last one ends in the bracket's own.
        which = torch.cat([told.good, told.good.new_ones(len(at), 1)], 1).int().argmax(1)
        nearest = every[::PARTS] + which
        if inner is None:
            bracket, told = bracket.eighths(question, nearest), None
        else:
            places = which[:, None] * (PARTS - 1) + torch.arange(PARTS - 1)
            bracket, told = inner.part(nearest), later.at(places)
