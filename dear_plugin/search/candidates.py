"""Candidates: the values of x_S that a search tries, the same for every kind of model.

Numbers take all distinct training values where these are few, else quantiles and the neighbours of
the factual at ranks 1, 2, 4, ..., 512 on both sides (ranks need no scale), and the ends of ranges.
Categories and special levels are tried one and all. Several features together take well spread
combinations of such values, and values on the way from the factual to these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import row_value, without_special
from dear_plugin.search.problem import SMALLEST, SearchProblem

# Values of a number: 32 quantiles, or all distinct values up to 128; of these 16 are tried first.
MANY, ALL, COARSE = 32, 128, 16
# Values of a number that are tried where nothing is accepted.
DENSE = 256
# The ranks of the neighbours of the factual.
RANKS = 2 ** torch.arange(10)
# Combinations of several features, and the shares of the way to each that are tried as well.
COMBINATIONS, SHARES = 32, (0.25, 0.5)
# With tiers, the least change of each of several features acted on together.
LEAST_TOGETHER = 0.02
# Without all of them, a set of as many features tries all combinations of the ends of ranges.
MOST_CORNERS = 5


@dataclass(frozen=True)
class FeatureValues:
    """The values of every feature in the training rows.

    Attributes:
        distinct: (p,) tensors, ascending, the distinct values of a number; none of a category.
        values: (p, 128) all of them, ascending, or 32 quantiles; then NaN.
        coarse: (p, 128) bool, the few that are tried first.
        counts: (p,) the number of categories, 0 for numbers.
    """

    distinct: tuple[Tensor, ...]
    values: Tensor
    coarse: Tensor
    counts: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder) -> FeatureValues:
        """The values of training rows, (n, p)."""
        p = encoder.p
        counts = torch.tensor([len(f.categories) for f in encoder.schema])
        distinct = tuple(
            rows[:0, j] if counts[j] else without_special(rows[:, j]).unique() for j in range(p)
        )
        values, coarse = torch.full((p, ALL), torch.nan), torch.zeros(p, ALL, dtype=torch.bool)
        for j in (counts == 0).nonzero()[:, 0].tolist():
            some = distinct[j] if len(distinct[j]) <= ALL else quantiles(distinct[j], MANY)
            values[j, : len(some)] = some
            coarse[j, torch.linspace(0, len(some) - 1, COARSE).round().long()] = True
        return cls(distinct, values, coarse, counts)

    def neighbours(self, feature: int, x: Tensor) -> Tensor:
        """(m, 20) distinct values of a number at the ranks around values, (m,)."""
        values = self.distinct[feature]
        below = torch.searchsorted(values, x - SMALLEST)[:, None] - RANKS
        above = torch.searchsorted(values, x + SMALLEST, right=True)[:, None] + RANKS - 1
        at = torch.cat([below, above], 1)
        inside = (at >= 0) & (at < len(values))
        return torch.where(inside, values[at.clamp(0, len(values) - 1)], x[:, None])


@dataclass
class Block:
    """c values of each of m pairs of a row and a set, of which some are still to be tried.

    Attributes:
        rows: (m,) the row.
        sets: (m,) the set.
        values: (m, c, w) the values.
        direct: (m, c) their direct cost.
        untried: (m, c) bool.
        coarse: (m, c) bool, those that are tried before the others.
    """

    rows: Tensor
    sets: Tensor
    values: Tensor
    direct: Tensor
    untried: Tensor
    coarse: Tensor

    @classmethod
    def of(
        cls,
        problem: SearchProblem,
        rows: Tensor,
        sets: Tensor,
        values: Tensor,
        *,
        snap: bool = True,
    ) -> Block:
        """Values, (m, c, w), as actions may set them; those of size zero are left out."""
        if snap:
            values = problem.snapped(rows, sets, values)
        values = values.expand(-1, -1, problem.sets.positions.shape[1])
        own, positions = problem.own(rows, sets), problem.sets.positions[sets]
        change, one_hot = (values - own[:, None]).abs(), problem.feasible.rules.one_hot
        untried = (change > SMALLEST).any(2)
        if problem.has_tiers:
            # Each feature acted on moves: held at about its value, it would change what follows.
            least = torch.where(problem.sets.alone[sets], SMALLEST, LEAST_TOGETHER)
            untried = one_hot.together(change > least[:, None, None], positions).all(2)
        untried &= one_hot.holds(values, own, positions)
        direct = problem.direct_cost(rows, sets, values)
        return cls(rows, sets, values, direct, untried, torch.ones_like(untried))

    def take_all(self) -> tuple[Tensor, Tensor, Tensor]:
        """As `take`, all that are untried."""
        return self.take(torch.ones_like(self.untried))

    def take(self, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows (q,), sets (q,) and values (q, w) that are wanted, (m, c) bool, and untried."""
        at, place = (self.untried & wanted).nonzero(as_tuple=True)
        self.untried[at, place] = False
        return self.rows[at], self.sets[at], self.values[at, place]


def candidate_blocks(problem: SearchProblem, known: FeatureValues) -> Iterator[Block]:
    """The candidates of the actionable sets."""
    first, single = problem.sets.positions[:, 0], problem.sets.single
    numeric = single & (known.counts[first] == 0)
    rows, sets = (problem.actionable & numeric).nonzero(as_tuple=True)
    if len(rows):
        yield _numbers(problem, known, rows, sets)
    for i in (single & (known.counts[first] > 1)).nonzero()[:, 0].tolist():
        rows = problem.actionable[:, i].nonzero()[:, 0]
        every = torch.arange(int(known.counts[first[i]])).float()
        if len(rows):
            values = every.expand(len(rows), -1)[..., None]
            yield Block.of(problem, rows, torch.full_like(rows, i), values)
    for i in (problem.sets.alone & ~single).nonzero()[:, 0].tolist():
        rows = problem.actionable[:, i].nonzero()[:, 0]
        levels = torch.eye(len(problem.sets.members[i]))
        if len(rows):
            more = problem.sets.positions.shape[1] - len(levels)
            values = torch.cat([levels, levels[:, :1].expand(-1, more)], 1)
            wide = values.expand(len(rows), -1, -1)
            yield Block.of(problem, rows, torch.full_like(rows, i), wide)
    yield from _special(problem)
    rows, sets = (problem.actionable & ~problem.sets.alone).nonzero(as_tuple=True)
    if len(rows):
        yield combinations_of(problem, known, rows, sets, COMBINATIONS)


def _numbers(problem: SearchProblem, known: FeatureValues, rows: Tensor, sets: Tensor) -> Block:
    """Values of numbers, the neighbours of the factual, and the ends of ranges."""
    feature = problem.sets.positions[sets, 0]
    x, near = problem.x[rows, feature], torch.full((len(rows), 2 * len(RANKS)), torch.nan)
    # Of a number of few distinct values, all of them are tried.
    for j in (j for j in feature.unique().tolist() if len(known.distinct[j]) > ALL):
        at = (feature == j).nonzero()[:, 0]
        near[at] = known.neighbours(j, x[at])
    # A value outside of the range is no candidate: the end is.
    inside = _inside(problem, rows, feature, torch.cat([known.values[feature], near], 1))
    ends = _ends(problem, rows, feature)
    block = Block.of(problem, rows, sets, torch.cat([ends, inside], 1)[..., None])
    parts = torch.ones_like(ends).bool(), known.coarse[feature], torch.zeros_like(near).bool()
    return replace(block, coarse=torch.cat(parts, 1))


def quantiles(values: Tensor, count: int) -> Tensor:
    """(c,) at most `count` of distinct values, (l,): even by rank, and a quarter by value."""
    even = torch.linspace(0, len(values) - 1, count - count // 4).round().long()
    by_value = torch.linspace(float(values[0]), float(values[-1]), count // 4).to(values)
    near = torch.searchsorted(values, by_value).clamp_max(len(values) - 1)
    return values[torch.cat([even, near]).unique()]


def _inside(problem: SearchProblem, rows: Tensor, feature: Tensor, values: Tensor) -> Tensor:
    """(m, c) values, or the factual where they are outside of the bounds of an action."""
    low, high = (
        each[rows, feature][:, None] for each in (problem.feasible.low, problem.feasible.high)
    )
    x = problem.x[rows, feature][:, None]
    return torch.where((values >= low) & (values <= high), values, x)


def _ends(problem: SearchProblem, rows: Tensor, feature: Tensor) -> Tensor:
    """(..., 2) the ends of a range, or the factual where the bound is none.

    A bound at the factual comes from a direction, one at 0 or 1 from the observed values.

    Args:
        problem: the search problem.
        rows: (...) the row.
        feature: (...) the feature.
    """
    x, feasible = problem.x[rows, feature], problem.feasible
    low, high = feasible.low[rows, feature], feasible.high[rows, feature]
    return torch.stack([torch.where(low > 0.0, low, x), torch.where(high < 1.0, high, x)], -1)


def _special(problem: SearchProblem) -> Iterator[Block]:
    """The special levels of single numbers that an action may set."""
    levels = problem.feasible.levels
    if not bool(levels.enter.any()):
        return
    first, single = problem.sets.positions[:, 0], problem.sets.single
    count = torch.where(single & levels.enter[first], levels.counts[first], 0)
    for i in (count > 0).nonzero()[:, 0].tolist():
        rows = problem.actionable[:, i].nonzero()[:, 0]
        values = torch.tensor([row_value(level) for level in range(int(count[i]))])
        if len(rows):
            wide = values.expand(len(rows), -1)[..., None]
            yield Block.of(problem, rows, torch.full_like(rows, i), wide, snap=False)


def dense_block(problem: SearchProblem, known: FeatureValues, pairs: Tensor) -> Block | None:
    """Many values of single numbers of pairs, (n, s) bool; None without pairs."""
    first, single = problem.sets.positions[:, 0], problem.sets.single
    rows, sets = (pairs & single & (known.counts[first] == 0)).nonzero(as_tuple=True)
    if not len(rows):
        return None
    feature = problem.sets.positions[sets, 0]
    dense = torch.full((len(known.counts), DENSE), torch.nan)
    for j in feature.unique().tolist():
        some = quantiles(known.distinct[j], DENSE)
        dense[j, : len(some)] = some
    values = _inside(problem, rows, feature, dense[feature])
    return Block.of(problem, rows, sets, values[..., None])


def combinations_of(
    problem: SearchProblem, known: FeatureValues, rows: Tensor, sets: Tensor, count: int
) -> Block:
    """Combinations of several features, values on the way to the first of them; range corners.

    Args:
        problem: the search problem.
        known: the values of the features.
        rows: (m,) the rows.
        sets: (m,) sets of several features.
        count: the number of combinations.
    """
    positions = problem.sets.positions
    unit: Tensor = torch.quasirandom.SobolEngine(positions.shape[1]).draw(count)
    size = (~known.values.isnan()).sum(1)[positions][:, None]
    at = torch.minimum((unit * size).floor(), size - 1.0).long()
    level = (unit * known.counts[positions][:, None]).floor()
    number = known.counts[positions][:, None] == 0
    spread = torch.where(number, known.values[positions[:, None], at], level)
    spread = problem.feasible.rules.one_hot.leveled(spread, unit, positions)
    own = problem.own(rows, sets)[:, None]
    wanted = torch.cat([_corners(problem, rows, sets, number[sets]), spread[sets]], 1)
    first = wanted[:, :COMBINATIONS]
    ways = [torch.where(number[sets], own + share * (first - own), first) for share in SHARES]
    return Block.of(problem, rows, sets, torch.cat([wanted, *ways], 1))


def _corners(problem: SearchProblem, rows: Tensor, sets: Tensor, number: Tensor) -> Tensor:
    """(m, c, w) combinations of the ends of ranges; numbers without a range keep their value."""
    positions, own = problem.sets.positions[sets], problem.own(rows, sets)
    if not problem.feasible.is_narrowed:
        return own[:, None][:, :0]
    width = min(positions.shape[1], MOST_CORNERS)
    up = (torch.arange(1 << width)[:, None] >> (torch.arange(positions.shape[1]) % width)) % 2
    ends = _ends(problem, rows[:, None], positions)
    return torch.where(
        number, torch.where(up == 1, ends[..., 1][:, None], ends[..., 0][:, None]), own[:, None]
    )
