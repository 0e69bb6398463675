"""Words: lines of `changes` and what is known of an answer in; sentences for an analyst out.

An indirect change is "expected". Without an order of causes it is an association in the data and
no causal effect; with one it is an effect on conditions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from dear_plugin.data.schema import Feature, Schema
from dear_plugin.results.changes import Line, is_uncertain
from dear_plugin.results.values import amount_of, ends, is_amount, one, unit_of

# One person's range that is at most so many times as wide as that of a mean is no other one: the
# quantiles alone make it 1.4 times as wide.
WIDER = 2.0
# Letters of a value in a figure; longer ones end in an ellipsis.
MOST_LETTERS = 30

ASSOCIATION = (
    "Indirect changes are associations in the data, not causal effects: they say what usually"
    " goes along with the action, not what the action brings about."
)
EFFECT = (
    "What is expected to follow is an effect, if the stated order is right and nothing unobserved"
    " causes both."
)
# Above what follows, without an order of causes and with one.
FOLLOWS = ("Expected to follow (association)", "Expected to follow")

# A line and its feature.
Told = tuple[Feature, Line]


def note(schema: Schema) -> str:
    """What indirect changes are by a schema: associations, or effects on conditions."""
    return EFFECT if schema.causal_order.is_stated else ASSOCIATION


def heading(schema: Schema) -> str:
    """What stands above what follows."""
    return FOLLOWS[schema.causal_order.is_stated]


def rises(feature: Feature, old: Any, new: Any) -> bool | None:
    """Whether a number, or a level that has an order, rises; None for other changes."""
    known = feature.levels
    amounts = is_amount(feature, old) and is_amount(feature, new)
    if amounts or (old in known and new in known and feature.is_number):
        return bool(feature.place(new) > feature.place(old))
    return None


def with_unit(feature: Feature, old: Any, new: Any) -> str:
    """The new value of a change with its unit, in as many digits as tell it from the old one."""
    number = isinstance(new, Real) and not isinstance(new, bool | np.bool_)
    amounts = is_amount(feature, old) and is_amount(feature, new)
    has_unit = feature.unit and (amounts or (number and new in feature.categories))
    return ends(feature, old, new)[1] + (f" {unit_of(feature, new)}" if has_unit else "")


def imperative(feature: Feature, line: Line) -> str:
    """The action: "raise hours from 35 to 41"."""
    verb = {None: "change", True: "raise", False: "lower"}[rises(feature, line.old, line.new)]
    return f"{verb} {line.label} {_from_to(feature, line)}"


def infinitive(feature: Feature, line: Line) -> str:
    """What is expected: "to rise from 0 to 307", "to rise by 200 to 400"."""
    verb = {None: "change", True: "rise", False: "fall"}[rises(feature, line.old, line.new)]
    told = _range(feature, line) or f"to {verb} {_from_to(feature, line)}"
    return f"{told}{_for_one(feature, line)}"


def needed(feature: Feature, line: Line) -> str:
    """What has to happen: "duration must fall to 61 or less", "town must change to B"."""
    up, end = rises(feature, line.old, line.least), with_unit(feature, line.old, line.least)
    if not is_amount(feature, line.least) or up is None:
        return f"{line.label} must change to {end}"
    return f"{line.label} must {f'rise to {end} or more' if up else f'fall to {end} or less'}"


def definition(feature: Feature, line: Line) -> str:
    """What is forced: "area is 80 acres", or "is at most 80 acres" by an order."""
    bound = ("at most ", "at least ")[bool(rises(feature, line.old, line.alone))]
    end = with_unit(feature, line.old, line.alone)
    return f"{line.label} is {'' if line.exact else bound}{end}"


def in_short(feature: Feature, line: Line) -> str:
    """Both values, and the ends for people like this, for a figure: "0 → 307 (200 to 400)"."""
    old = ends(feature, line.old, line.new)[0]
    text = f"{_clipped(old)} → {_clipped(with_unit(feature, line.old, line.new))}"
    if line.kind == "forced":
        return f"{text} (by definition)"
    if line.kind == "direct" or math.isnan(line.low):
        return text + _count(line)
    low, high = _amounts(feature, (line.low, line.high), float(line.old))
    return f"{text} ({low} to {high})" if low != high else text


def _from_to(feature: Feature, line: Line) -> str:
    """Both values, and the number of redraws: "from no to yes (7 of 16 resamples)"."""
    old = ends(feature, line.old, line.new)[0]
    return f"from {old} to {with_unit(feature, line.old, line.new)}{_count(line)}"


def _count(line: Line) -> str:
    """How many redraws agree, where not all do, of what has no range."""
    some = math.isnan(line.low) and line.agree < line.redraws
    return f" ({line.agree} of {line.redraws} resamples)" if some else ""


def _range(feature: Feature, line: Line) -> str:
    """The range of a number's mean change; "" where both ends have the same text."""
    if math.isnan(line.low) or line.kind != "indirect":
        return ""
    low, high = _amounts(feature, (line.low, line.high))
    if low == high:
        return ""
    unit = f" {unit_of(feature, line.new)}" if feature.unit else ""
    fall, rise = low.removeprefix("-"), high.removeprefix("-")
    if "0" not in (low, high) and line.low > 0.0:
        return f"to rise by {fall} to {rise}{unit}"
    if "0" not in (low, high) and line.high < 0.0:
        return f"to fall by {rise} to {fall}{unit}"
    falls = [f"fall by up to {fall}"] if low.startswith("-") else []
    grows = [f"rise by up to {rise}"] if high != "0" else []
    return f"to {' or '.join(falls + grows)}{unit}"


def _for_one(feature: Feature, line: Line) -> str:
    """The range of one person's change; "" where that of people like this is similar."""
    wide = line.high_one - line.low_one > WIDER * (line.high - line.low)
    if not (wide and line.kind == "indirect"):
        return ""
    low, high = _amounts(feature, (line.low_one, line.high_one))
    return f" for people like this (a single person: {low} to {high})"


def _amounts(feature: Feature, of: tuple[float, float], start: float = 0.0) -> tuple[str, str]:
    """The ends of a range in user units, added to a start, as text."""
    low, high = (amount_of(feature, end, start) for end in of)
    return low, high


def sentence(
    direct: Sequence[Told],
    indirect: Sequence[Told],
    shares: Mapping[str, tuple[float, float]],
    more: int = 0,
    *,
    forced: Sequence[Told] = (),
) -> str:
    """The first clause of a description: the action, and the indirect changes then expected.

    Args:
        direct: the features acted on.
        indirect: features that change indirectly.
        shares: categories that do not flip, with their expected probability before and after.
        more: the number of indirect changes besides these.
        forced: what rules between columns set with the action.
    """
    likely = [told for told in indirect if not is_uncertain(told[1])]
    expected = join([f"{told[1].label} {infinitive(*told)}" for told in likely])
    possible = [
        f"{told[1].label} may change {_from_to(*told)}"
        for told in indirect
        if is_uncertain(told[1])
    ]
    follows = "; ".join(filter(None, [expected and f"then expect {expected}", join(possible)]))
    if more:
        follows += f" (and {more} more)"
    if shares:
        probabilities = ", ".join(f"{k}: {a:.0%} -> {b:.0%}" for k, (a, b) in shares.items())
        follows = follows or "no other change is likely"
        follows += f" (chance of {probabilities})"
    is_so = join([definition(*told) for told in forced])
    by_definition = is_so and f"with it, {is_so} by definition"
    acts = join([imperative(*told) for told in direct])
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
    musts: Sequence[Told] | None, *, forced: bool, alone: bool, gain: bool, sure: bool
) -> str:
    """Whether the action is enough, or what it needs.

    Args:
        musts: the changes that must follow; None where the answer does not count on any.
        forced: whether the action forces a change by definition.
        alone: whether the action alone is accepted.
        gain: whether the action itself raises the score.
        sure: whether it succeeds under nearly all resamples.
    """
    if musts is None:
        told = ENOUGH_FORCED if forced else ENOUGH
        return told if sure else told.replace(".", UNDONE)
    if alone:
        return DEPENDS
    told = join([needed(*each) for each in musts])
    needs = f"It needs what is expected to follow{f': {told}' if told else ''}."
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
    shares = join([f"{share:.0%}" if share > 0.0 else "none" for share in moves.values()])
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
