"""Columns: conversion between one column of a frame and row values; dtype and labels are kept."""

from __future__ import annotations

import logging
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data import ordered
from dear_plugin.data.grid import on_grid
from dear_plugin.data.inference import sparse, unreadable
from dear_plugin.data.labels import NewLabels, Reading, cells_of, codes_of, labels, never_seen
from dear_plugin.data.schema import Feature, Kind, Schema
from dear_plugin.data.special_values import is_special, level_of, row_value

# The largest scaled number: in float32 its square does not overflow.
FARTHEST = 1e15
Array = npt.NDArray[Any]

logger = logging.getLogger(__name__)


class Resolution(NamedTuple):
    """The numbers that a column can hold.

    Attributes:
        decimals: the decimals that changes are rounded to; None: unrounded.
        low: the least number of its dtype.
        high: the greatest.
    """

    decimals: int | None
    low: float
    high: float

    def is_too_narrow(self, feature: Feature) -> bool:
        """Whether it cannot hold all observed numbers of a feature."""
        low, high = feature.bounds
        return feature.kind is Kind.NUMERIC and (low < self.low or self.high < high)


def column_resolution(feature: Feature, dtype: Any) -> Resolution:
    """The numbers of a feature that a column of a dtype can hold.

    Integer columns have 0 decimals whatever the schema's precision.
    """
    plain = plain_dtype(dtype)
    places = 0 if _is_whole(dtype) else feature.precision
    return Resolution(places, *(ends_of(plain) if plain.kind in "iuf" else (-math.inf, math.inf)))


def plain_dtype(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype of a pandas or Arrow dtype; that of objects if there is none."""
    own = getattr(dtype, "numpy_dtype", dtype)
    return own if isinstance(own, np.dtype) else np.dtype(object)


@lru_cache(maxsize=32)
def ends_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and greatest float that a dtype of numbers can hold."""
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    # The greatest 64-bit integer is not a float64; the next float above it would overflow.
    return low, high if dtype.kind == "f" or int(high) <= info.max else math.nextafter(high, 0.0)


def resolutions(schema: Schema, frame: pd.DataFrame) -> list[Resolution]:
    """(p,) the decimals and the range that the columns of a frame can hold."""
    found = [column_resolution(f, frame[f.name].dtype) for f in schema]
    narrow = [f.name for f, each in zip(schema, found, strict=True) if each.is_too_narrow(f)]
    if narrow:
        logger.warning(
            "columns %s have dtypes too narrow for all observed values: candidates are limited to"
            " values that they can hold",
            narrow,
        )
    return found


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
        return Reading.unreadable(sparse(feature.name, column.dtype))
    if feature.holds_numbers:
        return _numbers(feature, column)
    if feature.kind is Kind.NUMERIC:
        return _places(feature, column)
    return labels(feature, column, new, accepted)


def _unboxed(column: pd.Series) -> pd.Series:
    """A column whose numbers, held as objects as a row of a frame does, are numbers again."""
    if column.dtype != object:
        return column
    cells = column.to_numpy(copy=True)
    cells[column.isna().to_numpy()] = np.nan
    return pd.Series(cells, index=column.index, name=column.name).infer_objects()


def _numbers(feature: Feature, column: pd.Series) -> Reading:
    column = _unboxed(column)
    name, dtype = feature.name, column.dtype
    if not _is_number(dtype):
        cells = f"frame[{name!r}]"
        is_bool = pd.api.types.is_bool_dtype(dtype)  # pd.to_numeric would leave it as it is
        fix = f"{cells}.astype(int)" if is_bool else f"pd.to_numeric({cells})"
        advice = unreadable(dtype) or f"{cells} = {fix}"
        message = f"column {name!r} must hold numbers, got dtype {dtype}: {advice}"
        return Reading.unreadable(message)
    if isinstance(dtype, np.dtype):
        values = on_grid(column.to_numpy(), feature.precision)
    else:
        values = on_grid(column.to_numpy(dtype=np.float64, na_value=np.nan), feature.precision)
    far = ~(np.abs(values - feature.bounds[0]) <= FARTHEST * feature.width)  # True for NaN, too
    if feature.special_levels:
        values, far = _with_levels(feature, values, far)
    return _with_complaint(feature, column, values, far) if far.any() else Reading(values)


def _places(feature: Feature, column: pd.Series) -> Reading:
    """The reading of labels with an order, (n,)."""
    places = ordered.places(feature, column)
    bad = places == ordered.UNKNOWN
    known = np.where(bad, feature.bounds[0], places)
    reading = _numbers(feature, pd.Series(known, column.index, name=feature.name))
    return never_seen(feature, column, reading.values, bad) if bad.any() else reading


def _with_levels(feature: Feature, values: Array, far: Array) -> tuple[Array, Array]:
    """Numbers, (n,), with special levels as row values, and the unreadable ones, (n,)."""
    far = far | is_special(values)
    levels = [values == code for code in feature.special]
    levels += [np.isnan(values)] if feature.missing else []
    out = values.copy()
    for i, mask in enumerate(levels):
        out[mask], far[mask] = row_value(i), False
    return out, far


def _with_complaint(feature: Feature, column: pd.Series, values: Array, far: Array) -> Reading:
    """The reading of numbers, (n,), of which those in `far`, (n,) bool, are unreadable."""
    low, high = feature.bounds
    bad, what = far & ~np.isfinite(values), "missing or infinite values"
    if not bad.any():
        bad, what = far, f"values too far from those observed ({low:g} to {high:g})"
    where = column.index[bad][:3].tolist()
    complaint = f"column {feature.name!r} has {what} in {bad.sum()} rows, first {where}"
    expected = f"a number near those observed ({low:g} to {high:g})"
    return Reading(np.where(far, 0.0, values), complaint, far, expected)


def _is_whole(dtype: Any) -> bool:
    """Whether a dtype is an integer dtype."""
    if isinstance(dtype, np.dtype):  # much faster than pandas' own test
        return dtype.kind in "iu"
    return bool(pd.api.types.is_integer_dtype(dtype))


def _is_number(dtype: Any) -> bool:
    """Whether a dtype is numeric; booleans are not."""
    if isinstance(dtype, np.dtype):  # much faster than pandas' own test
        return dtype.kind in "iuf"
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def user_values(feature: Feature, values: Array) -> Array:
    """Row values of one feature, any shape, as cells."""
    if feature.kind is not Kind.NUMERIC:
        return cells_of(feature)[values.astype(np.int64)]
    cells = values + 0.0  # no negative zeros
    if feature.special_levels:
        codes = np.array([*feature.special, np.nan])
        special = is_special(values)
        level = np.where(special, level_of(values), 0).astype(np.int64)
        cells = np.where(special, codes[level], cells)
    return cells if feature.holds_numbers else ordered.labels(feature, cells)


def as_column(feature: Feature, values: Array) -> pd.Series | Array:
    """Row values of one feature, (n,), as a column of the feature's dtype, or an array.

    Numbers that an integer dtype cannot hold are floats.
    """
    if not feature.holds_numbers and feature.dtype == "category":
        codes = _codes(feature, values)
        levels = list(feature.levels or feature.categories)
        return pd.Series(pd.Categorical.from_codes(codes, levels, ordered=feature.ordered))
    cells, dtype = user_values(feature, values), feature.dtype
    whole = not feature.holds_numbers or dtype.startswith("float")
    if not (whole or bool((np.isnan(cells) | (cells == np.round(cells))).all())):
        return pd.Series(cells)
    if dtype == "float64" or (dtype == "int64" and not feature.missing):
        return cells.astype(dtype)  # much faster than a Series
    return pd.Series(cells, dtype=object if dtype == "object" else None).astype(dtype)


def _codes(feature: Feature, values: Array) -> Array:
    """The codes of row values, (n,), in a category column."""
    if feature.kind is not Kind.NUMERIC:
        return codes_of(feature)[values.astype(np.int64)]
    return ordered.codes(np.where(is_special(values), np.nan, values))


def has_dtype(feature: Feature, dtype: Any) -> bool:
    """Whether a dtype is that of the training column, its levels and their order included."""
    if str(dtype) != feature.dtype or not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype) == feature.dtype
    levels = list(feature.levels or feature.categories)
    return bool(dtype.ordered == feature.ordered and dtype.categories.tolist() == levels)


def cast(feature: Feature, column: pd.Series) -> pd.Series:
    """A column with the dtype of the training column, or as it is if that cannot hold its values.

    A label that is no level of a category column becomes a missing value.
    """
    if feature.dtype == "category":
        levels = list(feature.levels or feature.categories)
        return column.astype(object).astype(pd.CategoricalDtype(levels, feature.ordered))
    cells = _unboxed(column) if feature.holds_numbers else column.astype(object)
    if feature.missing == "none":
        cells = cells.where(cells.notna(), None)
    try:
        out = cells.astype(feature.dtype)
    except (TypeError, ValueError):  # such as a missing value among integers
        return column
    rounds = out.dtype.kind == "f"
    return out if rounds or bool(((out == cells) | cells.isna()).all()) else column
