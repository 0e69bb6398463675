"""Wording: changes of features and what is known of them in; sentences out.

An indirect change is "expected". Without an order of causes it is an association in the data and
no causal effect; with one it is an effect on conditions, which `claim` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from dear_plugin.data.schema import Feature, Schema
from dear_plugin.results.values import amount_of, ends, is_amount, one, unit_of

Change: TypeAlias = Literal["direct", "forced", "indirect"]

# Letters of a value in a figure; longer ones end in an ellipsis.
MOST_LETTERS = 30
# One person's range that is at most so many times as wide as that of a mean is no other one: the
# quantiles alone make it 1.4 times as wide.
WIDER = 2.0

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


# Of a schema without an order of causes, and of one with it.
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
    return ORDERED if schema.causal_order.is_stated else ASSOCIATED


@dataclass(frozen=True)
class Move:
    """The change of one feature of a row, and what resamples give instead.

    Attributes:
        feature: what changes.
        old: its value before.
        new: its value after.
        kind: "direct", what is acted on; "forced", what a rule between columns sets with it;
            "indirect", what is expected to follow.
        size: the change in units of cost; 1 for a category, and from or to a special value.
        low: between which ends a number changes on average of people like this row, in user units.
        high: likewise.
        one: the ends for one person; None where they are the same.
        times: the resamples in which a category changes, and all resamples; None where all agree.
        least: the value up to which an indirect change must happen; the old value where it need
            not.
        is_exact: whether a forced value is the only one, and not the nearest that an order allows.
    """

    feature: Feature
    old: Any
    new: Any
    kind: Change = "indirect"
    size: float = 1.0
    low: float = 0.0
    high: float = 0.0
    one: tuple[float, float] | None = None
    times: tuple[int, int] | None = None
    least: Any = None
    is_exact: bool = True

    @property
    def direct(self) -> bool:
        """Whether it is acted on."""
        return self.kind == "direct"

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
        """The ends of the mean change in units of cost."""
        return self.low / self.feature.unit_of_cost, self.high / self.feature.unit_of_cost

    @property
    def is_uncertain(self) -> bool:
        """Whether a category changes in less than half of the resamples."""
        return self.times is not None and 2 * self.times[0] < self.times[1]

    @property
    def is_open(self) -> bool:
        """Whether it is open if a person's number rises or falls, or if a category changes."""
        low, high = self.one or (self.low, self.high)
        return low < 0.0 < high or self.is_uncertain

    @property
    def is_needed(self) -> bool:
        """Whether it must happen, at least a part of it."""
        return self.least is not None and bool(self.least != self.old)

    @property
    def ends(self) -> tuple[str, str]:
        """The old and the new value as text."""
        return ends(self.feature, self.old, self.new)

    @property
    def unit(self) -> str:
        """What follows the new value of a number: " months"; "" without a unit."""
        number = isinstance(self.new, Real) and not isinstance(self.new, bool | np.bool_)
        has_unit = self.is_amount or (number and self.new in self.feature.categories)
        return f" {unit_of(self.feature, self.new)}" if has_unit and self.feature.unit else ""

    @property
    def imperative(self) -> str:
        """The action: "raise hours from 35 to 41"."""
        verb = {None: "change", True: "raise", False: "lower"}[self.rises]
        return f"{verb} {self.feature.called} {self.from_to}"

    @property
    def infinitive(self) -> str:
        """What is expected: "to rise from 0 to 307", "to rise by 200 to 400"."""
        verb = {None: "change", True: "rise", False: "fall"}[self.rises]
        return f"{self._range or f'to {verb} {self.from_to}'}{self._for_one}"

    @property
    def needed(self) -> str:
        """What has to happen: "duration must fall to 61 or less", "town must change to B"."""
        least, name = replace(self, new=self.least), self.feature.called
        end = least.ends[1] + least.unit
        if not least.is_amount:
            return f"{name} must change to {end}"
        return (
            f"{name} must {f'rise to {end} or more' if least.rises else f'fall to {end} or less'}"
        )

    @property
    def definition(self) -> str:
        """What is forced: "area is 80 acres", or "is at most 80 acres" by an order."""
        bound = "" if self.is_exact else "at least " if self.rises else "at most "
        return f"{self.feature.called} is {bound}{self.ends[1]}{self.unit}"

    @property
    def from_to(self) -> str:
        """Both values, and the number of resamples: "from no to yes (7 of 16 resamples)"."""
        count = f" ({self.times[0]} of {self.times[1]} resamples)" if self.times else ""
        return "from {} to {}".format(*self.ends) + self.unit + count

    @property
    def in_short(self) -> str:
        """Both values, and the ends for people like this, for a figure: "0 → 307 (200 to 400)"."""
        text = " → ".join(_clipped(end) for end in self.ends) + self.unit
        if self.kind == "forced":
            return f"{text} (by definition)"
        if self.times is not None:
            return f"{text} ({self.times[0]} of {self.times[1]} resamples)"
        if self.low == self.high:
            return text
        low, high = self._amounts((self.low, self.high), float(self.old))
        return f"{text} ({low} to {high})" if low != high else text

    @property
    def _range(self) -> str:
        """The range of a number's mean change; "" where both ends have the same text."""
        low, high = self._amounts((self.low, self.high))
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

    @property
    def _for_one(self) -> str:
        """The range of one person's change; "" where that of people like this is similar."""
        first, last = self.one or (self.low, self.high)
        if last - first <= WIDER * (self.high - self.low):
            return ""
        low, high = self._amounts((first, last))
        return f" for people like this (a single person: {low} to {high})"

    def _amounts(self, of: tuple[float, float], start: float = 0.0) -> tuple[str, str]:
        """The ends of a range in user units, added to a start, as text."""
        low, high = (amount_of(self.feature, end, start) for end in of)
        return low, high


def sentence(
    direct: Sequence[Move],
    indirect: Sequence[Move],
    shares: Mapping[str, tuple[float, float]],
    more: int = 0,
    *,
    forced: Sequence[Move] = (),
) -> str:
    """The first clause of a description: the action, and the indirect changes then expected.

    Args:
        direct: the features acted on.
        indirect: features that change indirectly.
        shares: categories that do not flip, with their expected probability before and after.
        more: the number of indirect changes besides these.
        forced: what rules between columns set with the action.
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
    is_so = join([move.definition for move in forced])
    by_definition = is_so and f"with it, {is_so} by definition"
    acts = join([move.imperative for move in direct])
    return "; ".join(filter(None, [acts, by_definition, follows]))


ENOUGH = "The action is enough by itself."
# Where a rule between columns changes more.
ENOUGH_FORCED = "The action is enough, with what it changes by definition."
# Of an action that is accepted alone, and refused with some part of what follows.
DEPENDS = (
    "The action alone is accepted, but not with every part of what is expected to follow: it"
    " depends on how much of that happens."
)
# Of an action that does not help by itself.
CHAIN = "The action works through what follows, not by itself."
# Where more than a tenth of resamples fail.
UNDONE = ", but what is expected to follow may undo it."
SURE = 0.9
# Resamples of fewer training rows do not tell how certain an answer is.
FEWEST = 30


def enough(
    needed: Sequence[Move] | None, *, forced: bool, alone: bool, gain: bool, sure: bool
) -> str:
    """Whether the action is enough, or what it needs.

    Args:
        needed: the changes that must follow; None where the answer does not count on any.
        forced: whether the action forces a change by definition.
        alone: whether the action alone is accepted.
        gain: whether the action itself raises the score.
        sure: whether it succeeds under nearly all resamples.
    """
    if needed is None:
        told = ENOUGH_FORCED if forced else ENOUGH
        return told if sure else told.replace(".", UNDONE)
    if alone:
        return DEPENDS
    musts = join([move.needed for move in needed])
    needs = f"It needs what is expected to follow{f': {musts}' if musts else ''}."
    return needs if gain else f"{needs} {CHAIN}"


def succeeds(times: int, count: int, rows: int) -> str:
    """A sentence on the confidence, given the resamples and the number of training rows."""
    told = f"It succeeds in {times} of {count} resamples of the training rows"
    few = f", of which there are too few ({rows}) to tell" if rows < FEWEST else ""
    return f"{told}{few}."


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
