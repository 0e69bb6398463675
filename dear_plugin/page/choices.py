"""What is chosen on the page for one applicant, or for all, also as JSON of a saved case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_origin, get_type_hints

from dear_plugin.data.feature import Feature
from dear_plugin.errors import InputError, shown

# In the place of an applicant: what holds for all of them.
EVERYONE = ""
# What may become of a feature.
ACT, FOLLOWS, STAYS = "I may act on it", "it may follow", "it stays"
# What JSON holds for each field, in words.
TYPES = {str: "a text", dict: "an object by features", list: "a list", int: "a whole number"}
REMEDY = "correct the file, or save the case on this page again"
# A field, what it holds, whether that is right, and what is expected.
Check = tuple[str, Any, bool, str]


@dataclass(frozen=True)
class Choices:
    """What is chosen for one applicant, or for all; another one has choices of their own.

    Attributes:
        applicant: one of `Session.labels`, or `EVERYONE`.
        states: `ACT`, `FOLLOWS` or `STAYS` by the feature.
        reach: the least and the greatest value of numbers and of levels with an order, None where
            an end is that of the schema; the levels of other categories.
        excluded: kinds of advice that no applicant gets: feature, change, new level.
        feature: that of the curve; "" for the one that the first way acts on.
        hand: the values that are tried by hand.
        way: the position of the way that the letter is of.
    """

    applicant: str
    states: dict[str, str]
    reach: dict[str, Any] = field(default_factory=dict)
    excluded: list[Any] = field(default_factory=list)
    feature: str = ""
    hand: dict[str, Any] = field(default_factory=dict)
    way: int = 0

    def to_json(self) -> str:
        """A saved case."""
        return json.dumps(asdict(self), indent=1, default=lambda value: value.item())

    @property
    def question(self) -> str:
        """What the ways, or kinds of advice, depend on: the same for equal ones."""
        return replace(self, feature="", hand={}, way=0).to_json()


def read(
    text: str, applicants: Sequence[str], states: Mapping[str, Sequence[str]], features: Any
) -> Choices:
    """The choices of a saved case, if every part of it fits.

    Args:
        text: of `Choices.to_json`, perhaps changed by hand.
        applicants: their names.
        states: what may become of each feature that may change.
        features: those that may change, by their names.

    Raises:
        InputError: the first part that does not fit: what is expected, and what there is.
    """
    try:
        given = json.loads(text)
    except ValueError as error:
        raise InputError(f"this case is not JSON ({error}): {REMEDY}") from None
    keys = sorted(given) if isinstance(given, dict) else given
    hints = get_type_hints(Choices)
    kinds = {name: get_origin(hint) or hint for name, hint in hints.items()}
    _refuse([("this case", keys, keys == sorted(kinds), f"an object with {', '.join(kinds)}")])
    choices = Choices(**given)
    _refuse((n, given[n], type(given[n]) is kind, TYPES[kind]) for n, kind in kinds.items())
    _refuse(_parts(choices, list(applicants), states, features))
    return choices


def _refuse(checks: Any) -> None:
    """Raise the error of the first check that fails; later ones rely on it."""
    for where, value, valid, expected in checks:
        if not valid:
            raise InputError(f"{where}: expected {expected}, got {shown(value)}; {REMEDY}")


def _parts(
    choices: Choices,
    applicants: Sequence[str],
    states: Mapping[str, Sequence[str]],
    features: Mapping[str, Feature],
) -> Iterator[Check]:
    names, which = [*states], choices.applicant
    words = f"one of the {len(applicants):,} on this page, or {EVERYONE!r} for all"
    yield "applicant", which, which in (*applicants, EVERYONE), words
    own = [*choices.states]
    yield "states", own, sorted(own) == sorted(names), f"a state of each of {names}"
    for name, state in choices.states.items():
        yield f"states[{name!r}]", state, state in states[name], f"one of {states[name]}"
    for part in ("reach", "hand"):
        own = [*getattr(choices, part)]
        yield part, own, {*own} <= {*names}, f"features among {names}"
    for name, ends in choices.reach.items():
        yield f"reach[{name!r}]", ends, *_reach(features[name], ends)
    for name, value in choices.hand.items():
        yield f"hand[{name!r}]", value, *_value(features[name], value)
    for kind in choices.excluded:
        valid = isinstance(kind, list) and len(kind) == 3 and isinstance(kind[1], str)
        known = [None, *features[kind[0]].choices] if valid and kind[0] in names else []
        words = f"[feature, change, new level or null], of {names} and their levels"
        yield "excluded", kind, valid and kind[2] in known, words
    yield "feature", choices.feature, choices.feature in ("", *names), f"one of {names}, or ''"
    yield "way", choices.way, choices.way >= 0, "0 or more"


def _value(feature: Feature, value: Any) -> tuple[bool, str]:
    """Whether an action may set a value, and what it may set."""
    if known := feature.answers:
        return value in known, f"one of {known}"
    return type(value) in (int, float), "a number"


def _reach(feature: Feature, reach: Any) -> tuple[bool, str]:
    """Whether something is a reach of a feature, and what would be."""
    some, words = reach if isinstance(reach, list) else [], _value(feature, None)[1]
    if "ranges" not in feature.limited_by:
        valid = bool(some) and all(_value(feature, each)[0] for each in some)
        return valid, f"a list of levels, each {words}"
    (low, high), given = feature.ends, [each for each in some if each is not None]
    if not feature.answers:
        words = f"a number from {low:.10g} to {high:.10g}"
    fits = (_value(feature, each)[0] and low <= feature.place(each) <= high for each in given)
    valid = len(some) == 2 and all(fits)
    return valid, f"[least, greatest], each {words}, or null for an open end"
