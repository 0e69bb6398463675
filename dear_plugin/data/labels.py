"""Labels: a column of categories as the places of these, and what is wrong with it."""

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
        values: (n,) row values; anything where a cell cannot be read.
        complaint: what is wrong with the column, "" if nothing is.
        bad: (n,) bool, the cells that cannot be read; None where the column as a whole cannot be.
        expected: what was expected of them.
    """

    values: Array
    complaint: str = ""
    bad: Array | None = None
    expected: str = ""

    @classmethod
    def refused(cls, complaint: str) -> Reading:
        """A column that cannot be read at all."""
        return cls(np.empty(0), complaint)


def labels(feature: Feature, column: pd.Series) -> Reading:
    """The places of a column's labels among the categories of its feature."""
    missing = feature.missing_category
    if isinstance(column.dtype, pd.CategoricalDtype):
        table = np.append(_looked_up(feature, column.cat.categories.astype(object)), missing)
        codes = table[column.cat.codes.to_numpy()]
    else:
        codes = _looked_up(feature, column)
        if missing >= 0:
            codes = np.where(column.isna().to_numpy(), missing, codes)
    strange = codes < 0
    if not strange.any():
        return Reading(codes)
    got = ", ".join(list(dict.fromkeys(map(repr, column[strange].astype(object))))[:3])
    where, expected = column.index[strange][:3].tolist(), list(feature.categories[:20])
    complaint = (
        f"column {feature.name!r} has values never seen: [{got}] (first rows {where});"
        f" expected one of {expected}"
    )
    return Reading(np.where(strange, 0, codes), complaint, strange, f"one of {expected}")


def cells_of(feature: Feature) -> Array:
    """(m,) the categories as a column of objects holds them."""
    out = np.empty(len(feature.categories), dtype=object)
    out[:] = feature.categories
    if feature.missing == "nan":
        out[feature.missing_category] = np.nan
    return out


@lru_cache(maxsize=512)
def codes_of(feature: Feature) -> Array:
    """(m,) the places of the categories among all levels of a category column, -1 for missing."""
    places = {None: -1, **_places(feature.levels or feature.categories)}
    if not feature.levels:
        places[None] = -1
    return np.array([places[category] for category in feature.categories], dtype=np.int64)


def _looked_up(feature: Feature, values: pd.Series | pd.Index) -> Array:
    """The places of labels among the categories, -1 for unknown ones."""
    # A dict is the quickest way.
    known = _places(feature.categories)
    cells = (values if values.dtype == object else values.astype(object)).tolist()
    try:
        return np.fromiter(map(known.get, cells, repeat(-1)), np.int64, len(cells))
    except TypeError:
        return np.array([_place(known, cell) for cell in cells], dtype=np.int64)


def _place(known: dict[Hashable, int], value: Any) -> int:
    try:
        return known.get(value, -1)
    except TypeError:  # a value without a hash, such as a list, is no category
        return -1


@lru_cache(maxsize=512)
def _places(categories: tuple[Hashable, ...]) -> dict[Hashable, int]:
    return {category: i for i, category in enumerate(categories)}
