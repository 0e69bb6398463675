"""Values: the values of a feature before and after a change in, texts out."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import pandas as pd

from dear_plugin.data.schema import Feature

# Significant digits of numbers without a precision, the digits of a float64, and the size from
# which on numbers are written with an exponent.
DIGITS, MOST_DIGITS, LONGEST = 6, 17, 1e15
# Relative resolution of float32 columns.
RESOLUTION = 2.0**-22
# Significant digits of uncertain amounts.
UNCERTAIN_DIGITS = 3
MISSING = "missing"


def label(category: Any) -> str:
    """A category as text: the number 2.0 is "2"."""
    return number(category) if isinstance(category, float) else str(category)


def is_amount(feature: Feature, value: Any) -> bool:
    """Whether a value is a number, and neither a code nor missing."""
    return feature.holds_numbers and not pd.isna(value) and value not in feature.special


def unit_of(feature: Feature, value: Any) -> str:
    """The unit of a value: of 1 without a plural's "s"; of several words, as it is."""
    unit = feature.unit
    plural = unit.isalpha() and unit.islower() and unit.endswith("s") and not unit.endswith("ss")
    return unit[:-1] if plural and float(value) == 1.0 else unit


def ends(feature: Feature, old: Any, new: Any) -> tuple[str, str]:
    """The old and the new value as text, numbers with enough digits to show their difference."""
    if not (is_amount(feature, old) and is_amount(feature, new)):
        return one(feature, old), one(feature, new)
    before = after = ""
    for digits in range(DIGITS, MOST_DIGITS + 1):
        before = number(old, feature.precision, digits)
        after = _not_short(feature, old, new, digits)
        error = max(abs(float(before) - float(old)), abs(float(after) - float(new)))
        if error <= abs(float(new) - float(old)) / 10.0:
            break
    return before, after


def number(value: Any, places: int | None = None, digits: int = DIGITS) -> str:
    """A number as text: whole, with its decimals, or rounded; without trailing zeros.

    Args:
        value: the number.
        places: the decimals of its feature; None if it has no precision.
        digits: the significant digits of a number that does not have these decimals.
    """
    if isinstance(value, Integral):
        return str(int(value))
    exact = float(value)
    if exact.is_integer() and abs(exact) < LONGEST:
        return str(int(exact))
    if places is not None and _has_decimals(exact, places):
        return f"{round(exact, places):.15g}"
    return f"{exact:.{_digits(exact, digits)}g}"


def amount_of(feature: Feature, amount: float, start: float = 0.0) -> str:
    """The amount of a change, or what it leads to from a start, with three significant digits.

    Decimals that the feature does not have are left out.
    """
    amount, places = start + float(f"{amount:.{UNCERTAIN_DIGITS}g}"), feature.precision
    rounded = amount if places is None else round(amount, places)
    return number(rounded + 0.0, places, DIGITS if start else UNCERTAIN_DIGITS)


def _has_decimals(exact: float, places: int) -> bool:
    """Whether a number has no more than some decimals, up to the resolution of float32."""
    tolerance = min(RESOLUTION * abs(exact), 0.1 * 10.0**-places)
    return abs(exact - round(exact, places)) <= tolerance


def _digits(exact: float, digits: int) -> int:
    """The significant digits of a number: at least all those of its integer part, if not long."""
    return max(digits, len(str(int(abs(exact))))) if abs(exact) < LONGEST else digits


def one(feature: Feature, value: Any) -> str:
    """A single value as text; a row of a frame may hold the category 1 as 1.0."""
    if pd.isna(value):
        return MISSING
    if feature.holds_numbers:
        return number(value, feature.precision)
    known = next((each for each in feature.choices if each == value), value)
    return feature.called_level(known) or label(known)


def _not_short(feature: Feature, old: Any, new: Any, digits: int) -> str:
    """The new number, rounded away from the old one so that the action is not too small."""
    text, exact = number(new, feature.precision, digits), float(new)
    change = exact - float(old)
    tolerance = min(RESOLUTION * abs(exact), abs(change) / 100.0)
    if (exact - float(text)) * math.copysign(1.0, change) <= tolerance:
        return text
    unit = 10.0 ** (math.floor(math.log10(abs(exact))) + 1 - _digits(exact, digits))
    return number(float(text) + math.copysign(unit, change), feature.precision, digits)
