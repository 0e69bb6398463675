"""Closer: the values between tried ones among which a cheaper answer may lie."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.search.actions import Candidates, first_of_each, in_order, least
from dear_plugin.search.table import SearchTable
from dear_plugin.search.values import FeatureValues, candidates

# The cheapest sets of several features of a row whose actions are moved back.
FEW_SETS = 4


def on_lines(table: SearchTable, known: FeatureValues, good: Tensor, limit: Tensor) -> Candidates:
    """Candidates on one number, between a tried value and the next one, which is good.

    The predicted price is that of the nearer of the two, with the less of their indirect costs.

    Args:
        table: what was tried.
        known: the lists of values.
        good: (q,) the positions of good actions.
        limit: (n,) the price below which an answer is of use to a row.
    """
    problem, s = table.problem, table.need.shape[1]
    line = problem.sets.single & problem.is_number[problem.sets.positions[:, 0]]
    good = good[line[table.tried.sets[good]]]
    price = least(table.tried.price[good], table.pairs(good), table.need.numel(), torch.inf)
    own = price.isfinite().nonzero()[:, 0]
    at = price.isfinite()[table.pairs()].nonzero()[:, 0]
    tried = table.tried.part(at)
    is_good = torch.zeros(len(table.tried), dtype=torch.bool).index_fill(0, good, True)[at]
    # The factual is one of the points of a line.
    rows = torch.cat([tried.rows, own // s])
    sets = torch.cat([tried.sets, own % s])
    factual, blank = problem.own(rows, sets)[:, 0], torch.zeros(len(own))
    value = torch.cat([tried.values[:, 0], factual[len(at) :]])
    cost, discounted = torch.cat([tried.cost, blank]), torch.cat([tried.price, blank])
    is_good = torch.cat([is_good, blank.bool()])
    pairs, encoder = rows * s + sets, problem.classifier.encoder
    feature = problem.sets.positions[sets, 0]
    weight = problem.weights(rows, feature) / encoder.unit[feature]
    direct = (value - factual).abs() * weight
    order = in_order(pairs, value)
    order = order[~is_special(torch.minimum(value, factual))[order]]
    one, other = order[:-1], order[1:]
    outward = direct[other] > direct[one]
    near, far = torch.where(outward, one, other), torch.where(outward, other, one)
    indirect = cost - direct
    predicted = direct[near] + torch.minimum(indirect[near], indirect[far])
    predicted = predicted * discounted[far] / cost[far].clamp_min(1e-9)
    most = torch.minimum(price[pairs[far]], limit[rows[far]]) * (1.0 - table.gain)
    some = (pairs[one] == pairs[other]) & is_good[far] & (predicted < most)
    near, far = near[some], far[some]
    feature = problem.sets.positions[sets[far], 0]
    between = known.between(feature, value[near], value[far])[..., None]
    ends = torch.stack([value[near], value[far]], 1)[..., None]
    return candidates(problem, rows[far], sets[far], between, start=ends)


def to_move_back(table: SearchTable, good: Tensor) -> Tensor:
    """(q,) the positions of a row's cheapest actions on several features, among good ones."""
    at = table.cheapest(good[~table.problem.sets.alone[table.tried.sets[good]]])
    at = at[in_order(table.tried.rows[at], table.tried.price[at])]
    return at[first_of_each(table.tried.rows[at], FEW_SETS)]


def back(table: SearchTable, at: Tensor, parts: int) -> Candidates:
    """Candidates on the ways of actions on several features, at positions (q,), to the factual.

    All numbers move, or one of them; of the way, cut into parts, the nearest eight are tried.
    """
    problem, best = table.problem, table.tried.part(at)
    own = problem.own(best.rows, best.sets)[:, None]
    number = problem.is_number[problem.sets.positions[best.sets]][:, None]
    shares, ends = (1.0 - torch.arange(1, 9) / parts)[:, None], best.values[:, None]
    number = number & ~is_special(torch.minimum(own, ends))
    moved = torch.where(number, torch.lerp(own, ends, shares.to(own)), ends)
    each = torch.eye(ends.shape[2]).bool()[:, None, None]
    ways = torch.cat([moved, *torch.where(each, moved, ends)], 1)
    return candidates(problem, best.rows, best.sets, ways, start=ends.expand(-1, 2, -1))
