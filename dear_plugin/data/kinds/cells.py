"""Cells: what all kinds share: readings, messages on what cannot be read, columns of a dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

# How many values an error names, and how much of each.
MOST, MOST_LETTERS = 5, 60

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Reasons = Iterator[tuple[int, str]]


class Reading(NamedTuple):
    """One column as row values.

    Attributes:
        values: (n,) row values; undefined in unreadable cells, and in unreadable columns.
        complaint: the error message; "" if all cells are readable.
        reasons: makes the position of each unreadable cell, and what is wrong with it; None if the
            whole column is unreadable.
    """

    values: Array
    complaint: str = ""
    reasons: Callable[[], Reasons] | None = None

    @classmethod
    def of(
        cls, values: Array, complaint: str, column: pd.Series, bad: Array, expected: str
    ) -> Self:
        """The reading of a column, (n,), of which those in `bad`, (n,) bool, are unreadable."""
        return cls(np.where(bad, 0, values), complaint, partial(_reasons, column, bad, expected))


def _reasons(column: pd.Series, bad: Array, expected: str) -> Reasons:
    """The position of each bad cell of a column, (n,), and what is wrong with it."""
    where = np.flatnonzero(bad)
    for i, cell in zip(where.tolist(), column.iloc[where].astype(object), strict=True):
        got = "a missing value" if pd.isna(cell) is True else named([repr(cell)])[1:-1]
        yield i, f"column {column.name!r} has {got}, expected {expected}"


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
