"""Rank levels: the grid on which conditional ranks are tabulated, finer towards both ends.

Rejected rows often have extreme ranks: the quantiles at .9985 and .9995 differ as much as those
at .5 and .6 do.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The outer 1/64 on either side has an eighth of the levels, evenly spread over its octaves.
TAIL, FINEST = 2.0**-6, 2.0**-14
SIDE = 8
GRID = 1 << 14


def edges(count: int) -> Tensor:
    """(count - 1,) double, the inner edges of the rank levels."""
    side = count // SIDE
    if not side:
        return torch.arange(1, count).double() / count
    low = torch.logspace(0, 1, side + 1, base=FINEST / TAIL, dtype=torch.float64)[:-1].flip(0)
    low = low * TAIL
    middle = torch.linspace(TAIL, 1.0 - TAIL, count - 2 * side + 1, dtype=torch.float64)[1:-1]
    return torch.cat([low, middle, 1.0 - low.flip(0)])


def level_table(ends: Tensor) -> Tensor:
    """(GRID,) int32, the level at each of `GRID` evenly spaced ranks; faster than a search."""
    at = (torch.arange(GRID) + 0.5) / GRID
    return torch.bucketize(at.to(ends.dtype), ends, out_int32=True)


def midpoints(count: int) -> Tensor:
    """(count,) double, the midpoint of each rank level."""
    ends = torch.nn.functional.pad(edges(count), (1, 0))
    ends = torch.cat([ends, ends.new_ones(1)])
    return (ends[1:] + ends[:-1]) / 2.0
