"""Columns: sorted values, their counts, and the values that many rows have."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special, without_special

# An atom is a value that this share of the rows has.
HEAVY = 0.01


def sorted_values(x: Tensor) -> Tensor:
    """Values sorted along the last dimension, (..., n)."""
    # torch.sort also computes the indices: numpy takes a tenth of its time.
    return torch.from_numpy(np.sort(x.numpy()))


def value_counts(column: Tensor) -> tuple[Tensor, Tensor]:
    """The sorted distinct values of a column, (n,), and the number of rows with each."""
    values, counts = sorted_values(column).unique_consecutive(return_counts=True)
    return values, counts


def heavy_values(column: Tensor, min_rows: int = 5) -> Tensor:
    """The sorted values that the share `HEAVY` of the rows, and `min_rows` rows, have."""
    values, counts = value_counts(column)
    return values[counts >= max(HEAVY * len(column), min_rows)]


def quantiles(ordered: Tensor, count: int) -> Tensor:
    """`count` values of a sorted column, (n,), in the middle of equal parts of it."""
    at = ((torch.arange(count) + 0.5) / max(count, 1) * len(ordered)).long()
    return ordered[at[: len(ordered)]]


def representatives(column: Tensor, most: int) -> Tensor:
    """At most 1.5 `most` sorted values of a column: all, or heavy ones and quantiles.

    Special levels are always among them.
    """
    special = is_special(column)
    if bool(special.any()):
        levels = value_counts(column[special])[0]
        return torch.cat([levels, representatives(without_special(column), most - len(levels))])
    values, counts = value_counts(column)
    if len(values) <= most:
        return values
    heavy = heavy_values(column)
    if len(heavy) > most:
        heavy = values[counts.topk(most).indices]
    rest = sorted_values(column[~torch.isin(column, heavy)])
    return value_counts(torch.cat([heavy, quantiles(rest, most - min(len(heavy), most // 2))]))[0]


def equal_groups(size: Tensor, count: int) -> Tensor:
    """(t,) int64, the group of each of t values in order: about equally many rows a group.

    Args:
        size: (t,) the rows of each value.
        count: the number of groups.
    """
    middle = size.cumsum(0) - size / 2.0
    return (middle / size.sum().clamp_min(1e-12) * count).long().clamp_max(count - 1)
