"""Encoder: the gate. Frames come in here, are checked once, and leave here again.

Inside, people are *rows*, (n, p): one column per feature, a scaled number, a 0/1 for a binary
feature, or the index of a category. A row is always valid: no one-hot block can be broken. Models
see the *encoded* tensor, (n, d), in which a feature of m > 2 categories takes m columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._validation.tensors import Shape, check_tensors
from dear_plugin.data.columns import (
    as_column,
    column_resolution,
    is_plain_frame,
    overwrite,
    read,
    snap_to_ends,
    user_values,
)
from dear_plugin.data.labels import Reading
from dear_plugin.data.schema import Kind, Schema
from dear_plugin.data.special_values import SpecialLevels
from dear_plugin.data.units import Units
from dear_plugin.errors import InputError, near

# Enough to see whether a dtype can hold a feature.
SOME_ROWS = 100


class Encoder:
    """Translate frames to tensors and back.

    It guarantees: every feature is there, once, of a kind and a level the schema knows; a cell
    that did not change is copied from the input, never computed; columns, order, dtypes, index and
    category labels come back as they went in. Columns the schema does not name travel untouched.

    Args:
        schema: the features, in the order of the encoding.

    Attributes:
        p: how many features there are.
        d: how many encoded columns there are.
        units: the user's numbers beside those of rows.
        levels: where rows are missing or special; None where no feature ever is.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.units = Units(schema)
        self.p = len(schema)
        widths = [f.columns for f in schema]
        self.d = sum(widths)
        self.starts = tuple(np.cumsum([0, *widths[:-1]]).tolist())
        self._blocks = torch.tensor([f.kind is Kind.CATEGORICAL for f in schema])
        self._feature_of = torch.repeat_interleave(torch.arange(self.p), torch.tensor(widths))
        level = torch.arange(self.d) - torch.tensor(self.starts)[self._feature_of]
        self._level = torch.where(self._blocks[self._feature_of], level, -1).float()
        self.levels = SpecialLevels.of(schema)

    @property
    def feature_of(self) -> Tensor:
        """(d,) the feature that each encoded column belongs to."""
        return self._feature_of

    @property
    def blocks(self) -> Tensor:
        """(p,) True for features of m > 2 categories."""
        return self._blocks

    @lazy
    def is_level(self) -> Tensor:
        """(d,) True for the columns of numbers' special levels."""
        first = torch.zeros(self.d, dtype=torch.bool)
        first[list(self.starts)] = True
        return ~first & ~self._blocks[self._feature_of]

    @lazy
    def weights(self) -> Tensor:
        """(d,) what a unit of each encoded column weighs in l1: one-hot columns 1/2."""
        return torch.where(self._level >= 0, 0.5, 1.0)

    def encode(self, frame: pd.DataFrame) -> Tensor:
        """The encoded tensor of a frame, (n, d) float32: what a torch model is trained on.

        Raises:
            InputError: see `rows`.
        """
        return self.expand(self.rows(frame))

    def rows(self, frame: pd.DataFrame) -> Tensor:
        """The rows of a frame, (n, p) float32.

        Args:
            frame: any frame with the schema's features; other columns are left alone.

        Raises:
            InputError: an absent or doubled feature, no rows, missing values in a feature that had
                none, infinite ones, text where a number belongs, a category never seen; all
                complaints at once.
        """
        self._check_columns(frame)
        if not len(frame):
            raise InputError("the frame has no rows; at least one is needed")
        out = np.empty((len(frame), self.p), dtype=np.float32)
        self._read(frame, range(self.p), out)
        return torch.from_numpy(out)

    def readable_rows(self, frame: pd.DataFrame) -> tuple[Tensor, dict[int, str]]:
        """The rows of a frame, (n, p), which may be none, and which of them cannot be read.

        Args:
            frame: as in `rows`.

        Returns:
            (n, p) float32 rows, anything where a cell cannot be read; by position, the reason why
            a row cannot be.

        Raises:
            InputError: columns that cannot be read at all; all complaints at once.
        """
        self._check_columns(frame)
        out = np.empty((len(frame), self.p), dtype=np.float32)
        readings = self._read(frame, range(self.p), out, some=True)
        reasons: dict[int, list[str]] = {}
        for j, reading in readings.items():
            name = self.schema.names[j]
            where = np.flatnonzero(np.asarray(reading.bad))
            for i, cell in zip(
                where.tolist(), frame[name].iloc[where].astype(object), strict=True
            ):
                got = "a missing value" if pd.isna(cell) is True else repr(cell)
                line = f"column {name!r} has {got}, expected {reading.expected}"
                reasons.setdefault(i, []).append(line)
        return torch.from_numpy(out), {i: "; ".join(lines) for i, lines in sorted(reasons.items())}

    def expand(self, rows: Tensor) -> Tensor:
        """Rows (..., p) as encoded columns (..., d), in memory of their own."""
        if self.d == self.p:
            return rows.clone()
        plain, into, blocks, starts = (each.to(rows.device) for each in self._columns)
        out = rows.new_zeros(*rows.shape[:-1], self.d)
        out.index_copy_(-1, into, rows.index_select(-1, plain))
        out.scatter_(-1, starts + rows.index_select(-1, blocks).long(), 1.0)
        if self.levels is not None:
            self.levels.expand(rows, out, self.starts)
        return out

    @lazy
    def _columns(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Features of one column, these columns, the other features, their first columns."""
        starts, blocks = torch.tensor(self.starts), self._blocks
        plain, several = (~blocks).nonzero()[:, 0], blocks.nonzero()[:, 0]
        return plain, starts[plain], several, starts[several]

    def collapse(self, x: Tensor) -> Tensor:
        """Encoded columns (..., d) as rows (..., p): the likeliest category of every block."""
        if self.d == self.p:
            return x
        rows = x[..., list(self.starts)].clone()
        for j, (start, feature) in enumerate(zip(self.starts, self.schema, strict=True)):
            if feature.kind is Kind.CATEGORICAL:
                block = x[..., start : start + feature.columns]
                rows[..., j] = block.argmax(-1).to(x.dtype)
        if self.levels is not None:
            self.levels.collapse(x, rows, self.starts)
        return rows

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """How far each feature moved, (..., p), in scaled units.

        A changed category counts 1, and so does a step into or out of a special level.
        """
        gap = (a - b).abs_()
        if self.d == self.p:
            return gap
        whole = self._blocks.to(a.device)
        if self.levels is not None:
            whole = whole | self.levels.mask(a) | self.levels.mask(b)
        return torch.where(whole, (gap > 0).to(gap.dtype), gap)

    def frame(self, rows: Tensor, keep_off_grid: bool = False) -> pd.DataFrame:
        """Rows (n, p) as a frame of the features alone, with the dtypes of the schema.

        Args:
            rows: n rows.
            keep_off_grid: numbers finer than the schema's precision are people's own and stay what they
                are; else they are rounded.
        """
        values = rows.detach().cpu().numpy()
        columns = {
            f.name: as_column(f, values[:, j], f.precision, f.dtype, keep_off_grid)
            for j, f in enumerate(self.schema)
        }
        return pd.DataFrame(columns, copy=False)

    def patch(
        self,
        frame: pd.DataFrame,
        x: Tensor,
        rows: Tensor,
        ends: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[pd.DataFrame, Tensor]:
        """A copy of a frame with new rows written in, and these as they can be read there.

        Only cells that change are written. A column may hold less than what was to be written, so
        what it holds is read again, but for labels among objects.

        Args:
            frame: the factual people, n of them.
            x: (n, p) their rows.
            rows: (n, p) the counterfactual rows.
            ends: the least and greatest value in user units, (n, p) double each; a number that
                reached one is written as it was given.
        """
        out, seen, values = frame.copy(), x.cpu().numpy().copy(), rows.detach().cpu().numpy()
        changed = values != seen
        again, exact = [], is_plain_frame(frame)
        for j in np.flatnonzero(changed.any(0)).tolist():
            feature, moved = self.schema.features[j], np.flatnonzero(changed[:, j])
            # The copy's own column is looked up once: it is written to and read again.
            column = out[feature.name]
            cells = user_values(
                feature, values[moved, j], column_resolution(feature, column.dtype).decimals
            )
            if ends is not None and feature.kind is Kind.NUMERIC:
                low, high = (end.numpy()[moved, j] for end in ends)
                cells = snap_to_ends(feature, cells, (low, high), column.dtype)
            overwrite(out, feature.name, moved, cells)
            if exact and feature.kind is not Kind.NUMERIC and column.dtype == object:
                seen[moved, j] = values[moved, j]
            else:
                again.append(j)
        self._read(out, again, seen)
        return out, torch.from_numpy(seen)

    def _read(
        self,
        frame: pd.DataFrame,
        features: Iterable[int],
        into: npt.NDArray[Any],
        some: bool = False,
    ) -> dict[int, Reading]:
        """Read some columns of a frame into rows, (n, p); the columns with cells that it cannot.

        Args:
            frame: the frame.
            features: which columns.
            into: where to write.
            some: single cells may be unreadable; else any is an error.
        """
        readings = {}
        with np.errstate(over="ignore"):  # what no float holds is infinite, and complained of
            for j in features:
                feature = self.schema.features[j]
                reading = read(feature, frame[feature.name])
                if reading.complaint:
                    readings[j] = reading
                if not reading.complaint or reading.bad is not None:
                    into[:, j] = reading.values
        if readings and not (some and all(each.bad is not None for each in readings.values())):
            raise InputError("; ".join(each.complaint for each in readings.values()))
        return readings

    def _check_columns(self, frame: pd.DataFrame) -> None:
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"a pandas DataFrame is needed, got {type(frame).__name__}")
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()]
            raise InputError(f"duplicate columns: {list(map(str, twice))}; rename or drop them")
        known = set(frame.columns)
        absent = [n for n in self.schema.names if n not in known]
        if absent:
            raise InputError(f"missing columns: {near(absent, frame.columns)}")


def validate_saved_rows(rows: Tensor, encoder: Encoder) -> Tensor:
    """The training rows of a save, (n, p), as they came, if the gate could have let them in.

    Raises:
        ValueError: it could not.
    """
    check_tensors({"rows": rows}, {"rows": Shape("n+ p")}, {"p": encoder.p})
    levels = torch.tensor([len(f.categories) for f in encoder.schema])
    codes, most = rows[:, levels > 0], levels[levels > 0]
    if not bool(((codes == codes.floor()) & (codes >= 0) & (codes < most)).all()):
        raise ValueError("rows hold categories that no feature has")
    encoder.rows(encoder.frame(rows[:SOME_ROWS]))
    return rows
