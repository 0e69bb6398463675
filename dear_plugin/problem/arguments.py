"""Arguments: the values of constraints, for all rows or one per row, as numbers and codes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.attributes import COST
from dear_plugin.data.feature import Feature
from dear_plugin.errors import ConstraintError, DearError, SettingError, argument, shown, unknown


def in_order(
    value: Any, index: pd.Index, name: str, error: type[DearError] = ConstraintError
) -> Any:
    """A Series of a value per row as a list in the order of the rows; another value as it is.

    Args:
        value: the user's value.
        index: (n,) that of the rows.
        name: the argument's name, for errors.
        error: what is raised.

    Raises:
        DearError: a Series of another index, or in another order where labels repeat.
    """
    if not isinstance(value, pd.Series):
        return value
    own, cells = value.index, value.tolist()
    if own.equals(index):
        return cells
    places = own.get_indexer(index) if own.is_unique and len(own) == len(index) else np.array([-1])
    if (places < 0).any():
        raise error(
            f"{name}: a Series has the index of the rows (in their order, where labels repeat);"
            f" got {len(own)} values with another index for {len(index)} rows."
            " series.loc[rows.index] aligns it; series.to_numpy() goes by position"
        )
    return [cells[place] for place in places]


def each(value: Any, n: int, name: str, one: type) -> Iterator[tuple[slice | list[int], Any]]:
    """Iterate over a constraint as (rows, value) pairs: one for all rows, or one per row.

    Args:
        value: the user's value; None yields nothing.
        n: the number of rows.
        name: the argument's name, for errors.
        one: the type of one row's value: `str` for a list of names, or `Mapping`.

    Raises:
        ConstraintError: a list of another length or of other values.
    """
    if value is None:
        return
    items = list(value) if is_plural(value) else [value]
    if isinstance(value, Mapping) or (is_plural(value) and one is str and _all(str, items)):
        yield slice(None), value if isinstance(value, Mapping) else items
        return
    given = [item for item in items if item is not None]
    valid = _all(Mapping, given) if one is Mapping else all(is_plural(item) for item in given)
    if len(items) != n or not valid:
        what = "a list of names" if one is str else "a mapping"
        raise ConstraintError(
            f"{name}: expected {what} for all rows, or a list of {n}, one per row; got"
            f" {shown(value)}"
        )
    for i, item in enumerate(items):
        if item is not None:
            yield [i], item


def is_plural(value: Any) -> bool:
    """Whether a value is iterable, and neither a string nor a frame, which iterates over names."""
    return isinstance(value, Iterable) and not isinstance(value, str | pd.DataFrame)


def interval(feature: Feature, pair: Any, n: int) -> tuple[Tensor, Tensor]:
    """The ends of a range, () or (n,) double each.

    Raises:
        ConstraintError: not a range of this feature.
    """
    where = f"{argument('ranges')}[{feature.name!r}]"
    if "ranges" not in feature.limited_by:
        raise ConstraintError(f"{where}: it has categories; use categories= instead")
    if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ConstraintError(f"{where}: expected (low, high), got {shown(pair)}")
    ends = [feature.place(end) for end in pair]
    low = _numbers(where, -math.inf if ends[0] is None else ends[0])
    high = _numbers(where, math.inf if ends[1] is None else ends[1])
    if any(end.shape not in ((), (n,)) for end in (low, high)):
        raise ConstraintError(
            f"{where}: an end is a number, or {n}, one per row; got {shown(pair)}"
        )
    if not np.all(low <= high):
        raise ConstraintError(f"{where}: low must not exceed high, got {shown(pair)}")
    return torch.tensor(low), torch.tensor(high)  # copies: frames may be read-only


def costs_of(name: str, given: Any, n: int) -> Tensor:
    """What a unit of a feature costs, () or (n,) double.

    Raises:
        ConstraintError: neither a number above 0, nor one per row.
    """
    where, values = f"{argument('costs')}[{name!r}]", np.asarray(given, dtype=object)
    if values.shape not in ((), (n,)):
        got = shown(given)
        raise ConstraintError(f"{where}: expected a number, or {n}, one per row; got {got}")
    try:
        numbers = [COST(where, value) for value in values.reshape(-1)]
    except SettingError as error:
        raise ConstraintError(str(error)) from None
    return torch.tensor(numbers, dtype=torch.float64).reshape(values.shape)


def _numbers(where: str, end: Any) -> Any:
    """An end of a range as an array."""
    try:
        return np.asarray(end, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConstraintError(
            f"{where}: an end is a number, or one per row, or None where it is open; got"
            f" {shown(end)}"
        ) from error


def codes_of(feature: Feature, levels: Any) -> list[int]:
    """The positions of allowed categories.

    Raises:
        ConstraintError: not categories of this feature.
    """
    where = f"{argument('categories')}[{feature.name!r}]"
    if "categories" not in feature.limited_by:
        raise ConstraintError(f"{where}: it is numeric; use ranges= instead")
    known = feature.choices
    values = list(levels) if is_plural(levels) else [levels]
    missing = [c for c in values if c not in known]
    if missing:
        raise ConstraintError(f"{where}: {unknown('values', missing, known)}")
    if not values:
        raise ConstraintError(f"{where}: expected at least one of {list(known)}, got []")
    codes = sorted(known.index(c) for c in values)
    if absent := [c for c in feature.ranked[codes[0] : codes[-1]] if c not in values]:
        raise ConstraintError(
            f"{where}: it has an order, so allowed levels are neighbours; got {values}, without"
            f" {absent}"
        )
    return codes


def _all(kind: type, items: Iterable[Any]) -> bool:
    return all(isinstance(item, kind) for item in items)
