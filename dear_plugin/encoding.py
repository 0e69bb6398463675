"""Encoder: the gate. Frames come in here, are checked once, and leave here again.

Inside, people are *rows*, (n, p): one column per feature, a scaled number, a 0/1 for a binary
feature, or the index of a category. A row is always valid: no one-hot block can be broken. Models
see the *encoded* tensor, (n, d), in which a feature of m > 2 categories takes m columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.errors import InputError, unknown
from dear_plugin.schema import Feature, Kind, Schema

RESOLUTION = 2.0**-23

Array = npt.NDArray[Any]


class Encoder:
    """Translate frames to tensors and back.

    It guarantees: every feature is there, once, finite, of a kind the schema knows; a cell that
    did not change is copied from the input, never computed; columns, order, dtypes, index and
    category labels come back as they went in. Columns the schema does not name travel untouched.

    Args:
        schema: the features, in the order of the encoding.

    Attributes:
        p: how many features there are.
        d: how many encoded columns there are.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.p = len(schema)
        widths = [f.columns for f in schema]
        self.d = sum(widths)
        self.starts = tuple(np.cumsum([0, *widths[:-1]]).tolist())
        self._blocks = torch.tensor([f.kind is Kind.CATEGORICAL for f in schema])
        self._feature_of = torch.repeat_interleave(torch.arange(self.p), torch.tensor(widths))
        level = torch.arange(self.d) - torch.tensor(self.starts)[self._feature_of]
        self._level = torch.where(self._blocks[self._feature_of], level, -1).float()

    @property
    def feature_of(self) -> Tensor:
        """(d,) the feature that each encoded column belongs to."""
        return self._feature_of

    @property
    def blocks(self) -> Tensor:
        """(p,) True for features of m > 2 categories."""
        return self._blocks

    @cached_property
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
            InputError: a missing or doubled feature, no rows, missing or infinite values, text
                where a number belongs, a category never seen; all complaints at once.
        """
        self._check_columns(frame)
        out = np.empty((len(frame), self.p), dtype=np.float32)
        complaints = []
        for j, feature in enumerate(self.schema):
            values, complaint = _codes(feature, frame[feature.name])
            if complaint:
                complaints.append(complaint)
            else:
                out[:, j] = values
        if complaints:
            raise InputError("; ".join(complaints))
        return torch.from_numpy(out)

    def expand(self, rows: Tensor) -> Tensor:
        """Rows (..., p) as encoded columns (..., d)."""
        if self.d == self.p:
            return rows
        wide = rows[..., self._feature_of.to(rows.device)]
        level = self._level.to(rows.device)
        return torch.where(level >= 0, (wide == level).to(rows.dtype), wide)

    def collapse(self, x: Tensor) -> Tensor:
        """Encoded columns (..., d) as rows (..., p): the likeliest category of every block."""
        if self.d == self.p:
            return x
        rows = x[..., list(self.starts)].clone()
        for j, (start, feature) in enumerate(zip(self.starts, self.schema, strict=True)):
            if feature.kind is Kind.CATEGORICAL:
                block = x[..., start : start + feature.columns]
                rows[..., j] = block.argmax(-1).to(x.dtype)
        return rows

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """How far each feature moved, (..., p), in scaled units; a changed category counts 1."""
        gap = (a - b).abs()
        if self.d == self.p:
            return gap
        return torch.where(self._blocks.to(a.device), (gap > 0).to(gap.dtype), gap)

    def places(self, frame: pd.DataFrame) -> list[int | None]:
        """(p,) the decimals a change is rounded to in a frame, None where it is not rounded.

        An integer column counts in whole units whatever the schema says, or the change could not
        be written into it.
        """
        whole = [pd.api.types.is_integer_dtype(frame[f.name].dtype) for f in self.schema]
        return [0 if w else f.precision for f, w in zip(self.schema, whole, strict=True)]

    def steps(self, places: Sequence[int | None]) -> Tensor:
        """(p,) the scaled size of one unit of precision: changes come in whole steps.

        Categories move in steps of 1; what is not rounded, in steps of the float's resolution.
        """
        sizes = [
            1.0 if f.kind is not Kind.NUMERIC else _step(f, q)
            for f, q in zip(self.schema, places, strict=True)
        ]
        return torch.tensor(sizes, dtype=torch.float32)

    @cached_property
    def origins(self) -> Tensor:
        """(p,) double: how far the user's zero lies below the scaled one, in scaled units."""
        low = [f.bounds[0] / f.width if f.kind is Kind.NUMERIC else 0.0 for f in self.schema]
        return torch.tensor(low, dtype=torch.float64)

    def frame(self, rows: Tensor) -> pd.DataFrame:
        """Rows (n, p) as a frame of the features alone, with the dtypes of the schema."""
        values = rows.detach().cpu().numpy()
        columns = {
            f.name: _column(f, values[:, j], f.precision, f.dtype)
            for j, f in enumerate(self.schema)
        }
        return pd.DataFrame(columns, copy=False)

    def patch(self, frame: pd.DataFrame, rows: Tensor, changed: Tensor) -> pd.DataFrame:
        """A copy of a frame with the changed cells written in.

        Args:
            frame: the factual rows, n of them.
            rows: (n, p) the counterfactual rows.
            changed: (n, p) which cells differ; every other cell is copied.
        """
        out = frame.copy()
        values, mask = rows.detach().cpu().numpy(), changed.cpu().numpy()
        places = self.places(frame)
        for j, feature in enumerate(self.schema):
            moved = np.flatnonzero(mask[:, j])
            if len(moved):
                cells = _plain(feature, values[moved, j], places[j])
                out[feature.name] = _write(frame[feature.name], moved, cells)
        return out

    def _check_columns(self, frame: pd.DataFrame) -> None:
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"a pandas DataFrame is needed, {type(frame).__name__} came")
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()]
            raise InputError(f"duplicate columns: {list(map(str, twice))}; rename or drop them")
        known = set(frame.columns)
        absent = [n for n in self.schema.names if n not in known]
        if absent:
            raise InputError(f"missing columns: {unknown('columns', absent, frame.columns)}")
        if not len(frame):
            raise InputError("the frame has no rows; at least one is needed")


def to_scaled(feature: Feature, values: Array) -> Array:
    """User units as scaled numbers, any shape."""
    return (values - feature.bounds[0]) / feature.width


def from_scaled(feature: Feature, values: Array, places: int | None) -> Array:
    """Scaled numbers as user units, any shape, rounded to `places` decimals (None: not)."""
    raw = feature.bounds[0] + np.asarray(values, dtype=np.float64) * feature.width
    return raw if places is None else np.round(raw, places) + 0.0


def _step(feature: Feature, places: int | None) -> float:
    return RESOLUTION if places is None else max(10.0**-places / feature.width, RESOLUTION)


def _codes(feature: Feature, column: pd.Series) -> tuple[Array, str]:
    """The row values of one column and what is wrong with it, if anything."""
    read = _numbers if feature.kind is Kind.NUMERIC else _categories
    return read(feature, column)


def _numbers(feature: Feature, column: pd.Series) -> tuple[Array, str]:
    name, none = feature.name, np.empty(0)
    dtype = column.dtype
    if not _is_number(dtype):
        return none, (
            f"column {name!r} must hold numbers, dtype {dtype} came:"
            f" frame[{name!r}] = pd.to_numeric(frame[{name!r}])"
        )
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    finite = np.isfinite(values)
    if not finite.all():
        where = column.index[~finite][:3].tolist()
        kinds = "missing or infinite values"
        return none, f"column {name!r} has {kinds} in {(~finite).sum()} rows, first {where}"
    return to_scaled(feature, values), ""


def _is_number(dtype: Any) -> bool:
    """Whether a dtype holds numbers; pandas takes long to say so of the plain ones."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iuf"
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def _categories(feature: Feature, column: pd.Series) -> tuple[Array, str]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        table = np.append(_looked_up(feature, column.cat.categories.astype(object)), -1)
        codes = table[column.cat.codes.to_numpy()]
    else:
        codes = _looked_up(feature, column)
    strange = codes < 0
    if strange.any():
        came = column[strange].astype(object).unique()[:3].tolist()
        where = column.index[strange][:3].tolist()
        allowed = list(feature.categories[:20])
        return codes, (
            f"column {feature.name!r} has values never seen: {came} (first rows {where});"
            f" expected one of {allowed}"
        )
    return codes, ""


def _looked_up(feature: Feature, labels: pd.Series | pd.Index) -> Array:
    """The places of labels among the categories, -1 for strangers; a dict is the quickest way."""
    known = _places(feature.categories)
    values = (labels if labels.dtype == object else labels.astype(object)).tolist()
    try:
        codes = [known.get(value, -1) for value in values]
    except TypeError:  # a value without a hash, such as a list, is no category
        codes = [next((i for c, i in known.items() if c == value), -1) for value in values]
    return np.array(codes, dtype=np.int64)


@lru_cache(maxsize=512)
def _places(categories: tuple[Hashable, ...]) -> dict[Hashable, int]:
    return {category: i for i, category in enumerate(categories)}


def _plain(feature: Feature, values: Array, places: int | None) -> Array:
    """Row values of one feature as user values."""
    if feature.kind is Kind.NUMERIC:
        return from_scaled(feature, values, places)
    labels = _object_array(feature.categories)
    return labels[values.astype(np.int64)]


def _object_array(values: Sequence[object]) -> Array:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _column(feature: Feature, values: Array, places: int | None, dtype: str) -> pd.Series:
    if feature.kind is not Kind.NUMERIC and dtype == "category":
        codes = values.astype(np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, list(feature.categories)))
    return pd.Series(_plain(feature, values, places)).astype(dtype)


def _write(column: pd.Series, where: Array, cells: Array) -> pd.Series:
    """A copy of a column with new cells at some positions, its dtype kept."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        new = [c for c in pd.unique(cells) if c not in column.cat.categories]
        column = column.cat.add_categories(new) if new else column.copy()
        codes = column.cat.codes.to_numpy().copy()
        codes[where] = column.cat.categories.get_indexer(cells)
        fresh = pd.Categorical.from_codes(codes, dtype=column.dtype)
        return pd.Series(fresh, index=column.index, name=column.name)
    values = column.to_numpy(copy=True)
    values[where] = cells
    return pd.Series(values, index=column.index, name=column.name).astype(column.dtype)
