"""Aliases: other frames of the same table in; the schema by which they are read and written out.

A host may write 1, 1.0 or True where the training rows have "1" or "True". Row values are the
same, so that what was fitted holds for such frames, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.data.relations import Lookup, Relation


def renamed(
    relation: Relation | Lookup, labels: Mapping[str, Mapping[Any, Any]]
) -> Relation | Lookup:
    """A relation with other labels, `{feature: {label: another}}`."""
    if isinstance(relation, Relation):
        return relation
    y, x = (labels[name] for name in relation.members)
    return replace(relation, table=tuple((x.get(a, a), y.get(b, b)) for a, b in relation.table))


def as_written(feature: Feature, column: pd.Series) -> Feature:
    """A column of training rows, whose labels are text, with those and the dtype of another one.

    A category column keeps the order of its levels in training.
    """
    dtype = "category" if isinstance(column.dtype, pd.CategoricalDtype) else str(column.dtype)
    if not feature.choices:
        # What the training rows have, whole numbers need not hold.
        whole = feature.precision is not None and feature.precision <= 0
        fits = column.dtype.kind == "f" or (column.dtype.kind in "iu" and whole)
        return replace(feature, dtype=dtype if fits else "float64")
    own = _own_labels(column, feature.dtype_levels)
    labels: dict[str, Any] = {
        name: tuple(own.get(label, label) for label in getattr(feature, name))
        for name in ("categories", "levels", "stored", "special", "excluded")
    }
    if dtype == "category" and not labels["levels"]:
        labels["levels"] = tuple(label for label in labels["categories"] if label is not None)
    return replace(feature, dtype=dtype, **labels)


def _own_labels(column: pd.Series, labels: Iterable[Any]) -> Mapping[Any, Any]:
    """The column's own value for the text of each label; empty where that is the text itself."""
    category = isinstance(column.dtype, pd.CategoricalDtype)
    values = list(column.cat.categories if category else column.dropna().unique())
    if all(isinstance(value, str) for value in values):
        return {}
    own = {str(value): value for value in values}
    return {t: own.get(t, _like(values[0], t)) for t in labels if isinstance(t, str)}


def _like(sample: Any, label: str) -> Any:
    """A label's text as a value of the sample's type."""
    if isinstance(sample, bool | np.bool_):
        return label == "True"
    try:
        return type(sample)(label)
    except (TypeError, ValueError):
        return label
