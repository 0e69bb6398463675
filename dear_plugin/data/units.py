"""Units: user numbers as row values and back, on their precision grids, without float32 noise."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.columns import (
    FLOAT_STEP,
    Array,
    Resolution,
    column_resolution,
    from_scaled,
    off_grid,
    step_size,
    to_scaled,
)
from dear_plugin.data.schema import Feature, Kind, Schema
from dear_plugin.data.special_values import is_special

# The most significant digits of a float32 beside the range of its feature.
DIGITS = 9

# A chunk of so many rows takes a few MiB of doubles.
ROWS_AT_ONCE = 1 << 14
# The grid of numbers without a precision, in scaled units.
FINEST = 2.0**-20

logger = logging.getLogger(__name__)


class Units:
    """Scales, offsets and precision steps of the p features.

    Args:
        schema: the features.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def resolutions(self, frame: pd.DataFrame) -> list[Resolution]:
        """(p,) the decimals and the range that the columns of a frame can hold."""
        resolutions = [column_resolution(f, frame[f.name].dtype) for f in self.schema]
        pairs = zip(self.schema, resolutions, strict=True)
        narrow = [f.name for f, resolution in pairs if resolution.is_too_narrow(f)]
        if narrow:
            logger.warning(
                "columns %s have dtypes too narrow for all observed values: candidates are limited"
                " to values that they can hold",
                narrow,
            )
        return resolutions

    def grid_residual(self, rows: Tensor, units: Tensor) -> Tensor | None:
        """(n, p) scaled difference of rows, (n, p), from their grids; None if all are on them.

        Args:
            rows: rows, whose numbers may be finer than the schema's precision.
            units: (p,) double, the units of precision; NaN for features without a grid.
        """
        parts = [self._grid_residual(part, units) for part in rows.split(ROWS_AT_ONCE)]
        return torch.cat(parts) if any(bool(part.any()) for part in parts) else None

    def _grid_residual(self, rows: Tensor, units: Tensor) -> Tensor:
        low, width = self.scale
        number = rows.double().mul_(width).add_(low)
        residual = number.sub_(number.div(units).round_().mul_(units)).div_(width).float()
        # Features without a grid have the residual NaN, for which off_grid is False.
        return torch.where(off_grid(residual, rows) & ~is_special(rows), residual, 0.0)

    def rounded(self, rows: Tensor) -> Tensor:
        """Rows, (n, p), rounded as if written to a frame of the schema's precision and read back.

        Equal numbers then have equal bits, whether computed or read from a frame.
        """
        out = rows.clone()
        for j, feature in enumerate(self.schema):
            if feature.kind is not Kind.NUMERIC:
                out[:, j] = rows[:, j].round()
            elif feature.precision is None:
                out[:, j] = (rows[:, j] / FINEST).round() * FINEST
            else:
                values = from_scaled(feature, rows[:, j].numpy(), feature.precision)
                out[:, j] = torch.from_numpy(to_scaled(feature, values)).float()
        return out

    @lazy
    def steps(self) -> Tensor:
        """(p,) the scaled size of one unit of the schema's precision."""
        return step_sizes(self.schema, [f.precision for f in self.schema])

    @lazy
    def offsets(self) -> Tensor:
        """(p,) double, the scaled difference between the user's zero and the scaled zero."""
        low, width = self.scale
        return low / width

    def scaled(self, values: Tensor) -> Tensor:
        """User numbers, (n, p) double, as row values; a category's index is its row value."""
        low, width = self.scale
        return ((values - low) / width).float()

    def numbers(self, values: Tensor, features: Tensor) -> Tensor:
        """Row values, (..., q), of features, (q,), as user numbers on the schema's grids."""
        low, width = (each[features] for each in self.scale)
        unit, raw = self.sizes[features], values.double() * width + low
        return torch.where(unit.isnan(), raw, (raw / unit).round() * unit)

    def nearest(self, numbers: Tensor, feature: int) -> Tensor:
        """(m,) the row values nearest to user numbers of a feature."""
        (low, width), unit = self.scale, self.sizes[feature]
        whole = numbers if bool(unit.isnan()) else (numbers / unit).round() * unit
        return ((whole - low[feature]) / width[feature]).float()

    @lazy
    def observed(self) -> dict[int, Tensor]:
        """The only row values, ascending, of the features that take no others, by feature."""
        low, width = self.scale
        return {
            j: ((torch.tensor(sorted(f.observed)).double() - low[j]) / width[j]).float()
            for j, f in enumerate(self.schema)
            if f.observed
        }

    @lazy
    def scale(self) -> tuple[Tensor, Tensor]:
        """(p,) double each: the user's number scaled to 0, and its distance to the one of 1."""
        ends = [(f.bounds[0] if f.kind is Kind.NUMERIC else 0.0, f.width) for f in self.schema]
        low, width = torch.tensor(ends, dtype=torch.float64).T
        return low, width

    @lazy
    def sizes(self) -> Tensor:
        """(p,) double, the schema's units of precision in user units; NaN where unrounded."""
        sizes = [np.nan if f.precision is None else 10.0**-f.precision for f in self.schema]
        return torch.tensor(sizes, dtype=torch.float64)


def step_sizes(features: Iterable[Feature], decimals: Iterable[int | None]) -> Tensor:
    """(p,) the scaled size of one unit of precision, the grid of changes.

    1 for categories, `FLOAT_STEP` for features that are not rounded.

    Args:
        features: the p features.
        decimals: the decimals of each, None where it is not rounded.
    """
    sizes = [
        1.0 if f.kind is not Kind.NUMERIC else step_size(f, places)
        for f, places in zip(features, decimals, strict=True)
    ]
    return torch.tensor(sizes, dtype=torch.float32, device="cpu")


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
