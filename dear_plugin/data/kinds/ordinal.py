"""Ordinal: what numbers and levels with an order share: rows hold numbers, or special levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.attributes import CODES
from dear_plugin.data.column import T, Ts
from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds.cells import Array, Reading, ends_of, plain_dtype
from dear_plugin.data.special_values import amounts_of, known, level_of, row_value

# The largest scaled number: in float32 its square does not overflow.
FARTHEST = 1e15


class Ordinal(Feature):
    """A feature whose rows hold numbers."""

    limited_by: ClassVar[tuple[str, ...]] = ("ranges",)
    _rules: ClassVar = {"special": CODES}

    @property
    def complaint(self) -> str:
        """See `Feature`."""
        if math.isfinite(self.width):
            return ""
        text = f"has the range {self.bounds}, which overflows a float: use larger units"
        return f"column {self.name!r} {text}"

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest observed number."""
        return self.bounds

    @property
    def width(self) -> float:
        """The range that is scaled to [0, 1]; 1 for constants."""
        low, high = self.bounds
        return high - low if high > low else 1.0

    @property
    def special_levels(self) -> int:
        """The number of special levels; a missing value is the last one."""
        return len(self.special) + bool(self.missing)

    @property
    def columns(self) -> int:
        """One, and one per special level."""
        return 1 + self.special_levels

    def reading(self, column: pd.Series, values: Array) -> Reading:
        """The reading of a column, (n,), of numbers, (n,), some of them codes or missing."""
        far = ~(np.abs(values - self.bounds[0]) <= FARTHEST * self.width)  # True for NaN, too
        far |= ~known(values)
        if self.special_levels:
            values, far = self._with_levels(values, far)
        return self._with_complaint(column, values, far) if far.any() else Reading(values)

    def _with_levels(self, values: Array, far: Array) -> tuple[Array, Array]:
        """Numbers, (n,), with special levels as row values, and the unreadable ones, (n,)."""
        levels = [values == code for code in self.special]
        levels += [np.isnan(values)] if self.missing else []
        out = values.copy()
        for i, mask in enumerate(levels):
            out[mask], far[mask] = row_value(i), False
        return out, far

    def _with_complaint(self, column: pd.Series, values: Array, far: Array) -> Reading:
        """The reading of numbers, (n,), of which those in `far`, (n,) bool, are unreadable."""
        near = f"those observed ({self.bounds[0]:g} to {self.bounds[1]:g})"
        bad, what = far & ~np.isfinite(values), "missing or infinite values"
        if not bad.any():
            bad, what = far, f"values too far from {near}"
        where = column.index[bad][:3].tolist()
        complaint = f"column {self.name!r} has {what} in {bad.sum()} rows, first {where}"
        return Reading.of(values, complaint, column, far, f"a number near {near}")

    def range_in(self, dtype: Any) -> tuple[float, float, int | None]:
        """See `Column`; of few observed values the least and the greatest inside of the limits."""
        every = (ends_of(plain_dtype(dtype)), self.bounds, self.limits or self.bounds)
        low, high = max(ends[0] for ends in every), min(ends[1] for ends in every)
        if self.observed:
            known = [value for value in self.observed if low <= value <= high]
            low, high = min(known, default=math.inf), max(known, default=-math.inf)
        return low, high, self.decimals_in(dtype)

    def decimals_in(self, dtype: Any) -> int | None:
        """The decimals of a column of a dtype: integers have at most 0 whatever the precision."""
        places = self.precision
        return min(places or 0, 0) if plain_dtype(dtype).kind in "iu" else places

    def coarser(self, values: Tensor, how: Callable[[Tensor], Tensor]) -> Tensor:
        """See `Column`."""
        return how(values)

    def either(self, amounts: Callable[[*Ts], T], labels: Callable[[*Ts], T], *args: *Ts) -> T:
        """See `Column`."""
        return amounts(*args)

    def values(self, column: Tensor) -> Tensor:
        """See `Column`; the distinct amounts, or a single zero."""
        out: Tensor = amounts_of(column).unique()
        return out

    @property
    def special_values(self) -> Tensor:
        """See `Column`."""
        out: Tensor = row_value(torch.arange(self.special_levels, dtype=torch.float64))
        return out

    @property
    def label_values(self) -> Tensor:
        """See `Column`; where an action may set or leave a special level, these."""
        return self.special_values[: None if self.enter_special or self.leave_special else 0]

    def changes(self, before: Tensor, after: Tensor) -> Tensor:
        """See `Column`."""
        ends = torch.stack([before, after], 1)
        rises = (after > before).long()
        order = torch.stack([-1 - rises, rises - 2], 1)
        out: Tensor = torch.where(known(ends), order, level_of(ends).long())
        return out
