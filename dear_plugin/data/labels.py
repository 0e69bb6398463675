"""Columns of labels: categories without an order, and with an order.

`Labels` have no order. A feature of one or two labels is one encoded column; of more, or with a
missing one, one column each.

`Levels` have an order: columns of `pd.Categorical(..., ordered=True)`, or what
`Schema.infer(ordered=)` states. A row has the place of a level among all, 0, 1, 2, ...; so a step
costs its share of the range, `increasing=` and ranges hold, and what follows keeps its rank. Only
cells and texts are labels.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.data.feature import (
    OTHERS,
    Array,
    Feature,
    Kind,
    Reading,
    Special,
    is_numeric,
    line,
    missing_of,
    named,
)
from dear_plugin.data.numbers import Ordinal, known
from dear_plugin.errors import InputError, SchemaError

FLAGS = {("0", "1"), ("0.0", "1.0"), ("False", "True")}
# Row values of labels that no training row has begin here and are distinct below twice MOST_CODES.
# The latest MOST_KEPT labels are kept.
NEW, MOST_CODES, MOST_KEPT = 1 << 20, 1 << 23, 1 << 20
# Threads that read rows at once give the same label the same value, and others other ones.
READING = Lock()


class Labels(Feature):
    """A column of labels without an order."""

    @classmethod
    def takes(cls, kind: Any, given: Mapping[str, Any]) -> bool:
        """Categories in one column."""
        return kind != Kind.NUMERIC and not given.get("dummies")

    @classmethod
    def infer(cls, column: pd.Series, special: Special, as_category: bool) -> Self | None:
        """See `Column`; labels, or two numbers."""
        name, number = str(column.name), is_numeric(column.dtype)
        if number and not as_category and (special is not None or column.nunique() != 2):
            return None
        try:
            observed = column.dropna().unique()
        except TypeError as error:  # lists and arrays are not hashable
            raise SchemaError(
                f"column {name!r} holds {error}: neither text nor numbers"
            ) from error
        levels, is_ordered = stored_in(column)
        found, missing = set(observed), missing_of(column)
        known = [c for c in levels if c in found] if levels else sorted(observed, key=_sort_key)
        categories = plain(name, known)
        return cls(
            name,
            Kind.CATEGORICAL if missing or len(categories) > 2 else Kind.BINARY,
            categories=(*categories, None) if missing else categories,
            dtype=str(column.dtype),
            immutable=len(categories) + bool(missing) == 1,
            levels=levels,
            special=special or (),
            ordered=is_ordered,
            missing=missing,
        )

    @property
    def complaint(self) -> str:
        """See `Feature`."""
        if not (self.direction and self.kind is Kind.CATEGORICAL):
            return ""
        return (
            f"{self.name!r} has {len(self.categories)} categories without an order: it cannot be"
            f" increasing or decreasing; ordered={{{self.name!r}: [...]}} states one"
        )

    @property
    def is_flag(self) -> bool:
        """See `Column`."""
        return self.kind is Kind.BINARY and tuple(map(str, self.categories)) in FLAGS

    @property
    def columns(self) -> int:
        """One of two labels, else one a label."""
        return len(self.categories) if self.kind is Kind.CATEGORICAL else 1

    def read_cells(self, column: pd.Series, accepted: Array | None) -> Reading:
        """See `Column`; positions among the categories."""
        found = positions(self, column)
        bad = found < 0
        if accepted is not None and bad.any():
            at = np.flatnonzero(bad & accepted & column.notna().to_numpy())
            found[at] = self.values_of_new(column.iloc[at].astype(object))
            bad = found < 0
        return never_seen(self, column, found, bad) if bad.any() else Reading(found)

    def cells(self, values: Array) -> Array:
        """Positions of any shape as labels, an object array; a missing one as observed."""
        new = values >= NEW
        out = cells(self, np.where(new, 0, values))
        if new.any():
            out[new] = self.new_of(values[new])
        return out

    def column(self, values: Array) -> pd.Series | Array:
        """See `Column`."""
        if not (self.has_new and (values >= NEW).any()):
            return column(self, values)
        return self.cast(pd.Series(self.cells(values), dtype=object))

    def range_in(self, dtype: Any) -> tuple[float, float, int | None]:
        """See `Column`; the first and the last position, whatever the dtype."""
        return *self.ends, 0

    def place(self, cell: Any) -> Any:
        """See `Column`; of a missing cell the position of the missing level."""
        label = None if pd.isna(cell) is True else cell
        return float(self.categories.index(label)) if label in self.categories else math.nan

    def values(self, column: Tensor) -> Tensor:
        """See `Column`; the positions of all labels, whatever those of training rows are."""
        return self.label_values.to(column)

    @property
    def special_values(self) -> Tensor:
        """See `Column`."""
        some = (*self.special, *[None] * (None in self.categories))
        return torch.tensor([self.categories.index(each) for each in some], dtype=torch.float64)

    @property
    def label_values(self) -> Tensor:
        """See `Column`; the positions of all labels."""
        return torch.arange(len(self.categories), dtype=torch.float64)

    def changes(self, before: Tensor, after: Tensor) -> Tensor:
        """See `Column`."""
        return torch.stack([before, after], 1).long()

    @lazy
    def _new_values(self) -> dict[Hashable, int]:
        """The row value of each label that no training row has, of the rows that were read."""
        return {}

    @lazy
    def _new(self) -> dict[int, Hashable]:
        """The label of each such value, the latest last."""
        return {}

    @property
    def has_new(self) -> bool:
        """See `Column`."""
        return bool(self._new)

    def expand_new(self, values: Tensor) -> Tensor:
        """See `Column`; none of the categories, and halfway between two."""
        return torch.full((len(values), self.columns), 0.5 * (self.kind is Kind.BINARY))

    def values_of_new(self, labels: Iterable[Any]) -> list[int]:
        """Row values from `NEW` on of labels; -1 for one that is not hashable, such as a list."""
        return [self._value_of_new(label) for label in labels]

    def _value_of_new(self, label: Any) -> int:
        with READING:
            try:
                known = self._new_values.get(label)
            except TypeError:
                return -1
            if known is None:
                last = next(reversed(self._new), NEW - 1)
                known = NEW + (last + 1 - NEW) % MOST_CODES
                self._new_values[label], self._new[known] = known, label
                if len(self._new) > MOST_KEPT:
                    self._new_values.pop(self._new.pop(next(iter(self._new))))
        return known

    def new_of(self, values: Array) -> list[Any]:
        """The labels of such row values, (n,).

        Raises:
            InputError: one of more than `MOST_KEPT` labels ago.
        """
        try:
            return [self._new[value] for value in values.astype(np.int64).tolist()]
        except KeyError as error:
            raise InputError(
                f"more than {MOST_KEPT:,} values that no training row has were read since: use"
                " smaller batches, and compute the columns of a result before the next call"
            ) from error


def never_seen(feature: Feature, column: pd.Series, values: Array, bad: Array) -> Reading:
    """The reading of a column, (n,), where `bad`, (n,) bool, are labels that are unknown."""
    got, where = named(dict.fromkeys(map(repr, column[bad].astype(object)))), column.index[bad]
    known = f"one of {named(map(repr, feature.choices))}"
    expected = "values of the training rows" if feature.identifier else known
    complaint = (
        f"column {feature.name!r} has values never seen: {got} (first rows"
        f" {where[:3].tolist()}); expected {expected}"
    )
    return Reading.of(values, complaint, column, bad, expected)


def cells(feature: Feature, values: Array) -> Array:
    """Positions of any shape as labels, an object array; a missing one as observed."""
    known = feature.known
    labels = np.empty(len(known), dtype=object)
    labels[:] = known
    if feature.missing == "nan":
        labels[known.index(None)] = np.nan
    out: Array = labels[values.astype(np.int64)]
    return out


def column(feature: Feature, values: Array) -> pd.Series | Array:
    """Positions, (n,), as a column of labels."""
    if feature.dtype != "category":
        return feature.typed(cells(feature, values))
    levels = {**_index_of(feature.dtype_levels), None: -1}
    codes = np.array([levels[label] for label in feature.known])[values.astype(np.int64)]
    own = pd.Categorical.from_codes(codes, list(feature.dtype_levels), ordered=feature.ordered)
    return pd.Series(own)


def positions(feature: Feature, column: pd.Series) -> Array:
    """(n,) int64, the positions of labels among the known ones, -1 for others."""
    known = _index_of(feature.known)
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


def stored_in(column: pd.Series) -> tuple[tuple[Hashable, ...], bool]:
    """All levels of a category column as its dtype has them, and whether they have an order."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return (), False
    return plain(str(column.name), column.dtype.categories), bool(column.dtype.ordered)


def _sort_key(label: Any) -> tuple[str, Any]:
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


class Levels(Ordinal):
    """A column of labels with an order."""

    limited_by: ClassVar = ("ranges", "categories")

    @classmethod
    def takes(cls, kind: Any, given: Mapping[str, Any]) -> bool:
        """Numbers that are places of levels."""
        return kind == Kind.NUMERIC and bool(given.get("levels"))

    @classmethod
    def infer(cls, column: pd.Series, special: Special, as_category: bool) -> Self | None:
        """See `Column`; three or more levels, all known, that have an order."""
        name, dtype = str(column.name), column.dtype
        if as_category or not isinstance(dtype, pd.CategoricalDtype) or not dtype.ordered:
            return None
        levels = plain(name, dtype.categories)
        seen = np.unique(column.cat.codes[column.notna()]).astype(float)
        known = [levels[int(place)] for place in seen]
        if len(known) < 3 or special:
            return None
        low, high = float(seen[0]), float(seen[-1])
        return cls(
            name,
            Kind.NUMERIC,
            (low, high),
            precision=0,
            dtype=str(dtype),
            levels=levels,
            ordered=True,
            observed=tuple(seen.tolist()) if len(seen) < high - low + 1.0 else (),
            missing=missing_of(column),
        )

    @property
    def choices(self) -> tuple[Hashable, ...]:
        """All levels."""
        return self.levels

    ranked = choices

    @property
    def known(self) -> tuple[Hashable, ...]:
        """See `Feature`; the missing one is last."""
        return (*self.levels, None)

    def place(self, cell: Any) -> Any:
        """See `Column`; numbers, such as ends of ranges, are places."""
        known = isinstance(cell, Hashable) and cell in self.levels
        return float(self.levels.index(cell)) if known else cell

    def read_cells(self, column: pd.Series, accepted: Array | None) -> Reading:
        """See `Column`; new labels have no place."""
        places = positions(self, column).astype(float)
        bad = places < 0.0
        places[bad], places[places == len(self.levels)] = self.bounds[0], np.nan
        reading = self.reading(column, places)
        return never_seen(self, column, reading.values, bad) if bad.any() else reading

    def cells(self, values: Array) -> Array:
        """Places of any shape as labels, an object array; a missing one as observed."""
        return cells(self, self._positions(values))

    def column(self, values: Array) -> pd.Series | Array:
        """See `Column`."""
        return column(self, self._positions(values))

    def _positions(self, values: Array) -> Array:
        """Places of any shape as positions among the levels and, last, the missing one."""
        return np.where(known(values), np.round(values), len(self.levels))


def stated_order(column: pd.Series, name: str, levels: Sequence[Any] | None) -> pd.Series:
    """A column, (n,), as one of categories with the order that a user states, if one is stated.

    Raises:
        SchemaError: a value of the column that is no level, or levels that repeat.
    """
    if levels is None:
        return column
    known = list(dict.fromkeys(levels))
    absent = [label for label in column.dropna().unique() if label not in known]
    if absent or len(known) < len(levels):
        raise SchemaError(
            f"ordered[{name!r}]: expected all values of the column, the least first and each once;"
            f" got {list(levels)}, without {absent}"
        )
    return column.astype(object).astype(pd.CategoricalDtype(known, ordered=True))


def as_stored(feature: Feature, column: pd.Series) -> Feature:
    """A feature of a stated order with the dtype and levels of its column, (n,)."""
    stored, is_ordered = stored_in(column)
    if stored and not set(feature.levels) <= set(stored):
        stored, is_ordered = (), True
    own: dict[str, Any] = {"dtype": str(column.dtype), "missing": missing_of(column)}
    return dataclasses.replace(feature, stored=stored, ordered=is_ordered, **own)
