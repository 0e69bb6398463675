"""Units: the user's numbers beside the scaled ones of rows, and the steps that they move in."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._batches import chunks
from dear_plugin._lazy import lazy
from dear_plugin.data.columns import (
    Resolution,
    column_resolution,
    from_scaled,
    off_grid,
    step_size,
    to_scaled,
)
from dear_plugin.data.schema import Feature, Kind, Schema
from dear_plugin.data.special_values import is_special

# So many rows take a few MiB of doubles.
ROWS_AT_ONCE = 1 << 14
# Of the range: where a number has no decimals of its own, computing leaves so much of it.
FINEST = 2.0**-20

logger = logging.getLogger(__name__)


class Units:
    """What the user's numbers are in rows, feature by feature.

    Args:
        schema: the features.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def resolutions(self, frame: pd.DataFrame) -> list[Resolution]:
        """(p,) what the columns of a frame can hold."""
        found = [column_resolution(f, frame[f.name].dtype) for f in self.schema]
        narrow = [f.name for f, g in zip(self.schema, found, strict=True) if g.is_too_narrow(f)]
        if narrow:
            logger.warning(
                "columns %s have dtypes too narrow for all that was observed: no value is tried"
                " that they cannot hold",
                narrow,
            )
        return found

    def grid_residual(self, rows: Tensor, units: Tensor) -> Tensor | None:
        """(n, p) how far rows, (n, p), lie past the nearest whole step; None if all lie on one.

        Args:
            rows: people, whose numbers may be finer than the schema has them.
            units: (p,) double, the units of precision; NaN where nothing is rounded.
        """
        parts = [self._grid_residual(part, units) for part in chunks(rows, ROWS_AT_ONCE)]
        return torch.cat(parts) if any(bool(part.any()) for part in parts) else None

    def _grid_residual(self, rows: Tensor, units: Tensor) -> Tensor:
        low, width = self._scale
        number = rows.double().mul_(width).add_(low)
        off = number.sub_(number.div(units).round_().mul_(units)).div_(width).float()
        # What is not rounded at all has no steps, and lies a NaN past them: not astray.
        return torch.where(off_grid(off, rows) & ~is_special(rows), off, 0.0)

    def rounded(self, rows: Tensor) -> Tensor:
        """Rows, (n, p), as they are read from a frame of the schema's precision.

        The same number then has the same bits, whether it was computed or came with people.
        """
        out = rows.clone()
        for j, feature in enumerate(self.schema):
            if feature.kind is not Kind.NUMERIC:
                out[:, j] = rows[:, j].round()
            elif feature.precision is None:
                out[:, j] = (rows[:, j] / FINEST).round() * FINEST
            else:
                told = from_scaled(feature, rows[:, j].numpy(), feature.precision)
                out[:, j] = torch.from_numpy(to_scaled(feature, told)).float()
        return out

    @lazy
    def steps(self) -> Tensor:
        """(p,) the scaled size of one unit of the schema's own precision."""
        return step_sizes(self.schema, [f.precision for f in self.schema])

    @lazy
    def offsets(self) -> Tensor:
        """(p,) double: how far the user's zero lies below the scaled one, in scaled units."""
        low, width = self._scale
        return low / width

    def scaled(self, values: Tensor) -> Tensor:
        """User numbers (n, p) double as row values; the place of a category is one already."""
        low, width = self._scale
        return ((values - low) / width).float()

    @lazy
    def _scale(self) -> tuple[Tensor, Tensor]:
        """(p,) double each: the user's number that becomes 0, and how far it is to that of 1."""
        low = [f.bounds[0] if f.kind is Kind.NUMERIC else 0.0 for f in self.schema]
        width = [f.width for f in self.schema]
        return torch.tensor(low, dtype=torch.float64), torch.tensor(width, dtype=torch.float64)


def step_sizes(features: Iterable[Feature], places: Iterable[int | None]) -> Tensor:
    """(p,) the scaled size of one unit of precision: changes come in whole steps.

    Categories move in steps of 1; what is not rounded, in steps of the float's resolution.
    """
    sizes = [
        1.0 if f.kind is not Kind.NUMERIC else step_size(f, q)
        for f, q in zip(features, places, strict=True)
    ]
    return torch.tensor(sizes, dtype=torch.float32, device="cpu")
