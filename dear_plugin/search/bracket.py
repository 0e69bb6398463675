"""Brackets: between the last failure and the first success lies the smallest change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.search.question import Answer, Found, Question, Search
from dear_plugin.search.scan import Scan, few

# Brackets are cut into eighths, which is to halve them three times.
HALVINGS = 3
PARTS = 1 << HALVINGS
INSIDE = torch.arange(1, PARTS) / PARTS


@dataclass(frozen=True)
class Bracket:
    """Between the last failure and the first success of m pairs (row, set).

    Attributes:
        rows: (m,) who acts.
        sets: (m,) on which set.
        low: (m,) a value that fails, or the factual.
        high: (m,) a value that succeeds, farther from the factual.
        x: (m,) the factual.
        points: (m, 7) the values that cut it into eighths, as an action may set them.
        told: what comes of the points, (m, 7); None while it is not known.
    """

    rows: Tensor
    sets: Tensor
    low: Tensor
    high: Tensor
    x: Tensor
    points: Tensor
    told: Answer | None = None

    @classmethod
    def of(cls, question: Question, scans: Iterable[Scan], found: Found) -> Bracket:
        """The brackets around the cheapest success of each pair that was scanned and has one.

        Args:
            question: who asks what.
            scans: what was scanned; the later ones are of pairs of the first.
            found: what came of it.
        """
        x, ends = question.x[:, question.sets.positions[:, 0]], found.values[..., 0]
        # Turned round where they end below the factual, all brackets lie above it.
        turn = torch.where(ends > x, 1.0, -1.0)
        low, high = x * turn, ends * turn
        first, *_ = parts = [scan.among(found.solved_pairs) for scan in scans]
        for done in parts:
            pair = done.rows, done.sets
            tried = done.values * turn[pair][:, None]
            inner = tried.masked_fill_(tried >= high[pair][:, None], -torch.inf).amax(1)
            low[pair] = torch.maximum(low[pair], inner)
        pair = first.rows, first.sets
        return cls._between(question, pair, (low * turn)[pair], ends[pair], first.x[:, 0])

    @classmethod
    def _between(
        cls, question: Question, pair: tuple[Tensor, Tensor], low: Tensor, high: Tensor, x: Tensor
    ) -> Bracket:
        inside, (rows, sets) = torch.lerp(low[:, None], high[:, None], INSIDE), pair
        points = question.limits.snap(inside, question.sets.positions[sets, 0], rows)
        return cls(rows, sets, low, high, x, points)

    @property
    def bound(self) -> Tensor:
        """(m,) no success beyond `low` costs less: its direct cost alone is as much.

        The whole cost at `low` would prune more, but indirect changes are not monotone.
        """
        return (self.low - self.x).abs()

    def going(self, question: Question, known: Tensor) -> Tensor:
        """(q,) those wide enough to be cut that may hold something cheaper than is known, (n,)."""
        room = question.limits.steps[question.sets.positions[self.sets, 0], None] / 4.0
        low, high = ((self.points - end[:, None]).abs() for end in (self.low, self.high))
        wide = (torch.minimum(low, high) > room).any(1)
        return (wide & (self.bound < known[self.rows])).nonzero()[:, 0]

    def part(self, at: Tensor) -> Bracket:
        """Some of them, (q,) ascending."""
        if len(at) == len(self.rows):
            return self
        rows, sets, low, high, x, points = (
            each[at] for each in (self.rows, self.sets, self.low, self.high, self.x, self.points)
        )
        told = None if self.told is None else self.told.part(at)
        return Bracket(rows, sets, low, high, x, points, told)

    def eighths(self, question: Question, at: Tensor) -> Bracket:
        """Some, (q,), of their eighths, of which there are m * 8."""
        ends = torch.cat([self.low[:, None], self.points, self.high[:, None]], 1)
        low, high = (side.reshape(-1)[at] for side in (ends[:, :-1], ends[:, 1:]))
        whole = at // PARTS
        pair = self.rows[whole], self.sets[whole]
        return self._between(question, pair, low, high, self.x[whole])


def close_in(
    question: Question, bracket: Bracket, search: Search, found: Found, prune: bool
) -> None:
    """Cut brackets until they are narrow, or can hold nothing cheaper.

    Args:
        question: who asks what.
        bracket: what is cut.
        search: how often.
        found: where to note what comes of it.
        prune: leave alone what cannot hold a row's cheapest.
    """
    for left in reversed(range(-(-search.refine // HALVINGS))):
        known = found.cost.amin(1) if prune else found.cost.new_full((len(question),), torch.inf)
        bracket = bracket.part(bracket.going(question, known))
        if not len(bracket.rows):
            return
        answer, eighths = _ask(question, bracket, search.slack, left > 0)
        found.note(bracket.rows, bracket.sets, bracket.points[..., None], answer)
        if not left:
            return
        # The eighth that ends in the first success; the last one ends in the bracket's own.
        ends = torch.cat([answer.good, answer.good.new_ones(len(answer.good), 1)], 1)
        nearest = PARTS * torch.arange(len(ends)) + ends.int().argmax(1)
        bracket = bracket.eighths(question, nearest) if eighths is None else eighths.part(nearest)


def _ask(
    question: Question, bracket: Bracket, slack: float, ahead: bool
) -> tuple[Answer, Bracket | None]:
    """What comes of the points, and all eighths with what comes of theirs, if those are few.

    Args:
        question: who asks what.
        bracket: what is cut.
        slack: how far past the boundary to aim.
        ahead: whether the eighths will be asked about at all.
    """
    if bracket.told is not None:
        return bracket.told, None
    m, w = bracket.points.shape
    eighths, points = None, bracket.points
    # Of few, all that the next cut may ask is asked about in advance.
    if ahead and few(question, m * PARTS * w):
        eighths = bracket.eighths(question, torch.arange(m * PARTS))
        points = torch.cat([points, eighths.points.view(m, PARTS * w)], 1)
    answer = question.ask(bracket.rows, bracket.sets, points[..., None], slack)
    if eighths is None:
        return answer, None
    now, later = answer.split([w, PARTS * w])
    return now, replace(eighths, told=later.wrapped(w))
