"""Standings: which places among people alike are told apart, finer and finer towards both ends.

Refused people stand where few do: .9985 and .9995 are as different there as .5 and .6 are in the
middle.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The outer 1/64 on either side has an eighth of the standings, evenly spread over its octaves.
TAIL, FINEST = 2.0**-6, 2.0**-14
SIDE = 8
PLACES = 1 << 14


def edges(count: int) -> Tensor:
    """(count - 1,) double, where one standing ends and the next begins."""
    side = count // SIDE
    if not side:
        return torch.arange(1, count).double() / count
    low = torch.logspace(0, 1, side + 1, base=FINEST / TAIL, dtype=torch.float64)[:-1].flip(0)
    low = low * TAIL
    middle = torch.linspace(TAIL, 1.0 - TAIL, count - 2 * side + 1, dtype=torch.float64)[1:-1]
    return torch.cat([low, middle, 1.0 - low.flip(0)])


def graded(ends: Tensor) -> Tensor:
    """(PLACES,) int32, the standing at each of as many even places: looked up, it is quick."""
    at = (torch.arange(PLACES) + 0.5) / PLACES
    return torch.bucketize(at.to(ends.dtype), ends, out_int32=True)


def middles(count: int) -> Tensor:
    """(count,) double, the middle of each standing."""
    ends = torch.nn.functional.pad(edges(count), (1, 0))
    ends = torch.cat([ends, ends.new_ones(1)])
    return (ends[1:] + ends[:-1]) / 2.0
