"""Kinds: a kind of column is one file, which infers, reads and writes it.

numbers: amounts, with their decimals and codes. categories: labels, of which two are one encoded
column. ordered: labels with an order, which are numbers to all but cells and texts.
"""

from __future__ import annotations

from typing import Any, Protocol

import pandas as pd
from torch import Tensor

from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds import categories, numbers, ordered
from dear_plugin.data.kinds.categories import NewLabels
from dear_plugin.data.kinds.cells import Array, Reading
from dear_plugin.data.kinds.remedies import complaint
from dear_plugin.errors import SchemaError


class ColumnKind(Protocol):
    """What the file of a kind has."""

    def infer(
        self, column: pd.Series, name: str, special: tuple[Any, ...] | None, as_category: bool
    ) -> Feature | None:
        """The feature of a training column, (n,); None where it is of another kind."""

    def read(
        self, feature: Feature, column: pd.Series, new: NewLabels | None, accepted: Array | None
    ) -> Reading:
        """The row values of a column; see `read` below."""

    def cells(self, feature: Feature, values: Array) -> Array:
        """Row values of any shape as cells."""

    def column(self, feature: Feature, values: Array) -> pd.Series | Array:
        """Row values, (n,), as a column of the feature's dtype, or an array."""

    def limits(self, feature: Feature, dtype: Any) -> tuple[float, float, int | None]:
        """The least and greatest row value of a column of a dtype, and its decimals.

        By the schema, and as far as the dtype can hold it; None leaves values unrounded.
        """

    def values(self, feature: Feature, column: Tensor) -> Tensor:
        """(l,) ascending, the row values that an action may set, given training ones, (n,)."""

    def levels(self, feature: Feature) -> Tensor:
        """(l,) double, the row values that are no amounts and that an action may set or leave."""

    def changes(self, before: Tensor, after: Tensor) -> Tensor:
        """(m, 2) int64, the level before and after, (m,); of amounts -2 the less, -1 the more."""


# In the order in which they are tried for a training column.
KINDS: tuple[ColumnKind, ...] = (ordered, categories, numbers)


def of(feature: Feature) -> ColumnKind:
    """The kind of a feature's column."""
    if feature.holds_numbers:
        return numbers
    return ordered if feature.is_number else categories


def infer(
    column: pd.Series, name: str, special: tuple[Any, ...] | None, as_category: bool
) -> Feature:
    """The feature of a training column, without the user's constraints on changes.

    Args:
        column: (n,) its cells.
        name: its name.
        special: the values that are no amounts, or not known; None where they are not stated.
        as_category: whether numbers are categories, and an order of levels is ignored.

    Raises:
        SchemaError: a column of no kind.
    """
    if advice := complaint(name, column):
        raise SchemaError(advice)
    every = (kind.infer(column, name, special, as_category) for kind in KINDS)
    return next(feature for feature in every if feature is not None)


def read(
    feature: Feature,
    column: pd.Series,
    new: NewLabels | None = None,
    accepted: Array | None = None,
) -> Reading:
    """The row values of one column, with a complaint if it has unreadable cells.

    Args:
        feature: the feature.
        column: (n,) its cells.
        new: gives row values to labels that no training row has,
        accepted: (n,) bool, in these rows.
    """
    if isinstance(column.dtype, pd.SparseDtype):
        return Reading.unreadable(complaint(feature.name, column))
    return of(feature).read(feature, column, new, accepted)
