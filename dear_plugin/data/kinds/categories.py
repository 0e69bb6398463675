"""Categories: labels without an order as positions among them; columns in and out.

A feature of one or two labels is one encoded column; of more, or with a missing one, one each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.feature import Feature, Kind
from dear_plugin.data.kinds.cells import Array, Reading, is_numeric, missing_of, typed
from dear_plugin.data.kinds.remedies import OTHERS, line
from dear_plugin.errors import InputError, SchemaError

# Labels, in lower case, that say that a value is not known.
NOT_KNOWN = {"", "?", "n/a", "nan", "null", "unknown", "not known", "missing", "not available"}
# Row values of labels that no training row has begin here and are distinct below twice MOST_CODES.
# The latest MOST_KEPT labels are kept.
NEW, MOST_CODES, MOST_KEPT = 1 << 20, 1 << 23, 1 << 20


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


def infer(
    column: pd.Series, name: str, special: tuple[Any, ...] | None, as_category: bool
) -> Feature | None:
    """The feature of a column, (n,), of labels, or of two numbers; None for other numbers."""
    number = is_numeric(column.dtype)
    if number and not as_category and (special is not None or column.nunique() != 2):
        return None
    try:
        observed = column.dropna().unique()
    except TypeError as error:  # lists and arrays are not hashable
        raise SchemaError(f"column {name!r} holds {error}: neither text nor numbers") from error
    dtype = column.dtype if isinstance(column.dtype, pd.CategoricalDtype) else None
    levels = () if dtype is None else plain(name, dtype.categories)
    found, missing = set(observed), missing_of(column)
    known = [c for c in levels if c in found] if levels else sorted(observed, key=_place)
    categories = plain(name, known)
    return Feature(
        name,
        Kind.CATEGORICAL if missing or len(categories) > 2 else Kind.BINARY,
        categories=(*categories, None) if missing else categories,
        dtype=str(column.dtype),
        immutable=len(categories) + bool(missing) == 1,
        levels=levels,
        special=not_known(categories) if special is None else special,
        ordered=dtype is not None and bool(dtype.ordered),
        missing=missing,
    )


def read(
    feature: Feature, column: pd.Series, new: NewLabels | None, accepted: Array | None
) -> Reading:
    """The positions of a column's labels, (n,), among the categories of its feature.

    Args:
        feature: the feature.
        column: (n,) the labels.
        new: gives row values to labels that no training row has,
        accepted: (n,) bool, in these rows.
    """
    found = positions(feature, column)
    bad = found < 0
    if new is not None and accepted is not None and bad.any():
        at = np.flatnonzero(bad & accepted & column.notna().to_numpy())
        found[at] = new.values_of(column.iloc[at].astype(object))
        bad = found < 0
    return Reading.never_seen(feature, column, found, bad) if bad.any() else Reading(found)


def cells(feature: Feature, values: Array) -> Array:
    """Positions of any shape as labels, an object array; a missing one as observed."""
    known = _known(feature)
    labels = np.empty(len(known), dtype=object)
    labels[:] = known
    if feature.missing == "nan":
        labels[known.index(None)] = np.nan
    return labels[values.astype(np.int64)]


def column(feature: Feature, values: Array) -> pd.Series | Array:
    """Positions, (n,), as a column of labels."""
    if feature.dtype != "category":
        return typed(feature, cells(feature, values))
    codes = _codes(feature)[values.astype(np.int64)]
    levels = list(feature.dtype_levels)
    return pd.Series(pd.Categorical.from_codes(codes, levels, ordered=feature.ordered))


def limits(feature: Feature, dtype: Any) -> tuple[float, float, int | None]:
    """The first and the last position, whatever the dtype."""
    return *feature.ends, 0


def values(feature: Feature, column: Tensor) -> Tensor:
    """(m,) the positions of all labels, whatever those of training rows, (n,), are."""
    return levels(feature).to(column)


def levels(feature: Feature) -> Tensor:
    """(m,) double, the positions of all labels."""
    return torch.arange(len(feature.categories), dtype=torch.float64)


def changes(before: Tensor, after: Tensor) -> Tensor:
    """(m, 2) int64, the positions of the labels before and after, (m,)."""
    return torch.stack([before, after], 1).long()


def positions(feature: Feature, column: pd.Series) -> Array:
    """(n,) int64, the positions of labels among the known ones, -1 for others."""
    known = _index_of(_known(feature))
    missing = known.get(None, -1)
    if isinstance(column.dtype, pd.CategoricalDtype):
        table = np.append(_indices(known, column.cat.categories.astype(object)), missing)
        return np.asarray(table[column.cat.codes.to_numpy()])
    codes = _indices(known, column)
    return codes if missing < 0 else np.where(column.isna().to_numpy(), missing, codes)


def plain(name: str, labels: Iterable[Any]) -> tuple[Hashable, ...]:
    """Labels as built-in Python values; an error if one is neither text nor a number."""
    known = tuple(c.item() if isinstance(c, np.generic) else c for c in labels)
    if any(not isinstance(c, str | int | float | bool) for c in known):
        what, code = OTHERS
        raise SchemaError(f"column {name!r} holds {what}: {line(name, code)}")
    return known


def not_known(categories: Iterable[Hashable]) -> tuple[str, ...]:
    """The categories that say that a value is not known, such as "?" and "unknown"."""
    text = [c for c in categories if isinstance(c, str)]
    return tuple(c for c in text if c.strip().lower() in NOT_KNOWN)


def _known(feature: Feature) -> tuple[Hashable, ...]:
    """The categories of a feature, or its levels with an order; a missing one is None."""
    return feature.categories if not feature.is_number else (*feature.levels, None)


@lru_cache(maxsize=512)
def _codes(feature: Feature) -> Array:
    """(m,) the codes of the known labels in a category column, -1 for a missing one."""
    codes = {**_index_of(feature.dtype_levels), None: -1}
    return np.array([codes[label] for label in _known(feature)], dtype=np.int64)


def _place(label: Any) -> tuple[str, Any]:
    """What labels of several types are sorted by."""
    return type(label).__name__, label


def _indices(known: dict[Hashable, int], values: pd.Series | pd.Index) -> Array:
    """The indices of labels, (n,), -1 for unknown ones."""
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
