"""Brackets: between the last failure and the first success lies the smallest change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.problem import Search, SearchProblem
from dear_plugin.search.scan import CandidateScan

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
    def of(
        cls, problem: SearchProblem, scans: Iterable[CandidateScan], incumbents: Incumbents
    ) -> Bracket:
        """The brackets around the cheapest success of each pair that was scanned and has one.

        Args:
            problem: who asks what.
            scans: what was scanned; the later ones are of pairs of the first.
            incumbents: what came of it.
        """
        x, ends = problem.x[:, problem.sets.positions[:, 0]], incumbents.values[..., 0]
        # Turned round where they end below the factual, all brackets lie above it.
        turn = torch.where(ends > x, 1.0, -1.0)
        low, high = x * turn, ends * turn
        whole, *_ = parts = [scan.among(incumbents.solved_pairs) for scan in scans]
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

    def interpolate(self, problem: SearchProblem, shares: Tensor) -> Tensor:
        """(m, c) the values at shares, (m, c), of the way, as an action may set them."""
        low, high = self.first.split(1, 1)
        return problem.feasible.snap(
            torch.lerp(low, high, shares), self._feature(problem), self.rows
        )

    def can_improve(self, known: Tensor) -> Tensor:
        """(q,) where direct cost alone does not rule out something cheaper than known, (n,).

        The whole cost at `low` would rule out more, but indirect changes are not monotone.
        """
        return ((self.low - self.x).abs() < known[self.rows]).nonzero()[:, 0]

    def inside(self, problem: SearchProblem, points: Tensor) -> Tensor:
        """(m, c) bool: which points are neither end, one of which may be the factual."""
        room = problem.feasible.steps[self._feature(problem), None] / 4.0
        low, high = ((points - end[:, None]).abs() for end in (self.low, self.high))
        return torch.minimum(low, high) > room

    def part(self, at: Tensor) -> Bracket:
        """Some of them, (q,) ascending."""
        if len(at) == len(self):
            return self
        own = self.rows, self.sets, self.x, self.first, self.start, self.low, self.high
        return Bracket(*(each[at] for each in own))

    def narrowed(self, points: Tensor, valid: Tensor, step: int) -> Bracket:
        """What is left: up to the first of the points, (m, c) ascending, that is good."""
        at = torch.cat([valid, valid.new_ones(len(valid), 1)], 1).int().argmax(1, keepdim=True)
        ends = torch.cat([self.low[:, None], points, self.high[:, None]], 1)
        low, high = (ends.gather(1, end)[:, 0] for end in (at, at + 1))
        return replace(self, start=self.start + step * at[:, 0], low=low, high=high)

    def _feature(self, problem: SearchProblem) -> Tensor:
        return problem.sets.positions[self.sets, 0]


def bisect(
    problem: SearchProblem, bracket: Bracket, search: Search, incumbents: Incumbents, prune: bool
) -> None:
    """Halve brackets until they are narrow.

    The first cut makes four parts, for successes need not be monotone; all later ones two.

    Args:
        problem: what is asked.
        bracket: what is cut.
        search: `refine` is how often.
        incumbents: the best of each pair so far.
        prune: leave alone what cannot hold a row's cheapest.
    """
    if prune:
        bracket = bracket.part(bracket.can_improve(incumbents.known))
    halvings = min(search.refine, HALVINGS)
    whole = steps = 1 << halvings
    for parts in _cuts(halvings):
        steps //= parts
        shares = (bracket.start[:, None] + steps * torch.arange(1, parts)) / whole
        points = bracket.interpolate(problem, shares)
        inside = bracket.inside(problem, points)
        going = inside.any(1).nonzero()[:, 0]
        bracket, points, inside = bracket.part(going), points[going], inside[going]
        if not len(bracket):
            return
        evaluation = problem.evaluate(bracket.rows, bracket.sets, points[..., None], search.slack)
        evaluation = evaluation.only(inside)
        incumbents.update(bracket.rows, bracket.sets, points[..., None], evaluation)
        bracket = bracket.narrowed(points, evaluation.valid, steps)


def _cuts(halvings: int) -> list[int]:
    """Into how many parts each cut divides what is left."""
    return [4, *[2] * (halvings - 2)] if halvings > 1 else [2] * halvings
