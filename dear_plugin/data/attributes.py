"""Attributes: what each attribute of a feature may be; values in, plain values or an error out."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from enum import StrEnum
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin._validation.settings import Rule, boolean, number, one_of, optional
from dear_plugin.errors import SettingError, shown


class Kind(StrEnum):
    """The kind of a feature, which determines its encoded columns.

    Example:
        >>> from dear_plugin import Kind, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> schema = Schema.infer(load_loan(200).frame, target="approved", immutable=["gender"])
        >>> [feature.name for feature in schema if feature.kind is Kind.BINARY]
        ['gender']
    """

    NUMERIC = "numeric"
    BINARY = "binary"
    CATEGORICAL = "categorical"


# The largest precision, in absolute value: 10**99 and 10**-99 are finite, nonzero floats.
MOST_DECIMALS = 99


def converted(expected: str, convert: Callable[[Any], Any]) -> Rule:
    """A rule that converts a value; `expected` describes valid values in the error."""

    def _rule(name: str, value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError, ImportError) as error:
            raise SettingError(f"{name} must be {expected}, got {shown(value)}") from error

    return _rule


def _positive(value: Any) -> float:
    """A number above 0, of which sums are finite in single precision."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1e30:
        raise ValueError
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, value))


def _whole(most: int) -> Callable[[Any], int]:
    """An integer of at most this absolute value."""

    def _convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral) or abs(int(value)) > most:
            raise ValueError
        return int(value)

    return _convert


def _pair(value: Any) -> tuple[float, float]:
    """Two numbers (low, high), low <= high."""
    low, high = value
    if isinstance(low, Real) and isinstance(high, Real) and low <= high:
        return float(low), float(high)
    raise ValueError


def _finite(value: Any) -> tuple[float, float]:
    pair = _pair(value)
    if all(map(math.isfinite, pair)):
        return pair
    raise ValueError


def _labels(value: Any) -> tuple[Hashable, ...]:
    """Distinct categories that JSON can hold; None is the missing level."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError
    labels = tuple(c.item() if isinstance(c, np.generic) else c for c in value)
    unsupported = any(not isinstance(c, str | int | float | None) for c in labels)
    if unsupported or len(set(labels)) < len(labels):
        raise TypeError
    if not all(c is None or isinstance(c, str | int) or math.isfinite(c) for c in labels):
        raise ValueError
    return labels


def _codes(value: Any) -> tuple[float, ...]:
    """Distinct finite numbers."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        raise TypeError
    codes = tuple(float(v) for v in value)
    if len(set(codes)) < len(codes) or not all(map(math.isfinite, codes)):
        raise ValueError
    return codes


def _dtype(value: Any) -> str:
    if isinstance(pd.api.types.pandas_dtype(_text(value)), pd.SparseDtype):
        raise TypeError
    return str(value)


def with_infinity(low: float | None, high: float | None) -> tuple[float, float]:
    """A range with None as infinity."""
    return -math.inf if low is None else low, math.inf if high is None else high


LABELS = converted("a tuple of distinct strings and finite numbers", _labels)
CODES = converted("a tuple of distinct finite numbers", _codes)
COST = converted("a finite number above 0 (and below 1e30)", _positive)
ENDS = converted("two finite numbers (low, high), low <= high", _finite)
RULES: dict[str, Rule] = {
    "name": converted("a string", _text),
    "kind": converted(f"one of {[str(kind) for kind in Kind]}", Kind),
    "bounds": ENDS,
    "categories": LABELS,
    "precision": optional(converted("a number of decimals, or None", _whole(MOST_DECIMALS))),
    "dtype": converted("the name of a pandas dtype that is not sparse", _dtype),
    "immutable": boolean,
    "direction": converted("-1, 0 or 1", _whole(1)),
    "limits": optional(converted("None or two numbers (low, high), low <= high", _pair)),
    "levels": LABELS,
    "stored": LABELS,
    "ordered": boolean,
    "special": LABELS,
    "excluded": LABELS,
    "observed": CODES,
    "missing": one_of("", "nan", "none"),
    "enter_special": boolean,
    "leave_special": boolean,
    "actionable": boolean,
    "identifier": boolean,
    "label": converted("a text", _text),
    "level_labels": converted("a tuple of texts", _texts),
    "unit": converted("a text", _text),
    "central": optional(ENDS),
    "scale": number(),
    "step": optional(number()),
    "cost": COST,
    "cyclic": boolean,
}
