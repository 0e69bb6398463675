"""Line: the default solver; it tries values, and then values between tried ones."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dear_plugin.search.order import order, places
from dear_plugin.search.outcomes import weights
from dear_plugin.search.settings import Search
from dear_plugin.search.table import CHEAPER, Actions, Table, part_of
from dear_plugin.search.values import FeatureValues, admitted, combinations, singles

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
    predicted = predicted * price[far] / cost[far].clamp_min(1e-9)
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
