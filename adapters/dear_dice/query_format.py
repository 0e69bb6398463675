"""Query format: the values and dtypes of one query, and the dtypes that its model takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class QueryFormat:
    """The dtypes of one query.

    DiCE turns every category into text, but a query, and the model trained on such rows, may hold
    integers, booleans or a pandas category. A row of a web service has lost such dtypes.

    Attributes:
        dtypes: the dtype of every feature.
        levels: for categories that are not plain text, the query's own value for each text.
        numbers: numeric features stored in a column of text or objects.
        cast: the dtypes that the model takes in the place of the query's own.
    """

    dtypes: Mapping[str, Any]
    levels: Mapping[str, Mapping[str, Any]]
    numbers: Sequence[str]
    cast: Mapping[str, Any]

    @classmethod
    def of(cls, query: pd.DataFrame, training: Mapping[str, Any]) -> QueryFormat:
        """The format of a query of the features, given the training dtypes of the categories."""
        levels = {n: _own_values(query[n], dtype.categories) for n, dtype in training.items()}
        dtypes = {str(name): dtype for name, dtype in query.dtypes.items()}
        text = [name for name, dtype in dtypes.items() if pd.api.types.is_string_dtype(dtype)]
        # A pandas category is that of the training rows: a model may use its codes.
        kept = {n: _category(training[n], levels[n]) for n in training if _is_category(dtypes[n])}
        return cls(
            dtypes,
            {name: own for name, own in levels.items() if own},
            [name for name in text if name not in training],
            {name: dtype for name, dtype in kept.items() if dtype != dtypes[name]},
        )

    def others(self, query: pd.DataFrame, training: Mapping[str, Any]) -> Iterator[QueryFormat]:
        """The formats of a query that a model may take which does not take its own dtypes.

        Objects that are no text have their own dtype; then text, or every category, is a pandas
        category besides; last, every category is an object.
        """
        text = [name for name in training if pd.api.types.is_string_dtype(self.dtypes[name])]
        typed = {name: query[name].astype(object).infer_objects().dtype for name in text}
        for names in ((), [n for n in training if n not in self.levels], list(training)):
            new = {n: _category(training[n], self.levels.get(n, {})) for n in names}
            yield replace(self, cast={**self.cast, **typed, **new})
        yield replace(self, cast={**self.cast, **dict.fromkeys(training, object)})

    def read(self, query: pd.DataFrame) -> pd.DataFrame:
        """A query as the data interface writes it."""
        texts = {n: query[n].astype(object).map(str, na_action="ignore") for n in self.levels}
        texts = {n: t.astype(object) for n, t in texts.items()}
        numbers = {name: pd.to_numeric(query[name]) for name in self.numbers}
        return query.assign(**texts, **numbers)

    def write(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The inverse: features in the query's own values and dtypes."""
        columns = {name: self._column(frame[name]) for name in self.dtypes}
        return pd.DataFrame(columns, index=frame.index, copy=False)

    def for_model(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Features in the query's own values and dtypes as the model takes them."""
        if not (self.cast or self.numbers):
            return frame
        numbers = {name: pd.to_numeric(frame[name]) for name in self.numbers}
        return frame.assign(**numbers).astype(dict(self.cast))

    def _column(self, column: pd.Series) -> Any:
        dtype, levels = self.dtypes[str(column.name)], self.levels.get(str(column.name))
        cells = column.to_numpy()
        # Much faster than Series.map, for the few rows of most calls.
        values = cells if levels is None else [levels.get(cell, cell) for cell in cells.tolist()]
        if _is_category(dtype):
            # Levels that the query's dtype lacks are added.
            seen = pd.Index(pd.Series(values).dropna().unique())
            new = seen.difference(dtype.categories, sort=False)
            known = dtype.categories.append(new) if len(new) else dtype.categories
            return pd.Categorical(values, dtype=pd.CategoricalDtype(known, dtype.ordered))
        if isinstance(dtype, np.dtype):
            # A frame of an array of objects would have pandas' own dtype of text from pandas 3 on.
            return pd.Series(np.asarray(values, dtype=dtype), column.index, dtype=dtype)
        return pd.array(values, dtype=dtype)


def _own_values(column: pd.Series, levels: Iterable[str]) -> dict[str, Any]:
    """The column's value for each level's text; empty where that is the text itself."""
    category = _is_category(column.dtype)
    values = list(column.cat.categories if category else column.dropna().unique())
    if not category and all(isinstance(v, str) for v in values):
        return {}
    own = {str(v): v for v in values}
    return {level: own.get(level, _like(values[0], level)) for level in levels} | own


def _like(sample: Any, level: str) -> Any:
    """A level's text as a value of the sample's type."""
    if isinstance(sample, bool | np.bool_):
        return level == "True"
    try:
        return type(sample)(level)
    except (TypeError, ValueError):
        return level


def _category(training: Any, own: Mapping[str, Any]) -> Any:
    """The training dtype of text, with its order of levels, for a query's own values."""
    return pd.CategoricalDtype(
        [own.get(text, text) for text in training.categories], training.ordered
    )


def _is_category(dtype: Any) -> bool:
    return isinstance(dtype, pd.CategoricalDtype)
