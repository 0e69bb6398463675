"""Amounts: lines of answers in; the same lines in round amounts that the model accepts out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.feature import Feature
from dear_plugin.results.changes import Line, is_needed, is_open
from dear_plugin.results.describe import followers, needs
from dear_plugin.results.result import Result
from dear_plugin.results.values import is_amount

# Significant digits of amounts, None for the exact value, and how many of the changes that must
# follow are named: what the model accepts first is told.
DIGITS: tuple[int | None, ...] = (2, 3, None)
NAMED = (1, 2, 3)
MOST_USUAL = 2
# An indirect change is named from this many standard deviations of the training rows on.
LEAST_NAMED = 0.1
# Digits of what usually follows, where an action has no rounded value.
USUAL_DIGITS = 3


def told(result: Result, positions: Sequence[int]) -> list[list[Line] | None]:
    """The lines that a letter tells of the answers at m positions; None where none can be.

    Actions and bounds have round amounts; what these force has its value in `alone`; what must
    follow has its bound in `least`. The row that has just what is told is accepted by the user's
    model, as is the row that has everything that is expected to follow.
    """
    found: dict[int, list[Line]] = {}
    left = list(positions)
    digits = DIGITS if result.proposal.searched else DIGITS[-1:]
    for most, places in product(NAMED, digits):
        if left:
            drafts = [_draft(result, at, places, most) for at in left]
            done = _accepted(result.select(torch.tensor(left)), drafts)
            found |= {at: draft for at, draft in zip(left, done, strict=True) if draft}
        left = [at for at in left if at not in found]
    return [found.get(at) for at in positions]


def rounded(
    feature: Feature, old: float, value: float, digits: int | None, *, away: int = 0
) -> float:
    """A value that a number changes to, with some significant digits of it and of its change.

    Args:
        feature: the number.
        old: its value before.
        value: its value after, or in between.
        digits: None leaves the value as it is.
        away: 1 rounds away from the old value, -1 towards it, 0 to the nearest.
    """
    change, places = value - old, feature.precision
    if change == 0.0 or feature.observed or (digits is None and places is None):
        return value
    if digits is not None:
        sizes = [abs(each) for each in (change, value) if each]
        own = max(digits - 1 - math.floor(math.log10(size)) for size in sizes)
        own = max(own, -math.floor(math.log10(feature.usual_step)))
        places = own if places is None else min(own, places)
    grain = 10.0 ** (places or 0)
    whole = round(value * grain, 6)
    if away:
        whole = math.ceil(whole) if (change > 0) == (away > 0) else math.floor(whole)
    return round(round(whole) / grain, max(places or 0, 0))


def is_choice(result: Result, at: int, line: Line) -> bool:
    """Whether the applicant may act on what changes: it is a choice, and does not just happen."""
    (j,) = result.encoder.schema.index([line.feature])
    question = result.question
    return bool(question.method._acts[j] & ~question.case.feasible.limits.not_actionable[at, j])


def _draft(result: Result, at: int, digits: int | None, most: int) -> list[Line]:
    """What may be told of an answer, with some digits and some of the changes that must follow."""
    known, lines = {f.name: f for f in result.encoder.schema}, result.lines[at]
    acts = [_farther(known[line.feature], line, digits) for line in lines if line.kind == "direct"]
    must = [_bound(known[line.feature], line, digits) for line in needs(result, at)[:most]]
    bound = {line.feature for line in must}
    effects = result.encoder.schema.causal_order.is_stated
    named = {f.called for f in known.values() if f.label} or {f.called for f in known.values()}
    usual = [
        line._replace(
            new=_usual(known[line.feature], line, digits or USUAL_DIGITS, line.feature in bound),
            least=line.old,
        )
        for line, size in followers(result, at).items()
        if effects and size >= LEAST_NAMED and line.label in named
        if not (is_open(line) or is_choice(result, at, line))
    ]
    return [*acts, *must, *usual[:MOST_USUAL]]


def _farther(feature: Feature, line: Line, digits: int | None) -> Line:
    """An action with a rounded new value, which is farther unless no row has gone so far."""
    if not (is_amount(feature, line.old) and is_amount(feature, line.new)):
        return line
    (low, high), ends = feature.bounds, (float(line.old), float(line.new))
    value = rounded(feature, *ends, digits, away=1)
    away = value if low <= value <= high else rounded(feature, *ends, digits, away=-1)
    return line._replace(new=away)


def _usual(feature: Feature, line: Line, digits: int, needed: bool) -> Any:
    """The rounded value of what usually follows; not short of what must."""
    if not (is_amount(feature, line.old) and is_amount(feature, line.new)):
        return line.new
    return rounded(feature, float(line.old), float(line.new), digits, away=int(needed))


def _bound(feature: Feature, line: Line, digits: int | None) -> Line:
    """Up to where a change must follow."""
    if not (is_amount(feature, line.old) and is_amount(feature, line.least)):
        return line
    old, new = float(line.old), float(line.new)
    part = rounded(feature, old, float(line.least), digits, away=1)
    return line._replace(least=part if abs(part - old) <= abs(new - old) else new)


def _accepted(result: Result, drafts: Sequence[list[Line]]) -> list[list[Line] | None]:
    """What is told where the model accepts it, without and with all that is expected to follow.

    With what the told action forces.
    """
    reached, direct, x = result.proposal.rows, result.proposal.direct, result.x
    least, whole = torch.where(direct, reached, x), reached.clone()
    for i, draft in enumerate(drafts):
        for tried in (least[i], whole[i]):
            _write(tried, reached[i], [(e, e.new) for e in draft if e.kind == "direct"], result)
    least, whole = result.repaired(least), result.repaired(whole)
    forced = [_forced(result, i, row) for i, row in enumerate(least)]
    needed = torch.zeros_like(direct)
    for i, draft in enumerate(drafts):
        musts = [line for line in draft if is_needed(line)]
        _write(least[i], reached[i], [(line, line.least) for line in musts], result)
        needed[i, list(result.encoder.schema.index(line.feature for line in musts))] = True
    least = result.repaired(least, needed)
    good, feasible = torch.ones(len(x), dtype=torch.bool), result.question.case.feasible.limits
    for i, j in (direct & (least != reached)).nonzero().tolist():
        one = torch.tensor([j]), torch.tensor([i])
        good[i] &= feasible.admits(least[i : i + 1, [j]], *one)[0, 0]
    for tried in (least, whole):
        good &= result.question.accepts_alone(tried)
    told = zip(drafts, forced, good.tolist(), strict=True)
    return [[*draft, *own] if fine else None for draft, own, fine in told]


def _forced(result: Result, at: int, alone: Tensor) -> list[Line]:
    """What a told action forces, given the row with the action alone, (p,)."""
    schema, before = result.encoder.schema, result.labelled[0].iloc[at]
    defined = {n for each in schema.relations if each.is_definition for n in each.members}
    moved = (alone != result.x[at]) & ~result.proposal.direct[at]
    lines = []
    for j in moved.nonzero()[:, 0].tolist():
        feature, name = schema.features[j], schema.names[j]
        (cell,) = feature.cells(alone[[j]].numpy())
        exact = name in defined or not feature.holds_numbers
        ends = before[name], cell, cell, cell
        head = None, 0, name, feature.called, "forced"
        rest = 0, 0, 1.0, feature.unit, exact
        lines.append(Line._make([*head, *ends, *[math.nan] * 4, *rest]))
    return lines


def _write(row: Tensor, reached: Tensor, ends: Sequence[tuple[Line, Any]], result: Result) -> None:
    """Write values into a row, (p,); those that are no amounts as the answer has them."""
    schema = result.encoder.schema
    known = {feature.name: feature for feature in schema}
    for line, new in ends:
        feature = known[line.feature]
        (j,) = schema.index([line.feature])
        row[j] = reached[j]
        if is_amount(feature, line.old) and is_amount(feature, new):
            value = pd.Series([new], dtype=float)
            row[j] = float(feature.read(value).values[0])
