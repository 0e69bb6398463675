"""Steps: the values that a number may take; training values in, decimals and common steps out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dear_plugin.data.grid import ERROR
from dear_plugin.data.kinds.cells import Array

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
