"""Bisection: narrows brackets between a failing and a succeeding value of one feature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.problem import Search, SearchProblem
from dear_plugin.search.scan import CandidateScan

# After as many halvings of a float32 interval no value is left inside.
HALVINGS = 24


@dataclass(frozen=True)
class Bracket:
    """The intervals between the last failure and the first success of m pairs (row, set).

    Attributes:
        rows: (m,) the row.
        sets: (m,) the set.
        x: (m,) the factual value.
        first: (m, 2) the ends of the initial interval: a value that fails, or the factual; and
            one that succeeds, farther away.
        start: (m,) int64, where the current interval begins, in `2 ** refine` parts of the
            initial one.
        low: (m,) the value there.
        high: (m,) the value where the current interval ends.
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
        """The brackets around the cheapest success of each scanned pair that has one.

        Args:
            problem: the search problem.
            scans: the evaluated scans; later ones cover pairs of the first.
            incumbents: the successes of the scans.
        """
        x, ends = problem.x[:, problem.sets.positions[:, 0]], incumbents.values[..., 0]
        # Mirrored where the success lies below the factual, so that low < high everywhere.
        sign = torch.where(ends > x, 1.0, -1.0)
        low, high = x * sign, ends * sign
        whole, *_ = parts = [scan.restrict(incumbents.solved_pairs) for scan in scans]
        for scan in parts:
            pair = scan.rows, scan.sets
            values = scan.values * sign[pair][:, None]
            inner = values.masked_fill_(values >= high[pair][:, None], -torch.inf).amax(1)
            low[pair] = torch.maximum(low[pair], inner)
        pair = whole.rows, whole.sets
        first = torch.stack([(low * sign)[pair], ends[pair]], 1)
        start = torch.zeros_like(whole.rows)
        return cls(*pair, whole.x[:, 0], first, start, first[:, 0], first[:, 1])

    def __len__(self) -> int:
        """The number of pairs (m)."""
        return len(self.rows)

    def interpolate(self, problem: SearchProblem, shares: Tensor) -> Tensor:
        """(m, c) the values at shares, (m, c), of the initial interval, snapped."""
        low, high = self.first.split(1, 1)
        return problem.feasible.snap(
            torch.lerp(low, high, shares), self._feature(problem), self.rows
        )

    def can_improve(self, bound: Tensor) -> Tensor:
        """(q,) the pairs whose direct cost at `low` is below their row's bound, (n,).

        The whole cost at `low` would exclude more, but indirect changes are not monotone.
        """
        return ((self.low - self.x).abs() < bound[self.rows]).nonzero()[:, 0]

    def inside(self, problem: SearchProblem, points: Tensor) -> Tensor:
        """(m, c) bool: which points differ from both ends of the current interval."""
        tolerance = problem.feasible.steps[self._feature(problem), None] / 4.0
        low, high = ((points - end[:, None]).abs() for end in (self.low, self.high))
        return torch.minimum(low, high) > tolerance

    def part(self, at: Tensor) -> Bracket:
        """The brackets at positions (q,), ascending."""
        if len(at) == len(self):
            return self
        fields = self.rows, self.sets, self.x, self.first, self.start, self.low, self.high
        return Bracket(*(each[at] for each in fields))

    def narrowed(self, points: Tensor, valid: Tensor, step: int) -> Bracket:
        """The brackets up to the first valid point, of (m, c) ascending, `step` parts apart."""
        at = torch.cat([valid, valid.new_ones(len(valid), 1)], 1).int().argmax(1, keepdim=True)
        ends = torch.cat([self.low[:, None], points, self.high[:, None]], 1)
        low, high = (ends.gather(1, end)[:, 0] for end in (at, at + 1))
        return replace(self, start=self.start + step * at[:, 0], low=low, high=high)

    def _feature(self, problem: SearchProblem) -> Tensor:
        return problem.sets.positions[self.sets, 0]


def bisect(
    problem: SearchProblem, bracket: Bracket, search: Search, incumbents: Incumbents, prune: bool
) -> None:
    """Halve brackets `search.refine` times and update the incumbents.

    The first cut makes four parts, for successes need not be monotone; all later ones two.

    Args:
        problem: the search problem.
        bracket: the initial brackets.
        search: `refine` and `slack` are used.
        incumbents: the best success of each pair so far.
        prune: skip brackets that cannot contain a row's cheapest success.
    """
    if prune:
        bracket = bracket.part(bracket.can_improve(incumbents.cost_bound))
    halvings = min(search.refine, HALVINGS)
    whole = steps = 1 << halvings
    for parts in _cuts(halvings):
        steps //= parts
        shares = (bracket.start[:, None] + steps * torch.arange(1, parts)) / whole
        points = bracket.interpolate(problem, shares)
        inside = bracket.inside(problem, points)
        remaining = inside.any(1).nonzero()[:, 0]
        bracket, points, inside = bracket.part(remaining), points[remaining], inside[remaining]
        if not len(bracket):
            return
        evaluation = problem.evaluate(bracket.rows, bracket.sets, points[..., None], search.slack)
        evaluation = evaluation.masked(inside)
        incumbents.update(bracket.rows, bracket.sets, points[..., None], evaluation)
        bracket = bracket.narrowed(points, evaluation.valid, steps)


def _cuts(halvings: int) -> list[int]:
    """The number of parts that each cut makes."""
    return [4, *[2] * (halvings - 2)] if halvings > 1 else [2] * halvings
