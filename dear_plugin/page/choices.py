"""What is chosen on the page for one applicant, or for all, also as JSON of a saved case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from dear_plugin.data.feature import Feature
from dear_plugin.errors import InputError, shown

# In the place of an applicant: what holds for all of them.
EVERYONE = ""
# What may become of a feature.
ACT, FOLLOWS, STAYS = "I may act on it", "it may follow", "it stays"
# What JSON holds for each field.
TYPES: dict[str, tuple[type, str]] = {
    "applicant": (str, "a text"),
    "states": (dict, "an object with a state of each feature"),
    "reach": (dict, "an object by features"),
    "excluded": (list, "a list of kinds of advice"),
    "feature": (str, "a text"),
    "hand": (dict, "an object by features"),
    "way": (int, "a whole number"),
}
# What limits a feature, by the argument of `Constraints`.
REACHES = {
    "ranges": "[least, greatest], each {}, or null for an open end",
    "categories": "a list of levels, each {}",
}
REMEDY = "mend the file, or save the case on this page again"
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
    states: Mapping[str, str]
    reach: Mapping[str, Any] = field(default_factory=dict)
    excluded: Sequence[Sequence[Any]] = ()
    feature: str = ""
    hand: Mapping[str, Any] = field(default_factory=dict)
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
    _refuse([("this case", keys, keys == sorted(TYPES), f"an object with {', '.join(TYPES)}")])
    choices = Choices(**given)
    _refuse(_types(choices))
    _refuse(_parts(choices, list(applicants), states, features))
    return choices


def _refuse(checks: Any) -> None:
    """Raise the error of the first check that fails; later ones rely on it."""
    for where, value, valid, expected in checks:
        if not valid:
            raise InputError(f"{where}: expected {expected}, got {shown(value)}; {REMEDY}")


def _types(choices: Choices) -> Iterator[Check]:
    for each in fields(choices):
        value, (kind, words) = getattr(choices, each.name), TYPES[each.name]
        yield each.name, value, type(value) is kind, words


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
        valid, words = _value(features[name], value)
        yield f"hand[{name!r}]", value, valid, words
    for kind in choices.excluded:
        valid = isinstance(kind, list) and len(kind) == 3 and kind[0] in names
        yield "excluded", kind, valid, "[feature, change, new level or null]"
        known = [None, *features[kind[0]].choices]
        yield "excluded", kind, isinstance(kind[1], str) and kind[2] in known, f"one of {known}"
    yield "feature", choices.feature, choices.feature in ("", *names), f"one of {names}, or ''"
    yield "way", choices.way, choices.way >= 0, "0 or more"


def _value(feature: Feature, value: Any) -> tuple[bool, str]:
    """Whether an action may set a value, and what it may set."""
    if known := feature.answers:
        return value in known, f"one of {known}"
    return type(value) in (int, float), "a number"


def _reach(feature: Feature, reach: Any) -> tuple[bool, str]:
    """Whether something is a reach of a feature, and what would be."""
    some = reach if isinstance(reach, list) else []
    wrong = [each for each in some if not _value(feature, each)[0]]
    how, words = feature.limited_by[0], _value(feature, None)[1]
    if how == "ranges" and not feature.answers:
        low, high = feature.ends
        wrong += [each for each in some if each not in (None, *wrong) and not low <= each <= high]
        words = f"a number from {low:.10g} to {high:.10g}"
    valid = {"ranges": len(some) == 2 and {*wrong} <= {None}, "categories": some and not wrong}
    return bool(valid[how]), REACHES[how].format(words)
