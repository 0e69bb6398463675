"""Encoder: user frames in, checked once; rows, (n, p), and encoded columns, (n, d), out, and back.

*Rows*, (n, p), are float64 in the user's units: a number, 0/1, or the index of a category. Torch
models take the *encoded* columns, (n, d) float32: numbers scaled to [0, 1] by the training rows,
m columns for a feature of m > 2 categories. The scale is here alone: in `scaled` and
`expand`. Costs have units of their own, in `distance`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._threads import one_thread
from dear_plugin.data import kinds
from dear_plugin.data.grid import Grid, in_steps
from dear_plugin.data.inference import misfit
from dear_plugin.data.kinds.categories import NEW, NewLabels
from dear_plugin.data.kinds.cells import Reading, cast, has_dtype
from dear_plugin.data.schema import Kind, Schema
from dear_plugin.data.special_values import SpecialLevels, is_special
from dear_plugin.errors import InputError, near


class Encoder:
    """Convert frames to tensors and back.

    Reading checks that every feature is present once, with values that the schema allows.

    Args:
        schema: the features, in the order of the encoding.

    Attributes:
        spread: where the q columns of frames are among the features.
        p: the number of features.
        d: the number of encoded columns.
        starts: (p,) the first encoded column of each feature.
        is_number: (p,) bool, the numeric features.
        blocks: (p,) bool, the features of m > 2 categories.
        feature_of: (d,) the feature that each encoded column belongs to.
        low: (p,) double, the number that is scaled to 0; 0 for categories.
        high: (p,) double, the largest observed number, or category.
        width: (p,) double, the range of a number; 1 for categories, and numbers without one.
        grid: the decimals of the features.
        levels: the special levels of the features.
        new: the labels that no training row has, of the frames that were read.

    Example:
        >>> Encoder(Schema.infer(pd.DataFrame({"job": ["a", "b", "c"]}))).d
        3
    """

    def __init__(self, schema: Schema) -> None:
        self.schema, self.spread = schema, schema.spread
        self.p = len(schema)
        widths = [f.columns for f in schema]
        self.d = sum(widths)
        self.starts = tuple(np.cumsum([0, *widths[:-1]]).tolist())
        self.is_number = torch.tensor([f.is_number for f in schema])
        self.blocks = torch.tensor([f.kind is Kind.CATEGORICAL for f in schema])
        self.feature_of = torch.repeat_interleave(torch.arange(self.p), torch.tensor(widths))
        level = torch.arange(self.d) - torch.tensor(self.starts)[self.feature_of]
        self._level = torch.where(self.blocks[self.feature_of], level, -1).float()
        self.levels = SpecialLevels.of(schema.features)
        ends = [(*f.ends, f.width) for f in schema]
        self.low, self.high, self.width = torch.tensor(ends, dtype=torch.float64).T.contiguous()
        self.grid = Grid.of(f.precision if f.is_number else 0 for f in schema)
        self.new = NewLabels()

    @lazy
    def is_level(self) -> Tensor:
        """(d,) bool, the columns of numbers' special levels."""
        first = torch.zeros(self.d, dtype=torch.bool)
        first[list(self.starts)] = True
        return ~first & ~self.blocks[self.feature_of]

    @lazy
    def weights(self) -> Tensor:
        """(d,) the l1 weight of each encoded column: units of cost; 1/2 for one-hot columns."""
        own = torch.where(self._level >= 0, 0.5, 1.0) * self.shares[self.feature_of]
        own[list(self.starts)] *= (self.width / self.unit).float()
        return own

    @lazy
    def compared(self) -> Tensor:
        """(d,) bool, the encoded columns of what is no identifier."""
        return self.shares[self.feature_of] > 0.0

    @lazy
    def shares(self) -> Tensor:
        """(p,) what a change counts: 0 of an identifier."""
        return torch.tensor([0.0 if feature.identifier else 1.0 for feature in self.schema])

    @lazy
    def unit(self) -> Tensor:
        """(p,) double, the change of a number that is a unit of cost; 1 for categories."""
        return torch.tensor([f.unit_of_cost for f in self.schema], dtype=torch.float64)

    @lazy
    def step(self) -> Tensor:
        """(p,) double, of which actions set multiples; 0 where they set any value."""
        return torch.tensor([f.action_step for f in self.schema], dtype=torch.float64)

    @lazy
    def central(self) -> tuple[Tensor, Tensor]:
        """(p,) double each, the ends of what actions set, multiples of steps if there are any."""
        ends = [f.central or f.ends for f in self.schema]
        low, high = torch.tensor(ends, dtype=torch.float64).T
        least, most = in_steps(low, self.step, up=True), in_steps(high, self.step, up=False)
        none = least > most
        return torch.where(none, low, least), torch.where(none, high, most)

    @lazy
    def costs(self) -> Tensor:
        """(p,) double, what a unit of cost of a feature costs who acts on it."""
        return torch.tensor([feature.cost for feature in self.schema], dtype=torch.float64)

    @one_thread()
    def encode(self, frame: pd.DataFrame) -> Tensor:
        """The encoded tensor of a frame, (n, d) float32: what a torch model is trained on.

        Raises:
            InputError: see `rows`.
        """
        return self.expand(self.rows(frame))

    def rows(self, frame: pd.DataFrame, fixed: Tensor | None = None) -> Tensor:
        """The rows of a frame, (n, p) float64.

        Args:
            frame: a frame with the schema's features; other columns are ignored.
            fixed: (n, p) bool, the cells that may hold a category that no training row has.

        Raises:
            InputError: an absent or duplicate feature, no rows, or cells that cannot be read; all
                complaints at once.
        """
        self.check_columns(frame)
        if not len(frame):
            raise InputError("the frame has no rows; at least one is needed")
        cells = np.empty((len(frame), len(self.spread.owner)))
        self.read_into(frame, range(cells.shape[1]), into=cells, fixed=fixed)
        rows, odd = self.spread.rows(cells, self.new)
        if fixed is None and odd.any():
            complaints = (
                f"{text}: rows {frame.index[at][:3].tolist()}" for text, at in self._odd(odd)
            )
            raise InputError("; ".join(complaints))
        return torch.from_numpy(rows)

    def _odd(self, odd: npt.NDArray[np.bool_]) -> Iterator[tuple[str, npt.NDArray[np.intp]]]:
        """What is wrong with features of which not exactly one column is 1, (n, p), and where."""
        for j in np.flatnonzero(odd.any(0)).tolist():
            names = [each.name for each in self.schema.features[j].dummies]
            text = f"exactly one of {names} has to be 1, got none or several"
            yield text, np.flatnonzero(odd[:, j])

    def readable_rows(
        self, frame: pd.DataFrame, fixed: Tensor | None = None
    ) -> tuple[Tensor, dict[int, str]]:
        """The rows of a frame, possibly empty, with a reason for each unreadable one.

        Args:
            frame: as in `rows`.
            fixed: as in `rows`.

        Returns:
            (n, p) float64 rows, undefined in unreadable cells; the reasons by row position.

        Raises:
            InputError: columns that are unreadable as a whole; all complaints at once.
        """
        self.check_columns(frame)
        cells, each = np.empty((len(frame), len(self.spread.owner))), range(len(self.spread.owner))
        readings = self.read_into(frame, each, into=cells, allow_bad_cells=True, fixed=fixed)
        reasons: dict[int, list[str]] = {}
        for j, reading in readings.items():
            for i, line in reading.unreadable_cells(frame[self.schema.columns[j].name]):
                reasons.setdefault(i, []).append(line)
        rows, odd = self.spread.rows(cells, self.new)
        for text, at in self._odd(odd) if fixed is None else ():
            for i in at.tolist():
                reasons.setdefault(i, [text])
        return torch.from_numpy(rows), {
            i: "; ".join(lines) for i, lines in sorted(reasons.items())
        }

    def moved(self, frame: pd.DataFrame, x: Tensor) -> Tensor:
        """The rows of a frame, (n, p), that another package made of rows x, (n, p).

        Of the columns of one feature, of which it may set one to 1 and leave another at 1, the one
        that it sets counts.
        """
        cells = np.empty((len(frame), len(self.spread.owner)))
        self.read_into(frame, range(cells.shape[1]), into=cells)
        own = self.cells(x)
        for at in self.spread.groups.values():
            enters = (cells[:, at] == 1.0) & (own[:, at] != 1.0)
            cells[:, at] = np.where(enters.sum(1, keepdims=True) == 1, enters, own[:, at])
        return torch.from_numpy(self.spread.rows(cells, self.new)[0])

    def amounts(self, *rows: Tensor, at: Any = slice(None)) -> Tensor:
        """(...) bool, the cells that are amounts in all of some rows: no label, missing or code.

        Args:
            rows: (..., p) each, or shapes that fit that of `at`.
            at: the features, as an index of (p,).
        """
        # Special levels are below all numbers.
        least = functools.reduce(torch.minimum, rows)
        amounts: Tensor = self.is_number[at].to(least.device) & ~is_special(least)
        return amounts

    def is_new(self, rows: Tensor) -> Tensor:
        """(..., p) bool, the cells of rows with a category that no training row has."""
        return (rows >= NEW) & ~self.is_number.to(rows.device)

    def expand(self, rows: Tensor) -> Tensor:
        """Rows, (..., p), as encoded columns, (..., d) float32.

        A category that no training row has is none of the categories, all 0, and halfway between
        the two of a binary feature; of one-hot columns these are as they are.
        """
        if not self.new:
            return self._expand(rows)
        new, first = self.is_new(rows), list(self.starts)
        out = self._expand(rows.masked_fill(new, 0.0))
        neutral = torch.where(self.blocks, 0.0, 0.5).to(out)
        out[..., first] = torch.where(new, neutral, out[..., first])
        for j, at in self.spread.groups.items():
            if bool(new[..., j].any()):
                flags = self.new.labels_of(rows[..., j][new[..., j]].cpu().numpy())
                columns = slice(self.starts[j], self.starts[j] + len(at))
                out[..., columns][new[..., j]] = torch.tensor(flags).to(out).clamp_max(1.0)
        return out

    def scaled(self, values: Tensor, at: Any = slice(None)) -> Tensor:
        """Numbers as shares of their ranges, in double; categories and special levels as they are.

        Args:
            values: (..., p) rows, or a shape that fits that of `at`.
            at: the features, as an index of (p,).
        """
        low, width = (each[at].to(values.device) for each in (self.low, self.width))
        out = (values - low).div_(width)
        return torch.where(is_special(values), values, out) if self.levels.in_numbers else out

    def _expand(self, rows: Tensor) -> Tensor:
        scaled = self.scaled(rows).float()
        if self.d == self.p:
            return scaled
        plain, columns, blocks, starts = (each.to(rows.device) for each in self._columns)
        out = scaled.new_zeros(*rows.shape[:-1], self.d)
        out.index_copy_(-1, columns, scaled.index_select(-1, plain))
        out.scatter_(-1, starts + rows.index_select(-1, blocks).long(), 1.0)
        self.levels.expand(rows, out, self.starts)
        return out

    @lazy
    def _columns(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The features that are no blocks, their columns, the blocks, their first columns."""
        starts = torch.tensor(self.starts)
        plain, blocks = (~self.blocks).nonzero()[:, 0], self.blocks.nonzero()[:, 0]
        return plain, starts[plain], blocks, starts[blocks]

    def collapse(self, x: Tensor, like: Tensor) -> Tensor:
        """Encoded columns, (..., d), as rows, (..., p) double: the argmax category of each block.

        Args:
            x: the columns.
            like: (..., p) rows, such as the factual ones. A number whose column is that of such a
                row is the row's own, bit for bit.
        """
        starts = list(self.starts)
        first, known = x[..., starts], self.expand(like)[..., starts]
        rows = first.double() * self.width + self.low
        rows = torch.where((first == known) & ~is_special(like), like, rows)
        for j in self.blocks.nonzero()[:, 0].tolist():
            start, feature = self.starts[j], self.schema.features[j]
            rows[..., j] = x[..., start : start + feature.columns].argmax(-1)
        self.levels.collapse(x, rows, self.starts)
        return rows

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """The absolute change of each feature, (..., p), in units of cost.

        A changed category counts 1, as does a change into or out of a special level.
        """
        unit, shares = (each.to(a.device) for each in (self.unit, self.shares))
        difference = (a - b).abs_().div_(unit).mul_(shares)
        if self.d == self.p:
            return difference
        discrete = self.blocks.to(a.device)
        if self.levels.exist:
            discrete = discrete | self.levels.mask(a) | self.levels.mask(b)
        return torch.where(discrete, (difference > 0).to(difference.dtype), difference)

    def frame(self, rows: Tensor) -> pd.DataFrame:
        """Rows, (n, p), as a frame of the features alone, with the dtypes of the schema."""
        cells = self.cells(rows)
        new = self._is_new_cell(cells) if self.new else np.zeros(0, dtype=bool)
        values = np.where(new, 0.0, cells) if new.any() else cells
        named = enumerate(self.schema.columns)
        columns = {each.name: kinds.of(each).column(each, values[:, j]) for j, each in named}
        out = pd.DataFrame(columns, copy=False)
        return self._with_new(out, cells, new) if new.any() else out

    def cells(self, rows: Tensor) -> npt.NDArray[np.float64]:
        """(n, q) the values of the columns of frames, of rows, (n, p)."""
        return self.spread.cells(rows.detach().cpu().numpy(), self.new)

    def _is_new_cell(self, cells: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(n, q) bool, the values of columns, (n, q), that no training row has."""
        return (cells >= NEW) & ~np.array([each.is_number for each in self.schema.columns])

    def _with_new(
        self,
        frame: pd.DataFrame,
        values: npt.NDArray[np.float64],
        new: npt.NDArray[np.bool_],
    ) -> pd.DataFrame:
        """A frame of values of columns, (n, q), with the labels that no training row has."""
        for j in np.flatnonzero(new.any(0)).tolist():
            feature, where = self.schema.columns[j], np.flatnonzero(new[:, j])
            cells = frame[feature.name].to_numpy(dtype=object, copy=True)
            cells[where] = self.new.labels_of(values[where, j])
            frame[feature.name] = cast(feature, pd.Series(cells, frame.index, dtype=object))
        return frame

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The features of a frame, (n, p), with the dtypes of the schema, as models take them.

        A column whose values such a dtype cannot hold, such as 33.5 for integers, keeps its own.
        """
        out = frame[list(self.schema.column_names)]
        wrong = [f for f in self.schema.columns if not has_dtype(f, out[f.name].dtype)]
        return out.assign(**{f.name: cast(f, out[f.name]) for f in wrong}) if wrong else out

    def read_into(
        self,
        frame: pd.DataFrame,
        columns: Iterable[int],
        *,
        into: npt.NDArray[Any],
        allow_bad_cells: bool = False,
        fixed: Tensor | None = None,
    ) -> dict[int, Reading]:
        """Read columns of a frame; returns the readings with bad cells.

        Args:
            frame: n rows.
            columns: their positions among those of the schema.
            into: (n, q) what the values are written to.
            allow_bad_cells: leave the values of unreadable cells as they are.
            fixed: as in `rows`.

        Raises:
            InputError: columns that are unreadable as a whole, or cells if they are not allowed.
        """
        readings = {}
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported
            for j in columns:
                column = self.schema.columns[j]
                accepted = None if fixed is None else fixed[:, self.spread.owner[j]].numpy()
                reading = kinds.read(column, frame[column.name], self.new, accepted)
                if reading.complaint:
                    readings[j] = reading
                if not reading.complaint or reading.bad is not None:
                    into[:, j] = reading.values
        if any(each.bad is None or not allow_bad_cells for each in readings.values()):
            raise InputError("; ".join(each.complaint for each in readings.values()))
        return readings

    def check_columns(self, frame: pd.DataFrame) -> None:
        """Check that a frame has every feature once.

        Raises:
            InputError: no frame, or absent or duplicate columns.
        """
        if complaint := misfit(frame):
            raise InputError(complaint)
        if absent := [n for n in self.schema.column_names if n not in frame.columns]:
            raise InputError(f"missing columns: {near(absent, frame.columns)}")
