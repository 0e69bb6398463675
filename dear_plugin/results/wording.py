"""Wording: changes of features and what is known of them in; sentences out.

An indirect change is "expected". Without tiers it is an association in the data and no causal
effect; with tiers it is an effect on conditions, which `claim` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dear_plugin.data.schema import Feature, Schema
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.values import Change, amount_of, ends, is_amount

ASSOCIATION = (
    "Indirect changes are associations in the data, not causal effects: they say what usually"
    " goes along with the action, not what the action brings about."
)


@dataclass(frozen=True)
class Claim:
    """What is said of indirect changes as a whole.

    Attributes:
        heading: above them, in figures.
        note: below tables and pages.
        short: the note of a figure.
    """

    heading: str
    note: str
    short: str


# Of a schema without tiers, and of one with tiers.
ASSOCIATED = Claim(
    "Expected to follow (association)",
    ASSOCIATION,
    "Expected indirect changes are associations in the data, not causal effects.",
)
EFFECT = (
    "What is expected to follow is an effect, if the stated order is right and nothing unobserved"
    " causes both."
)
ORDERED = Claim("Expected to follow", EFFECT, EFFECT)


def claim(schema: Schema) -> Claim:
    """What indirect changes are by a schema: associations, or effects on conditions."""
    return ORDERED if schema.tiers else ASSOCIATED


# The plausibility below which an answer that is not credible gives it.
UNUSUAL = 0.05
PARTS = {0.25: "a quarter", 0.5: "half", 0.75: "three quarters", 1.0: "all"}


@dataclass(frozen=True)
class Expected:
    """The indirect change of one feature over redraws of the decoder that do not agree.

    Attributes:
        low: the least change of a number, in user units.
        high: its largest change.
        times: the redraws in which a category changes, and all redraws; None for numbers.
    """

    low: float = 0.0
    high: float = 0.0
    times: tuple[int, int] | None = None

    @property
    def count(self) -> str:
        """The number of redraws in which a category changes: "(7 times out of 16)"."""
        return "" if self.times is None else f"({self.times[0]} times out of {self.times[1]})"

    @property
    def is_uncertain(self) -> bool:
        """Whether a category changes in less than half of the redraws."""
        return self.times is not None and 2 * self.times[0] < self.times[1]


def sentence(
    direct: Sequence[Change],
    indirect: Sequence[Change],
    shares: Mapping[str, tuple[float, float]],
    expected: Mapping[str, Expected] | None = None,
    smaller: int = 0,
) -> str:
    """The first clause of a description: the action, and the indirect changes then expected.

    Args:
        direct: features acted on, with their old and new value.
        indirect: features that change indirectly, likewise.
        shares: categories that do not flip, with their expected probability before and after.
        expected: by name, the uncertain indirect changes.
        smaller: the number of indirect changes besides these, which are smaller.
    """
    action, known = join([_imperative(*change) for change in direct]), expected or {}
    uncertain = {name for name, each in known.items() if each.is_uncertain}
    likely = [change for change in indirect if change[0].name not in uncertain]
    parts = [
        f"{feature.name} {'' if i else 'is then expected '}"
        f"{_infinitive(feature, old, new, known.get(feature.name))}"
        for i, (feature, old, new) in enumerate(likely)
    ]
    possible = [
        f"{feature.name} may change {_from_to(feature, old, new)} {known[feature.name].count}"
        for feature, old, new in indirect
        if feature.name in uncertain
    ]
    probabilities = ", ".join(f"{k}: {a:.0%} -> {b:.0%}" for k, (a, b) in shares.items())
    nothing = "nothing else is expected to change" if probabilities and not possible else ""
    follows = "; ".join(filter(None, [join(parts), join(possible)])) or nothing
    if smaller:
        follows += f" (and {smaller} smaller one{'s' * (smaller > 1)})"
    tail = f"{follows} (expected shares: {probabilities})" if probabilities else follows
    return f"{action}; {tail}" if tail else action


ENOUGH = "This alone is enough."
# Of an action that is enough by itself, where the answer fails under more than a tenth of redraws.
UNDONE = "This alone is enough, but what is expected to follow may undo it."
SURE = 0.9


def certainty(reliance: float, times: int, count: int) -> list[str]:
    """Sentences on whether the action alone is enough, and on the confidence.

    Args:
        reliance: the least share of the indirect change with which the answer succeeds.
        times: the number of redraws of the decoder under which it succeeds.
        count: the number of redraws.
    """
    enough = ENOUGH if times >= SURE * count else UNDONE
    if reliance > 0.0:
        what = "all of it is needed" if reliance == 1.0 else f"{PARTS[reliance]} of it would do"
        enough = f"This counts on what is expected to follow ({what})."
    return [enough, f"It still holds in {times} of {count} redraws of the data."]


def nearest(words: str, more: Sequence[str], note: str, plausibility: float) -> str:
    """The text of an answer that is not credible, which it says first.

    Args:
        words: the action and its indirect changes.
        more: the sentences of `certainty`.
        note: the search's note on the answer; "" where no credible answer was searched for.
        plausibility: the share of training rows that are at least as unusual.
    """
    text = " ".join([f"{words}.", *more])
    if not note and plausibility < UNUSUAL:
        rare = f"{plausibility:.1%} of the training rows are at least as unusual."
        return f"Not credible: {text} {rare}"
    if not note:
        return f"Not credible: {text}"
    lack = note.removeprefix(Reason.LACKING.start)
    last = f"It has {lack}." if lack != note else f"It is {note}."
    return f"No credible action was found; the nearest: {text} {last}"


def join(parts: Sequence[str]) -> str:
    """Parts of a sentence as "a", "a and b", or "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def short_of(name: str, share: float, least: float) -> str:
    """The value of a criterion that an answer does not meet, and the required value.

    Args:
        name: of the criterion.
        share: its value, from 0 to 1; for reliance, one minus it.
        least: the required value; for reliance, one minus it.
    """
    if name == "reliance":
        return f"reliance {1.0 - share:.2g} (at most {1.0 - least:.2g} is required)"
    return f"{name} {share:.2g} (at least {least:.2g} is required)"


def unreached(alone: int, together: int, most: int) -> str:
    """The reason of a row whose search did not reach the target: the sets that were tried.

    Args:
        alone: the number of features that may be acted on alone.
        together: the number of given sets of several features that may be acted on.
        most: the largest number of the single features that are tried together.
    """
    most = min(most, alone)
    of = f"of the {alone} actionable features"
    tried = [
        "the only actionable feature" if alone == 1 else f"a single one {of}",
        f"1 {'or' if most == 2 else 'to'} {most} {of}",
    ][most > 1 :][: min(alone, 1)]
    tried += [f"the {together} given groups" if together > 1 else "the given group"][:together]
    return Reason.UNREACHED.format(" or of ".join(tried))


def level(feature: Feature) -> str:
    """The name of a binary feature's second value: "marital-status = Married"."""
    return f"{feature.name} = {feature.categories[-1]}"


def _imperative(feature: Feature, old: Any, new: Any) -> str:
    if not (is_amount(feature, old) and is_amount(feature, new)):
        return f"change {feature.name} {_from_to(feature, old, new)}"
    verb = "raise" if new > old else "lower"
    return f"{verb} {feature.name} {_from_to(feature, old, new)}"


def _infinitive(feature: Feature, old: Any, new: Any, expected: Expected | None) -> str:
    if expected is not None and expected.times is not None:
        return f"to change {_from_to(feature, old, new)} {expected.count}"
    if not (is_amount(feature, old) and is_amount(feature, new)):
        return f"to change {_from_to(feature, old, new)}"
    spread = _spread(feature, expected) if expected is not None else ""
    return spread or f"to move {_from_to(feature, old, new)}"


def _from_to(feature: Feature, old: Any, new: Any) -> str:
    before, after = ends(feature, old, new)
    return f"from {before} to {after}"


def _spread(feature: Feature, expected: Expected) -> str:
    """The range of a number's change; "" where both ends have the same text."""
    low, high = amount_of(feature, expected.low), amount_of(feature, expected.high)
    if low == high:
        return ""
    fall, rise = amount_of(feature, -expected.low), high
    if low == "0":
        return f"to rise by up to {rise}"
    if high == "0":
        return f"to fall by up to {fall}"
    if expected.low > 0.0:
        return f"to rise by {low} to {rise}"
    if expected.high < 0.0:
        return f"to fall by {amount_of(feature, -expected.high)} to {fall}"
    return f"to fall by up to {fall} or rise by up to {rise}"
