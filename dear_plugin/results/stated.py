"""Stated: answers in; what a letter states of them, or what stands in the way, out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress, product
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.results.changes import Line, is_amount, is_exact
from dear_plugin.results.describe import followers, needs, unclear_changes
from dear_plugin.results.needed import between
from dear_plugin.results.result import Result
from dear_plugin.search.settings import CRITERIA

# Significant digits of amounts, None for the exact value, and how many of the changes that must
# follow are named: what the model accepts first is stated.
DIGITS: tuple[int | None, ...] = (2, 3, None)
NAMED = (0, 1, 2, 3)
MOST_USUAL = 2
# An indirect change is named from this many standard deviations of the training rows on.
LEAST_NAMED = 0.1
# Digits of what usually follows, where an action has no rounded value.
USUAL_DIGITS = 3
# Changes of amounts of more than so many steps are no advice where they are more than these
# shares: of the usual range in all; of the own value, in a rise and in a fall (by judgement).
FAR, FEW, FARTHEST = 0.5, 2, {True: 0.4, False: 0.5}


def stated(result: Result, positions: Sequence[int]) -> list[list[Line] | None]:
    """The lines that a letter states of the answers at m positions; None where none can be.

    Amounts are round. What the action alone forces has its value in `alone`; what must follow is
    from `least` to `new`. The user's model accepts the rows with just what is stated, see
    `between`, and the row with all that is expected to follow.
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


def moderate(result: Result, at: int) -> bool:
    """Whether an answer acts on what a letter may ask for, whatever follows.

    It goes neither far nor to rare values, and the model clearly favours its direction.
    """
    if not bool(result.success[at] & result.acts[at]):
        return False
    if not result.proposal.searched:
        return True
    unfit = far_changes(result, at) or rare_values(result, at) or unclear_changes(result, at)
    return not unfit


def advisable(result: Result, at: int) -> bool:
    """Whether an answer may be stated as advice: it is moderate and credible, and nothing is open.

    No part of what follows undoes it, and what must follow has a known direction, and is an effect
    or a choice of the applicant.
    """
    if not (moderate(result, at) and result.credibility.credible[at]):
        return False
    undone = bool((result.spread.reliance[at] > 0.0) & result.spread.alone[at])
    return not (undone or unsure_needs(result, at))


def hindrance(result: Result, at: int) -> tuple[str, list[str]]:
    """What stands in the way of advice: the name of a sentence, and features in words."""
    schema, lines = result.encoder.schema, result.lines[at]
    fixed = [*compress(schema, result.in_the_way[at].tolist())]
    named = _named(schema)
    # What is immutable, such as an age, is no matter of advice.
    parts = {part for f in fixed for part in _determining(result, f, at)}
    if parts:
        return "far", [f.called for f in schema if f.name in parts]
    others = [f.called for f in fixed if not f.immutable and f.called in named]
    if others:
        return "fixed", others
    acted = [line.label for line in lines if line.kind == "direct"]
    if not (bool(result.success[at]) and acted):
        return "nothing", []
    lacks = {CRITERIA[c] for c in result.credibility.lacks[at].nonzero()[:, 0].tolist()}
    counts = bool(result.spread.reliance[at] > 0.0)
    follow = [line.label for line in lines if counts and line.kind == "indirect"]
    depends = [label for label in unsure_needs(result, at) or follow if label in named]
    each = {
        "rare": rare_values(result, at) or (acted if "plausibility" in lacks else []),
        "far": far_changes(result, at),
        "unclear": list(unclear_changes(result, at)),
        "depends": depends[: max(NAMED)],
    }
    name = next((name for name, some in each.items() if some), "narrow")
    return name, list(dict.fromkeys(each.get(name, acted)))


def _determining(result: Result, feature: Feature, at: int) -> list[str]:
    """What a row may act on, and determines a feature by definition."""
    schema, may = result.encoder.schema, result.question.may_act[at]
    own = [r for r in schema.relations if r.name == feature.name and r.is_definition]
    return [name for each in own for name in each.members if bool(may[schema.index([name])[0]])]


def rare_values(result: Result, at: int) -> list[str]:
    """What an answer acts on that goes beyond the central training values, in words.

    Of all rows, and of those that are alike in all else.
    """
    row, usual, out = result.proposal.rows[at], result.question.method.trained.usual, []
    for j, feature, old, new in _amounts(result, at):
        least, most = usual.ends(row, j)
        if not min(old, least) <= new <= max(old, most):
            out.append(feature.called)
    return out


def far_changes(result: Result, at: int) -> list[str]:
    """What an answer acts on, where that goes farther than most rows could, in words."""
    return far_of(*(amount for _, *amount in _amounts(result, at)))


def far_of(*amounts: Sequence[Any]) -> list[str]:
    """Amounts, each a feature with its old and its new value, where they change too much.

    Those count that change by more than a few steps, which are some of its own values where it has
    few: in all by more than a part of their usual ranges, or one by more than a part of the old.
    """
    large = []
    for feature, old, new in amounts:
        each, step = feature.observed, feature.usual_step
        step = (each[-1] - each[0]) / (len(each) - 1) if len(each) > 1 else step
        if abs(new - old) > FEW * step:
            large.append((feature, old, new))
    whole = sum(abs(new - old) / feature.unit_of_cost for feature, old, new in large)
    own = any(abs(new - old) > FARTHEST[new > old] * abs(old) for _, old, new in large)
    return [feature.called for feature, *_ in large] if whole > FAR or own else []


def unsure_needs(result: Result, at: int) -> list[str]:
    """What must follow, though it is not known that it does, in words."""
    effects = result.encoder.schema.causal_order.is_stated
    return [
        line.label
        for line in needs(result, at)
        if line.is_open or not (effects or _is_choice(result, at, line))
    ]


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
    out = round(round(whole) / grain, max(places or 0, 0))
    return value if out in feature.codes else out


def _named(schema: Schema) -> set[str]:
    """The features that a letter may name besides the action: where some have labels, these."""
    return {f.called for f in schema if f.label} or {f.called for f in schema}


def _amounts(result: Result, at: int) -> list[tuple[int, Feature, float, float]]:
    """The amounts that an answer acts on, with their places, and old and new values."""
    x, row = result.x[at], result.proposal.rows[at]
    some = result.proposal.direct[at] & (x != row) & result.encoder.amounts(x, row)
    each = (some.nonzero()[:, 0], x[some], row[some])
    features = result.encoder.schema.features
    return [(j, features[j], *ends) for j, *ends in zip(*(e.tolist() for e in each), strict=True)]


def _is_choice(result: Result, at: int, line: Line) -> bool:
    """Whether the applicant may act on what changes: it is a choice, and does not just happen."""
    (j,) = result.encoder.schema.index([line.feature])
    return bool(result.question.may_act[at, j])


def _draft(result: Result, at: int, digits: int | None, most: int) -> list[Line]:
    """What may be stated of an answer, with some digits and changes that must follow."""
    schema = result.encoder.schema
    acts = [_farther(line, digits) for line in result.lines[at] if line.kind == "direct"]
    must = [_bound(line, digits) for line in needs(result, at)[:most]]
    bound, named = {line.feature for line in must}, _named(schema)
    usual = [
        _usual(line, digits or USUAL_DIGITS, needed=line.feature in bound)
        for size, line in followers(result, at)
        if schema.causal_order.is_stated and size >= LEAST_NAMED and line.label in named
        if not (line.is_open or _is_choice(result, at, line))
    ]
    return [*acts, *must, *usual[:MOST_USUAL]]


def _farther(line: Line, digits: int | None) -> Line:
    """An action with a rounded new value, which is farther unless no row has gone so far."""
    if not line.is_amount:
        return line
    (low, high), ends = line.of.bounds, (float(line.old), float(line.new))
    farther, nearer = (rounded(line.of, *ends, digits, away=away) for away in (1, -1))
    return line._replace(new=farther if low <= farther <= high else nearer)


def _usual(line: Line, digits: int, *, needed: bool) -> Line:
    """What usually follows, rounded; not short of what must."""
    new = line.new
    if line.is_amount:
        new = rounded(line.of, float(line.old), float(new), digits, away=int(needed))
    return line._replace(new=new, least=line.old)


def _bound(line: Line, digits: int | None) -> Line:
    """Between which ends a change must follow."""
    if not is_amount(line.of, line.old, line.least, line.new):
        return line._replace(new=line.least)
    line = _farther(line, digits)
    old, least, new = map(float, (line.old, line.least, line.new))
    part = rounded(line.of, old, least, digits, away=1)
    return line._replace(least=part if abs(part - old) <= abs(new - old) else new)


def _accepted(result: Result, drafts: Sequence[list[Line]]) -> list[list[Line] | None]:
    """What is stated, with what the action alone forces, where the model accepts it as above."""
    reached, direct, x = result.proposal.rows, result.proposal.direct, result.x
    index, told = result.encoder.schema.index, torch.zeros_like(direct)
    acts = [[line for line in draft if line.kind == "direct"] for draft in drafts]
    musts = [[line for line in draft if line.is_needed] for draft in drafts]
    for i, some in enumerate(musts):
        told[i, list(index(line.feature for line in some))] = True
    repaired = result.question.repaired
    whole = repaired(_written(result, reached, acts), direct)
    alone = repaired(_written(result, torch.where(direct, reached, x), acts), direct)
    first, last = (
        repaired(_written(result, alone, musts, end), direct, told) for end in ("least", "new")
    )
    stay = torch.where((first == alone) & (last == alone), alone, x)
    forced = [_forced(result, i, row) for i, row in enumerate(stay)]
    good, feasible = torch.ones(len(x), dtype=torch.bool), result.question.case.feasible.limits
    for i, j in (direct & (alone != reached)).nonzero().tolist():
        one = torch.tensor([j]), torch.tensor([i])
        good[i] &= feasible.admits(alone[i : i + 1, [j]], *one)[0, 0]
    good &= result.question.accepts_alone(whole)
    good &= between(result.question, first, last, direct, told)
    every = zip(drafts, forced, good.tolist(), strict=True)
    return [[*draft, *own] if fine else None for draft, own, fine in every]


def _forced(result: Result, at: int, alone: Tensor) -> list[Line]:
    """What a stated action forces, given the row with the action alone, (p,)."""
    schema, before = result.encoder.schema, result.labelled[0].iloc[at]
    moved, lines = (alone != result.x[at]) & ~result.proposal.direct[at], []
    for j in moved.nonzero()[:, 0].tolist():
        feature, none = schema.features[j], [math.nan] * 4
        (cell,) = feature.cells(alone[[j]].numpy())
        head = None, 0, feature.name, feature.called, "forced", before[feature.name]
        rest = 0, 0, 1.0, feature.unit, is_exact(schema, feature), feature
        lines.append(Line._make([*head, cell, cell, cell, *none, *rest]))
    return lines


def _written(result: Result, rows: Tensor, lines: list[list[Line]], end: str = "new") -> Tensor:
    """Rows, (m, p), with values of lines; those of no amount or order as the answer has them."""
    rows, reached = rows.clone(), result.proposal.rows
    for i, line in ((i, line) for i, own in enumerate(lines) for line in own):
        (j,), new = result.encoder.schema.index([line.feature]), getattr(line, end)
        rows[i, j] = reached[i, j]
        if is_amount(line.of, line.old, new):
            rows[i, j] = float(line.of.read(pd.Series([new], dtype=float)).values[0])
        elif new in line.of.ranked:
            # What must follow may be a level on the way to that of the answer.
            rows[i, j] = line.of.place(new)
    return rows
