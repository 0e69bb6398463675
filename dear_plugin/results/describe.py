"""Wording: a change of features in plain words.

An indirect change is an association in the data, not a causal effect: the words say "expected".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dear_plugin.data.schema import Feature, Kind

ASSOCIATION = (
    "Indirect changes are associations in the data, not causal effects: they say what usually"
    " goes along with the action, not what the action brings about."
)

# Of a row in which nothing that was acted on has changed.
NO_ACTION = "no action is left once the row is rounded"

# Significant digits of numbers that have no decimals of their own, and where floats end.
DIGITS, MOST_DIGITS, LONGEST = 6, 17, 1e15
# A float32 says no more of a number.
RESOLUTION = 2.0**-22

# How the search begins its note on an answer that lacks something.
LACKING = "no credible action was found; the nearest has "
# The share of people who look as unusual, below which that is told.
ODD = 0.05
# Significant digits of what is uncertain.
UNCERTAIN_DIGITS = 3
PARTS = {0.25: "a quarter", 0.5: "half", 0.75: "three quarters", 1.0: "all"}

Change = tuple[Feature, Any, Any]


@dataclass(frozen=True)
class Expected:
    """What redraws of the decoder say of a feature that follows, where they do not agree.

    Attributes:
        low: how far a number moves at least, in user units.
        high: how far it moves at most.
        times: in how many redraws a category changes, and of how many; None of numbers.
    """

    low: float = 0.0
    high: float = 0.0
    times: tuple[int, int] | None = None


def sentence(
    direct: Sequence[Change],
    indirect: Sequence[Change],
    shares: Mapping[str, tuple[float, float]],
    expected: Mapping[str, Expected] | None = None,
) -> str:
    """What to do; what is then expected to move.

    Args:
        direct: features acted on, with their old and new value.
        indirect: features that move along, likewise.
        shares: categories that do not flip, with their expected probability before and after.
        expected: by name, what is uncertain of the features that move along.
    """
    action, known = join([_imperative(*change) for change in direct]), expected or {}
    parts = [
        f"{feature.name} {'' if i else 'is then expected '}"
        f"{_infinitive(feature, old, new, known.get(feature.name))}"
        for i, (feature, old, new) in enumerate(indirect)
    ]
    tilts = ", ".join(f"{k}: {a:.0%} -> {b:.0%}" for k, (a, b) in shares.items())
    follows = join(parts) or ("nothing else is expected to change" if tilts else "")
    tail = f"{follows} (expected shares: {tilts})" if tilts else follows
    return f"{action}; {tail}" if tail else action


def certainty(reliance: float, times: int, count: int) -> list[str]:
    """Whether the action is enough, and how sure that is, as sentences.

    Args:
        reliance: the least share of what is expected to follow with which the answer succeeds.
        times: under how many redraws of the decoder it succeeds.
        count: of how many.
    """
    enough = "This alone is enough."
    if reliance > 0.0:
        what = "all of it is needed" if reliance == 1.0 else f"{PARTS[reliance]} of it would do"
        enough = f"This counts on what is expected to follow ({what})."
    return [
        enough,
        f"With other people in the data it would still hold {times} times out of {count}.",
    ]


def nearest(words: str, more: Sequence[str], note: str, plausibility: float) -> str:
    """An answer that is not credible, which is said first.

    Args:
        words: what to do.
        more: how sure that is, in sentences.
        note: what the search noted of it; "" where it was not asked for a credible one.
        plausibility: the share of people in the data who look at least as unusual.
    """
    told = " ".join([f"{words}.", *more])
    if not note and plausibility < ODD:
        return f"Not credible: {told} {plausibility:.1%} of the people look at least as unusual."
    if not note:
        return f"Not credible: {told}"
    lack = note.removeprefix(LACKING)
    last = f"It has {lack}." if lack != note else f"It is {note}."
    return f"No credible action was found; the nearest: {told} {last}"


def join(parts: Sequence[str]) -> str:
    """Parts of a sentence as "a", "a and b", or "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def short_of(name: str, share: float, least: float) -> str:
    """What an answer has of something, and what was asked for.

    Args:
        name: of the criterion.
        share: how much of it there is, from 0 to 1; of reliance, how much is not relied on.
        least: how much was asked for.
    """
    if name == "reliance":
        return f"reliance {1.0 - share:.2g} (at most {1.0 - least:.2g} is asked for)"
    return f"{name} {share:.2g} ({least:.2g} is asked for)"


def unreached(alone: int, together: int, most: int) -> str:
    """What was tried without reaching the target.

    Args:
        alone: how many features may be acted on alone.
        together: how many given sets of several features may be acted on.
        most: how many of the features that may be acted on alone are tried together.
    """
    most = min(most, alone)
    of = f"of the {alone} actionable features"
    tried = [
        "the only actionable feature" if alone == 1 else f"a single one {of}",
        f"1 {'or' if most == 2 else 'to'} {most} {of}",
    ][most > 1 :][: min(alone, 1)]
    tried += [f"the {together} given groups" if together > 1 else "the given group"][:together]
    return f"no change of {' or of '.join(tried)} was found that reaches the target"


def number(value: Any, places: int | None = None, digits: int = DIGITS) -> str:
    """A number as a person writes it: whole, with its decimals, or rounded, without zeros behind.

    Args:
        value: the number.
        places: the decimals that its feature has, if it has a few.
        digits: how many significant digits are shown of one that has not.
    """
    if isinstance(value, Integral):
        return str(int(value))
    exact = float(value)
    if exact.is_integer() and abs(exact) < LONGEST:
        return str(int(exact))
    if places is not None and _has(exact, places):
        return f"{round(exact, places):.15g}"
    return f"{exact:.{_shown(exact, digits)}g}"


def _has(exact: float, places: int) -> bool:
    """Whether a number has so few decimals, but for what a float32 leaves open."""
    hair = min(RESOLUTION * abs(exact), 0.1 * 10.0**-places)
    return abs(exact - round(exact, places)) <= hair


def _shown(exact: float, digits: int) -> int:
    """How many digits a number is shown with: all those before the point of one not too long."""
    return max(digits, len(str(int(abs(exact))))) if abs(exact) < LONGEST else digits


def level(feature: Feature) -> str:
    """The name of a binary feature's second value: "marital-status = Married"."""
    return f"{feature.name} = {feature.categories[-1]}"


def _imperative(feature: Feature, old: Any, new: Any) -> str:
    if feature.kind is not Kind.NUMERIC:
        return f"change {feature.name} from {old} to {new}"
    verb = "raise" if new > old else "lower"
    return f"{verb} {feature.name} {_way(feature, old, new)}"


def _infinitive(feature: Feature, old: Any, new: Any, expected: Expected | None) -> str:
    if expected is not None and expected.times is not None:
        times, count = expected.times
        return f"to change from {old} to {new} ({times} times out of {count})"
    if feature.kind is not Kind.NUMERIC:
        return f"to change from {old} to {new}"
    spread = _spread(feature, expected) if expected is not None else ""
    return spread or f"to move {_way(feature, old, new)}"


def _spread(feature: Feature, expected: Expected) -> str:
    """How far a number moves, from one end to the other; "" where both read alike."""
    low, high = _amount(feature, expected.low), _amount(feature, expected.high)
    if low == high:
        return ""
    fall, rise = _amount(feature, -expected.low), high
    if low == "0":
        return f"to rise by up to {rise}"
    if high == "0":
        return f"to fall by up to {fall}"
    if expected.low > 0.0:
        return f"to rise by {low} to {rise}"
    if expected.high < 0.0:
        return f"to fall by {_amount(feature, -expected.high)} to {fall}"
    return f"to fall by up to {fall} or rise by up to {rise}"


def _amount(feature: Feature, amount: float) -> str:
    """By how much a number moves, with its decimals, or with few digits."""
    places = feature.precision
    told = amount if places is None else round(amount, places)
    return number(told + 0.0, places, UNCERTAIN_DIGITS)


def _way(feature: Feature, old: Any, new: Any) -> str:
    """Both ends, with as many digits as it takes to tell how far they are apart."""
    here = there = ""
    for digits in range(DIGITS, MOST_DIGITS + 1):
        here = number(old, feature.precision, digits)
        there = _far_enough(feature, old, new, digits)
        off = max(abs(float(here) - float(old)), abs(float(there) - float(new)))
        if off <= abs(float(new) - float(old)) / 10.0:
            break
    return f"from {here} to {there}"


def _far_enough(feature: Feature, old: Any, new: Any, digits: int) -> str:
    """The new number; where digits are left out, not those that the model asks for."""
    told, exact = number(new, feature.precision, digits), float(new)
    ahead = exact - float(old)
    hair = min(RESOLUTION * abs(exact), abs(ahead) / 100.0)
    if (exact - float(told)) * math.copysign(1.0, ahead) <= hair:
        return told
    unit = 10.0 ** (math.floor(math.log10(abs(exact))) + 1 - _shown(exact, digits))
    return number(float(told) + math.copysign(unit, ahead), feature.precision, digits)
