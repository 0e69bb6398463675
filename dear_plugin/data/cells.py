"""Kinds of columns: what each is in training rows, and its cells as row values and back.

Numbers have their decimals, and codes and missing values as special levels. Labels without an
order are the positions of categories. Labels with an order are the places of levels among all, 0,
1, 2, ...: columns of `pd.Categorical(..., ordered=True)`, or what `Schema.infer(ordered=)` states.
So a step costs its share of the range, `increasing=` and ranges hold, and what follows keeps its
rank. Only cells and texts are labels.

A cell that never changes may have a label that no training row has. `Positions` have one for
each such label that was read, after those of the categories.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import repeat
from threading import Lock
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd

from dear_plugin.data.feature import (
    OTHERS,
    Feature,
    Kind,
    as_numbers,
    complaint,
    conversion,
    line,
    unboxed,
)
from dear_plugin.data.numbers import (
    Array,
    decimals,
    known,
    level_of,
    on_grid,
    ordinary_values,
    row_value,
)
from dear_plugin.errors import MOST_NAMED, SchemaError

# The values that are no amounts, or not known; None where they are not stated.
Special = tuple[Any, ...] | None
# Labels by row value. Threads that read rows at once give the same label the same value.
Positions = dict[Hashable, int]
READING = Lock()
# The largest scaled number: in float32 its square does not overflow.
FARTHEST = 1e15
# A number of few, even values: its range has at most so many of their usual distances.
MOST_EVEN = 24


# How much of a value an error shows.
MOST_LETTERS = 60

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
    shown = [
        x if len(x) <= MOST_LETTERS else f"{x[: MOST_LETTERS - 3]}..." for x in every[:MOST_NAMED]
    ]
    more = f", ... ({len(every) - MOST_NAMED} more)" if len(every) > MOST_NAMED else ""
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


def kind_of(column: pd.Series, special: Special, as_category: bool) -> Feature:
    """The feature of a training column, without the user's constraints on changes.

    Args:
        column: (n,) its cells.
        special: the values that are no amounts, or not known; None where not stated.
        as_category: whether numbers are categories, and an order of levels is ignored.

    Raises:
        SchemaError: a column of no kind.
    """
    name, (levels, is_ordered) = str(column.name), stored_in(column)
    if is_ordered and not as_category and not special:
        seen = np.unique(column.cat.codes[column.notna()]).astype(float)
        if len(seen) >= 3:
            return _of_levels(column, levels, seen)
    amounts = is_numeric(column.dtype) and not as_category
    if amounts and (special is not None or column.nunique() != 2):
        return _of_numbers(column, special or ())
    try:
        observed = column.dropna().unique()
    except TypeError as error:  # lists and arrays are not hashable
        raise SchemaError(f"column {name!r} holds {error}: neither text nor numbers") from error
    found, missing = set(observed), missing_of(column)
    some = [c for c in levels if c in found] if levels else sorted(observed, key=_sort_key)
    categories = _plain(name, some)
    return Feature(
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


def _of_levels(column: pd.Series, levels: tuple[Hashable, ...], seen: Array) -> Feature:
    """The feature of three or more levels that have an order, given the places that are seen."""
    low, high = float(seen[0]), float(seen[-1])
    return Feature(
        str(column.name),
        Kind.NUMERIC,
        (low, high),
        precision=0,
        dtype=str(column.dtype),
        levels=levels,
        ordered=True,
        observed=tuple(seen.tolist()) if len(seen) < high - low + 1.0 else (),
        missing=missing_of(column),
    )


def _of_numbers(column: pd.Series, codes: tuple[Any, ...]) -> Feature:
    """The feature of amounts, and codes that are none."""
    name, single = str(column.name), str(column.dtype).lower() == "float32"
    values = ordinary_values(column, codes)
    values = values[~np.isnan(values)].astype(np.float32 if single else np.float64)
    if not np.isfinite(values).all():
        raise SchemaError(f"column {name!r} holds infinite values: clip or drop them")
    places = decimals(values) if len(values) else 0
    values = on_grid(values, places)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    feature = Feature(
        name,
        Kind.NUMERIC,
        (low, high),
        precision=places,
        dtype=str(column.dtype),
        immutable=low == high,
        special=codes,
        missing="nan" if column.isna().any() else "",
    )
    if not known(np.array(low)):
        lowest = f"numbers above -1e301, got {low:.3g}"
        raise SchemaError(f"column {name!r}: expected {lowest}: clip or drop such values")
    return feature


def with_central(feature: Feature, column: pd.Series, share: float) -> Feature:
    """A number with the central range of its training column, (n,), and its unit of cost.

    One extreme value must not make every other change nearly free, nor be advice: the unit of
    cost is the range of the central values, and actions stay within it.

    Args:
        feature: of the column.
        column: its training cells.
        share: the share of the values, without special ones, that are central.
    """
    if feature.choices:
        return feature
    values = ordinary_values(column, feature.special)
    values = values[~np.isnan(values)]
    if not len(values):
        return feature
    outer = round((1.0 - share) / 2.0, 9)
    low, high = np.quantile(values, (outer, 1.0 - outer), method="inverted_cdf").tolist()
    distinct = np.unique(values)
    scale, whole = high - low or float(values.std()), float(distinct[-1] - distinct[0])
    # Of few, even values it is the whole range.
    if 1 < len(distinct) <= MOST_EVEN + 1 and whole <= MOST_EVEN * np.median(np.diff(distinct)):
        scale = whole
    return replace(feature, central=(low, high), scale=scale)


def read_column(
    feature: Feature,
    column: pd.Series,
    labels: Positions | None = None,
    accepted: Array | None = None,
) -> Reading:
    """The row values of a column, with a complaint if it has unreadable cells.

    Args:
        feature: of the column.
        column: (n,) its cells.
        labels: those that no training row has are added to these.
        accepted: (n,) bool, the rows that may have one; None for none.
    """
    if isinstance(column.dtype, pd.SparseDtype):
        return Reading(np.empty(0), complaint(feature.name, column))
    if not feature.choices:
        return _numbers(feature, column)
    found = _positions(labels_of(feature.known), column)
    bad = found < 0
    if accepted is not None and labels is not None and not feature.has_order and bad.any():
        at = np.flatnonzero(bad & accepted & column.notna().to_numpy())
        found[at] = positions_of(labels, column.iloc[at].astype(object))
        bad = found < 0
    if not feature.has_order:
        return _never_seen(feature, column, found, bad) if bad.any() else Reading(found)
    places = found.astype(float)
    places[bad], places[places == len(feature.levels)] = feature.bounds[0], np.nan
    reading = _of_known(feature, column, places)
    return _never_seen(feature, column, reading.values, bad) if bad.any() else reading


def cells_of(feature: Feature, values: Array, labels: Positions | None = None) -> Array:
    """Row values of any shape as cells; special levels as their codes, a missing one as observed.

    Args:
        feature: of the column.
        values: its row values.
        labels: those that the feature has, where training rows have not all of these.
    """
    if feature.choices:
        every, at = [*(feature.known if labels is None else labels)], _at(feature, values)
        if feature.missing == "nan":
            every[every.index(None)] = np.nan
        if labels is not None:  # of any number of labels few are here
            return np.fromiter(map(every.__getitem__, at.flat), object, at.size).reshape(at.shape)
        return np.fromiter(every, object, len(every))[at]
    out = values + 0.0  # no negative zeros
    if feature.special_levels:
        amounts = known(values)
        level = np.where(amounts, 0, level_of(values)).astype(np.int64)
        out = np.where(amounts, out, np.array([*feature.special, np.nan])[level])
    return out


def cells_in(feature: Feature, values: Array, dtype: Any) -> Array:
    """Row values, (n,), as cells of a column of a dtype, with its decimals."""
    out = cells_of(feature, values)
    if feature.choices:
        return out
    places = feature.decimals_in(dtype)
    out = out if places is None else np.round(out, places)
    return out.astype(np.int64) if dtype.kind == "O" and feature.dtype == "int64" else out


def column_of(
    feature: Feature, values: Array, labels: Positions | None = None
) -> pd.Series | Array:
    """Row values, (n,), as a column of the feature's dtype, or an array; see `cells_of`.

    Numbers are floats where an integer dtype cannot hold them, and a label that is no level of a
    category column is missing.
    """
    if labels and bool((values >= len(feature.known)).any()):
        return feature.cast(pd.Series(cells_of(feature, values, labels), dtype=object))
    if feature.choices and feature.dtype == "category":
        levels = {**labels_of(own := feature.dtype_levels), None: -1}
        codes = np.array([levels[label] for label in feature.known])[_at(feature, values)]
        return pd.Series(pd.Categorical.from_codes(codes, list(own), ordered=feature.ordered))
    out = cells_of(feature, values)
    if not feature.choices and "int" in feature.dtype.lower():
        whole = np.isnan(out) | (out == np.round(out))
        return feature.typed(out) if whole.all() else pd.Series(out)
    return feature.typed(out)


def is_one(feature: Feature, column: pd.Series) -> Array:
    """(n,) bool, the cells of a flag, (n,), that are 1."""
    return np.asarray((column == cells_of(feature, np.ones(1))[0]).to_numpy(dtype=bool))


def _at(feature: Feature, values: Array) -> Array:
    """Row values of any shape as positions among labels; the missing level of an order is last."""
    if feature.has_order:
        values = np.where(known(values), np.round(values), len(feature.levels))
    return values.astype(np.int64)


def _numbers(feature: Feature, column: pd.Series) -> Reading:
    """The reading of a column of numbers, (n,)."""
    plain = unboxed(column)
    dtype = plain.dtype
    if not is_numeric(dtype):
        is_bool = pd.api.types.is_bool_dtype(dtype)  # pd.to_numeric would leave it as it is
        what, code = conversion(plain)
        if not what or (what, code) == OTHERS:
            code = "{0}.astype(int)" if is_bool else as_numbers(plain)
        text = f"must hold numbers, got dtype {dtype}: {line(feature.name, code)}"
        return Reading(np.empty(0), f"column {feature.name!r} {text}")
    own = (
        plain.to_numpy() if isinstance(dtype, np.dtype) else plain.to_numpy(float, na_value=np.nan)
    )
    return _of_known(feature, column, on_grid(own, feature.precision))


def _of_known(feature: Feature, column: pd.Series, values: Array) -> Reading:
    """The reading of a column, (n,), of numbers, (n,), some of them codes or missing."""
    low, high = feature.bounds
    far = ~(np.abs(values - low) <= FARTHEST * feature.width)  # True for NaN, too
    far |= ~known(values)
    if feature.special_levels:
        levels = [values == code for code in feature.special]
        levels += [np.isnan(values)] if feature.missing else []
        values = values.copy()
        for i, mask in enumerate(levels):
            values[mask], far[mask] = row_value(i), False
    if not far.any():
        return Reading(values)
    near = f"those observed ({low:g} to {high:g})"
    bad, what = far & ~np.isfinite(values), "missing or infinite values"
    if not bad.any():
        bad, what = far, f"values too far from {near}"
    where = column.index[bad][:3].tolist()
    complaint = f"column {feature.name!r} has {what} in {bad.sum()} rows, first {where}"
    return Reading.of(values, complaint, column, far, f"a number near {near}")


def _never_seen(feature: Feature, column: pd.Series, values: Array, bad: Array) -> Reading:
    """The reading of a column, (n,), where `bad`, (n,) bool, are labels that are unknown."""
    got, where = named(dict.fromkeys(map(repr, column[bad].astype(object)))), column.index[bad]
    known = f"one of {named(map(repr, feature.choices))}"
    expected = "values of the training rows" if feature.identifier else known
    complaint = (
        f"column {feature.name!r} has values never seen: {got} (first rows"
        f" {where[:3].tolist()}); expected {expected}"
    )
    return Reading.of(values, complaint, column, bad, expected)


def positions_of(labels: Positions, others: Iterable[Any]) -> list[int]:
    """The positions of labels that no training row has, which are added; -1 of unhashable ones."""
    every = [*others]
    with READING:
        for label in every:
            with suppress(TypeError):
                labels.setdefault(label, len(labels))
    return [_index(labels, label) for label in every]


def _positions(labels: Positions, column: pd.Series) -> Array:
    """(n,) int64, the positions of labels, -1 for others."""
    missing = labels.get(None, -1)
    if isinstance(column.dtype, pd.CategoricalDtype):
        table = np.append(_indices(labels, column.cat.categories.astype(object)), missing)
        return np.asarray(table[column.cat.codes.to_numpy()])
    codes = _indices(labels, column)
    return codes if missing < 0 else np.where(column.isna().to_numpy(), missing, codes)


def _plain(name: str, labels: Iterable[Any]) -> tuple[Hashable, ...]:
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
    return _plain(str(column.name), column.dtype.categories), bool(column.dtype.ordered)


def _sort_key(label: Any) -> tuple[str, Any]:
    """What labels of several types are sorted by."""
    return type(label).__name__, label


def _indices(known: Positions, values: pd.Series | pd.Index) -> Array:
    """The indices of labels, (n,), -1 for unknown ones."""
    cells = (values if values.dtype == object else values.astype(object)).tolist()
    try:
        return np.fromiter(map(known.get, cells, repeat(-1)), np.int64, len(cells))
    except TypeError:
        return np.array([_index(known, cell) for cell in cells], dtype=np.int64)


def _index(known: Positions, value: Any) -> int:
    try:
        return known.get(value, -1)
    except TypeError:  # an unhashable value, such as a list, is no category
        return -1


@lru_cache(maxsize=512)
def labels_of(known: tuple[Hashable, ...]) -> Positions:
    """The position of each label."""
    return {label: i for i, label in enumerate(known)}


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
    return replace(feature, stored=stored, ordered=is_ordered, **own)
