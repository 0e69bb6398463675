"""The encoder between user frames, rows and encoded columns.

*Rows*, (n, p), are float64 in the user's units: a number, 0/1, or the index of a category. Torch
models take the *encoded* columns, (n, d), float32: numbers scaled to [0, 1] by the training rows,
m columns for a feature of m > 2 categories. The scale is here alone: in `scaled` and `expand`.
Costs have units of their own, in `distance`. A frame is checked once, when it is read.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import lazy, one_thread
from dear_plugin.data import dummies
from dear_plugin.data.cells import (
    Positions,
    Reading,
    cells_in,
    column_of,
    labels_of,
    read_column,
)
from dear_plugin.data.feature import Feature, Kind, ends_of, plain_dtype, with_cells
from dear_plugin.data.infer import misfit
from dear_plugin.data.numbers import Array, Grid, in_steps, known
from dear_plugin.data.schema import Schema
from dear_plugin.errors import InputError, near

logger = logging.getLogger(__name__)
Held = tuple[list[str], tuple[Tensor, Tensor, Grid]]


class Encoder:
    """Convert frames to tensors and back.

    Reading checks that every feature is present once, with values that the schema allows.

    Args:
        schema: the features, in the order of the encoding.

    Attributes:
        p: the number of features.
        d: the number of encoded columns.
        starts: (p,) the first encoded column of each feature.
        blocks: (p,) bool, the features of m > 2 categories.
        labelled: (p,) bool, the features whose row values are positions of labels.
        feature_of: (d,) the feature that each encoded column belongs to.
        low: (p,) double, the number that is scaled to 0; 0 for categories.
        high: (p,) double, the largest observed number, or category.
        width: (p,) double, the range of a number; 1 for categories, and numbers without one.
        unit: (p,) double, the change of a number that is a unit of cost; 1 for categories.
        step: (p,) double, of which actions set multiples; 0 where they set any value.
        costs: (p,) double, the stated cost of a unit of cost of a feature.
        missing: (p,) double, the row value of a missing cell; NaN of features that have none.
        enter: (p,) bool, the features that an action may set to what is missing or special.
        leave: (p,) bool, the features whose missing or special values an action may change.
        shares: (p,) what a change counts: 0 of an identifier.
        compared: (d,) bool, the encoded columns of what is no identifier.
        grid: the decimals of the features.
        observed: the only values, (l,) ascending, of the features that take no others.
        labels: (p,) of each feature the labels by row value, those that no training row has as
            they are read, after the others.
        count: (p,) double, the labels of training rows; infinite for numbers.

    Example:
        >>> Encoder(Schema.infer(pd.DataFrame({"job": ["a", "b", "c"]}))).d
        3
    """

    def __init__(self, schema: Schema) -> None:
        self.schema, self.features = schema, (features := schema.features)
        self.p = len(features)
        widths = [f.columns for f in features]
        self.d = sum(widths)
        self.starts = tuple(np.cumsum([0, *widths[:-1]]).tolist())
        self.feature_of = torch.repeat_interleave(torch.arange(self.p), torch.tensor(widths))
        self.enter, self.leave = _each(features, FLAGS, torch.bool)
        self.blocks = torch.tensor([f.kind is Kind.CATEGORICAL for f in features])
        self.labelled = torch.tensor([not f.has_order for f in features])
        self.labels = [dict(labels_of(f.known)) for f in features]
        self._trained = sum(map(len, self.labels))
        counts = [math.inf if f.has_order else len(f.known) for f in features]
        self.count = torch.tensor(counts, dtype=torch.float64)
        ends = torch.tensor([f.ends for f in features], dtype=torch.float64)
        self.low, self.high = ends.T.contiguous().unbind()
        numbers = _each(features, NUMBERS, torch.float64)
        self.width, self.unit, self.step, self.costs, self.missing = numbers
        self.shares = torch.tensor([0.0 if f.identifier else 1.0 for f in features])
        self.compared = self.shares[self.feature_of] > 0.0
        places = (f.precision if f.has_order else 0 for f in features)
        self.grid = Grid.of(places, [f.codes for f in features], self.step.tolist())
        self.observed = {j: np.sort(f.observed) for j, f in enumerate(features) if f.observed}
        some = {j: f.special_values for j, f in enumerate(features) if len(f.special_values)}
        # The row values of codes and missing numbers, and of labels that are missing or not known.
        self._coded = {j: values for j, values in some.items() if features[j].has_order}
        self._unknown = {j: values for j, values in some.items() if j not in self._coded}

    @lazy
    def is_level(self) -> Tensor:
        """(d,) bool, the columns of numbers' special levels."""
        first = torch.zeros(self.d, dtype=torch.bool)
        first[list(self.starts)] = True
        return ~first & ~self.blocks[self.feature_of]

    @lazy
    def weights(self) -> Tensor:
        """(d,) the l1 weight of each encoded column: units of cost; 1/2 for one-hot columns."""
        own = (torch.where(self.blocks, 0.5, 1.0) * self.shares)[self.feature_of]
        own[list(self.starts)] *= (self.width / self.unit).float()
        return own

    @lazy
    def central(self) -> tuple[Tensor, Tensor]:
        """(p,) double each, the ends of what actions set, multiples of steps if there are any."""
        ends = [f.central or f.ends for f in self.features]
        (low, high), step = np.array(ends, dtype=np.float64).T, self.step.numpy()
        steps = in_steps(low, step, up=True), in_steps(high, step, up=False)
        least, most = self.grid.inward(*steps)
        none = least > most
        inner = np.where(none, low, least), np.where(none, high, most)
        return torch.from_numpy(inner[0]), torch.from_numpy(inner[1])

    def amounts(self, *rows: Tensor, at: Any = slice(None)) -> Tensor:
        """(...) bool, the cells that are amounts in all of some rows: no label, missing or code.

        Args:
            rows: (..., p) each, or shapes that fit that of `at`.
            at: the features, as an index of (p,).
        """
        # Special levels are below all numbers.
        least = functools.reduce(torch.minimum, rows)
        amounts: Tensor = ~self.labelled[at].to(least.device) & known(least)
        return amounts

    def is_new(self, rows: Tensor) -> Tensor:
        """(..., p) bool, the cells of rows with a category that no training row has."""
        new: Tensor = rows >= self.count.to(rows.device)
        return new

    def special(self, rows: Tensor) -> Tensor:
        """(..., p) bool, the cells of rows that are missing, coded, or not known."""
        mask: Tensor = ~known(rows)
        for j, values in self._unknown.items():
            mask[..., j] = torch.isin(rows[..., j], values.to(rows))
        return mask

    def keep_special(
        self, x: Tensor, moved: Tensor, projected: Tensor, acted: Tensor | None = None
    ) -> Tensor:
        """Projected rows, (m, c, p), that become or cease to be special only where they may.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows before projection.
            projected: (m, c, p) the rows after a projection that ignores special levels.
            acted: (m, p) bool, the only features that may change their level; None for all.
        """
        if not (self._coded or self._unknown):
            return projected
        before, after = self.special(x)[:, None], self.special(moved)
        allowed = (~before | self.leave) & (~after | self.enter)
        if acted is not None:
            allowed &= acted[:, None] | ~(before | after)
        return torch.where(allowed, torch.where(after, moved, projected), x[:, None])

    def rounded(self, rows: Tensor) -> Tensor:
        """Rows, (..., p), with the decimals of their features."""
        return torch.from_numpy(self.grid.round(rows.numpy()))

    def scaled(self, values: Tensor, at: Any = slice(None)) -> Tensor:
        """Numbers as shares of their ranges, in double; categories and special levels as they are.

        Args:
            values: (..., p) rows, or a shape that fits that of `at`.
            at: the features, as an index of (p,).
        """
        device = values.device
        out = (values - self.low[at].to(device)).div_(self.width[at].to(device))
        return torch.where(known(values), out, values) if self._coded else out

    def expand(self, rows: Tensor) -> Tensor:
        """Rows, (..., p), as encoded columns, (..., d) float32.

        A category that no training row has is none of the categories, all 0, and halfway between
        the two of a binary feature; of one-hot columns these are as they are.
        """
        if sum(map(len, self.labels)) == self._trained:  # no other label was read
            return self._expand(rows)
        new = self.is_new(rows)
        out = self._expand(rows.masked_fill(new, 0.0))
        for j in new.flatten(0, -2).any(0).nonzero()[:, 0].tolist():
            feature, start, at = self.features[j], self.starts[j], new[..., j]
            own = out[..., start : start + feature.columns]
            own[at] = 0.5 * (feature.kind is Kind.BINARY)
            if feature.dummies:
                flags = dummies.spread(feature, rows[..., j][at].cpu().numpy(), self.labels[j])
                own[at] = torch.from_numpy(flags).clamp_max(1.0).to(out)
        return out

    def _expand(self, rows: Tensor) -> Tensor:
        scaled = self.scaled(rows).float()
        if self.d == self.p:
            return scaled
        plain, columns, blocks, starts = (each.to(rows.device) for each in self._columns)
        out = scaled.new_zeros(*rows.shape[:-1], self.d)
        out.index_copy_(-1, columns, scaled.index_select(-1, plain))
        out.scatter_(-1, starts + rows.index_select(-1, blocks).long(), 1.0)
        for j, codes in self._coded.items():
            cell, start = rows[..., j, None], self.starts[j]
            out[..., start : start + 1].masked_fill_(~known(cell), 0.0)
            out[..., start + 1 : start + 1 + len(codes)] = cell == codes.to(cell)
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
        first, own = x[..., starts], self.expand(like)[..., starts]
        rows = first.double() * self.width + self.low
        rows = torch.where((first == own) & known(like), like, rows)
        for j in self.blocks.nonzero()[:, 0].tolist():
            start, feature = self.starts[j], self.features[j]
            rows[..., j] = x[..., start : start + feature.columns].argmax(-1)
        for j, codes in self._coded.items():
            largest, level = x[..., starts[j] + 1 : starts[j] + 1 + len(codes)].max(-1)
            rows[..., j] = torch.where(largest > 0.5, codes[level], rows[..., j])
        return rows

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """The absolute change of each feature, (..., p), in units of cost.

        A changed category counts 1, as does a change into or out of a special level.
        """
        unit, shares = self.unit.to(a.device), self.shares.to(a.device)
        difference = (a - b).abs_().div_(unit).mul_(shares)
        if self.d == self.p:
            return difference
        discrete = self.blocks.to(a.device)
        if self._coded or self._unknown:
            discrete = discrete | self.special(a) | self.special(b)
        return torch.where(discrete, (a != b).double() * shares, difference)

    @one_thread()
    def encode(self, frame: pd.DataFrame) -> Tensor:
        """The encoded tensor of a frame, (n, d) float32: what a torch model is trained on.

        Raises:
            InputError: see `rows`.
        """
        return self.expand(self.rows(frame))

    def rows(
        self, frame: pd.DataFrame, fixed: Tensor | None = None, before: Tensor | None = None
    ) -> Tensor:
        """The rows of a frame, (n, p) float64.

        Args:
            frame: a frame with the schema's features; other columns are ignored.
            fixed: (n, p) bool, the cells that may hold a category that no training row has.
            before: (n, p) the rows of which another package made the frame: of the columns of one
                feature, of which it may set one to 1 and leave another at 1, the one that it sets
                counts.

        Raises:
            InputError: an absent or duplicate feature, no rows, or cells that cannot be read; all
                complaints at once.
        """
        self.check_columns(frame)
        if not len(frame):
            raise InputError("the frame has no rows; at least one is needed")
        rows, wrong = self._read(frame, fixed, before)
        if wrong:
            raise InputError("; ".join(each.complaint for each in wrong))
        return torch.from_numpy(rows)

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
        rows, wrong = self._read(frame, fixed)
        reasons: dict[int, list[str]] = {}
        for reading in wrong:
            if reading.reasons is None:
                raise InputError("; ".join(each.complaint for each in wrong))
            for i, line in reading.reasons():
                reasons.setdefault(i, []).append(line)
        return torch.from_numpy(rows), {i: "; ".join(some) for i, some in sorted(reasons.items())}

    def _read(
        self, frame: pd.DataFrame, fixed: Tensor | None = None, before: Tensor | None = None
    ) -> tuple[Array, list[Reading]]:
        """(n, p) the rows of a frame, and the readings with cells that cannot be read."""
        rows, wrong, none = np.empty((len(frame), self.p)), [], [None] * self.p
        given = [none if each is None else each.numpy().T for each in (fixed, before)]
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported
            for j, own in enumerate(zip(*given, strict=True)):
                reading = self.read(j, frame, *own)
                if reading.complaint:
                    wrong.append(reading)
                if not reading.complaint or reading.reasons is not None:
                    rows[:, j] = reading.values
        return rows, wrong

    def read(
        self, j: int, frame: pd.DataFrame, accepted: Array | None = None, before: Any = None
    ) -> Reading:
        """The row values of a feature; see `read_column` and `dummies.read`."""
        feature, labels = self.features[j], self.labels[j]
        if feature.dummies:
            return dummies.read(feature, frame, labels, accepted, before)
        return read_column(feature, frame[feature.name], labels, accepted)

    def frame(self, rows: Tensor) -> pd.DataFrame:
        """Rows, (n, p), as a frame of the features alone, with the dtypes of the schema."""
        own = self._columns_of(rows)
        columns = {name: column_of(*own[name]) for name in self.schema.column_names}
        return pd.DataFrame(columns, copy=False)

    def cells(self, rows: Tensor) -> npt.NDArray[np.float64]:
        """(n, q) the row values of the columns of frames, of rows, (n, p)."""
        own = self._columns_of(rows)
        return np.stack([own[name][1] for name in self.schema.column_names], 1)

    def _columns_of(self, rows: Tensor) -> dict[str, tuple[Feature, Array, Positions | None]]:
        """Each column of frames, with its row values, (n,), of rows, (n, p), and its labels."""
        out: dict[str, tuple[Feature, Array, Positions | None]] = {}
        values = rows.detach().cpu().numpy().T
        for f, own, labels in zip(self.features, values, self.labels, strict=True):
            if f.dummies:
                flags = dummies.spread(f, own, labels).T
                out |= {
                    each.name: (each, v, None) for each, v in zip(f.members, flags, strict=True)
                }
            else:
                out[f.name] = f, own, labels
        return out

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The features of a frame, (n, p), with the dtypes of the schema, as models take them.

        A column whose values such a dtype cannot hold, such as 33.5 for integers, keeps its own.
        """
        out = frame[list(self.schema.column_names)]
        wrong = [
            f
            for f, own in zip(self.schema.columns, out.dtypes, strict=True)
            if str(own) != f.dtype or (f.dtype == "category" and not f.has_levels(own))
        ]
        return with_cells(out, {f.name: f.cast(out[f.name]) for f in wrong})

    def held(self, frame: pd.DataFrame) -> tuple[Tensor, Tensor, Grid]:
        """(p,) the least and greatest value of each feature that the columns of a frame can hold.

        With the decimals of these columns. A dtype that cannot hold all observed values is logged.
        """
        dtypes = frame.dtypes[[*self.schema.column_names]]
        key = (*map(str, dtypes),)
        narrow, out = self._held.get(key) or self._held.setdefault(key, _held(self.schema, dtypes))
        if narrow:
            logger.warning(
                "columns %s have dtypes too narrow for all observed values: candidates are limited"
                " to values that they can hold",
                narrow,
            )
        return out

    @lazy
    def _held(self) -> dict[tuple[str, ...], Held]:
        """What columns can hold, by their dtypes."""
        return {}

    def check_columns(self, frame: pd.DataFrame) -> None:
        """Check that a frame has every feature once.

        Raises:
            InputError: no frame, or absent or duplicate columns.
        """
        if complaint := misfit(frame):
            raise InputError(complaint)
        if absent := [n for n in self.schema.column_names if n not in frame.columns]:
            raise InputError(f"missing columns: {near(absent, frame.columns)}")


def _held(schema: Schema, dtypes: pd.Series) -> Held:
    """See `Encoder.held`; the columns that cannot hold all observed values come first."""
    ends = {name: ends_of(plain_dtype(dtype)) for name, dtype in dtypes.items()}
    both = ((f.name, f.bounds, ends[f.name]) for f in schema.columns)
    narrow = [name for name, (low, high), (a, b) in both if low < a or b < high]
    own = [f.range_in(dtypes[f.members[0].name]) for f in schema]
    low, high, places = zip(*own, strict=True)
    grid = Grid.of(places, [f.codes for f in schema], [f.action_step for f in schema])
    least, most = grid.inward(np.array(low, dtype=np.float64), np.array(high, dtype=np.float64))
    return narrow, (torch.from_numpy(least), torch.from_numpy(most), grid)


def patch(
    encoder: Encoder, frame: pd.DataFrame, x: Tensor, *, rows: Tensor
) -> tuple[pd.DataFrame, Tensor]:
    """A copy of a frame with new rows written to it, and these rows as read back from it.

    Only changed cells are written. They are read back since a column's dtype may round them,
    except labels in object columns.

    Args:
        encoder: the encoder of the rows.
        frame: the n factual rows in user units.
        x: (n, p) the factual rows.
        rows: (n, p) the counterfactual rows.
    """
    out, seen, own, new = frame.copy(), x.cpu().numpy().copy(), x.cpu().numpy(), rows.cpu().numpy()
    accepted, plain, changed = np.ones(len(x), dtype=bool), _is_plain_frame(frame), own != new
    for j in np.flatnonzero(changed.any(0)).tolist():
        feature, at = encoder.features[j], np.flatnonzero(changed[:, j])
        pairs = [dummies.spread(feature, v[at, j], encoder.labels[j]).T for v in (own, new)]
        for member, before, after in zip(feature.members, *pairs, strict=True):
            differs = before != after
            some = cells_in(member, after[differs], out[member.name].dtype)
            _overwrite(out, member.name, at[differs], some)
        if plain and not feature.has_order and out[feature.members[0].name].dtype == object:
            seen[at, j] = new[at, j]
            continue
        reading = encoder.read(j, out, accepted)
        if reading.complaint and reading.reasons is None:
            raise InputError(reading.complaint)
        # Cells that cannot be read are of rows that are not changed.
        seen[:, j] = reading.values
    still = ~changed.any(1)
    seen[still] = own[still]
    return out, torch.from_numpy(seen)


def _is_plain_frame(frame: pd.DataFrame) -> bool:
    """Whether a frame is a DataFrame itself: a subclass may override access to columns."""
    return type(frame) is pd.DataFrame


def _overwrite(frame: pd.DataFrame, name: str, where: Array, cells: Array) -> None:
    """Write cells at some positions of a column of a frame, in place; the dtype is kept.

    Raises:
        InputError: the column's dtype cannot hold them.
    """
    column = frame[name]
    _check_fits(column, cells)
    plain = _is_plain_frame(frame) and isinstance(column.dtype, np.dtype)
    if plain and (memory := column.to_numpy()).flags.writeable:
        memory[where] = cells  # a view of the frame: much faster than setting the column
    else:
        frame[name] = _overwritten(column, where, cells)


def _overwritten(column: pd.Series, where: Array, cells: Array) -> pd.Series | Array:
    """A copy of a column with new cells at some positions, as an array for numpy dtypes."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        new = [c for c in pd.unique(cells) if c not in column.cat.categories and not pd.isna(c)]
        column = column.cat.add_categories(new) if new else column.copy()
        codes = column.cat.codes.to_numpy().copy()
        codes[where] = column.cat.categories.get_indexer(cells)
        fresh = pd.Categorical.from_codes(codes, dtype=column.dtype)
        return pd.Series(fresh, index=column.index, name=column.name)
    values = column.to_numpy(copy=True)
    values[where] = cells
    if isinstance(column.dtype, np.dtype) and column.dtype.kind != "O":
        return values
    return pd.Series(values, index=column.index, name=column.name, dtype=column.dtype)


def _check_fits(column: pd.Series, cells: Array) -> None:
    """Check that a column can hold cells: numpy would wrap an integer that is too large."""
    plain = plain_dtype(column.dtype)
    if plain.kind not in "iuf" or not len(cells):
        return
    missing = pd.isna(cells)
    if missing.any():
        if isinstance(column.dtype, np.dtype) and plain.kind in "iu":
            raise InputError(
                f"column {column.name!r} of dtype {column.dtype} cannot hold a missing value,"
                ' which an action may set: convert it with .astype("float64")'
            )
        cells = cells[~missing]
    low, high = ends_of(plain)
    if len(cells) and (cells.min() < low or cells.max() > high):
        raise InputError(
            f"column {column.name!r} of dtype {column.dtype} cannot hold"
            f" {cells.max() if cells.max() > high else cells.min()}, a value of the"
            " counterfactuals: convert it to a wider dtype"
        )


# Attributes of features that are tensors here.
FLAGS = "enter_special", "leave_special"
NUMBERS = ("width", "unit_of_cost", "action_step", "cost", "missing_value")


def _each(features: Sequence[Feature], names: Sequence[str], dtype: torch.dtype) -> list[Tensor]:
    """Attributes of features, (p,) each."""
    return [torch.tensor([getattr(f, name) for f in features], dtype=dtype) for name in names]
