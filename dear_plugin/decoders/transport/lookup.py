"""Lookup: entries of a table, and positions in sorted segments of it, for many queries at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Compare = Callable[[Tensor, Tensor], Tensor]


def pick(table: Tensor, at: Tensor) -> Tensor:
    """The entries of a flattened table at indices of any shape."""
    return table.view(-1).index_select(0, at.reshape(-1)).view(at.shape)


@dataclass(frozen=True)
class SortedSegments:
    """Sorted segments in one array, shifted so that they do not overlap: one search serves all.

    Attributes:
        keys: (g,) double, the shifted breakpoints, segment after segment.
        shift: (r,) double, the shift of each segment.
        first: (r,) int32, the index of the first breakpoint of each segment.
        last: (r,) int32, the index of the last one.
    """

    keys: Tensor
    shift: Tensor
    first: Tensor
    last: Tensor

    @classmethod
    def of(cls, breakpoints: Tensor, sizes: Tensor) -> SortedSegments:
        """Lay segments end to end.

        Args:
            breakpoints: (g,) sorted within each segment.
            sizes: (r,) the number of breakpoints of each segment, at least one.
        """
        end = sizes.cumsum(0)
        first, start = end - sizes, breakpoints.double()
        low, high = start[first], start[end - 1]
        shift = (high - low + 1.0).cumsum(0) - (high + 0.5)
        keys = start + shift.repeat_interleave(sizes)
        return cls(keys, shift, first.int(), (end - 1).int())

    def locate(self, value: Tensor, segments: Tensor, inclusive: bool = False) -> Tensor:
        """The index of the last breakpoint below each value, int32; the first if there is none.

        Args:
            value: the queries, any shape.
            segments: the segment of each query, of a shape that broadcasts.
            inclusive: whether a breakpoint equal to the value counts as below it.
        """
        keys = (value + pick(self.shift, segments)).contiguous()
        found = torch.searchsorted(self.keys, keys, right=inclusive, out_int32=True)
        # A value outside the range of its segment may be located in another one.
        return torch.clamp(found.sub_(1), pick(self.first, segments), pick(self.last, segments))


def padded(table: Tensor) -> Tensor:
    """A flattened table with its last entry repeated, so that every entry has a next one."""
    flat = table.flatten()
    return torch.cat([flat, flat[-1:]])


def count_below(
    table: Tensor, base: Tensor, stride: int, count: int, value: Tensor, below: Compare = torch.lt
) -> Tensor:
    """How many of the sorted entries at `base`, `base + stride` ... lie below values, any shape.

    It is a bisection, of all values at once.

    Args:
        table: the table, read as if flattened.
        base: the index of the first entry, int32, of the values' shape.
        stride: the distance between entries.
        count: the number of entries, at least one.
        value: the queries.
        below: when an entry lies below a value.
    """
    at, half = base, 1 << (count.bit_length() - 1)
    # First the entries in excess of a power of two, then halves.
    steps = [(half, count - half), *((half >> i, half >> i) for i in range(1, half.bit_length()))]
    for ahead, step in steps:
        less = below(pick(table, at + (ahead - 1) * stride), value)
        at = at.add(less, alpha=step * stride)
    return (at - base).div_(stride, rounding_mode="floor").add_(below(pick(table, at), value))
