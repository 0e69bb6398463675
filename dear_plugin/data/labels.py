"""Labels: conversion between a column of categories and category indices."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.schema import Feature

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


def labels(feature: Feature, column: pd.Series) -> Reading:
    """The indices of a column's labels among the categories of its feature."""
    missing = feature.missing_category
    if isinstance(column.dtype, pd.CategoricalDtype):
        table = np.append(_indices(feature, column.cat.categories.astype(object)), missing)
        codes = table[column.cat.codes.to_numpy()]
    else:
        codes = _indices(feature, column)
        if missing >= 0:
            codes = np.where(column.isna().to_numpy(), missing, codes)
    bad = codes < 0
    if not bad.any():
        return Reading(codes)
    got = ", ".join(list(dict.fromkeys(map(repr, column[bad].astype(object))))[:3])
    where, expected = column.index[bad][:3].tolist(), list(feature.categories[:20])
    complaint = (
        f"column {feature.name!r} has values never seen: [{got}] (first rows {where});"
        f" expected one of {expected}"
    )
    return Reading(np.where(bad, 0, codes), complaint, bad, f"one of {expected}")


def cells_of(feature: Feature) -> Array:
    """(m,) the categories as an object array; a missing one is NaN or None, as observed."""
    out = np.empty(len(feature.categories), dtype=object)
    out[:] = feature.categories
    if feature.missing == "nan":
        out[feature.missing_category] = np.nan
    return out


@lru_cache(maxsize=512)
def codes_of(feature: Feature) -> Array:
    """(m,) the codes of the categories among all levels of a category column, -1 for missing."""
    codes = {**_index_of(feature.levels or feature.categories), None: -1}
    return np.array([codes[category] for category in feature.categories], dtype=np.int64)


def _indices(feature: Feature, values: pd.Series | pd.Index) -> Array:
    """The indices of labels among the categories, -1 for unknown ones."""
    known = _index_of(feature.categories)
    cells = (values if values.dtype == object else values.astype(object)).tolist()
    try:
        return np.fromiter(map(known.get, cells, repeat(-1)), np.int64, len(cells))
    except TypeError:
        return np.array([_index(known, cell) for cell in cells], dtype=np.int64)


def _index(known: dict[Hashable, int], value: Any) -> int:
    try:
        return known.get(value, -1)
    except TypeError:  # an unhashable value, such as a list, is no category
        return -1


@lru_cache(maxsize=512)
def _index_of(categories: tuple[Hashable, ...]) -> dict[Hashable, int]:
    return {category: i for i, category in enumerate(categories)}
