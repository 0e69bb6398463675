"""Stated: what a user says of the columns of a frame in; features that hold it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dear_plugin.data import ordered
from dear_plugin.data.feature import Feature, Kind, with_infinity
from dear_plugin.errors import SchemaError, unknown

Marks = Mapping[str, tuple[str, ...]]


def named(given: Mapping[str, Any], names: Sequence[str]) -> Marks:
    """The features that each argument names.

    Args:
        given: the arguments of `Schema.infer` that name features.
        names: the features of the frame.

    Raises:
        SchemaError: names that are no features, labels or units that are no text; all at once.
    """
    marks = {what: _names(what, some) for what, some in given.items()}
    absent = {k: [n for n in v if n not in names] for k, v in marks.items()}
    wrong = [f"{k}: {unknown('features', v, names)}" for k, v in absent.items() if v]
    wrong += [text for k in ("labels", "units") for text in _not_text(k, given[k])]
    if wrong:
        raise SchemaError("; ".join(wrong))
    return marks


def marked(features: Iterable[Feature], given: Mapping[str, Any], marks: Marks) -> list[Feature]:
    """Features with what is stated of them.

    Args:
        features: as their columns have them.
        given: see `named`.
        marks: its result.

    Raises:
        SchemaError: a feature that may only increase and only decrease, or a range of categories.
    """
    up, down = set(marks["increasing"]), set(marks["decreasing"])
    if up & down:
        raise SchemaError(f"both increasing and decreasing: {sorted(up & down)}")
    ranges, labels, units = (given[k] or {} for k in ("ranges", "labels", "units"))
    return [
        dataclasses.replace(
            f,
            immutable=f.immutable or f.name in marks["immutable"],
            direction=int(f.name in up) - int(f.name in down),
            limits=_limits_of(f, ranges.get(f.name)),
            label=labels.get(f.name, ""),
            unit=units.get(f.name, ""),
        )
        for f in features
    ]


def _names(what: str, names: Iterable[str] | None) -> tuple[str, ...]:
    if isinstance(names, str):
        raise SchemaError(f"{what} must be a list of features, got {names!r}")
    return tuple(names or ())


def _not_text(what: str, texts: Any) -> list[str]:
    """What is wrong with labels or units."""
    if not isinstance(texts or {}, Mapping):
        return [f"{what} must be {{feature: text}}, got {texts!r}"]
    wrong = {name: text for name, text in (texts or {}).items() if not isinstance(text, str)}
    return [f"{what}[{name!r}] must be a text, got {text!r}" for name, text in wrong.items()]


def _limits_of(
    feature: Feature, pair: tuple[float | None, float | None] | None
) -> tuple[float, float] | None:
    """The range that restricts a number, with None as an open end; None where none is given."""
    if pair is None:
        return None
    if feature.kind is not Kind.NUMERIC:
        raise SchemaError(f"ranges[{feature.name!r}]: expected a numeric feature, got categories")
    low, high = map(float, with_infinity(*(ordered.place(feature, end) for end in pair)))
    if not low <= high:
        raise SchemaError(f"ranges[{feature.name!r}] = {pair}: low must not exceed high")
    return low, high
