"""Special values: row values of numbers that are missing or hold a special code.

A number may be missing, or hold a code that is no amount (-9 for "no such account"). Each is a
*special level* of its feature; the i-th one has the row value `(i + 1) * SPECIAL`, which is exact,
and below all numbers, so that sorted tables separate them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# The row value of a feature's first special level. Numbers as low (-1.07e301) are unreadable; sums
# of many special levels, and their products with decimals, are finite.
SPECIAL = -(2.0**1000)


def level_of(rows: Any) -> Any:
    """The level index of special row values, any shape; undefined for ordinary values."""
    return (rows / SPECIAL).round() - 1


def row_value(level: Any) -> Any:
    """The row value of a feature's i-th special level, or of a tensor of levels."""
    return (level + 1) * SPECIAL


def known(rows: Any) -> Any:
    """Whether row values, an array or tensor of any shape, are neither missing nor coded."""
    return ~(rows <= SPECIAL)


def or_nan(values: Tensor) -> Tensor:
    """Values of any shape, NaN where a number is missing or coded."""
    return values.where(known(values), torch.nan)


def amounts_of(column: Tensor) -> Tensor:
    """The known row values of a column, (n,); a single zero if there are none."""
    kept = column[known(column)]
    return kept if len(kept) else column.new_zeros(1)
