"""Lookup: entries of a table at many places at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Compare = Callable[[Tensor, Tensor], Tensor]


def pick(table: Tensor, at: Tensor) -> Tensor:
    """The entries of a table at places of its flat form, any shape."""
    return table.view(-1).index_select(0, at.reshape(-1)).view(at.shape)


@dataclass(frozen=True)
class Ruler:
    """Many sorted ladders in one: each is shifted to a stretch of its own, one search serves all.

    Attributes:
        keys: (g,) double, the shifted rungs, ladder after ladder.
        shift: (r,) double, where the stretch of each ladder lies.
        first: (r,) int32, the first rung of each ladder.
        last: (r,) int32, the last one.
    """

    keys: Tensor
    shift: Tensor
    first: Tensor
    last: Tensor

    @classmethod
    def of(cls, rungs: Tensor, sizes: Tensor) -> Ruler:
        """Lay ladders end to end.

        Args:
            rungs: (g,) sorted within each ladder.
            sizes: (r,) how many rungs each has, one at least.
        """
        end = sizes.cumsum(0)
        first, start = end - sizes, rungs.double()
        low, high = start[first], start[end - 1]
        shift = (high - low + 1.0).cumsum(0) - (high + 0.5)
        keys = start + shift.repeat_interleave(sizes)
        return cls(keys, shift, first.int(), (end - 1).int())

    def below(self, value: Tensor, ladders: Tensor, reached: bool = False) -> Tensor:
        """The last rung of a ladder that lies below a value, int32, any shape; else the first.

        Args:
            value: what is looked up.
            ladders: on which ladder, of a shape that broadcasts.
            reached: a rung that equals the value lies below it too.
        """
        keys = (value + self.shift[ladders]).contiguous()
        found = torch.searchsorted(self.keys, keys, right=reached, out_int32=True)
        # A value beyond the ends may have been found on another ladder.
        return torch.clamp(found.sub_(1), self.first[ladders], self.last[ladders])


def padded(table: Tensor) -> Tensor:
    """A table, flat, and its last entry once more: what follows the last one is looked up too."""
    flat = table.flatten()
    return torch.cat([flat, flat[-1:]])


def places(
    table: Tensor, base: Tensor, stride: int, count: int, value: Tensor, below: Compare = torch.lt
) -> Tensor:
    """How many of the sorted entries at `base`, `base + stride` ... lie below values, any shape.

    Args:
        table: where the entries are.
        base: the flat place of the first one, int32.
        stride: how far apart they are.
        count: how many there are.
        value: what is compared.
        below: when an entry lies below a value.
    """
    at, room = base, 1 << (count.bit_length() - 1)
    # Whatever lies below is stepped over: first what is more than a power of two, then halves.
    steps = [(room, count - room), *((room >> i, room >> i) for i in range(1, room.bit_length()))]
    for ahead, step in steps:
        less = below(pick(table, at + (ahead - 1) * stride), value)
        at = at.add(less, alpha=step * stride)
    return (at - base).div_(stride, rounding_mode="floor").add_(below(pick(table, at), value))
