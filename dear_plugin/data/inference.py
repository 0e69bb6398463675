"""Inference: the features of a training frame, with what a user says of its columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data import identifiers
from dear_plugin.data.attributes import with_infinity
from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds import dummies
from dear_plugin.data.kinds import levels as in_order
from dear_plugin.data.kinds.cyclic import Cyclic
from dear_plugin.data.kinds.labels import Labels
from dear_plugin.data.kinds.levels import Levels
from dear_plugin.data.kinds.number import Number
from dear_plugin.data.kinds.remedies import as_numbers, complaint, line
from dear_plugin.data.lint import inspect, warn_of_names
from dear_plugin.errors import SchemaError, argument, shown, unknown

Marks = Mapping[str, tuple[str, ...]]
# In the order in which they are tried for a training column.
KINDS: tuple[type[Feature], ...] = (Levels, Labels, Number)
# What makes a frame of something else.
FRAMES: dict[type, str] = {
    pd.Series: "a row is rows.loc[[label]], with two brackets",
    dict: "a row is pd.DataFrame([row])",
    list: "rows are pd.DataFrame(rows)",
    np.ndarray: "pass pd.DataFrame(array, columns=names)",
}
# The arguments of `Schema.infer` that are {feature: value}; others of features are lists.
MAPPINGS = (
    *("ranges", "special", "ordered", "excluded", "units", "labels", "costs", "steps"),
    "cyclic",
)
# Those that may also name a feature of several columns.
OF_WHOLE = ("immutable", "labels", "costs", "excluded")
# What each of them says of a feature, where that is several values.
SEVERAL = {
    "ranges": "(low, high)",
    "special": "a list of values",
    "ordered": "a list of levels, the least first",
    "excluded": "a list of levels",
}


def misfit(frame: Any) -> str:
    """What keeps anything from being read as a frame; "" for nothing."""
    if not isinstance(frame, pd.DataFrame):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__qualname__}"
        got = f"expected a pandas DataFrame, got {kind.removeprefix('builtins.')}"
        if fix := next((text for known, text in FRAMES.items() if isinstance(frame, known)), ""):
            return f"{got}: {fix}"
        if hasattr(frame, "to_pandas"):
            return f"{got}: pass frame.to_pandas()"
        interchange = "pandas.api.interchange.from_dataframe(frame)"
        return f"{got}: pass {interchange}" if hasattr(frame, "__dataframe__") else got
    twice = frame.columns[frame.columns.duplicated()]
    if not len(twice):
        return ""
    return f"duplicate columns: {list(map(str, twice))}; rename or drop them"


def feature_names(frame: pd.DataFrame, target: str | None) -> list[str]:
    """The feature columns of a frame.

    Raises:
        SchemaError: no frame, no rows or columns, or columns without distinct names.
    """
    if complaint := misfit(frame):
        raise SchemaError(complaint)
    if not len(frame) or not len(frame.columns):
        raise SchemaError(f"expected a frame with rows and columns, got shape {frame.shape}")
    if target is not None and not isinstance(target, str):
        raise SchemaError(f"target must be the name of a column, got {shown(target)}")
    if target is not None and target not in frame.columns:
        raise SchemaError(unknown("target", [target], frame.columns))
    names = [n for n in frame.columns if n != target]
    others = [n for n in names if not isinstance(n, str)]
    if others:
        raise SchemaError(
            f"column names must be strings, got {others[:5]}: rename them with"
            " frame.columns = frame.columns.map(str)"
        )
    return names


def of_columns(
    given: Mapping[str, Any], names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that name features: what they say of columns, and of all else.

    Args:
        given: the arguments.
        names: the columns that are features.
    """
    own, others = dict(given), dict.fromkeys(given)
    for what in OF_WHOLE:
        some = None if isinstance(given[what], str) else given[what]
        if isinstance(some, Mapping):
            others[what] = {name: some[name] for name in some if name not in names}
            own[what] = {name: some[name] for name in some if name in names}
        elif some is not None:
            others[what] = [name for name in some if name not in names]
            own[what] = [name for name in some if name in names]
    try:
        _marks(own, names)
    except SchemaError:
        return dict(given), dict.fromkeys(given)  # so that the error names all
    return own, others


def with_stated(
    features: Sequence[Feature], given: Mapping[str, Any], names: Sequence[str]
) -> tuple[Feature, ...]:
    """Features with what a user says of those of several columns, by the names of these.

    Args:
        features: of all columns.
        given: what names no column, see `of_columns`.
        names: the columns.

    Raises:
        SchemaError: names of no feature, or what does not fit one.
    """
    marks = _marks(given, [*names, *(f.name for f in features if f.dummies)])
    named = {name for some in marks.values() for name in some}
    marked = (_marked(f, given, marks) if f.name in named else f for f in features)
    return tuple(dummies.restated(feature) for feature in marked)


def require_lists(**given: Any) -> None:
    """Raise an error where an argument that is given is no list."""
    for name, value in given.items():
        if value is not None and not isinstance(value, Iterable):
            raise SchemaError(f"{argument(name)} must be a list, got {shown(value)}")


def infer_features(
    frame: pd.DataFrame, names: Sequence[str], given: Mapping[str, Any], central: float
) -> list[Feature]:
    """The features of a frame's columns, (n, p), with what a user says of them.

    The log says what is suspicious.

    Args:
        frame: training rows.
        names: its feature columns.
        given: the arguments of `Schema.infer` that name features.
        central: the share of the values of a number that are central.

    Raises:
        SchemaError: names that are no features, unreadable columns, or what does not fit them.
    """
    if isinstance(central, bool) or not isinstance(central, Real) or not 0.0 < central <= 1.0:
        raise SchemaError(f"central must be a share above 0, at most 1, got {shown(central)}")
    marks = _marks(given, names)
    features, complaints = [], []
    for name in names:
        try:
            features.append(_infer(frame[name], name, given, marks))
        except SchemaError as error:
            complaints.append(str(error))
    if complaints:
        raise SchemaError("; ".join(complaints))
    inspected = inspect(frame, features, marks)
    measured = [feature.with_central(frame[feature.name], central) for feature in inspected]
    marked = [_marked(feature, given, marks) for feature in measured]
    warn_of_names(marked, marks["immutable"])
    return marked


def _marks(given: Mapping[str, Any], names: Sequence[str]) -> Marks:
    """The features that each argument names; all that is wrong with names and texts at once."""
    for name in MAPPINGS:
        if given[name] is not None and not isinstance(given[name], Mapping):
            raise SchemaError(f"{name} must be {{feature: ...}}, got {shown(given[name])}")
    marks = {what: _names(what, some) for what, some in given.items()}
    absent = {k: [n for n in v if n not in names] for k, v in marks.items()}
    where = ", ".join(argument(k) for k, v in absent.items() if v)
    every = dict.fromkeys(name for some in absent.values() for name in some)
    wrong = [f"{where}: {unknown('features', every, names)}"] if where else []
    wrong += [text for what in ("labels", "units") for text in _not_text(what, given[what])]
    wrong += [text for what in SEVERAL for text in _not_several(what, given[what])]
    if wrong:
        raise SchemaError("; ".join(wrong))
    contrary = ("categorical", "numeric"), ("identifiers", "numeric"), ("increasing", "decreasing")
    for one, other in (*contrary, ("cyclic", "numeric"), ("cyclic", "ordered")):
        if both := sorted({*marks[one]} & {*marks[other]}):
            raise SchemaError(f"both {one} and {other}: {both}")
    return marks


def _infer(column: pd.Series, name: str, given: Mapping[str, Any], marks: Marks) -> Feature:
    """The feature of a column, (n,), without the user's constraints on changes.

    Raises:
        SchemaError: a column of no kind.
    """
    if advice := complaint(name, column):
        raise SchemaError(advice)
    special, orders, amounts = given["special"] or {}, given["ordered"] or {}, marks["numeric"]
    codes = tuple(special.get(name, ())) if name in {*special, *amounts} else None
    if name in marks["cyclic"]:
        return Cyclic.stated(column, name, given["cyclic"][name], codes)
    as_category, order = name in marks["categorical"], orders.get(name)
    if order is None and codes is None and not as_category:
        order = in_order.of_ranges(column)
        # "t0037" of each row is no range, although "10 t" of many rows is.
        order = None if order and identifiers.evidence(column, name, False) else order
    ranked = in_order.stated(column, name, order)
    every = (kind.infer(ranked, codes, as_category) for kind in KINDS)
    feature = next(each for each in every if each is not None)
    if name in amounts and feature.categories:
        fix = line(name, as_numbers(column))
        raise SchemaError(f"numeric= names {name!r}: expected numbers, got categories: {fix}")
    return feature if order is None else in_order.as_stored(feature, column)


def _marked(feature: Feature, given: Mapping[str, Any], marks: Marks) -> Feature:
    """A feature with the user's constraints on changes, and its texts."""
    name = feature.name
    ranges, labels, units = (given[k] or {} for k in ("ranges", "labels", "units"))
    texts = _texts_of(labels.get(name, {}))
    if unnamed := [level for level in texts if level not in {"", *feature.choices}]:
        known = feature.choices or "categories (categorical= makes some of numbers)"
        raise SchemaError(f"labels[{name!r}]: expected levels among {known}, got {unnamed}")
    return dataclasses.replace(
        feature,
        immutable=feature.immutable or name in marks["immutable"],
        excluded=(*dict.fromkeys((*feature.excluded, *(given["excluded"] or {}).get(name, ()))),),
        direction=(name in marks["increasing"]) - (name in marks["decreasing"]),
        limits=_limits_of(feature, ranges.get(name)),
        label=texts.get("", feature.label),
        level_labels=tuple(texts.get(c, "") for c in feature.choices)
        if {*texts} - {""}
        else feature.level_labels,
        unit=units.get(name, ""),
        step=_step_of(feature, given["steps"] or {}),
        cost=(given["costs"] or {}).get(name, feature.cost),
    )


def _names(what: str, names: Iterable[str] | None) -> tuple[str, ...]:
    if isinstance(names, str):
        raise SchemaError(f"{argument(what)} must be a list of features, got {shown(names)}")
    return tuple(() if names is None else names)


def _texts_of(label: Any) -> Mapping[Any, Any]:
    """What texts call the levels of a feature, and itself, with the key ""."""
    return label if isinstance(label, Mapping) else {"": label}


def _not_text(what: str, texts: Mapping[str, Any] | None) -> list[str]:
    """What is wrong with labels or units."""
    expected = "a text or {level: text}" if what == "labels" else "a text"
    return [
        f"{what}[{name!r}] must be {expected}, got {shown(each)}"
        for name, each in (texts or {}).items()
        if not all(isinstance(text, str) for text in _texts_of(each).values())
    ]


def _not_several(what: str, values: Mapping[str, Any] | None) -> list[str]:
    """What is wrong with ranges, and lists of values."""
    return [
        f"{what}[{name!r}] must be {SEVERAL[what]}, got {shown(each)}"
        for name, each in (values or {}).items()
        if isinstance(each, str)
        or not isinstance(each, Iterable)
        or (what == "ranges" and len([*each]) != 2)
    ]


def _step_of(feature: Feature, steps: Mapping[str, float | None]) -> float | None:
    """The step that is stated of a number; None where none is, 0 for any value."""
    if feature.name not in steps:
        return None
    if feature.choices:
        raise SchemaError(f"steps[{feature.name!r}]: expected a numeric feature, got categories")
    return steps[feature.name] or 0.0


def _limits_of(
    feature: Feature, pair: tuple[float | None, float | None] | None
) -> tuple[float, float] | None:
    """The range that restricts a number, with None as an open end; None where none is given."""
    if pair is None:
        return None
    if "ranges" not in feature.limited_by:
        raise SchemaError(f"ranges[{feature.name!r}]: expected a numeric feature, got categories")
    ends = with_infinity(*(feature.place(end) for end in pair))
    if any(np.ndim(end) for end in ends):
        raise SchemaError(
            f"ranges[{feature.name!r}]: expected (low, high), the same for all rows; for limits of"
            " each row: generate(rows, within=Constraints(ranges=...))"
        )
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError):
        known = f"levels among {feature.ranked}" if feature.ranked else "numbers"
        expected = f"{known}, or None for an open end"
        raise SchemaError(
            f"ranges[{feature.name!r}]: expected {expected}; got {shown(pair)}"
        ) from None
    if not low <= high:
        raise SchemaError(f"ranges[{feature.name!r}] = {pair}: low must not exceed high")
    return low, high
