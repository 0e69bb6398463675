"""Dialect: how a query writes its values, where DiCE's data interface writes text and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin import Kind, Schema


@dataclass(frozen=True)
class QueryFormat:
    """The dtypes of one query.

    DiCE turns every category into text, but a query may hold 0 and 1, booleans or a pandas
    category, and so does the model that was trained on such rows.

    Attributes:
        dtypes: the dtype of every feature.
        levels: for categories that are not plain text, the query's own value for each text.
        numbers: numeric features that stand in a column of text or objects.
    """

    dtypes: Mapping[str, Any]
    levels: Mapping[str, Mapping[str, Any]]
    numbers: Sequence[str]

    @classmethod
    def of(cls, query: pd.DataFrame, schema: Schema) -> QueryFormat:
        """The dialect of a query that has the schema's features."""
        words = {f.name: f.categories for f in schema if f.kind is not Kind.NUMERIC}
        own = {name: _own(query[name], levels) for name, levels in words.items()}
        dtypes = {name: query[name].dtype for name in schema.names}
        return cls(
            dtypes,
            {name: levels for name, levels in own.items() if levels},
            [n for n, t in dtypes.items() if n not in words and pd.api.types.is_string_dtype(t)],
        )

    def read(self, query: pd.DataFrame) -> pd.DataFrame:
        """A query as the data interface writes it."""
        words = {name: query[name].astype(object).map(str) for name in self.levels}
        numbers = {name: pd.to_numeric(query[name]) for name in self.numbers}
        return query.assign(**words, **numbers)

    def write(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Features as the data interface writes them, in the query's own values and dtypes."""
        return pd.DataFrame({name: self._column(frame[name]) for name in self.dtypes})

    def _column(self, column: pd.Series) -> pd.Series:
        dtype, levels = self.dtypes[str(column.name)], self.levels.get(str(column.name))
        values = column if levels is None else column.map(levels)
        if isinstance(dtype, pd.CategoricalDtype):
            return _category(values, dtype)
        return values if values.dtype == dtype else values.astype(dtype)


def _own(column: pd.Series, levels: tuple[Any, ...]) -> dict[str, Any]:
    """The value that stands for each level's text; empty where that is the text itself."""
    category = isinstance(column.dtype, pd.CategoricalDtype)
    values = list(column.cat.categories if category else column.unique())
    if not category and all(isinstance(v, str) for v in values):
        return {}
    own = {str(v): v for v in values}
    return {level: own.get(level, _alike(values[0], level)) for level in levels} | own


def _alike(sample: Any, level: str) -> Any:
    """A level's text as a value of the kind that the column has."""
    if isinstance(sample, bool | np.bool_):
        return level == "True"
    try:
        return type(sample)(level)
    except (TypeError, ValueError):
        return level


def _category(values: pd.Series, dtype: pd.CategoricalDtype) -> pd.Series:
    """The values as a pandas category, with levels that the query's dtype did not know added."""
    fresh = pd.Index(values.unique()).difference(dtype.categories, sort=False)
    known = dtype.categories.append(fresh) if len(fresh) else dtype.categories
    return values.astype(pd.CategoricalDtype(known, ordered=dtype.ordered))
