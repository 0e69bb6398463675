"""Brackets: between the last failure and the first success lies the smallest change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.incumbent import Found
from dear_plugin.search.problem import Question, Search
from dear_plugin.search.scan import Scan, few

# Of a module's many brackets, so many parts of each are told apart in one call.
PARTS = 8
# As often as a float32 can be halved before its neighbours are the same.
HALVINGS = 24


@dataclass(frozen=True)
class Bracket:
    """Between the last failure and the first success of m pairs (row, set).

    Attributes:
        rows: (m,) who acts.
        sets: (m,) on which set.
        x: (m,) the factual.
        first: (m, 2) a value that fails, or the factual; one that succeeds, farther away.
        start: (m,) int64, where on the way between these what is left of it begins, in steps of
            which there are `2 ** refine`.
        low: (m,) the value there.
        high: (m,) the value where it ends.
    """

    rows: Tensor
    sets: Tensor
    x: Tensor
    first: Tensor
    start: Tensor
    low: Tensor
    high: Tensor

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
        whole, *_ = parts = [scan.among(found.solved_pairs) for scan in scans]
        for done in parts:
            pair = done.rows, done.sets
            tried = done.values * turn[pair][:, None]
            inner = tried.masked_fill_(tried >= high[pair][:, None], -torch.inf).amax(1)
            low[pair] = torch.maximum(low[pair], inner)
        pair = whole.rows, whole.sets
        first = torch.stack([(low * turn)[pair], ends[pair]], 1)
        start = torch.zeros_like(whole.rows)
        return cls(*pair, whole.x[:, 0], first, start, first[:, 0], first[:, 1])

    def __len__(self) -> int:
        """How many pairs (m)."""
        return len(self.rows)

    def points(self, question: Question, shares: Tensor) -> Tensor:
        """(m, c) the values at shares, (m, c), of the way, as an action may set them."""
        low, high = self.first.split(1, 1)
        return question.limits.snap(
            torch.lerp(low, high, shares), self._feature(question), self.rows
        )

    def hopeful(self, known: Tensor) -> Tensor:
        """(q,) where direct cost alone does not rule out something cheaper than known, (n,).

        The whole cost at `low` would rule out more, but indirect changes are not monotone.
        """
        return ((self.low - self.x).abs() < known[self.rows]).nonzero()[:, 0]

    def inside(self, question: Question, points: Tensor) -> Tensor:
        """(m, c) bool: which points are neither end, one of which may be the factual."""
        room = question.limits.steps[self._feature(question), None] / 4.0
        low, high = ((points - end[:, None]).abs() for end in (self.low, self.high))
        return torch.minimum(low, high) > room

    def part(self, at: Tensor) -> Bracket:
        """Some of them, (q,) ascending."""
        if len(at) == len(self):
            return self
        own = self.rows, self.sets, self.x, self.first, self.start, self.low, self.high
        return Bracket(*(each[at] for each in own))

    def narrowed(self, points: Tensor, good: Tensor, step: int) -> Bracket:
        """What is left: up to the first of the points, (m, c) ascending, that is good."""
        at = torch.cat([good, good.new_ones(len(good), 1)], 1).int().argmax(1, keepdim=True)
        ends = torch.cat([self.low[:, None], points, self.high[:, None]], 1)
        low, high = (ends.gather(1, end)[:, 0] for end in (at, at + 1))
        return replace(self, start=self.start + step * at[:, 0], low=low, high=high)

    def _feature(self, question: Question) -> Tensor:
        return question.sets.positions[self.sets, 0]


def close_in(
    question: Question, bracket: Bracket, search: Search, found: Found, prune: bool
) -> None:
    """Cut brackets until they are narrow.

    However many cuts one call makes, the answer is the same: what cut after cut would not have
    asked about does not count, and of equal costs what it would have asked about first wins.

    Args:
        question: who asks what.
        bracket: what is cut.
        search: how often.
        found: where to note what comes of it.
        prune: leave alone what cannot hold a row's cheapest.
    """
    if prune:
        bracket = bracket.part(bracket.hopeful(found.known))
    halvings = min(search.refine, HALVINGS)
    whole = steps = 1 << halvings
    for cuts in _calls(_cuts(halvings), _at_once(question, len(bracket) * whole)):
        steps //= prod(cuts)
        order = torch.tensor(_order(cuts))
        points = bracket.points(question, (bracket.start[:, None] + steps * order) / whole)
        inside = bracket.inside(question, points)
        going = inside.any(1).nonzero()[:, 0]
        bracket, points, inside = bracket.part(going), points[going], inside[going]
        if not len(bracket):
            return
        answer = question.ask(bracket.rows, bracket.sets, points[..., None], search.slack)
        up = order.argsort()
        answer = answer.only(inside & _come_by(answer.good & inside, cuts, up))
        found.note(bracket.rows, bracket.sets, points[..., None], answer)
        if steps > 1:
            bracket = bracket.narrowed(points[:, up], answer.good[:, up], steps)


def _cuts(halvings: int) -> list[int]:
    """Into how many parts each cut divides what is left.

    The first looks round, for successes need not be monotone; the others ask about one value each.
    """
    return [4, *[2] * (halvings - 2)] if halvings > 1 else [2] * halvings


def _at_once(question: Question, values: int) -> int:
    """How many parts are told apart in one call: a module is sooner asked about more values."""
    if few(question, values):
        return values
    return PARTS if question.classifier.is_module else 1


def _calls(cuts: Sequence[int], most: int) -> Iterator[list[int]]:
    """The cuts that one call each makes, of which the parts multiplied out are at most so many."""
    together: list[int] = []
    for parts in cuts:
        if together and prod(together) * parts > most:
            yield together
            together = []
        together.append(parts)
    if together:
        yield together


def _order(cuts: Sequence[int]) -> list[int]:
    """The points that cuts may ask about, in steps of the last one, in the order of the cuts."""
    order: list[int] = []
    whole = step = prod(cuts)
    for parts in cuts:
        before, step = step, step // parts
        order += [place for place in range(step, whole, step) if place % before]
    return order


def _come_by(good: Tensor, cuts: Sequence[int], up: Tensor) -> Tensor:
    """(m, c) bool: of the points, in the order of the cuts, those that would be asked about.

    Args:
        good: (m, c) what is known of them.
        cuts: into how many parts each cut divides what is left.
        up: (c,) where the points stand in that order, ascending.
    """
    c = good.shape[1]
    # Beside the points stands the end of it all, which is good; so is each later end, or it would
    # not have been chosen.
    fine, column = np.ones((len(good), c + 1), dtype=bool), np.append(up.numpy(), c)
    fine[:, :c] = good.numpy()
    seen, pairs = np.zeros_like(fine), np.arange(len(fine))[:, None]
    start, steps = np.zeros_like(pairs), prod(cuts)
    for parts in cuts:
        steps //= parts
        at = pairs, column[start + steps * np.arange(1, parts + 1) - 1]
        seen[at] = True
        start += steps * fine[at].argmax(1, keepdims=True)
    return torch.from_numpy(seen[:, :c])
