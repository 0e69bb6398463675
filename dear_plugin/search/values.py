"""The values of x_S that a search tries, the same for every kind of model.

A feature is a list of values: of a number the multiples of its step, in the central range and at
training values outside of it, or without steps the distinct training values; of a category its
levels. 128 places of the list are tried, in steps more, so that those of all features are 8,192:
a model may accept a few amounts between others. Tried are besides, of each row, its neighbours at
ranks 1, 4, 16, 64 and 256 on both sides, the ends of its range, and special levels that it may
enter; then the places between two tried values, and where there are none, steps of the
grid. Places and ranks need no scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import Array, in_steps, known
from dear_plugin.decoders import Sample
from dear_plugin.search.problem import SearchProblem, arrays, direct_cost
from dear_plugin.search.settings import Search
from dear_plugin.search.table import CHEAPER, Actions, Table, among, once, order, part_of, places

# Places of a number that are tried; in steps, of all features; and those that are tried at first.
MANY_PLACES, ALL, FEW_PLACES = 128, 1 << 13, 16
# The ranks of the neighbours of the factual.
RANKS = 4 ** np.arange(5)
# Values between two that were tried.
BETWEEN = 23
# Of the first combinations of several features, the shares of the way to them that are tried.
WITH_WAYS, WAY_SHARES = 32, (0.25, 0.5)
# One in so many combinations holds a feature.
HELD = 16
# With an order of causes, the least change of each of several features, in units of cost.
LEAST_TOGETHER = 0.02


@dataclass(frozen=True)
class FeatureValues:
    """The lists of values of every feature.

    Attributes:
        known: (p,) arrays, ascending, the values of a number, or the levels of a category.
        tried: (p,) arrays, those of them that are tried of every row.
        few: (p,) arrays, those that are tried at first.
        entered: (p,) arrays, the special values that an action may set.
    """

    known: tuple[Array, ...]
    tried: tuple[Array, ...]
    few: tuple[Array, ...]
    entered: tuple[Array, ...]

    @classmethod
    def of(cls, sample: Sample, *, steps: bool = False) -> FeatureValues:
        """The values of training rows, or multiples of steps."""
        rows, encoder = sample.rows, sample.encoder
        many, found = max(MANY_PLACES, steps * ALL // len(encoder.schema)), []
        for j, feature in enumerate(encoder.schema):
            values = feature.values(rows[:, j])
            values = _multiples(values, j, encoder) if steps and encoder.step[j] else values
            tried = places_of(values, many) if feature.has_order else values
            few = places_of(tried, FEW_PLACES) if feature.has_order else tried
            entered = feature.special_values[: None if feature.enter_special else 0].to(values)
            found.append(arrays(values, tried, few, entered))
        return cls(*zip(*found, strict=True))

    def near(self, j: int, x: Array) -> Array:
        """(m, 10) values at the ranks around values, (m, 1); at the ends these."""
        values = self.known[j]
        at = np.searchsorted(values, x) - RANKS, np.searchsorted(values, x, "right") + RANKS - 1
        return np.asarray(values[np.clip(np.concatenate(at, 1), 0, len(values) - 1)])

    def between(self, feature: Array, start: Array, end: Array) -> Array:
        """(m, 23) values from a start, (m,), towards an end, (m,): even places of the list.

        Where the list has none between them, they are evenly spaced.
        """
        low, high = np.minimum(start, end), np.maximum(start, end)
        steps = np.arange(1, BETWEEN + 1)
        shares = (steps / (BETWEEN + 1)).astype(np.float32).astype(float)
        out = on_the_way(start[:, None], end[:, None], shares)
        for j in np.unique(feature):
            values, at = self.known[j], np.flatnonzero(feature == j)
            first = np.searchsorted(values, low[at], "right")[:, None]
            count = np.searchsorted(values, high[at])[:, None] - first
            place = np.clip(first - 1 + steps * (count + 1) // (BETWEEN + 1), 0, len(values) - 1)
            some = np.maximum(np.minimum(values[place], high[at, None]), low[at, None])
            some = np.where((start > end)[at, None], some[:, ::-1], some)
            out[at] = np.where(count > 0, some, out[at])
        return out


def on_the_way(start: Array, end: Array, share: Array | float) -> Array:
    """(...) values at shares of the way from a start to an end, exactly these at both ends."""
    way, is_near = end - start, np.less(share, 0.5)
    return np.where(is_near, start + share * way, end - way * (1.0 - share))


def _multiples(values: Tensor, j: int, encoder: Encoder) -> Tensor:
    """Ascending, the multiples of the step of feature j in its central range, and at values."""
    low, high = (float(end[j]) for end in encoder.central)
    # A usual step is at least 1/250 of the range.
    even = torch.linspace(low, high, 256, dtype=values.dtype)
    found = in_steps(torch.cat([values, even]).numpy(), encoder.step[j].numpy())
    return torch.from_numpy(np.unique(found))


def places_of(values: Tensor, count: int) -> Tensor:
    """(c,) at most `count` of distinct values, (l,): even by rank, and a quarter by value."""
    if len(values) <= count:
        return values
    even = torch.linspace(0, len(values) - 1, count - count // 4).round().long()
    by_value = torch.linspace(float(values[0]), float(values[-1]), count // 4, dtype=values.dtype)
    near = torch.searchsorted(values, by_value).clamp_max(len(values) - 1)
    return values[torch.cat([even, near]).unique()]


def singles(problem: SearchProblem, known: FeatureValues) -> tuple[Actions, Array]:
    """The actions on given sets of one feature, each once.

    Also (m,) bool, those to try at first; the others lie between them.
    """
    sets, rows = (problem.may_act & problem.single).T.nonzero()
    each, start = np.unique(sets, return_index=True)
    parts = zip(each.tolist(), start, np.split(rows, start[1:]), strict=False)
    wanted = [(i, at, *_values_of(problem, known, some, i)) for i, at, some in parts]
    most = max((own.shape[1] for _, _, own, _ in wanted), default=0)
    # What a row has is no action.
    values, first = problem.own(rows, sets)[:, :1].repeat(most, 1), np.zeros(len(problem.sets))
    for i, at, own, count in wanted:
        values[at : at + len(own), : own.shape[1]], first[i] = own, count
    new, place = admitted(problem, rows, sets, values[..., None])
    return new, place < first[new[1]]


def _values_of(
    problem: SearchProblem, known: FeatureValues, rows: Array, i: int
) -> tuple[Array, int]:
    """(m, c) the values that rows, (m,), may try on set i, of one feature, or their own.

    Also the number of those to try at first, which precede the others.
    """
    (j,), features = problem.sets.members[i], problem.features
    own, low, high = [each[rows, j, None] for each in (problem.cells, *problem.ends)]
    parts, tried = [np.tile(known.few[j], (len(rows), 1))], known.tried[j]
    if len(known.known[j]):
        # A bound at the factual comes from a direction, one at the end from the observed values.
        ends = (low > features.low[j], low), (high < features.high[j], high)
        parts += [known.near(j, own), *[np.where(inner, end, own) for inner, end in ends]]
    # A value outside of the range is no candidate: the end is.
    values = np.concatenate([*parts, np.tile(tried, (len(rows), 1))], 1)
    values = np.where((values >= low) & (values <= high), values, own)
    entered, first = known.entered[j], values.shape[1] - len(tried)
    values = np.concatenate([np.tile(entered, (len(rows), 1)), values], 1)
    return values, len(entered) + first


def admitted(
    problem: SearchProblem, rows: Array, sets: Array, values: Array, but: Array | None = None
) -> tuple[Actions, Array]:
    """The actions, each once, that set values as a row may set them; those of size zero are none.

    Args:
        problem: the rows and sets.
        rows: (m,) the row.
        sets: (m,) the set.
        values: (m, c, w) the wanted values.
        but: (m, e, w) values that are tried already.

    Returns:
        q actions, and (q,) the place of each among the c values.
    """
    # Special values that may be entered are as they are.
    values = np.where(known(values), problem.snapped(rows, sets, values), values)
    own = problem.own(rows, sets)[:, None]
    if but is not None:
        tried = (values[:, :, None] == but[:, None]).all(3).any(2)[..., None]
        values = np.where(tried, own[..., : values.shape[2]], values)
    # With an order each feature acted on moves: held at its value, it would change what follows.
    least = problem.features.unit[problem.positions[sets]] * LEAST_TOGETHER * problem.has_order
    moves = np.abs(values - own) > np.where(problem.single[sets, None], 0.0, least)[:, None]
    at, place = (moves.all(2) if problem.has_order else moves.any(2)).nonzero()
    row, which = rows[at], sets[at]
    new = np.broadcast_to(values, moves.shape)[at, place]
    one = once(row, which, *new.T)
    return (row[one], which[one], new[one]), place[one]


@lru_cache
def _spread(width: int, count: int) -> tuple[Array, Array]:
    """(count, width) well spread points of [0, 1] in float32, and whether they hold a feature."""
    unit = torch.quasirandom.SobolEngine(width).draw(count)
    # Some are at the ends of a list; and some hold a feature at its own value.
    stretched = (1.1 * unit - 0.05).clamp(0.0, 1.0).numpy()
    return stretched, np.arange(count)[:, None] % HELD == np.arange(width)


def combinations(
    problem: SearchProblem, known: FeatureValues, wanted: Array, count: int
) -> Actions:
    """Well spread combinations of the values of several features; `wanted`, (n, s) bool."""
    rows, sets = (wanted & ~problem.single).nonzero()
    positions, (low, high) = problem.positions[sets], problem.ends
    stretched, held = _spread(positions.shape[1], count)
    values = np.empty((len(rows), count, positions.shape[1]))
    for j in np.unique(positions):
        at, place = (positions == j).nonzero()
        some, row = known.tried[j], rows[at]
        x, first = problem.cells[row, j][:, None], np.searchsorted(some, low[row, j])[:, None]
        size = np.searchsorted(some, high[row, j], "right")[:, None] - first
        pick = (stretched.T[place] * size.astype(np.float32)).astype(np.int64)
        pick = np.maximum(np.minimum(pick, size - 1), 0)
        found = some[np.minimum(first + pick, len(some) - 1)] if len(some) else x
        values[at, :, place] = np.where((size > 0) & ~held.T[place], found, x)
    # Values on the way to the first of them: a list may have no value near the factual.
    own, first = problem.own(rows, sets)[:, None], values[:, :WITH_WAYS]
    number = problem.features.amounts(own, first, at=positions[:, None])
    ways = [np.where(number, on_the_way(own, first, share), first) for share in WAY_SHARES]
    return admitted(problem, rows, sets, np.concatenate([values, *ways], 1))[0]


# Combinations of a given set, and of a set where nothing is accepted.
FEW, MANY = 32, 256
# Of more given sets few values are tried at first, and the others where they may be cheaper than
# the cheapest answer: on sets of which an accepted action costs at most so many times as much.
MANY_SETS, NEARLY = 50, 1.25
# The cheapest sets of several features of a row whose actions are moved back.
FEW_SETS = 4
# The shares of an action on the way to the factual.
SHARES = 1.0 - np.concatenate([np.arange(1, 8) / 64, np.arange(1, 9) / 8])


class Line:
    """Tries lists of values, sums and combinations of them, and values between tried ones.

    Args:
        table: what was tried.
        search: the settings.
    """

    derives: ClassVar = False

    def __init__(self, table: Table, search: Search) -> None:
        sample = table.problem.decoders.sample
        self.table, self._known = table, sample.shared(FeatureValues.of, steps=search.in_steps)
        # Values of single features that are tried where they may be cheaper; lines moved back.
        self._later, self._moved = table.nothing, table.row
        self._many = table.problem.single.sum() > MANY_SETS

    def given(self) -> list[Actions]:
        """See `Solver`: values of single features, and some combinations of several."""
        problem = self.table.problem
        every, first = singles(problem, self._known)
        # Where criteria say which actions count, a cheaper one does not make others needless.
        first |= not (self.table.takes_all or self._many)
        self._later = part_of(every, ~first)
        return [part_of(every, first), combinations(problem, self._known, problem.may_act, FEW)]

    def larger(self, row: Array, sets: Array, sums: Array) -> list[Actions]:
        """See `Solver`: the sums."""
        problem = self.table.problem
        values = np.take_along_axis(sums, problem.positions[sets], 1)[:, None]
        return [admitted(problem, row, sets, values)[0]]

    def others(self, wanted: Array) -> list[Actions]:
        """See `Solver`: combinations. A model with steps has no margins that add up."""
        return [combinations(self.table.problem, self._known, wanted, MANY)]

    def beside(self, good: Array, rows: Array, bound: Array) -> list[Actions]:
        """See `Solver`: what lies between tried actions, and cheap values not tried yet."""
        table, later, row = self.table, self._later, self._later[0]
        some = rows[row] & (direct_cost(table.problem, *later) < bound[row])
        kept = ~some
        if self._many:
            near = (table.prices(table.hits) <= NEARLY * bound[:, None])[row, later[1]]
            some, kept = some & near, ~rows[row] | (near & ~some)
        self._later = part_of(later, kept)
        # A dear action may lie beside a cheap one: indirect changes have steps.
        met = table.met[table.hits]
        far = table.hits[((met < 0.0) | (met == np.inf)) & rows[table.row[table.hits]]]
        far = far[table.useful(far)]
        at = to_move_back(table, good[rows[table.row[good]]])
        at = at[~among(at, self._moved)]
        self._moved = np.concatenate([self._moved, at])
        limit = bound / (1.0 + table.discount)
        new = table.joined([on_lines(table, self._known, far, limit), back(table, at)])
        cheap = direct_cost(table.problem, *new) < bound[new[0]]
        return [part_of(later, some), part_of(new, cheap)]


def on_lines(table: Table, known: FeatureValues, good: Array, limit: Array) -> Actions:
    """Actions on one number, between a tried value and the next one outwards, if that is good.

    The predicted price is that of the nearer of the two, with the less of their indirect costs.

    Args:
        table: what was tried.
        known: the lists of values.
        good: (q,) the good lines.
        limit: (n,) the price below which an answer is of use to a row.
    """
    problem, s, features = table.problem, table.need.shape[1], table.problem.features
    good = good[problem.single[table.set[good]]]
    best = table.prices(good).reshape(-1)
    own = np.flatnonzero(np.isfinite(best))
    at = np.flatnonzero(np.isfinite(best)[table.pair])
    # The factual is one of the points of a line.
    pair, blank = np.concatenate([table.pair[at], own]), np.zeros(len(own), np.float32)
    row, sets = pair // s, pair % s
    feature = problem.positions[sets, 0]
    x, is_good = problem.cells[row, feature], np.concatenate([among(at, good), blank > 0.0])
    value = np.concatenate([table.values[at, 0], x[len(at) :]])
    cost, price = (np.concatenate([each[at], blank]) for each in (table.cost, table.price))
    with np.errstate(over="ignore"):  # a code, in tiny units
        direct = np.abs(value - x) / features.unit[feature] * problem.weights[row, feature]
    along = order(pair, value)
    along = along[features.amounts(value, x, at=feature)[along]]
    one, other = along[:-1], along[1:]
    outward = direct[other] > direct[one]
    near, far = np.where(outward, one, other), np.where(outward, other, one)
    predicted = direct[near] + np.minimum((cost - direct)[near], (cost - direct)[far])
    predicted = predicted * price[far] / np.maximum(cost[far], 1e-30)
    some = (pair[one] == pair[other]) & is_good[far]
    some &= predicted < np.minimum(best[pair[far]], limit[row[far]]) * (1.0 - CHEAPER)
    near, far = near[some], far[some]
    between, ends = known.between(feature[far], value[near], value[far]), (value[near], value[far])
    tried = np.stack(ends, 1)[..., None]
    return admitted(problem, row[far], sets[far], between[..., None], tried)[0]


def to_move_back(table: Table, good: Array) -> Array:
    """(q,) the cheapest lines on several features of the cheapest sets of a row, of good ones."""
    at = good[~table.problem.single[table.set[good]]]
    at = table.sorted(at, table.set[at])
    at = at[places(table.pair[at]) == 0]
    at = table.sorted(at, table.price[at])
    return at[places(table.row[at]) < FEW_SETS]


def back(table: Table, at: Array) -> Actions:
    """Actions on the ways of lines on several features, (q,), to the factual.

    All numbers move, or one of them.
    """
    problem, row, sets, ends = table.problem, table.row[at], table.set[at], table.values[at]
    own, ends = problem.own(row, sets)[:, None], ends[:, None]
    number = problem.features.amounts(own, ends, at=problem.positions[sets][:, None])
    moved = np.where(number, on_the_way(own, ends, SHARES[:, None]), ends)
    each = np.eye(ends.shape[2], dtype=bool)[:, None, None]
    ways = np.concatenate([moved, *np.where(each, moved, ends)], 1)
    return admitted(problem, row, sets, ways, ends)[0]
