"""Alibi's arguments as targets and constraints of the engine."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from alibi.explainers import CounterfactualRLTabular
from alibi.explainers.cfrl_base import DEFAULT_BASE_PARAMS

from dear_alibi.table import Array
from dear_plugin import Constraints, Feature, Schema, errors, per_row

Ranges = Mapping[str, Sequence[float]]
Condition = Mapping[str, Sequence[Any]]

logger = logging.getLogger("dear_alibi")

UNBOUNDED = (-math.inf, math.inf)


def check_ignored(call: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Log given arguments of `CounterfactualRLTabular`'s call, and refuse those unknown to it."""
    both = call, getattr(CounterfactualRLTabular, call.__name__)
    known = [name for each in both for name in inspect.signature(each).parameters]
    known = [n for n in [*known, *DEFAULT_BASE_PARAMS] if n not in ("self", "of_others", "kwargs")]
    errors.check_arguments(given, known)
    if given:
        names = ", ".join(given)
        logger.warning("DEAR ignores %s: only CounterfactualRLTabular uses them", names)


def targets_of(Y_t: Any, classes: Array, count: int, index: pd.Index) -> Array:
    """The wanted class of n rows, (n, 1) int64; None is the other one of two classes.

    Args:
        Y_t: one class or one per row: an int, a list, a Series, or an array (1,), (n,), (1, 1) or
            (n, 1).
        classes: (n, 1) the predicted ones.
        count: the number of the predictor's classes.
        index: (n,) that of the rows.
    """
    if Y_t is None and count > 2:
        raise errors.TargetError(
            f"Y_t=None means the other one of two classes; the predictor has {count}: give Y_t"
        )
    given = np.where(classes == 0, 1, 0) if Y_t is None else Y_t
    given = np.asarray(given)[:, 0] if np.shape(given)[1:] == (1,) else given
    given = np.asarray(given).item() if np.size(given) == 1 else given

    def one(value: Any) -> bool:
        return not np.ndim(value) and type(value) not in (bool, np.bool_) and value in range(count)

    what = f"one of the predictor's classes 0 ... {count - 1}"
    found = per_row(given, index, "Y_t", one, what, errors.TargetError)
    return np.broadcast_to(np.array(found, dtype=np.int64)[:, None], classes.shape)


def ranges_of(declared: Schema, ranges: Ranges | None) -> dict[str, tuple[float, float]]:
    """Alibi's ranges, `{feature: (low, high)}`, fractions of training widths, validated."""
    given = _of(declared, ranges or {}, "ranges")
    if wrong := [f.name for f, _ in given if f.name not in declared.numbers]:
        raise errors.ConstraintError(
            f"ranges: {wrong[0]!r} has categories; use C or immutable_features"
        )
    return {f.name: _pair(f, v, "ranges", 1.0) for f, v in given}


def constraints_of(
    declared: Schema,
    schema: Schema,
    frame: pd.DataFrame,
    *,
    ranges: Mapping[str, tuple[float, float]],
    C: Sequence[Condition] | None,
    index: pd.Index,
) -> Constraints:
    """The engine's constraints of a call.

    Args:
        declared: the features.
        schema: that of the training rows.
        frame: n rows.
        ranges: see `ranges_of`.
        C: Alibi's conditions: one of all rows, or one of each.
        index: (n,) that of the rows as they were given.
    """
    if isinstance(C, str | Mapping):
        raise errors.ConstraintError(f"C must be a list of dicts, got {errors.shown(C)}")
    given: Any = {} if C is None or not len(C) else C
    given = next(iter(given)) if len(given) == 1 else given
    every = per_row(
        given, index, "C", lambda c: isinstance(c, Mapping), "a dict of features in a list"
    )
    rows = [{f.name: _condition(f, v) for f, v in _of(declared, c, "C")} for c in every]
    # Fractions of -1, 0 and 1 are directions, which the schema has, and no limits.
    limited = {name for name, ends in ranges.items() if not {*ends} <= {-1.0, 0.0, 1.0}}
    bounded = {*limited, *(name for c in rows for name in c)}
    fixed = [[name for name in c if not c[name]] for c in rows]
    levels = [{n: c[n] for n in c if n not in schema.numbers and c[n]} or None for c in rows]
    numbers = {name: f for name, f in schema.numbers.items() if name in bounded}
    ends = {n: _interval(f, frame[n].to_numpy(float), ranges, rows) for n, f in numbers.items()}
    by_row: list[Any] = [each if len(rows) > 1 else each[0] for each in (fixed, levels)]
    return Constraints(frozen=by_row[0], ranges=ends, categories=by_row[1])


def _interval(
    feature: Feature, x: Array, ranges: Mapping[str, tuple[float, float]], rows: Sequence[Any]
) -> tuple[Array, Array]:
    """The least and greatest value of a number in each row, (n,), given its own, (n,)."""
    low, high = ranges.get(feature.name, UNBOUNDED)
    changes = np.array([c.get(feature.name, UNBOUNDED) for c in rows], dtype=float)
    least = np.maximum(changes[:, 0], low * feature.width)
    return x + least, x + np.minimum(changes[:, 1], high * feature.width)


def _of(declared: Schema, given: Any, where: str) -> list[tuple[Feature, Any]]:
    """The features that a dict names, with its values."""
    if not isinstance(given, Mapping):
        raise errors.ConstraintError(
            f"{where}: expected a dict of features, got {errors.shown(given)}"
        )
    at = declared.index(given, where, errors.ConstraintError)
    return [(declared.features[j], given[declared.names[j]]) for j in at]


def _condition(feature: Feature, value: Any) -> Sequence[Any]:
    if feature.has_order:
        return _pair(feature, value, "C", math.inf)
    return [value] if isinstance(value, str) else [str(v) for v in value]


def _pair(feature: Feature, value: Any, argument: str, most: float) -> tuple[float, float]:
    """An interval of changes with low <= 0 <= high, both at most `most` in size."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (-most <= low <= 0.0 <= high <= most and math.isfinite(high - low)):
        ends = "[-1, 0] and [0, 1]" if math.isfinite(most) else "numbers <= 0 and >= 0"
        raise errors.ConstraintError(
            f"{argument}: {feature.name!r} needs a change [low, high] with ends in {ends};"
            f" got {value!r}"
        )
    return low, high
