"""Values: what a search tries of x_S, the same for every kind of model.

A feature is a list of values: of a number the multiples of its step, in the central range and at
training values outside of it, or without steps the distinct training values; of a category its
levels. First 16 places of the list are tried and the special levels that a row may enter; then 128
places, which are all values of a short list, the neighbours of the factual at ranks 1, 4, 16, 64
and 256 on both sides, and the ends of the row's range; then the places between two tried values,
and where there are none, steps of the grid. Places and ranks need no scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.grid import in_steps
from dear_plugin.data.special_values import is_special, row_value, without_special
from dear_plugin.search.actions import Candidates
from dear_plugin.search.problem import SearchProblem

# Places of a number that are tried before the others, and all of them.
FEW, MANY = 16, 128
# The steps in which the values of a feature are tried.
FIRST, NEXT = range(2)
# The ranks of the neighbours of the factual.
RANKS = 4 ** torch.arange(5)
# Values between two that were tried.
BETWEEN = 7
# Of the first combinations of several features, the shares of the way to them that are tried.
WITH_WAYS, SHARES = 32, (0.25, 0.5)
# With an order of causes, the least change of each of several features, in units of cost.
LEAST_TOGETHER = 0.02


@dataclass(frozen=True)
class FeatureValues:
    """The lists of values of every feature.

    Attributes:
        distinct: (p,) tensors, ascending, the values of a number; none of a category.
        steps: (p, c) each, the values that are tried first and next: a few and many places of
            numbers; all levels of a category; then NaN.
    """

    distinct: tuple[Tensor, ...]
    steps: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder, *, steps: bool = False) -> FeatureValues:
        """The values of training rows, (n, p), or multiples of steps."""
        counts = [len(feature.categories) for feature in encoder.schema]
        known = [rows[:0, j] if n else without_special(rows[:, j]) for j, n in enumerate(counts)]
        distinct = tuple(
            _multiples(values, j, encoder) if steps and encoder.step[j] else values.unique()
            for j, values in enumerate(known)
        )
        few, many = (
            torch.full((encoder.p, width), torch.nan, dtype=rows.dtype)
            for width in (max(FEW, *counts), MANY)
        )
        for j, (count, values) in enumerate(zip(counts, distinct, strict=True)):
            some = torch.arange(count) if count else places(values, FEW)
            for table, row in ((few, some), (many, places(values, MANY))):
                table[j, : len(row)] = row
        return cls(distinct, (few, many))

    def neighbours(self, feature: Tensor, x: Tensor) -> Tensor:
        """(m, 10) values at the ranks around values, (m,), of features, (m,); else NaN."""
        out = x.new_full((len(x), 2 * len(RANKS)), torch.nan)
        for values, at in self._lists(feature):
            below = torch.searchsorted(values, x[at])[:, None] - RANKS
            above = torch.searchsorted(values, x[at], right=True)[:, None] + RANKS - 1
            place = torch.cat([below, above], 1)
            inside = (place >= 0) & (place < len(values))
            out[at] = values[place.clamp(0, len(values) - 1)].where(inside, torch.nan)
        return out

    def between(self, feature: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """(m, 7) values from a start, (m,), towards an end, (m,): even places of the list.

        Where the list has none between them, they are evenly spaced.
        """
        low, high = torch.minimum(start, end), torch.maximum(start, end)
        steps = torch.arange(1, BETWEEN + 1)
        out = torch.lerp(start[:, None], end[:, None], (steps / (BETWEEN + 1)).to(start))
        for values, at in self._lists(feature):
            first = torch.searchsorted(values, low[at], right=True)[:, None]
            count = torch.searchsorted(values, high[at])[:, None] - first
            place = (first - 1 + steps * (count + 1) // (BETWEEN + 1)).clamp(0, len(values) - 1)
            some = torch.maximum(torch.minimum(values[place], high[at, None]), low[at, None])
            some = torch.where((start > end)[at, None], some.flip(1), some)
            out[at] = torch.where(count > 0, some, out[at])
        return out

    def _lists(self, feature: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """The list of each number among features, (m,), and (q,) the positions of that feature."""
        for j in feature.unique().tolist():
            if len(self.distinct[j]):
                yield self.distinct[j], (feature == j).nonzero()[:, 0]


def _multiples(values: Tensor, j: int, encoder: Encoder) -> Tensor:
    """Ascending, the multiples of the step of feature j in its central range, and at values."""
    low, high = (float(end[j]) for end in encoder.central)
    # A usual step is at least 1/250 of the range.
    even = torch.linspace(low, high, 256, dtype=values.dtype)
    found: Tensor = in_steps(torch.cat([values, even]), encoder.step[j]).unique()
    return found


def places(values: Tensor, count: int) -> Tensor:
    """(c,) at most `count` of distinct values, (l,): even by rank, and a quarter by value."""
    if len(values) <= count:
        return values
    even = torch.linspace(0, len(values) - 1, count - count // 4).round().long()
    by_value = torch.linspace(float(values[0]), float(values[-1]), count // 4, dtype=values.dtype)
    near = torch.searchsorted(values, by_value).clamp_max(len(values) - 1)
    return values[torch.cat([even, near]).unique()]


def candidates(
    problem: SearchProblem,
    rows: Tensor,
    sets: Tensor,
    values: Tensor,
    *,
    snap: bool = True,
    start: Tensor | None = None,
) -> Candidates:
    """The actions, each once, that set values as a row may set them; those of size zero are none.

    Args:
        problem: the rows and sets.
        rows: (m,) the row.
        sets: (m,) the set.
        values: (m, c, w) the values, or (m, c, 1) those of single features.
        snap: whether values are snapped to what may be set.
        start: (m, 2, w) values that are tried already, between which others lie.
    """
    if snap:
        values = problem.snapped(rows, sets, values)
    values = values.expand(-1, -1, problem.sets.positions.shape[1])
    own, positions = problem.own(rows, sets), problem.sets.positions[sets]
    change, one_hot = (values - own[:, None]).abs(), problem.feasible.rules.one_hot
    # With an order each feature acted on moves: held at its value, it would change what follows.
    least = problem.classifier.encoder.unit[positions] * LEAST_TOGETHER * problem.has_order
    moves = change > least.masked_fill(problem.sets.alone[sets, None], 0.0)[:, None]
    every = one_hot.together(moves, positions).all(2)
    fits = one_hot.holds(values, own, positions) & (every if problem.has_order else moves.any(2))
    if start is not None:
        start = start.expand(-1, -1, values.shape[2])
        before = torch.cat([start[:, :1], values[:, :-1]], 1)
        fits &= (values != before).any(2) & (values != start[:, 1:]).any(2)
    direct, (at, place) = problem.direct_cost(rows, sets, values), fits.nonzero(as_tuple=True)
    found = Candidates(rows[at], sets[at], values[at, place], direct[at, place])
    return found if start is not None else found.part(_first_of_equal(found))


def _first_of_equal(found: Candidates) -> Tensor:
    """(q,) ascending, the positions of candidates without those that repeat one before."""
    columns = found.values.T.numpy(), found.sets.numpy(), found.rows.numpy()
    order = np.lexsort((*columns[0], *columns[1:]))
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in (*columns[0], *columns[1:]):
        same &= column[order[1:]] == column[order[:-1]]
    kept = np.ones(len(order), dtype=bool)
    kept[order[1:][same]] = False
    return torch.from_numpy(np.flatnonzero(kept))


def ladder(
    problem: SearchProblem, known: FeatureValues, rows: Tensor, feature: Tensor, step: int
) -> Tensor:
    """(m, c) the values of features, (m,), that rows, (m,), try in a step; else the factual."""
    x, feasible, values = problem.x[rows, feature], problem.acting, known.steps[step][feature]
    low, high = feasible.low[rows, feature], feasible.high[rows, feature]
    if step == NEXT:
        # A bound at the factual comes from a direction, one at the end from the observed values.
        least, most = (end[feature] for end in feasible.ends)
        ends = low.where(low > least, torch.nan), high.where(high < most, torch.nan)
        values = torch.cat([torch.stack(ends, 1), values, known.neighbours(feature, x)], 1)
    # A value outside of the range is no candidate: the end is. One of an earlier step is tried.
    inside = (values >= low[:, None]) & (values <= high[:, None])
    for earlier in known.steps[:step]:
        inside &= (values[..., None] != earlier[feature][:, None]).all(2)
    return values.where(inside, x[:, None])


def of_singles(
    problem: SearchProblem, known: FeatureValues, asked: Tensor, step: int
) -> Iterator[Candidates]:
    """The candidates of single features, and of groups of columns; `asked`, (n, s) bool."""
    first = problem.sets.positions[:, 0]
    rows, sets = (asked & problem.sets.single).nonzero(as_tuple=True)
    values = ladder(problem, known, rows, first[sets], step)
    yield candidates(problem, rows, sets, values[..., None])
    levels, width = problem.feasible.levels, problem.sets.positions.shape[1]
    for i in (asked.any(0) & problem.sets.alone & (step == FIRST)).nonzero()[:, 0].tolist():
        rows, count = asked[:, i].nonzero()[:, 0], len(problem.sets.members[i])
        which, special = torch.full_like(rows, i), int(levels.counts[first[i]])
        if count > 1:
            every = torch.eye(count).to(problem.x)[:, torch.arange(width) % count]
            every[:, count:] = every[:, :1]
            yield candidates(problem, rows, which, every.expand(len(rows), -1, -1))
        elif special and bool(levels.enter[first[i]]):
            every = problem.x.new_tensor([row_value(level) for level in range(special)])
            wide = every.expand(len(rows), -1)[..., None]
            yield candidates(problem, rows, which, wide, snap=False)


def combinations(
    problem: SearchProblem, known: FeatureValues, asked: Tensor, count: int
) -> Candidates:
    """Well spread combinations of the values of several features; `asked`, (n, s) bool."""
    rows, sets = (asked & ~problem.sets.alone).nonzero(as_tuple=True)
    positions = problem.sets.positions
    unit: Tensor = torch.quasirandom.SobolEngine(positions.shape[1]).draw(count)
    values = problem.x.new_empty(len(rows), count, positions.shape[1])
    for i in range(positions.shape[1]):
        feature = positions[sets, i]
        each = (ladder(problem, known, rows, feature, step) for step in (FIRST, NEXT))
        some, x = torch.cat(tuple(each), 1), problem.x[rows, feature]
        # Its own value is one of them: what is acted on may be held.
        some = torch.cat([x[:, None], some.masked_fill(some == x[:, None], torch.inf)], 1)
        some = some.sort(1).values
        size = some.isfinite().sum(1, keepdim=True)
        values[..., i] = some.gather(1, torch.minimum((unit[:, i] * size).long(), size - 1))
    values = problem.feasible.rules.one_hot.leveled(values, unit, positions[sets])
    # Values on the way to the first of them: a list may have no value near the factual.
    own, first = problem.own(rows, sets)[:, None], values[:, :WITH_WAYS]
    number = problem.is_number[positions[sets]][:, None] & ~is_special(torch.minimum(own, first))
    ways = [torch.where(number, torch.lerp(own, first, share), first) for share in SHARES]
    return candidates(problem, rows, sets, torch.cat([values, *ways], 1))
