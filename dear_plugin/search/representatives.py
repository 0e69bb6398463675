"""Spreads: which values of a column stand for all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.special_values import without_special
from dear_plugin.problem.action_sets import ActionSets

DENSE, COMMON = 96, 32


def spread_of(column: Tensor, count: int) -> Tensor:
    """(count,) values to try, ascending: all there are, or well spread ones.

    Spread means three things at once: over the range, over the values that there are, and over
    people, of whom those who share one value count as few. Gaps that nobody fills are entered too.
    """
    column = without_special(column)
    incumbents: tuple[Tensor, Tensor] = column.unique(return_counts=True)
    values, people = incumbents
    if len(values) <= count:
        # Few come equally often: they all are coarse ones, and combinations take each alike.
        return values[torch.arange(count) * len(values) // count]
    even = torch.linspace(float(values[0]), float(values[-1]), count).to(values)
    pool, at = torch.cat([values, even]).unique(return_inverse=True)
    few = people.clamp_max(-(-len(column) // count)).double()
    shares = few.new_zeros(len(pool)).index_add(0, at[: len(values)], few).cumsum(0)
    ranks = torch.arange(len(pool)).double()
    places = [_to_unit(p.double()) for p in (pool, ranks, shares)]
    blend = (2.0 * places[0] + places[1] + places[2]) / 4.0
    wanted = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    chosen = _apart(torch.searchsorted(blend, wanted).clamp_max(len(pool) - 1), len(pool))
    spread: Tensor = pool[chosen]
    return spread


def _to_unit(ascending: Tensor) -> Tensor:
    """Ascending numbers, scaled to [0, 1]."""
    return (ascending - ascending[0]) / (ascending[-1] - ascending[0])


def _apart(places: Tensor, count: int) -> Tensor:
    """Ascending indices below a count, moved until no two are equal."""
    order = torch.arange(len(places))
    up = (places - order).cummax(0).values + order
    room = count - len(places) + order
    return torch.minimum(up, room)


def dense_of(column: Tensor) -> Tensor:
    """(96,) observed values: the common ones, and evenly ranked and spaced ones."""
    values = without_special(column).unique()
    if len(values) > DENSE:
        third = DENSE // 3
        ranked = values[torch.linspace(0, len(values) - 1, third).long()]
        even = torch.linspace(float(values[0]), float(values[-1]), third)
        values = torch.cat([common_of(column)[:third], ranked, even]).sort().values
    return filled(values, DENSE)


def common_of(column: Tensor) -> Tensor:
    """(at most 32,) the values that most rows have, ascending."""
    values, counts = without_special(column).unique(return_counts=True)
    common: Tensor = values[counts.argsort(descending=True, stable=True)[:COMMON]]
    return common.sort().values


def filled(values: Tensor, count: int) -> Tensor:
    """(count,) values, the last one again and again where there are fewer."""
    return torch.cat([values, values[-1:].expand(count - len(values))])


def points(width: int, count: int) -> Tensor:
    """(count, width) well spread points of the unit cube: a full lattice where it fits."""
    side = round(count ** (1.0 / width))
    if side**width == count and side >= 32:
        axis = (torch.arange(side) + 0.5) / side
        return torch.cartesian_prod(*[axis] * width).view(count, width)
    points: Tensor = torch.quasirandom.SobolEngine(width).draw(count)
    return points


def values_at(
    unit: Tensor, spread: Tensor, number: Tensor, levels: Tensor, sets: ActionSets
) -> Tensor:
    """(s, count, w) observed values at points of the unit cube, (count, w)."""
    positions = sets.positions[:, None]
    at = (unit * spread.shape[1]).long().clamp_max(spread.shape[1] - 1)
    level = (unit * levels[positions]).floor()
    return torch.where(number[positions], spread[positions, at], level)
