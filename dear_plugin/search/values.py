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
from typing import ClassVar

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import in_steps, known
from dear_plugin.decoders import Sample
from dear_plugin.search.problem import SearchProblem, once, order, places, weights
from dear_plugin.search.settings import Search
from dear_plugin.search.table import CHEAPER, Actions, Table, part_of

# Places of a number that are tried; in steps, of all features; and those that are tried at first.
MANY_PLACES, ALL, FEW_PLACES = 128, 1 << 13, 16
# The ranks of the neighbours of the factual.
RANKS = 4 ** torch.arange(5)
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
        known: (p,) tensors, ascending, the values of a number, or the levels of a category.
        tried: (p,) tensors, those of them that are tried of every row.
    """

    known: tuple[Tensor, ...]
    tried: tuple[Tensor, ...]

    @classmethod
    def of(cls, sample: Sample, *, steps: bool = False) -> FeatureValues:
        """The values of training rows, or multiples of steps."""
        rows, encoder, known, tried = sample.rows, sample.encoder, [], []
        many = max(MANY_PLACES, steps * ALL // len(encoder.schema))
        for j, feature in enumerate(encoder.schema):
            values = feature.values(rows[:, j])
            known.append(_multiples(values, j, encoder) if steps and encoder.step[j] else values)
            tried.append(places_of(known[j], many) if feature.has_order else known[j])
        return cls(tuple(known), tuple(tried))

    def near(self, j: int, x: Tensor) -> Tensor:
        """(m, 10) values at the ranks around values, (m,); at the ends these."""
        values = self.known[j]
        below = torch.searchsorted(values, x)[:, None] - RANKS
        above = torch.searchsorted(values, x, right=True)[:, None] + RANKS - 1
        return values[torch.cat([below, above], 1).clamp(0, len(values) - 1)]

    def between(self, feature: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """(m, 23) values from a start, (m,), towards an end, (m,): even places of the list.

        Where the list has none between them, they are evenly spaced.
        """
        low, high = torch.minimum(start, end), torch.maximum(start, end)
        steps = torch.arange(1, BETWEEN + 1)
        out = torch.lerp(start[:, None], end[:, None], (steps / (BETWEEN + 1)).to(start))
        for j in feature.unique().tolist():
            values, at = self.known[j], (feature == j).nonzero()[:, 0]
            first = torch.searchsorted(values, low[at], right=True)[:, None]
            count = torch.searchsorted(values, high[at])[:, None] - first
            place = (first - 1 + steps * (count + 1) // (BETWEEN + 1)).clamp(0, len(values) - 1)
            some = torch.maximum(torch.minimum(values[place], high[at, None]), low[at, None])
            some = torch.where((start > end)[at, None], some.flip(1), some)
            out[at] = torch.where(count > 0, some, out[at])
        return out


def _multiples(values: Tensor, j: int, encoder: Encoder) -> Tensor:
    """Ascending, the multiples of the step of feature j in its central range, and at values."""
    low, high = (float(end[j]) for end in encoder.central)
    # A usual step is at least 1/250 of the range.
    even = torch.linspace(low, high, 256, dtype=values.dtype)
    found: Tensor = in_steps(torch.cat([values, even]), encoder.step[j]).unique()
    return found


def places_of(values: Tensor, count: int) -> Tensor:
    """(c,) at most `count` of distinct values, (l,): even by rank, and a quarter by value."""
    if len(values) <= count:
        return values
    even = torch.linspace(0, len(values) - 1, count - count // 4).round().long()
    by_value = torch.linspace(float(values[0]), float(values[-1]), count // 4, dtype=values.dtype)
    near = torch.searchsorted(values, by_value).clamp_max(len(values) - 1)
    return values[torch.cat([even, near]).unique()]


def singles(problem: SearchProblem, known: FeatureValues) -> tuple[Actions, Tensor]:
    """The actions on given sets of one feature, each once.

    Also (m,) bool, those to try at first; the others lie between them.
    """
    sets, rows = (problem.actionable & problem.sets.single).T.nonzero(as_tuple=True)
    at, count = (each.tolist() for each in sets.unique_consecutive(return_counts=True))
    pairs = zip(at, rows.split(count), strict=True) if at else ()
    wanted = [_values_of(problem, known, some, i) for i, some in pairs]
    most = max((own.shape[1] for own, _ in wanted), default=0)
    # What a row has is no action.
    values = problem.own(rows, sets)[:, None, :1].repeat(1, most, 1)
    for part, (own, _) in zip(values.split(count), wanted, strict=True) if at else ():
        part[:, : own.shape[1], 0] = own
    new, place = admitted(problem, rows, sets, values)
    first = torch.zeros(len(problem.sets), dtype=torch.int64)
    first[at] = torch.tensor([count for _, count in wanted], dtype=torch.int64)
    return new, place < first[new[1]]


def _values_of(
    problem: SearchProblem, known: FeatureValues, rows: Tensor, i: int
) -> tuple[Tensor, int]:
    """(m, c) the values that rows, (m,), may try on set i, of one feature, or their own.

    Also the number of those to try at first, which precede the others.
    """
    (j,), feasible = problem.sets.members[i], problem.acting
    own = problem.x[rows, j][:, None]
    low, high = feasible.low[rows, j][:, None], feasible.high[rows, j][:, None]
    tried, feature = known.tried[j], feasible.encoder.features[j]
    few = places_of(tried, FEW_PLACES) if feature.has_order else tried
    parts = [few.expand(len(rows), -1)]
    if len(known.known[j]):
        # A bound at the factual comes from a direction, one at the end from the observed values.
        least, most = feasible.encoder.low[j], feasible.encoder.high[j]
        ends = low.where(low > least, own), high.where(high < most, own)
        parts += [known.near(j, own[:, 0].contiguous()), *ends]
    # A value outside of the range is no candidate: the end is.
    values = torch.cat([*parts, tried.expand(len(rows), -1)], 1)
    first = values.shape[1] - len(tried)
    values = values.where((values >= low) & (values <= high), own)
    entered = feature.special_values[: None if feature.enter_special else 0].to(values)
    return torch.cat([entered.expand(len(rows), -1), values], 1), len(entered) + first


def admitted(
    problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor, but: Tensor | None = None
) -> tuple[Actions, Tensor]:
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
    values = problem.snapped(rows, sets, values).where(known(values), values)
    own = problem.own(rows, sets)
    positions = problem.sets.positions[sets]
    if but is not None:
        tried = (values[:, :, None] == but[:, None]).all(3).any(2)[..., None]
        values = torch.where(tried, own[:, None, : values.shape[2]], values)
    change = (values - own[:, None]).abs()
    # With an order each feature acted on moves: held at its value, it would change what follows.
    least = problem.classifier.encoder.unit[positions] * LEAST_TOGETHER * problem.has_order
    moves = change > least.masked_fill(problem.sets.single[sets, None], 0.0)[:, None]
    at, place = (moves.all(2) if problem.has_order else moves.any(2)).nonzero(as_tuple=True)
    row, which, new = rows[at], sets[at], values.expand(-1, -1, own.shape[1])[at, place]
    one = once(row, which, *new.T)
    return (row[one], which[one], new[one]), place[one]


def combinations(
    problem: SearchProblem, known: FeatureValues, wanted: Tensor, count: int
) -> Actions:
    """Well spread combinations of the values of several features; `wanted`, (n, s) bool."""
    rows, sets = (wanted & ~problem.sets.single).nonzero(as_tuple=True)
    positions, feasible = problem.sets.positions[sets], problem.acting
    unit: Tensor = torch.quasirandom.SobolEngine(positions.shape[1]).draw(count)
    # Some are at the ends of a list; and some hold a feature at its own value.
    stretched = (1.1 * unit - 0.05).clamp(0.0, 1.0)
    held = torch.arange(count)[:, None] % HELD == torch.arange(positions.shape[1])
    values = problem.x.new_empty(len(rows), count, positions.shape[1])
    for j in positions.unique().tolist():
        at, place = (positions == j).nonzero(as_tuple=True)
        some, x = known.tried[j], problem.x[rows[at], j]
        first = torch.searchsorted(some, feasible.low[rows[at], j].contiguous())
        last = torch.searchsorted(some, feasible.high[rows[at], j].contiguous(), right=True)
        size = (last - first)[:, None]
        pick = (stretched.T[place] * size).long().clamp_max(size - 1).clamp_min(0)
        found = some[(first[:, None] + pick).clamp_max(len(some) - 1)] if len(some) else x[:, None]
        values[at, :, place] = found.where((size > 0) & ~held.T[place], x[:, None])
    # Values on the way to the first of them: a list may have no value near the factual.
    own, first = problem.own(rows, sets)[:, None], values[:, :WITH_WAYS]
    number = problem.classifier.encoder.amounts(own, first, at=positions[:, None])
    ways = [torch.where(number, torch.lerp(own, first, share), first) for share in WAY_SHARES]
    return admitted(problem, rows, sets, torch.cat([values, *ways], 1))[0]


# Combinations of a given set, and of a set where nothing is accepted.
FEW, MANY = 32, 256
# Of more given sets few values are tried at first, and the others where they may be cheaper than
# the cheapest answer: on sets of which an accepted action costs at most so many times as much.
MANY_SETS, NEARLY = 50, 1.25
# The cheapest sets of several features of a row whose actions are moved back.
FEW_SETS = 4
# The shares of an action on the way to the factual.
SHARES = 1.0 - torch.cat([torch.arange(1, 8) / 64, torch.arange(1, 9) / 8])


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
        self._many = int(table.problem.sets.single.sum()) > MANY_SETS

    def given(self) -> list[Actions]:
        """See `Solver`: values of single features, and some combinations of several."""
        problem = self.table.problem
        every, first = singles(problem, self._known)
        # Where criteria say which actions count, a cheaper one does not make others needless.
        first |= not (self.table.takes_all or self._many)
        self._later = part_of(every, ~first)
        return [part_of(every, first), combinations(problem, self._known, problem.actionable, FEW)]

    def larger(self, row: Tensor, sets: Tensor, sums: Tensor) -> list[Actions]:
        """See `Solver`: the sums."""
        problem = self.table.problem
        values = sums.gather(1, problem.sets.positions[sets])[:, None]
        return [admitted(problem, row, sets, values)[0]]

    def others(self, wanted: Tensor) -> list[Actions]:
        """See `Solver`: combinations. A model with steps has no margins that add up."""
        return [combinations(self.table.problem, self._known, wanted, MANY)]

    def beside(self, good: Tensor, rows: Tensor, bound: Tensor) -> list[Actions]:
        """See `Solver`: what lies between tried actions, and cheap values not tried yet."""
        table, later, row = self.table, self._later, self._later[0]
        some = rows[row] & (table.direct_cost(later) < bound[row])
        kept = ~some
        if self._many:
            near = (table.prices(table.hits) <= NEARLY * bound[:, None])[row, later[1]]
            some, kept = some & near, ~rows[row] | (near & ~some)
        self._later = part_of(later, kept)
        # A dear action may lie beside a cheap one: indirect changes have steps.
        far = table.hits[(table.met[table.hits] < 0.0) | (table.met[table.hits] == torch.inf)]
        far = far[
            rows[table.row[far]] & (table.margin[far] >= table.need.view(-1)[table.pair(far)])
        ]
        at = to_move_back(table, good[rows[table.row[good]]])
        at = at[~torch.isin(at, self._moved)]
        self._moved = torch.cat([self._moved, at])
        limit = bound / (1.0 + table.discount)
        new = table.joined([on_lines(table, self._known, far, limit), back(table, at)])
        return [part_of(later, some), part_of(new, table.direct_cost(new) < bound[new[0]])]


def on_lines(table: Table, known: FeatureValues, good: Tensor, limit: Tensor) -> Actions:
    """Actions on one number, between a tried value and the next one outwards, if that is good.

    The predicted price is that of the nearer of the two, with the less of their indirect costs.

    Args:
        table: what was tried.
        known: the lists of values.
        good: (q,) the good lines.
        limit: (n,) the price below which an answer is of use to a row.
    """
    problem, s = table.problem, table.need.shape[1]
    good = good[problem.sets.single[table.set[good]]]
    best = table.prices(good).view(-1)
    at = best.isfinite()[table.pair(slice(None))].nonzero()[:, 0]
    own = best.isfinite().nonzero()[:, 0]
    # The factual is one of the points of a line.
    row, sets = torch.cat([table.row[at], own // s]), torch.cat([table.set[at], own % s])
    feature, blank = problem.sets.positions[sets, 0], torch.zeros(len(own))
    x, is_good = problem.x[row, feature], torch.cat([torch.isin(at, good), blank.bool()])
    value = torch.cat([table.values[at, 0], x[len(at) :]])
    cost, price = torch.cat([table.cost[at], blank]), torch.cat([table.price[at], blank])
    unit = weights(problem, row, feature) / problem.classifier.encoder.unit[feature]
    pair, direct = row * s + sets, (value - x).abs() * unit
    along = order(pair, value)
    along = along[problem.classifier.encoder.amounts(value, x, at=feature)[along]]
    one, other = along[:-1], along[1:]
    outward = direct[other] > direct[one]
    near, far = torch.where(outward, one, other), torch.where(outward, other, one)
    predicted = direct[near] + torch.minimum((cost - direct)[near], (cost - direct)[far])
    predicted = predicted * price[far] / cost[far].clamp_min(1e-30)
    some = (pair[one] == pair[other]) & is_good[far]
    some &= predicted < best[pair[far]].minimum(limit[row[far]]) * (1.0 - CHEAPER)
    near, far = near[some], far[some]
    between, ends = known.between(feature[far], value[near], value[far]), (value[near], value[far])
    tried = torch.stack(ends, 1)[..., None]
    return admitted(problem, row[far], sets[far], between[..., None], tried)[0]


def to_move_back(table: Table, good: Tensor) -> Tensor:
    """(q,) the cheapest lines on several features of the cheapest sets of a row, of good ones."""
    at = good[~table.problem.sets.single[table.set[good]]]
    at = table.sorted(at, table.set[at])
    at = at[places(table.pair(at)) == 0]
    at = table.sorted(at, table.price[at])
    return at[places(table.row[at]) < FEW_SETS]


def back(table: Table, at: Tensor) -> Actions:
    """Actions on the ways of lines on several features, (q,), to the factual.

    All numbers move, or one of them.
    """
    problem, row, sets, ends = table.problem, table.row[at], table.set[at], table.values[at]
    own, ends = problem.own(row, sets)[:, None], ends[:, None]
    features = problem.sets.positions[sets][:, None]
    number = problem.classifier.encoder.amounts(own, ends, at=features)
    moved = torch.where(number, torch.lerp(own, ends, SHARES[:, None].to(own)), ends)
    each = torch.eye(ends.shape[2]).bool()[:, None, None]
    ways = torch.cat([moved, *torch.where(each, moved, ends)], 1)
    return admitted(problem, row, sets, ways, ends)[0]
