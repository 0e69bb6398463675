"""Labels: conversion between a column of categories and category indices."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.schema import Feature
from dear_plugin.errors import InputError

# How many values an error names, and how much of each.
MOST, MOST_LETTERS = 5, 60
# Row values of labels that no training row has begin here and are distinct below twice MOST_CODES.
# The latest MOST_KEPT labels are kept.
NEW, MOST_CODES, MOST_KEPT = 1 << 20, 1 << 23, 1 << 20

Array = npt.NDArray[Any]


class NewLabels:
    """Labels that no training row has, of any feature: row values from `NEW` on, and back."""

    def __init__(self) -> None:
        self._values: dict[Hashable, int] = {}
        self._labels: dict[int, Hashable] = {}
        self._next = 0

    def __bool__(self) -> bool:
        """Whether any was read."""
        return bool(self._labels)

    def values_of(self, labels: Iterable[Any]) -> list[int]:
        """The row values of labels; -1 for one that is not hashable, such as a list."""
        return [self._value(label) for label in labels]

    def labels_of(self, values: Array) -> list[Hashable]:
        """The labels of row values, (n,).

        Raises:
            InputError: one of more than `MOST_KEPT` labels ago.
        """
        try:
            return [self._labels[value] for value in values.astype(np.int64).tolist()]
        except KeyError as error:
            raise InputError(
                f"more than {MOST_KEPT:,} values that no training row has were read since: use"
                " smaller batches, and compute the columns of a result before the next call"
            ) from error

    def _value(self, label: Any) -> int:
        try:
            known = self._values.get(label)
        except TypeError:
            return -1
        if known is not None:
            return known
        value = NEW + self._next % MOST_CODES
        self._next += 1
        self._values[label], self._labels[value] = value, label
        if len(self._labels) > MOST_KEPT:
            self._values.pop(self._labels.pop(next(iter(self._labels))))
        return value


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


def labels(
    feature: Feature,
    column: pd.Series,
    new: NewLabels | None = None,
    accepted: Array | None = None,
) -> Reading:
    """The indices of a column's labels among the categories of its feature.

    Args:
        feature: the feature.
        column: (n,) the labels.
        new: gives row values to labels that no training row has,
        accepted: (n,) bool, in these rows.
    """
    missing = feature.missing_category
    if isinstance(column.dtype, pd.CategoricalDtype):
        table = np.append(_indices(feature, column.cat.categories.astype(object)), missing)
        codes = table[column.cat.codes.to_numpy()]
    else:
        codes = _indices(feature, column)
        if missing >= 0:
            codes = np.where(column.isna().to_numpy(), missing, codes)
    bad = codes < 0
    if new is not None and accepted is not None and bad.any():
        at = np.flatnonzero(bad & accepted & column.notna().to_numpy())
        codes[at] = new.values_of(column.iloc[at].astype(object))
        bad = codes < 0
    return never_seen(feature, column, codes, bad) if bad.any() else Reading(codes)


def never_seen(feature: Feature, column: pd.Series, values: Array, bad: Array) -> Reading:
    """The reading of row values, (n,), where `bad`, (n,) bool, are labels that are not known."""
    got, where = named(dict.fromkeys(map(repr, column[bad].astype(object)))), column.index[bad]
    expected = f"one of {named(map(repr, feature.choices))}"
    complaint = (
        f"column {feature.name!r} has values never seen: {got} (first rows {where[:3].tolist()});"
        f" expected {expected}"
    )
    return Reading(np.where(bad, 0, values), complaint, bad, expected)


def named(texts: Iterable[str]) -> str:
    """Up to five texts of up to sixty characters in brackets, and how many more there are."""
    every = list(texts)
    shown = [x if len(x) <= MOST_LETTERS else f"{x[: MOST_LETTERS - 3]}..." for x in every[:MOST]]
    more = f", ... ({len(every) - MOST} more)" if len(every) > MOST else ""
    return f"[{', '.join(shown)}{more}]"


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
