"""Rounding: numbers in user units without the rounding errors of scaled float32 values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dear_plugin.data.columns import FLOAT_STEP, Array, to_scaled
from dear_plugin.data.feature import Feature, Kind
from dear_plugin.data.special_values import is_special

# The most significant digits of a float32 beside the range of its feature.
DIGITS = 9


def brief(feature: Feature, cells: Array, values: Array, places: int | None) -> Array:
    """Numbers in user units, (m,), with as few digits as have the same row values.

    Row values are float32, whose last digits in user units are rounding errors: 0.41 would be
    0.410000009377133. Numbers that `places` decimals represent exactly are kept.

    Args:
        feature: the feature; cells of another kind than numbers are kept.
        cells: (m,) the numbers.
        values: (m,) their row values.
        places: the decimals that they are rounded to; None: unrounded.
    """
    error = FLOAT_STEP * feature.width
    if feature.kind is not Kind.NUMERIC or (places is not None and error < 0.1 * 10.0**-places):
        return cells
    out, first = cells.copy(), math.floor(-math.log10(max(feature.width, 1e-99)))
    open_cells = ~is_special(values)
    for digits in range(first, first + DIGITS if places is None else min(places, first + DIGITS)):
        shorter = np.round(cells, digits) + 0.0
        same = open_cells & (to_scaled(feature, shorter).astype(np.float32) == values)
        out[same] = shorter[same]
        open_cells &= ~same
    return out


def snap_to_ends(feature: Feature, cells: Array, ends: tuple[Array, Array], dtype: Any) -> Array:
    """Numbers, (m,), of which those outside an end by a rounding error are replaced by the end.

    Rounding errors are those of scaled float32 values and of the column's dtype.

    Args:
        feature: the feature.
        cells: (m,) numbers in user units.
        ends: (m,) each, the least and greatest allowed number.
        dtype: of the column.
    """
    kind = dtype if isinstance(dtype, np.dtype) and dtype.kind == "f" else np.dtype(np.float64)
    out = cells.astype(kind)
    for end, side in zip((e.astype(kind) for e in ends), (1, -1), strict=True):
        over = side * (end - out)
        if not (over > 0).any():
            continue
        tolerance = FLOAT_STEP * feature.width + np.abs(np.spacing(end))
        out = np.where((over > 0) & (over <= tolerance), end, out)
    return out
