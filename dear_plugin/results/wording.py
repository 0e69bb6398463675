"""Wording: changes of features and what is known of them in; sentences out.

An indirect change is "expected". Without tiers it is an association in the data and no causal
effect; with tiers it is an effect on conditions, which `claim` names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dear_plugin.data.schema import Feature, Schema
from dear_plugin.results.values import amount_of, ends, is_amount, one
from dear_plugin.search.credibility import HALF

# Letters of a value in a figure; longer ones end in an ellipsis.
MOST_LETTERS = 30

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


@dataclass(frozen=True)
class Move:
    """The change of one feature of a row, and what resamples give instead.

    Attributes:
        feature: what changes.
        old: its value before.
        new: its value after.
        direct: whether it is acted on.
        size: the change as a share of the range; 1 for a category, and from or to a special value.
        low: the least change of a number over resamples, where they do not agree, in user units.
        high: the largest one.
        times: the resamples in which a category changes, and all resamples; None where all agree.
    """

    feature: Feature
    old: Any
    new: Any
    direct: bool = False
    size: float = 1.0
    low: float = 0.0
    high: float = 0.0
    times: tuple[int, int] | None = None

    @property
    def is_amount(self) -> bool:
        """Whether a number changes to another one."""
        return is_amount(self.feature, self.old) and is_amount(self.feature, self.new)

    @property
    def rises(self) -> bool | None:
        """Whether a number, or a level that has an order, rises; None for other changes."""
        feature, known = self.feature, self.feature.levels
        if self.is_amount or (self.old in known and self.new in known and feature.is_number):
            return bool(feature.place(self.new) > feature.place(self.old))
        return None

    @property
    def shares(self) -> tuple[float, float]:
        """The least and the largest change as shares of the range."""
        return self.low / self.feature.width, self.high / self.feature.width

    @property
    def is_uncertain(self) -> bool:
        """Whether a category changes in less than half of the resamples."""
        return self.times is not None and 2 * self.times[0] < self.times[1]

    @property
    def ends(self) -> tuple[str, str]:
        """The old and the new value as text."""
        return ends(self.feature, self.old, self.new)

    @property
    def unit(self) -> str:
        """What follows the new value of a number: " months"; "" without a unit."""
        number = isinstance(self.new, Real) and not isinstance(self.new, bool | np.bool_)
        has_unit = self.is_amount or (number and self.new in self.feature.categories)
        return f" {self.feature.unit}" if has_unit and self.feature.unit else ""

    @property
    def imperative(self) -> str:
        """The action: "raise hours from 35 to 41"."""
        verb = {None: "change", True: "raise", False: "lower"}[self.rises]
        return f"{verb} {self.feature.called} {self.from_to}"

    @property
    def infinitive(self) -> str:
        """What is expected: "to rise from 0 to 307", "to rise by 200 to 400"."""
        verb = {None: "change", True: "rise", False: "fall"}[self.rises]
        return self._range or f"to {verb} {self.from_to}"

    def needed(self, share: float) -> str:
        """What has to happen where a share of the change is needed; "" for nothing.

        "duration must fall to 61 or less", "town must change to B".
        """
        name = self.feature.called
        if not self.is_amount:
            return f"{name} must change to {self.ends[1]}{self.unit}" if share >= HALF else ""
        old, new = float(self.old), float(self.new)
        part, grain = old + share * (new - old), 10.0 ** (self.feature.precision or 0)
        if self.feature.precision is not None:
            # Not less than what is needed.
            part = (math.ceil if new > old else math.floor)(round(part * grain, 6)) / grain
        _, end = ends(self.feature, old, part)
        end += self.unit
        what = f"rise to {end} or more" if new > old else f"fall to {end} or less"
        return f"{name} must {what}"

    @property
    def from_to(self) -> str:
        """Both values, and the number of resamples: "from no to yes (7 of 16 resamples)"."""
        count = f" ({self.times[0]} of {self.times[1]} resamples)" if self.times else ""
        return "from {} to {}".format(*self.ends) + self.unit + count

    @property
    def in_short(self) -> str:
        """Both values, and those that resamples give, for a figure: "0 → 307 (200 to 400)"."""
        text = " → ".join(_clipped(end) for end in self.ends) + self.unit
        if self.times is not None:
            return f"{text} ({self.times[0]} of {self.times[1]} resamples)"
        if self.low == self.high:
            return text
        low, high = self._amounts(float(self.old))
        return f"{text} ({low} to {high})" if low != high else text

    @property
    def _range(self) -> str:
        """The range of a number's change; "" where both ends have the same text."""
        low, high = self._amounts()
        if low == high:
            return ""
        fall, rise = low.removeprefix("-"), high.removeprefix("-")
        if "0" not in (low, high) and self.low > 0.0:
            return f"to rise by {fall} to {rise}{self.unit}"
        if "0" not in (low, high) and self.high < 0.0:
            return f"to fall by {rise} to {fall}{self.unit}"
        falls = [f"fall by up to {fall}"] if low.startswith("-") else []
        rises = [f"rise by up to {rise}"] if high != "0" else []
        return f"to {' or '.join(falls + rises)}{self.unit}"

    def _amounts(self, start: float = 0.0) -> tuple[str, str]:
        """The least and the largest change in user units, added to a start, as text."""
        low, high = (amount_of(self.feature, end, start) for end in (self.low, self.high))
        return low, high


def sentence(
    direct: Sequence[Move],
    indirect: Sequence[Move],
    shares: Mapping[str, tuple[float, float]],
    more: int = 0,
) -> str:
    """The first clause of a description: the action, and the indirect changes then expected.

    Args:
        direct: the features acted on.
        indirect: features that change indirectly.
        shares: categories that do not flip, with their expected probability before and after.
        more: the number of indirect changes besides these.
    """
    likely = [move for move in indirect if not move.is_uncertain]
    expected = join([f"{move.feature.called} {move.infinitive}" for move in likely])
    possible = [
        f"{move.feature.called} may change {move.from_to}"
        for move in indirect
        if move.is_uncertain
    ]
    follows = "; ".join(filter(None, [expected and f"then expect {expected}", join(possible)]))
    if more:
        follows += f" (and {more} more)"
    if shares:
        probabilities = ", ".join(f"{k}: {a:.0%} -> {b:.0%}" for k, (a, b) in shares.items())
        follows = follows or "no other change is likely"
        follows += f" (chance of {probabilities})"
    return "; ".join(filter(None, [join([move.imperative for move in direct]), follows]))


ENOUGH = "The action is enough by itself."
# Of an action that is enough by itself, where more than a tenth of resamples fail.
UNDONE = "The action is enough by itself, but what is expected to follow may undo it."
SURE = 0.9
# Resamples of fewer training rows do not tell how certain an answer is.
FEWEST = 30


def certainty(
    reliance: float, moves: Sequence[Move], *, times: int, count: int, rows: int
) -> list[str]:
    """Sentences on what the action needs to be enough, and on the confidence.

    Args:
        reliance: the least share of the indirect change with which the answer succeeds.
        moves: the indirect changes that a description names.
        times: the number of resamples under which it succeeds.
        count: the number of resamples.
        rows: the number of training rows.
    """
    enough = ENOUGH if times >= SURE * count else UNDONE
    if reliance > 0.0:
        needed = join(list(filter(None, (move.needed(reliance) for move in moves))))
        enough = f"It needs what is expected to follow{f': {needed}' if needed else ''}."
    told = f"It succeeds in {times} of {count} resamples of the training rows"
    few = f", of which there are too few ({rows}) to tell" if rows < FEWEST else ""
    return [enough, f"{told}{few}."]


def agreed(share: float, count: int) -> str:
    """A sentence on how many of the copies of the model, `count`, accept an answer."""
    return f"{round(share * count)} of {count} copies of the model accept it, too."


def unclear(moves: Mapping[str, float]) -> str:
    """A sentence on features, with their consistency, whose change often does not help."""
    if not moves:
        return ""
    shares = join([f"{share:.2g}" for share in moves.values()])
    what = f"The model does not clearly favour such a change of {join(list(moves))}"
    return f"{what}: of the training rows that it moves, {shares} gain."


def weak(words: str, more: Sequence[str], why: str) -> str:
    """The text of an answer that is not credible, which it says first.

    Args:
        words: the action and its indirect changes.
        more: the sentences of `certainty`.
        why: what the answer lacks.
    """
    return " ".join([f"Weak answer: {why}.", as_sentence(words), *more])


def join(parts: Sequence[str], last: str = "and") -> str:
    """Parts of a sentence as "a", "a and b", or "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def as_sentence(text: str) -> str:
    """A text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def level(feature: Feature) -> str:
    """The name of a binary feature's second value: "marital-status = Married"."""
    return f"{feature.called} = {one(feature, feature.categories[-1])}"


def _clipped(text: str) -> str:
    """A text of at most `MOST_LETTERS` letters."""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1].rstrip()}…"
