"""Levels: categories with an order as numbers, the places of their levels; columns in and out.

They are columns of `pd.Categorical(..., ordered=True)`, or what `Schema.infer(ordered=)` states. A
row has the place of a level among all, 0, 1, 2, ...; so a step costs its share of the range,
`increasing=` and ranges hold, and what follows keeps its rank. Only cells and texts are labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from dear_plugin.data import scales
from dear_plugin.data.attributes import Kind
from dear_plugin.data.column import Special
from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds import labels
from dear_plugin.data.kinds.cells import Array, Reading, missing_of
from dear_plugin.data.kinds.ordinal import Ordinal
from dear_plugin.data.special_values import known
from dear_plugin.errors import SchemaError


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
        levels = labels.plain(name, dtype.categories)
        seen = np.unique(column.cat.codes[column.notna()]).astype(float)
        known = [levels[int(place)] for place in seen]
        if len(known) < 3 or (labels.not_known(known) if special is None else special):
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
        places = labels.positions(self, column).astype(float)
        bad = places < 0.0
        places[bad], places[places == len(self.levels)] = self.bounds[0], np.nan
        reading = self.reading(column, places)
        return labels.never_seen(self, column, reading.values, bad) if bad.any() else reading

    def cells(self, values: Array) -> Array:
        """Places of any shape as labels, an object array; a missing one as observed."""
        return labels.cells(self, self._positions(values))

    def column(self, values: Array) -> pd.Series | Array:
        """See `Column`."""
        return labels.column(self, self._positions(values))

    def _positions(self, values: Array) -> Array:
        """Places of any shape as positions among the levels and, last, the missing one."""
        return np.where(known(values), np.round(values), len(self.levels))


def stated(column: pd.Series, name: str, levels: Sequence[Any] | None) -> pd.Series:
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


def of_ranges(column: pd.Series) -> tuple[str, ...] | None:
    """The levels of a column, (n,), from the least to the greatest, if they are ranges."""
    dtype = column.dtype
    is_category = isinstance(dtype, pd.CategoricalDtype)
    is_text = pd.api.types.is_string_dtype(column.dropna())
    if not (is_text or is_category) or (is_category and dtype.ordered):
        return None
    levels = list(dtype.categories if is_category else column.dropna().unique())
    return scales.ranges_in_order(levels) or None


def as_stored(feature: Feature, column: pd.Series) -> Feature:
    """A feature of a stated order with the dtype and levels of its column, (n,)."""
    stored, is_ordered = labels.stored_in(column)
    if stored and not set(feature.levels) <= set(stored):
        stored, is_ordered = (), True
    own: dict[str, Any] = {"dtype": str(column.dtype), "missing": missing_of(column)}
    return dataclasses.replace(feature, stored=stored, ordered=is_ordered, **own)
