"""Curve: all values of a feature of one row in; the scores that follow out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.schema import Feature, Schema
from dear_plugin.errors import InputError
from dear_plugin.problem.constraints import Constraints
from dear_plugin.results.recourses import Recourses

# The values of a number in a curve.
POINTS = 33
CURVES = ("with_what_follows", "all_else_frozen")


def curve_of(
    apply: Callable[..., Recourses],
    row: pd.DataFrame,
    *,
    feature: str,
    schema: Schema,
    actions: Mapping[str, Any] | None,
    within: Constraints | None,
) -> pd.DataFrame:
    """The scores of a row over the values of a feature, see `DEAR.curve`.

    Args:
        apply: what follows from actions, as `DEAR.apply`.
        row: a frame of one row.
        feature: what takes all of its values.
        schema: the features.
        actions: of other features.
        within: the constraints.
    """
    if len(row) != 1:
        raise InputError(f"curve: expected a frame of one row, got {len(row)}")
    (j,) = schema.index([feature])
    own, values = schema.labelled(row)[feature].iloc[0], _values(schema.features[j])
    if not pd.isna(own) and own not in values:
        values = sorted([*values, own])
    frame = pd.concat([row] * len(values), ignore_index=True)
    table = pd.DataFrame({**(actions or {}), feature: values}, index=frame.index)
    still = [name for name in schema.names if name not in table]
    out = pd.DataFrame({"value": values})
    alone = replace(within or Constraints(), frozen=still)
    for name, limits in zip(CURVES, (within, alone), strict=True):
        result = apply(frame, table, limits)
        known = result.acts.numpy() | np.array([value == own for value in values])
        out[name] = result.outcome["score_after"].where(known)
    return out


def _values(feature: Feature) -> list[Any]:
    """The values of a feature in a curve: all levels, or a grid over the range of a number."""
    if not feature.holds_numbers:
        return feature.answers
    if feature.observed:
        return list(feature.observed)
    (low, high), (first, last) = feature.bounds, feature.limits or feature.bounds
    grid = np.linspace(max(low, first), min(high, last), POINTS)
    places = feature.precision
    values: list[Any] = (grid if places is None else np.unique(grid.round(places))).tolist()
    return values
