"""Lookup: entries of a table at many places at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy

Compare = Callable[[Tensor, Tensor], Tensor]

# Ladders are cut into so many octaves of their width, from the top down, and those into buckets.
OCTAVES, SHIFT = 20, 6
BUCKETS = (OCTAVES << SHIFT) + 1
# From more steps on a search is quicker.
MOST_STEPS = 4
# Of fewer values it is calls that cost: they are looked up in as few as can be.
MANY = 1 << 10
# So many entries are sooner counted than halved again and again.
COUNTED = 1 << 14
# A width that a float32 can be divided by.
NARROWEST = 1e-30


def pick(table: Tensor, at: Tensor) -> Tensor:
    """The entries of a table at places of its flat form, any shape."""
    if at.numel() < MANY:
        return torch.take(table, at.long())
    return table.view(-1).index_select(0, at.reshape(-1)).view(at.shape)


@dataclass(frozen=True)
class Buckets:
    """A table of where to begin on each of many sorted ladders: the rest is a few steps up.

    At every rung that a search compares, a processor guesses which way it goes on, and guesses
    wrong at every other one: that is what searching costs. Buckets are as wide as their distance
    from the first rung, as floats are: most ladders of numbers that people have are close near
    their low end, or even.

    Attributes:
        low: (r,) double, the first key of each ladder.
        scale: (r,) double, what makes its width 1.
        start: (r * BUCKETS,) int32, the last rung before each bucket, else the first one.
        after: (g,) double, the key after each; NaN, which nothing reaches, after the last one.
        steps: how many rungs the fullest bucket has.
    """

    low: Tensor
    scale: Tensor
    start: Tensor
    after: Tensor
    steps: int

    @classmethod
    def of(cls, keys: Tensor, first: Tensor, last: Tensor) -> Buckets:
        """Cut ladders that lie end to end into buckets; see `Ruler` for the arguments."""
        low, ladders = keys[first], torch.arange(len(first), dtype=torch.int32)
        scale = 1.0 / (keys[last] - low).clamp_min(NARROWEST)
        own = ladders.repeat_interleave(last - first + 1)
        bucket = _bucket(keys, low[own], scale[own], own).long()
        held = torch.zeros(len(first) * BUCKETS, dtype=torch.int32)
        held = held.index_add_(0, bucket, torch.ones_like(own)).view(-1, BUCKETS)
        # Rounded alike, a rung of an earlier bucket lies below all keys of a later one.
        upto = held.cumsum(1, dtype=torch.int32).sub_(1)
        start = (upto - held).clamp_min_(0)
        steps = int(upto.sub_(start).max())
        after = torch.cat([keys[1:], keys[:1]])
        after[last] = torch.nan
        return cls(low, scale, start.add_(first[:, None]).flatten(), after, steps)

    def below(self, keys: Tensor, ladders: Tensor, reached: bool) -> Tensor:
        """As `Ruler.below`, of finite values that were shifted already."""
        at = pick(self.start, _bucket(keys, self.low[ladders], self.scale[ladders], ladders))
        for _ in range(self.steps):
            ahead = pick(self.after, at)
            at.add_(ahead <= keys if reached else ahead < keys)
        return at


def _bucket(keys: Tensor, low: Tensor, scale: Tensor, ladders: Tensor) -> Tensor:
    """The buckets of keys, int32, any shape: the leading bits of floats sort as they do."""
    share = ((keys - low) * scale).float().clamp_(2.0**-OCTAVES, 1.0)
    bits = share.view(torch.int32).bitwise_right_shift_(23 - SHIFT)
    least = (127 - OCTAVES) << SHIFT
    return bits.add_(ladders.int() * BUCKETS - least)


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
        keys = (value + pick(self.shift, ladders)).contiguous()
        if keys.numel() >= MANY and self._buckets.steps <= MOST_STEPS:
            return self._buckets.below(keys, ladders, reached)
        found = torch.searchsorted(self.keys, keys, right=reached, out_int32=True)
        # A value beyond the ends may have been found on another ladder.
        return torch.clamp(found.sub_(1), pick(self.first, ladders), pick(self.last, ladders))

    @lazy
    def _buckets(self) -> Buckets:
        return Buckets.of(self.keys, self.first, self.last)


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
        base: the flat place of the first one, int32, of the values' shape.
        stride: how far apart they are.
        count: how many there are.
        value: what is compared.
        below: when an entry lies below a value.
    """
    if base.numel() * count < COUNTED:
        every = base[..., None] + stride * torch.arange(count, dtype=torch.int32)
        return below(pick(table, every), value[..., None]).sum(-1, dtype=torch.int32)
    at, room = base, 1 << (count.bit_length() - 1)
    # Whatever lies below is stepped over: first what is more than a power of two, then halves.
    steps = [(room, count - room), *((room >> i, room >> i) for i in range(1, room.bit_length()))]
    for ahead, step in steps:
        less = below(pick(table, at + (ahead - 1) * stride), value)
        at = at.add(less, alpha=step * stride)
    return (at - base).div_(stride, rounding_mode="floor").add_(below(pick(table, at), value))
