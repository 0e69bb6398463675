"""Numbers: amounts with their decimals, bounds and codes; columns in and out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.feature import Feature, Kind
from dear_plugin.data.grid import ERROR, on_grid
from dear_plugin.data.kinds.categories import NewLabels
from dear_plugin.data.kinds.cells import (
    Array,
    Reading,
    ends_of,
    is_numeric,
    plain_dtype,
    typed,
    unboxed,
)
from dear_plugin.data.kinds.remedies import OTHERS, as_numbers, conversion, line
from dear_plugin.data.special_values import (
    SPECIAL,
    is_special,
    level_of,
    row_value,
    without_special,
)
from dear_plugin.errors import SchemaError

MAX_DECIMALS = 6
# A number takes observed values only if these are at most so many, and if between two of them,
# with so many rows each, a value of their common grid has none: of amounts, some would have it.
MOST_OBSERVED, ROWS_AT_A_GAP = 24, 10
# A step is common if this share of so many rows takes it, and this share of the steps between the
# 5 and 95 % quantiles is taken. It binds a number of at most so many values, and steps.
ON_STEP, STEP_ROWS, TAKEN, MOST_ON_STEPS, MOST_STEPS = 0.99, 50, 0.02, 60, 10_000
ROUND = [10.0**k * a for k in range(7) for a in (1.0, 2.0, 2.5, 5.0) if 10.0**k * a % 1.0 == 0.0]
# Far larger numbers are no whole number of steps.
WHOLE = 1e9
# The largest scaled number: in float32 its square does not overflow.
FARTHEST = 1e15


def infer(
    column: pd.Series, name: str, special: tuple[Any, ...] | None, as_category: bool
) -> Feature:
    """The feature of a column of numbers, (n,)."""
    codes = special or ()
    single = str(column.dtype).lower() == "float32"
    values = ordinary_values(column, codes)
    values = values[~np.isnan(values)].astype(np.float32 if single else np.float64)
    if not np.isfinite(values).all():
        raise SchemaError(f"column {name!r} holds infinite values: clip or drop them")
    places = decimals(values) if len(values) else 0
    values = on_grid(values, places)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    feature = Feature(
        name,
        Kind.NUMERIC,
        (low, high),
        precision=places,
        dtype=str(column.dtype),
        immutable=low == high,
        special=codes,
        observed=_few(values, places),
        missing="nan" if column.isna().any() else "",
    )
    if is_special(low):
        lowest = f"numbers above {SPECIAL:.3g}, got {low:.3g}"
        raise SchemaError(f"column {name!r}: expected {lowest}: clip or drop such values")
    return feature


def read(
    feature: Feature, column: pd.Series, new: NewLabels | None, accepted: Array | None
) -> Reading:
    """The row values of numbers, (n,); new ones are numbers like others."""
    column = unboxed(column)
    name, dtype = feature.name, column.dtype
    if not is_numeric(dtype):
        is_bool = pd.api.types.is_bool_dtype(dtype)  # pd.to_numeric would leave it as it is
        what, code = conversion(column)
        if not what or (what, code) == OTHERS:
            code = "{0}.astype(int)" if is_bool else as_numbers(column)
        message = f"column {name!r} must hold numbers, got dtype {dtype}: {line(name, code)}"
        return Reading.unreadable(message)
    if isinstance(dtype, np.dtype):
        values = on_grid(column.to_numpy(), feature.precision)
    else:
        values = on_grid(column.to_numpy(dtype=np.float64, na_value=np.nan), feature.precision)
    far = ~(np.abs(values - feature.bounds[0]) <= FARTHEST * feature.width)  # True for NaN, too
    far |= is_special(values)
    if feature.special_levels:
        values, far = _with_levels(feature, values, far)
    return _with_complaint(feature, column, values, far) if far.any() else Reading(values)


def cells(feature: Feature, values: Array) -> Array:
    """Row values of any shape as numbers, special levels as their codes or NaN."""
    cells = values + 0.0  # no negative zeros
    if feature.special_levels:
        codes = np.array([*feature.special, np.nan])
        special = is_special(values)
        level = np.where(special, level_of(values), 0).astype(np.int64)
        cells = np.where(special, codes[level], cells)
    return cells


def column(feature: Feature, values: Array) -> pd.Series | Array:
    """Row values, (n,), as a column of numbers; floats where an integer dtype cannot hold them."""
    numbers = cells(feature, values)
    whole = np.isnan(numbers) | (numbers == np.round(numbers))
    if not feature.dtype.startswith("float") and not whole.all():
        return pd.Series(numbers)
    return typed(feature, numbers)


def limits(feature: Feature, dtype: Any) -> tuple[float, float, int | None]:
    """The least and greatest number of a column of a dtype, and its decimals.

    Of few observed values it is the least and the greatest of those inside of the limits.
    """
    every = (ends_of(plain_dtype(dtype)), feature.bounds, feature.limits or feature.bounds)
    low, high = max(ends[0] for ends in every), min(ends[1] for ends in every)
    if feature.observed:
        known = [value for value in feature.observed if low <= value <= high]
        low, high = min(known, default=math.inf), max(known, default=-math.inf)
    return low, high, decimals_of(feature, dtype)


def decimals_of(feature: Feature, dtype: Any) -> int | None:
    """The decimals of a column of a dtype: integers have at most 0 whatever the precision."""
    places = feature.precision
    return min(places or 0, 0) if plain_dtype(dtype).kind in "iu" else places


def is_narrow(feature: Feature, dtype: Any) -> bool:
    """Whether a column of a dtype cannot hold all observed numbers."""
    low, high = ends_of(plain_dtype(dtype))
    return feature.bounds[0] < low or high < feature.bounds[1]


def values(feature: Feature, column: Tensor) -> Tensor:
    """(l,) ascending, the distinct amounts of training values, (n,)."""
    out: Tensor = without_special(column).unique()
    return out


def levels(feature: Feature) -> Tensor:
    """(l,) double, the special levels, where an action may enter or leave one."""
    count = feature.special_levels if feature.enter_special or feature.leave_special else 0
    return torch.tensor([row_value(level) for level in range(count)], dtype=torch.float64)


def changes(before: Tensor, after: Tensor) -> Tensor:
    """(m, 2) int64, the special level before and after, (m,); else -2 the less, -1 the more."""
    ends = torch.stack([before, after], 1)
    rises = (after > before).long()
    order = torch.stack([-1 - rises, rises - 2], 1)
    out: Tensor = torch.where(is_special(ends), level_of(ends).long(), order)
    return out


def ordinary_values(column: pd.Series, special: Sequence[float]) -> Array:
    """A column of numbers as (n,) double, NaN where a number is missing or special."""
    values: Array = column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    values[np.isin(values, special)] = np.nan
    return values


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


def _few(values: Array, places: int | None) -> tuple[float, ...]:
    """The only values that a number, (n,), may take: with gaps, or on a step; () for all."""
    found = on_steps(values) if len(np.unique(values)) <= MOST_ON_STEPS else values[:0]
    kept = values[np.isin(values, found)] if len(found) else values
    return few_with_gaps(kept, places) or tuple(found.tolist())


def _with_levels(feature: Feature, values: Array, far: Array) -> tuple[Array, Array]:
    """Numbers, (n,), with special levels as row values, and the unreadable ones, (n,)."""
    far = far | is_special(values)
    levels = [values == code for code in feature.special]
    levels += [np.isnan(values)] if feature.missing else []
    out = values.copy()
    for i, mask in enumerate(levels):
        out[mask], far[mask] = row_value(i), False
    return out, far


def _with_complaint(feature: Feature, column: pd.Series, values: Array, far: Array) -> Reading:
    """The reading of numbers, (n,), of which those in `far`, (n,) bool, are unreadable."""
    low, high = feature.bounds
    bad, what = far & ~np.isfinite(values), "missing or infinite values"
    if not bad.any():
        bad, what = far, f"values too far from those observed ({low:g} to {high:g})"
    where = column.index[bad][:3].tolist()
    complaint = f"column {feature.name!r} has {what} in {bad.sum()} rows, first {where}"
    expected = f"a number near those observed ({low:g} to {high:g})"
    return Reading(np.where(far, 0.0, values), complaint, far, expected)
