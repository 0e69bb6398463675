"""Number: amounts with their decimals, bounds and codes; columns in and out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from dear_plugin.data.attributes import Kind
from dear_plugin.data.column import Special
from dear_plugin.data.grid import ERROR, on_grid
from dear_plugin.data.kinds.cells import Array, Reading, is_numeric, unboxed
from dear_plugin.data.kinds.ordinal import Ordinal
from dear_plugin.data.kinds.remedies import OTHERS, as_numbers, conversion, line
from dear_plugin.data.special_values import SPECIAL, known, level_of
from dear_plugin.errors import SchemaError

MAX_DECIMALS = 6
# A number takes observed values only if these are at most so many, and if between two of them,
# with so many rows each, a value of their common grid has none: of amounts, some would have it.
MOST_OBSERVED, ROWS_AT_A_GAP = 24, 10
# A step is common if this share of so many rows takes it, and this share of the steps between the
# 5 and 95 % quantiles is taken. It binds a number of at most so many values, and steps.
ON_STEP, STEP_ROWS, TAKEN, MOST_ON_STEPS, MOST_STEPS = 0.99, 50, 0.02, 60, 10_000
ROUND = [10.0**k * a for k in range(7) for a in (1.0, 2.0, 2.5, 5.0) if 10.0**k * a % 1.0 == 0.0]
# A number of few, even values: its range has at most so many of their usual distances.
MOST_EVEN = 24
# Far larger numbers are no whole number of steps.
WHOLE = 1e9


class Number(Ordinal):
    """A column of numbers: amounts, and codes that are none."""

    @classmethod
    def takes(cls, kind: Any, given: Mapping[str, Any]) -> bool:
        """Numbers without levels."""
        return kind == Kind.NUMERIC and not given.get("levels")

    @classmethod
    def infer(cls, column: pd.Series, special: Special, as_category: bool) -> Self | None:
        """See `Column`; all that is left."""
        name = str(column.name)
        codes = special or ()
        single = str(column.dtype).lower() == "float32"
        values = ordinary_values(column, codes)
        values = values[~np.isnan(values)].astype(np.float32 if single else np.float64)
        if not np.isfinite(values).all():
            raise SchemaError(f"column {name!r} holds infinite values: clip or drop them")
        places = decimals(values) if len(values) else 0
        values = on_grid(values, places)
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        feature = cls(
            name,
            Kind.NUMERIC,
            (low, high),
            precision=places,
            dtype=str(column.dtype),
            immutable=low == high,
            special=codes,
            observed=tuple(v for v in few_values(values, places) if v not in codes),
            missing="nan" if column.isna().any() else "",
        )
        if low <= SPECIAL:
            lowest = f"numbers above {SPECIAL:.3g}, got {low:.3g}"
            raise SchemaError(f"column {name!r}: expected {lowest}: clip or drop such values")
        return feature

    @property
    def complaint(self) -> str:
        """See `Feature`."""
        own = f"feature {self.name!r}"
        if not pd.api.types.is_numeric_dtype(self.dtype):
            return f"{own}: a number cannot have dtype {self.dtype!r}"
        if self.step and not self.is_on_grid(self.step):
            return (
                f"{own}: step {self.step:g} must be a multiple of its last decimal,"
                f" {10.0 ** -(self.precision or 0):g}; schema.replace({self.name!r},"
                " precision=...) states another one"
            )
        return super().complaint

    def with_central(self, column: pd.Series, share: float) -> Self:
        """See `Column`.

        One extreme value must not make every other change nearly free, nor be advice: the unit of
        cost is the range of the central values, and actions stay within it.
        """
        values = ordinary_values(column, self.special)
        values = values[~np.isnan(values)]
        if not len(values):
            return self
        outer = round((1.0 - share) / 2.0, 9)
        low, high = np.quantile(values, (outer, 1.0 - outer), method="inverted_cdf").tolist()
        return replace(self, central=(low, high), scale=_scale(values, low, high))

    def is_on_grid(self, value: float) -> bool:
        """Whether a number has no more decimals than the feature."""
        return self.precision is None or math.isclose(value, round(value, self.precision))

    @property
    def action_step(self) -> float:
        """The step of actions on it; 0 where there is none: any value, or the observed ones."""
        if self.observed:
            return 0.0
        return self.usual_step if self.step is None else self.step

    @property
    def codes(self) -> tuple[float, ...]:
        """See `Column`; an action that set it to 99 would make it unknown."""
        (low, high), (first, last) = self.bounds, self.limits or self.bounds
        return tuple(code for code in self.special if min(low, first) <= code <= max(high, last))

    @property
    def is_flag(self) -> bool:
        """Whether it has the values 0 and 1."""
        return self.bounds == (0.0, 1.0) and self.precision == 0 and not self.special_levels

    def is_amount(self, cell: Any) -> bool:
        """See `Column`."""
        return not (pd.isna(cell) or cell in self.special)

    def read_cells(self, column: pd.Series, accepted: Array | None) -> Reading:
        """See `Column`; new ones are numbers like others."""
        known = unboxed(column)
        dtype = known.dtype
        if not is_numeric(dtype):
            is_bool = pd.api.types.is_bool_dtype(dtype)  # pd.to_numeric would leave it as it is
            what, code = conversion(known)
            if not what or (what, code) == OTHERS:
                code = "{0}.astype(int)" if is_bool else as_numbers(known)
            text = f"must hold numbers, got dtype {dtype}: {line(self.name, code)}"
            return Reading(np.empty(0), f"column {self.name!r} {text}")
        plain = isinstance(dtype, np.dtype)
        own = known.to_numpy() if plain else known.to_numpy(dtype=np.float64, na_value=np.nan)
        return self.reading(column, on_grid(own, self.precision))

    def cells(self, values: Array) -> Array:
        """Row values of any shape as numbers, special levels as their codes or NaN."""
        cells = values + 0.0  # no negative zeros
        if self.special_levels:
            amounts = known(values)
            level = np.where(amounts, 0, level_of(values)).astype(np.int64)
            cells = np.where(amounts, cells, np.array([*self.special, np.nan])[level])
        return cells

    def cells_in(self, values: Array, dtype: Any) -> Array:
        """See `Column`; with the decimals of the dtype."""
        cells, places = self.cells(values), self.decimals_in(dtype)
        cells = cells if places is None else np.round(cells, places)
        return cells.astype(np.int64) if dtype.kind == "O" and self.dtype == "int64" else cells

    def column(self, values: Array) -> pd.Series | Array:
        """See `Column`; floats where an integer dtype cannot hold them."""
        numbers = self.cells(values)
        whole = np.isnan(numbers) | (numbers == np.round(numbers))
        if not self.dtype.startswith("float") and not whole.all():
            return pd.Series(numbers)
        return self.typed(numbers)


def ordinary_values(column: pd.Series, special: Sequence[float]) -> Array:
    """A column of numbers as (n,) double, NaN where a number is missing or special."""
    values: Array = column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    values[np.isin(values, special)] = np.nan
    return values


def few_values(values: Array, places: int | None) -> tuple[float, ...]:
    """The only values that a number, (n,), may take: with gaps, or on a step; () for all."""
    found = on_steps(values) if len(np.unique(values)) <= MOST_ON_STEPS else values[:0]
    kept = values[np.isin(values, found)] if len(found) else values
    return few_with_gaps(kept, places) or tuple(found.tolist())


def few_with_gaps(values: Array, places: int | None) -> tuple[float, ...]:
    """The distinct values of a number, (n,), if it may take no others; () if it may.

    The grid is the greatest common step of the values: 12, 24, 36 and 48 have no gap.

    Args:
        values: the values without codes and missing ones.
        places: the decimals of the number; None if it has no precision.
    """
    distinct, counts = np.unique(values, return_counts=True)
    few = places is not None and 2 < len(distinct) <= MOST_OBSERVED
    if not few or abs(distinct).max() > WHOLE:
        return ()
    steps = np.diff(np.round(distinct * 10.0 ** (places or 0))).astype(np.int64)
    rows = np.minimum(counts[1:], counts[:-1])
    has_gap = (steps > np.gcd.reduce(steps)) & (rows >= ROWS_AT_A_GAP)
    return tuple(distinct.tolist()) if has_gap.any() else ()


def on_steps(values: Array) -> Array:
    """(q,) ascending, all numbers on the common step of a number, (n,); none if it has no such.

    It is larger than the last decimal, and the greatest of which nearly all rows are multiples,
    from the most frequent one on: the common step of the values that these have, or a round one.
    """
    distinct, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    frequent = order[: int(np.searchsorted(np.cumsum(counts[order]), ON_STEP * len(values))) + 1]
    n = len(values)
    many = len(frequent) > 2 and n >= STEP_ROWS and np.abs(distinct).max() <= WHOLE
    places = decimals(distinct[frequent]) if many else None
    if places is None:
        return distinct[:0]
    start, unit, least = distinct[frequent[0]], 10.0**-places, ON_STEP * len(values)
    whole, some = (np.round((v - start) / unit) for v in (distinct, values[:: n // STEP_ROWS]))
    step = float(np.gcd.reduce(whole[frequent].astype(np.int64)))
    for size in ROUND:  # in few rows first, which is faster
        if size > step and (some % size == 0).mean() > 0.5:
            step = size if counts[whole % size == 0].sum() >= least else step
    low, high = np.quantile(values, (0.05, 0.95))
    taken, size = int(((distinct >= low) & (distinct <= high)).sum()), step * unit
    is_decimal = step <= 1.0 or (size < 1.0 and math.log10(step) % 1.0 == 0.0)
    first, last = math.ceil(whole[0] / step), math.floor(whole[-1] / step)
    few = taken < max(2.0, TAKEN * (high - low) / size)
    if is_decimal or few or last - first >= MOST_STEPS:
        return distinct[:0]
    return np.asarray(np.round(start + size * np.arange(first, last + 1), places))


def decimals(values: Array) -> int | None:
    """The decimals that represent every value, or None when more than six are needed.

    Args:
        values: (n,) floats.
    """
    sample = np.unique(values)
    # Relative, so that values of size 1e-18 are not mistaken for rounding errors.
    tolerance = ERROR * np.finfo(values.dtype).eps * float(np.abs(sample).max())
    for places in range(MAX_DECIMALS + 1):
        if np.abs(np.round(sample, places) - sample).max() <= tolerance:
            return places
    return None


def _scale(values: Array, low: float, high: float) -> float:
    """The unit of cost of values, (n,): the central range, or all of few, even values."""
    distinct = np.unique(values)
    whole = float(distinct[-1] - distinct[0])
    if 1 < len(distinct) <= MOST_EVEN + 1 and whole <= MOST_EVEN * np.median(np.diff(distinct)):
        return whole
    return high - low or float(values.std())
