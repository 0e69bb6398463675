"""Lookup: entries of a table at many places at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Compare = Callable[[Tensor, Tensor], Tensor]


def pick(table: Tensor, at: Tensor) -> Tensor:
    """The entries of a table at places of its flat form, any shape."""
    return table.flatten().index_select(0, at.flatten()).view(at.shape)


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
    low, high = torch.zeros_like(base), torch.full_like(base, count)
    for _ in range(count.bit_length()):
        middle = ((low + high) // 2).clamp_max(count - 1)
        less = below(pick(table, base + middle * stride), value)
        low, high = torch.where(less, middle + 1, low), torch.where(less, high, middle)
    return low
