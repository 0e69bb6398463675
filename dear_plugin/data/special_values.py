"""Special values: row values of numbers that are missing or hold a special code.

A number may be missing, or hold a code that is no amount (-9 for "no such account"). Each is a
*special level* of its feature; the i-th one has the row value `(i + 1) * SPECIAL`, which is exact,
and below all numbers, so that sorted tables separate them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.feature import Feature

# The row value of a feature's first special level. Numbers as low (-1.07e301) are unreadable; sums
# of many special levels, and their products with decimals, are finite.
SPECIAL = -(2.0**1000)


def is_special(rows: Any) -> Any:
    """Whether row values, an array or tensor of any shape, are special levels."""
    return rows <= SPECIAL


def level_of(rows: Any) -> Any:
    """The level index of special row values, any shape; undefined for ordinary values."""
    return (rows / SPECIAL).round() - 1


def row_value(level: Any) -> Any:
    """The row value of a feature's i-th special level, or of a tensor of levels."""
    return (level + 1) * SPECIAL


def without_special(column: Tensor) -> Tensor:
    """The ordinary row values of a column, (n,); a single zero if there are none."""
    kept = column[~is_special(column)]
    return kept if len(kept) else column.new_zeros(1)


def _missing(feature: Feature) -> float:
    """The row value of a missing cell, NaN for a feature without missing values."""
    if not feature.missing:
        return math.nan
    if feature.is_number:
        return float(row_value(feature.special_levels - 1))
    return float(feature.missing_category)


@dataclass(frozen=True)
class SpecialLevels:
    """Which features may be missing or special, and which actions may change that.

    Attributes:
        counts: (p,) int64, the number of special levels of a numeric feature.
        missing: (p,) double, the row value of a missing cell: a category's index, or a special
            level; NaN for features without missing values.
        enter: (p,) bool, features that an action may set to a special level.
        leave: (p,) bool, features whose special levels an action may change.
        unknown: the positions of the categories that say that a value is not known, by feature.
    """

    counts: Tensor
    missing: Tensor
    enter: Tensor
    leave: Tensor
    unknown: Mapping[int, Tensor]

    @classmethod
    def of(cls, features: Sequence[Feature]) -> SpecialLevels:
        """The special levels of features, which may have none."""
        return cls(
            torch.tensor([f.special_levels for f in features]),
            torch.tensor([_missing(f) for f in features], dtype=torch.float64),
            torch.tensor([f.enter_special for f in features]),
            torch.tensor([f.leave_special for f in features]),
            {
                j: torch.tensor([f.categories.index(level) for level in f.special]).double()
                for j, f in enumerate(features)
                if f.special and not f.is_number
            },
        )

    @lazy
    def exist(self) -> bool:
        """Whether any feature may be missing or special."""
        return bool(self.unknown or (self.counts > 0).any() or not self.missing.isnan().all())

    @lazy
    def in_numbers(self) -> bool:
        """Whether any number may be missing or special."""
        return bool((self.counts > 0).any())

    def mask(self, rows: Tensor) -> Tensor:
        """(..., p) bool, the cells of rows that are missing or special."""
        if not self.exist:
            return torch.zeros_like(rows, dtype=torch.bool)
        counts, missing = self.counts.to(rows.device), self.missing.to(rows.device)
        mask: Tensor = (is_special(rows) & (counts > 0)) | (rows == missing)
        for j, positions in self.unknown.items():
            mask[..., j] |= torch.isin(rows[..., j], positions.to(rows))
        return mask

    def restrict(
        self, x: Tensor, moved: Tensor, projected: Tensor, acted: Tensor | None = None
    ) -> Tensor:
        """Projected rows, (m, c, p), with changes of level only where `enter`, `leave` allow them.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows before projection.
            projected: (m, c, p) the rows after a projection that ignores special levels.
            acted: (m, p) bool, the only features that may change their level; None for all.
        """
        if not self.exist:
            return projected
        before, after = self.mask(x)[:, None], self.mask(moved)
        allowed = (~before | self.leave) & (~after | self.enter)
        if acted is not None:
            allowed &= acted[:, None] | ~(before | after)
        return torch.where(allowed, torch.where(after, moved, projected), x[:, None])

    def expand(self, rows: Tensor, out: Tensor, starts: Sequence[int]) -> None:
        """Write the special levels of rows, (..., p), into encoded columns, (..., d).

        The column of the level is 1, that of the number 0.
        """
        for j, count in self._numbers:
            cell, start = rows[..., j], starts[j]
            special = is_special(cell)
            out[..., start].masked_fill_(special, 0.0)
            level = torch.where(special, level_of(cell), -1.0)
            for i in range(count):
                out[..., start + 1 + i] = level == i

    def collapse(self, x: Tensor, rows: Tensor, starts: Sequence[int]) -> None:
        """Write the special levels of encoded columns, (..., d), into rows, (..., p)."""
        for j, count in self._numbers:
            indicators = x[..., starts[j] + 1 : starts[j] + 1 + count]
            largest, level = indicators.max(-1)
            rows[..., j] = torch.where(largest > 0.5, row_value(level.double()), rows[..., j])

    @lazy
    def _numbers(self) -> list[tuple[int, int]]:
        """The features with special levels, and the number of these."""
        return [(j, count) for j, count in enumerate(self.counts.tolist()) if count]
