"""Cells: what all kinds share: readings, messages on what cannot be read, columns of a dtype."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature

# How many values an error names, and how much of each.
MOST, MOST_LETTERS = 5, 60

Array = npt.NDArray[Any]


class Reading(NamedTuple):
    """One column as row values.

    Attributes:
        values: (n,) row values; undefined in unreadable cells.
        complaint: the error message; "" if all cells are readable.
        bad: (n,) bool, the unreadable cells; None if the whole column is unreadable.
        expected: the expected values, in words.
    """

    values: Array
    complaint: str = ""
    bad: Array | None = None
    expected: str = ""

    @classmethod
    def unreadable(cls, complaint: str) -> Reading:
        """The reading of a column that is unreadable as a whole."""
        return cls(np.empty(0), complaint)

    def unreadable_cells(self, column: pd.Series) -> Iterator[tuple[int, str]]:
        """The position of each unreadable cell of the column, (n,), and what is wrong with it."""
        where = np.flatnonzero(np.asarray(self.bad))
        for i, cell in zip(where.tolist(), column.iloc[where].astype(object), strict=True):
            got = "a missing value" if pd.isna(cell) is True else named([repr(cell)])[1:-1]
            yield i, f"column {column.name!r} has {got}, expected {self.expected}"

    @classmethod
    def never_seen(cls, feature: Feature, column: pd.Series, values: Array, bad: Array) -> Reading:
        """The reading of row values, (n,), where `bad`, (n,) bool, are labels that are unknown."""
        got, where = named(dict.fromkeys(map(repr, column[bad].astype(object)))), column.index[bad]
        expected = f"one of {named(map(repr, feature.choices))}"
        complaint = (
            f"column {feature.name!r} has values never seen: {got} (first rows"
            f" {where[:3].tolist()}); expected {expected}"
        )
        return cls(np.where(bad, 0, values), complaint, bad, expected)


def named(texts: Iterable[str]) -> str:
    """Up to five texts of up to sixty characters in brackets, and how many more there are."""
    every = list(texts)
    shown = [x if len(x) <= MOST_LETTERS else f"{x[: MOST_LETTERS - 3]}..." for x in every[:MOST]]
    more = f", ... ({len(every) - MOST} more)" if len(every) > MOST else ""
    return f"[{', '.join(shown)}{more}]"


def missing_of(column: pd.Series) -> Literal["", "nan", "none"]:
    """How the missing values of a column are written."""
    missing = column.isna()
    if not missing.any():
        return ""
    none = column.dtype == object and column[missing].iloc[0] is None
    return "none" if none else "nan"


def is_numeric(dtype: Any) -> bool:
    """Whether a dtype is one of numbers; booleans are none."""
    if isinstance(dtype, np.dtype):  # much faster than pandas' own test
        return dtype.kind in "iuf"
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def plain_dtype(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype of a pandas or Arrow dtype; that of objects if there is none."""
    own = getattr(dtype, "numpy_dtype", dtype)
    return own if isinstance(own, np.dtype) else np.dtype(object)


@lru_cache(maxsize=32)
def ends_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and greatest float that a dtype can hold; infinite if it is none of numbers."""
    if dtype.kind not in "iuf":
        return -math.inf, math.inf
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    # The greatest 64-bit integer is not a float64; the next float above it would overflow.
    return low, high if dtype.kind == "f" or int(high) <= info.max else math.nextafter(high, 0.0)


def unboxed(column: pd.Series) -> pd.Series:
    """A column whose numbers, held as objects as a row of a frame does, are numbers again."""
    if column.dtype != object:
        return column
    cells = column.to_numpy(copy=True)
    cells[column.isna().to_numpy()] = np.nan
    return pd.Series(cells, index=column.index, name=column.name).infer_objects()


def typed(feature: Feature, cells: Array) -> pd.Series | Array:
    """Cells, (n,), that the feature's dtype can hold, as a column of it, or an array."""
    dtype = feature.dtype
    if dtype == "float64" or (dtype == "int64" and not feature.missing):
        return cells.astype(dtype)  # much faster than a Series
    return pd.Series(cells, dtype=object if dtype == "object" else None).astype(dtype)


def has_dtype(feature: Feature, dtype: Any) -> bool:
    """Whether a dtype is that of the training column, its levels and their order included."""
    if str(dtype) != feature.dtype or not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype) == feature.dtype
    levels = list(feature.dtype_levels)
    return bool(dtype.ordered == feature.ordered and dtype.categories.tolist() == levels)


def cast(feature: Feature, column: pd.Series) -> pd.Series:
    """A column with the dtype of the training column, or as it is if that cannot hold its values.

    A label that is no level of a category column becomes a missing value.
    """
    if feature.dtype == "category":
        dtype = pd.CategoricalDtype(list(feature.dtype_levels), feature.ordered)
        codes = dtype.categories.get_indexer(column.astype(object))
        cells = pd.Categorical.from_codes(codes, dtype=dtype)
        return pd.Series(cells, column.index, name=column.name)
    cells = unboxed(column) if feature.holds_numbers else column.astype(object)
    if feature.missing == "none":
        cells = cells.where(cells.notna(), None)
    try:
        out = cells.astype(feature.dtype)
    except (TypeError, ValueError):  # such as a missing value among integers
        return column
    rounds = out.dtype.kind == "f"
    return out if rounds or bool(((out == cells) | cells.isna()).all()) else column
