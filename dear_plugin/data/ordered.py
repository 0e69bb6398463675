"""Ordered: categories with an order as numbers, the places of their levels; columns in and out.

They are columns of `pd.Categorical(..., ordered=True)`, or what `Schema.infer(ordered=)` states. A
row has the place of a level among all, 0, 1, 2, ...; so a step costs its share of the range,
`increasing=` and ranges hold, and what follows keeps its rank. Only cells and texts are labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature, Kind
from dear_plugin.errors import SchemaError

Array = npt.NDArray[Any]

# The place of a label that is no level.
UNKNOWN = -1.0


def infer(
    column: pd.Series,
    name: str,
    levels: tuple[Hashable, ...],
    missing: Literal["", "nan", "none"],
) -> Feature:
    """The feature of a column, (n,), of labels among some levels, the least first."""
    seen = np.unique(_places(levels, column[column.notna()]))
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 0.0)
    return Feature(
        name,
        Kind.NUMERIC,
        (low, high),
        precision=0,
        dtype=str(column.dtype),
        immutable=low == high,
        levels=levels,
        ordered=True,
        observed=tuple(seen.tolist()) if len(seen) < high - low + 1.0 else (),
        missing=missing,
    )


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


def places(feature: Feature, column: pd.Series) -> Array:
    """(n,) the places of labels, NaN where one is missing, `UNKNOWN` where it is no level."""
    out = _places(feature.levels, column)
    out[column.isna().to_numpy()] = np.nan
    return out


def place(feature: Feature, label: Any) -> Any:
    """The place of a level; anything else, such as a number or None, as it is."""
    known = isinstance(label, Hashable) and label in feature.levels
    return float(feature.levels.index(label)) if known else label


def rises(feature: Feature, old: Any, new: Any) -> bool | None:
    """Whether a change of levels rises; None where they have no order."""
    known = feature.levels if feature.kind is Kind.NUMERIC else ()
    ends = [known.index(label) for label in (old, new) if label in known]
    return ends[1] > ends[0] if len(ends) > 1 else None


def labels(feature: Feature, values: Array) -> Array:
    """Places of any shape as labels, an object array; NaN is a missing one, as observed."""
    levels = np.empty(len(feature.levels) + 1, dtype=object)
    levels[:-1], levels[-1] = feature.levels, None if feature.missing == "none" else np.nan
    return levels[codes(values)]


def codes(values: Array) -> npt.NDArray[np.int64]:
    """Places of any shape as codes of a category column, -1 where one is missing."""
    return np.where(np.isnan(values), -1, np.round(values)).astype(np.int64)


def _places(levels: Sequence[Hashable], column: pd.Series) -> Array:
    """(n,) the places of labels, `UNKNOWN` for others."""
    known = {level: float(i) for i, level in enumerate(levels)}
    return np.array([known.get(cell, UNKNOWN) for cell in column.astype(object)], dtype=float)
