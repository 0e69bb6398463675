"""Representatives: a few values that stand for a column of training values."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.special_values import without_special
from dear_plugin.problem.action_sets import ActionSets

DENSE, COMMON = 96, 32


def spread_of(column: Tensor, count: int) -> Tensor:
    """(count,) values to try, ascending: all distinct ones, or well spread ones.

    They are evenly spaced in a blend of value, rank among the distinct values, and rank among the
    rows, where frequent values count as a few rows only. Values between observed ones are
    candidates, too.
    """
    column = without_special(column)
    distinct: tuple[Tensor, Tensor] = column.unique(return_counts=True)
    values, counts = distinct
    if len(values) <= count:
        # Each equally often, for coarse grids and combinations to contain all alike.
        return values[torch.arange(count) * len(values) // count]
    even = torch.linspace(float(values[0]), float(values[-1]), count).to(values)
    pool, at = torch.cat([values, even]).unique(return_inverse=True)
    capped = counts.clamp_max(-(-len(column) // count)).double()
    row_ranks = capped.new_zeros(len(pool)).index_add(0, at[: len(values)], capped).cumsum(0)
    value_ranks = torch.arange(len(pool)).double()
    unit = [_to_unit(each.double()) for each in (pool, value_ranks, row_ranks)]
    blend = (2.0 * unit[0] + unit[1] + unit[2]) / 4.0
    wanted = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    chosen = _distinct(torch.searchsorted(blend, wanted).clamp_max(len(pool) - 1), len(pool))
    spread: Tensor = pool[chosen]
    return spread


def _to_unit(ascending: Tensor) -> Tensor:
    """Ascending numbers, scaled to [0, 1]."""
    return (ascending - ascending[0]) / (ascending[-1] - ascending[0])


def _distinct(indices: Tensor, count: int) -> Tensor:
    """Ascending indices below a count, shifted until no two are equal."""
    order = torch.arange(len(indices))
    up = (indices - order).cummax(0).values + order
    most = count - len(indices) + order
    return torch.minimum(up, most)


def dense_of(column: Tensor) -> Tensor:
    """(96,) values, ascending: frequent ones, and ones evenly spaced by rank and by value."""
    values = without_special(column).unique()
    if len(values) > DENSE:
        third = DENSE // 3
        ranked = values[torch.linspace(0, len(values) - 1, third).long()]
        even = torch.linspace(float(values[0]), float(values[-1]), third)
        values = torch.cat([common_of(column)[:third], ranked, even]).sort().values
    return padded(values, DENSE)


def common_of(column: Tensor) -> Tensor:
    """(at most 32,) the most frequent values, ascending."""
    values, counts = without_special(column).unique(return_counts=True)
    common: Tensor = values[counts.argsort(descending=True, stable=True)[:COMMON]]
    return common.sort().values


def padded(values: Tensor, count: int) -> Tensor:
    """(count,) values, padded with the last one."""
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
    """(s, count, w) the values of each set's features at points of the unit cube.

    Args:
        unit: (count, w) the points.
        spread: (p, c) values of numbers, ascending.
        number: (p,) bool, which features are numbers.
        levels: (p,) the number of categories of the others.
        sets: the s action sets.
    """
    positions = sets.positions[:, None]
    at = (unit * spread.shape[1]).long().clamp_max(spread.shape[1] - 1)
    level = (unit * levels[positions]).floor()
    return torch.where(number[positions], spread[positions, at], level)
