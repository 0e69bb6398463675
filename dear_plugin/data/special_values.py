"""Levels: how a number that is missing, or holds a special code, is written in a row.

A number may be missing, or hold a code that is no amount (-9 for "no such account"). Each of
these *special levels* is a state of its own beside the values: row value `SPECIAL - i` for the
i-th level of its feature. That lies far below every value (which are scaled to about [0, 1]), so
that sorted tables keep each level apart, and no value can be mistaken for one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.schema import Feature, Kind, Schema

# The row value of a feature's first special level; the next ones lie 1 lower each.
SPECIAL = -4096.0
# Row values from here down are special levels; a value so far below the others is refused.
MOST_SPECIAL = -4000.0


def is_special(rows: Any) -> Any:
    """Whether row values, an array or tensor of any shape, are special levels."""
    return rows <= MOST_SPECIAL


def level_of(rows: Any) -> Any:
    """Which level special row values are, any shape; of values it may be anything."""
    return (SPECIAL - rows).round()


def row_value(level: int) -> float:
    """The row value of a feature's i-th special level."""
    return SPECIAL - level


def without_special(column: Tensor) -> Tensor:
    """The row values of a column, (n,), without its special levels; one zero if none is left."""
    kept = column[~is_special(column)]
    return kept if len(kept) else column.new_zeros(1)


def fill_special(values: Tensor, column: Tensor) -> Tensor:
    """Row values of any shape with special levels replaced by the mean of a column's others.

    What is linear in a number then learns nothing from rows that do not have it.

    Args:
        values: row values of one feature.
        column: (n,) training values of that feature.
    """
    special = is_special(values)
    if not bool(special.any()):
        return values
    return torch.where(special, without_special(column).double().mean().to(values.dtype), values)


def _missing(feature: Feature) -> float:
    """The row value of a missing cell, NaN where there is none."""
    if not feature.missing:
        return math.nan
    if feature.kind is Kind.NUMERIC:
        return row_value(feature.special_levels - 1)
    return float(feature.missing_category)


@dataclass(frozen=True)
class SpecialLevels:
    """Which features may be missing or special, and which actions may change that.

    Attributes:
        counts: (p,) int64, how many special levels a number has.
        missing: (p,) the row value of a missing cell, NaN where there is none: a category's place,
            or below all values of a number.
        enter: (p,) bool, features whose special levels an action may end in.
        leave: (p,) bool, features of which an action may change a special value.
    """

    counts: Tensor
    missing: Tensor
    enter: Tensor
    leave: Tensor

    @classmethod
    def of(cls, schema: Schema) -> SpecialLevels | None:
        """The special levels of a schema; None where it has none."""
        counts = torch.tensor([f.special_levels for f in schema])
        missing = torch.tensor([_missing(f) for f in schema])
        if not bool((counts > 0).any() | ~missing.isnan().all()):
            return None
        return cls(
            counts,
            missing,
            torch.tensor([f.enter_special for f in schema]),
            torch.tensor([f.leave_special for f in schema]),
        )

    def mask(self, rows: Tensor) -> Tensor:
        """(..., p) bool, which cells of rows are missing or special."""
        counts, missing = self.counts.to(rows.device), self.missing.to(rows.device)
        among: Tensor = (is_special(rows) & (counts > 0)) | (rows == missing)
        return among

    def keep_unless_acted(self, x: Tensor, moved: Tensor, acted: Tensor) -> Tensor:
        """Where rows go, (m, c, p), when only actions enter or leave special levels.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) where a decoder takes them.
            acted: (m, p) bool, the features acted on.
        """
        here = x[:, None]
        stays = (self.mask(here) | self.mask(moved)) & ~acted[:, None]
        return torch.where(stays, here, moved)

    def restrict(self, x: Tensor, moved: Tensor, projected: Tensor) -> Tensor:
        """Projected rows, (m, c, p), in which cells change level only where they may.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) where they would go.
            projected: (m, c, p) the same, with values projected as if there were no levels.
        """
        here, there = self.mask(x)[:, None], self.mask(moved)
        may = (~here | self.leave) & (~there | self.enter)
        return torch.where(may, torch.where(there, moved, projected), x[:, None])

    def expand(self, rows: Tensor, out: Tensor, starts: Sequence[int]) -> None:
        """Write a number's special levels, of rows (..., p), into encoded columns (..., d).

        The column of its value holds 0 there, and the column of the level 1.
        """
        for j, count in self._numbers:
            cell, start = rows[..., j], starts[j]
            special = is_special(cell)
            out[..., start] = torch.where(special, 0.0, cell)
            level = torch.where(special, level_of(cell), -1.0)
            for i in range(count):
                out[..., start + 1 + i] = level == i

    def collapse(self, x: Tensor, rows: Tensor, starts: Sequence[int]) -> None:
        """Write the special levels of encoded columns (..., d) into rows (..., p)."""
        for j, count in self._numbers:
            held = x[..., starts[j] + 1 : starts[j] + 1 + count]
            most, at = held.max(-1)
            rows[..., j] = torch.where(most > 0.5, SPECIAL - at, rows[..., j])

    @lazy
    def _numbers(self) -> list[tuple[int, int]]:
        """The numbers with special levels, and how many each has."""
        return [(j, count) for j, count in enumerate(self.counts.tolist()) if count]
