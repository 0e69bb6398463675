"""What a letter may say of each answer: amounts that people say, which the model accepts.

An answer is stated as advice if what is said is true of the model and can be said; else it is
noted what stands in the way.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import compress, product
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.feature import Feature
from dear_plugin.data.numbers import in_steps
from dear_plugin.data.schema import Schema
from dear_plugin.results.changes import Line, Saying, is_amount
from dear_plugin.results.describe import followers, needs, unclear_changes
from dear_plugin.results.needs import accepted_parts, between, determined
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.worth import as_actions
from dear_plugin.search.settings import CRITERIA

# Significant digits of amounts, None for the exact value, and how many of the changes that must
# follow are named: what the model accepts first is stated.
DIGITS: tuple[int | None, ...] = (2, 3, None)
NAMED = (0, 1, 2, 3)
# The shares of an action that are tried, as less may be enough.
LESS = torch.arange(9, 0, -1) / 10
MOST_USUAL = 2
# An indirect change is named from this many standard deviations of the training rows on.
LEAST_NAMED = 0.1
# Digits of what usually follows, where an action has no rounded value.
USUAL_DIGITS = 3
# Changes of amounts of more than so many steps are no advice where they are more than these
# shares: of the usual range in all; of the own value, in a rise and in a fall (by judgement).
FAR, FEW, FARTHEST = 0.5, 2, {True: 0.4, False: 0.5}


def sayings(result: Recourses) -> list[Saying]:
    """(m,) what a letter may say of each answer, or what stands in its way."""
    worth, acts, rare = result.worth, result.acts, _rare(result).tolist()
    asked = (result.success & acts & result.proposal.searched).tolist()
    each = enumerate(zip(result.lines, rare, strict=True))
    unfit = [_unfit(result, *own) if asked[at] else {} for at, own in each]
    # No part of what follows undoes it.
    undone = (worth.reliance > 0.0) & torch.from_numpy(worth.alone)
    sure = (result.success & acts & worth.credible & ~undone).tolist()
    good = [at for at, why in enumerate(unfit) if sure[at] and not why]
    # What must follow has a known direction, and is an effect or a choice of the applicant.
    good = [at for at in good if not unsure_needs(result, at)]
    lines = dict(zip(good, stated(result, good), strict=True))
    unreadable = torch.from_numpy(result.question.unreadable != "")
    needless = (result.question.accepted & ~acts | unreadable).tolist()
    lacks = [[*compress(CRITERIA, row)] for row in worth.lacks.tolist()]
    found = [Saying(lines.get(at) or ()) for at in range(len(acts))]
    for at in (at for at, each in enumerate(found) if not (each.lines or needless[at])):
        found[at] = Saying((), *hindrance(result, at, unfit[at], lacks[at]))
    return found


def stated(result: Recourses, positions: Sequence[int]) -> list[list[Line] | None]:
    """The lines that a letter states of the answers at m positions; None where none can be.

    Amounts are round. What the action alone forces has its value in `alone`; what must follow is
    from `least` to `new`, and an action may be enough from `least` on. The user's model accepts
    the rows with just what is stated, see `between`, and the row with all that is expected to
    follow.
    """
    found: dict[int, list[Line]] = {}
    digits = DIGITS if result.proposal.searched else DIGITS[-1:]
    first, *others = product(NAMED, digits)
    # The model is asked for the first draft of each, and then for all the others at once.
    for some in ([first], others):
        drafts: list[tuple[int, list[Line]]] = []
        for at in (at for at in positions if at not in found):
            own = [_draft(result, at, places, most) for most, places in some]
            drafts += [(at, each) for i, each in enumerate(own) if each not in own[:i]]
        if drafts:
            idx = torch.tensor([at for at, _ in drafts])
            done = _accepted(result.select(idx), [each for _, each in drafts])
            for at, draft in zip(idx.tolist(), done, strict=True):
                if draft:
                    found.setdefault(at, draft)
    _add_least(result, found)
    return [found.get(at) for at in positions]


def hindrance(
    result: Recourses, at: int, unfit: Mapping[str, Sequence[str]], lacks: Sequence[str]
) -> tuple[str, list[str]]:
    """What stands in the way of advice: the name of a sentence, and features in words.

    Args:
        result: of m answers.
        at: the position of one.
        unfit: what makes its action no advice, see `_unfit`.
        lacks: the criteria that it does not meet.
    """
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
    counts = bool(result.worth.reliance[at] > 0.0)
    follow = [line.label for line in lines if counts and line.kind == "indirect"]
    depends = [label for label in unsure_needs(result, at) or follow if label in named]
    each = {
        "rare": unfit.get("rare") or (acted if "plausibility" in lacks else []),
        "far": unfit.get("far", []),
        "unclear": unfit.get("unclear", []),
        "depends": depends[: max(NAMED)],
    }
    name = next((name for name, some in each.items() if some), "narrow")
    return name, list(dict.fromkeys(each.get(name, acted)))


def _unfit(result: Recourses, lines: Sequence[Line], rare: Sequence[bool]) -> dict[str, list[str]]:
    """What an action is not asked for, whatever follows, by why.

    It goes to rare values, or far, or the model does not clearly favour its direction.
    """
    own = [line for line in lines if line.kind == "direct" and line.is_amount]
    own.sort(key=lambda line: result.encoder.schema.names.index(line.feature))
    amounts = [(line.of, float(line.old), float(line.new)) for line in own]
    each = {
        "rare": [f.called for f in compress(result.encoder.schema, rare)],
        "far": far_of(*amounts),
        "unclear": [*unclear_changes(lines)],
    }
    return {name: some for name, some in each.items() if some}


def _rare(result: Recourses) -> Tensor:
    """(m, p) bool, amounts that are acted on beyond the central training values.

    Of all rows, and of those that are alike in all else.
    """
    x, rows, encoder = result.x, result.proposal.rows, result.encoder
    asked = result.proposal.direct & (x != rows) & encoder.amounts(x, rows)
    asked &= (result.success & result.proposal.searched)[:, None]
    out, usual = torch.zeros_like(asked), result.question.trained.usual
    for j in asked.any(0).nonzero()[:, 0].tolist():
        at = asked[:, j].nonzero()[:, 0]
        (least, most), old, new = usual.ends(rows[at], j), x[at, j], rows[at, j]
        out[at, j] = (new < least.minimum(old)) | (new > most.maximum(old))
    return out


def _determining(result: Recourses, feature: Feature, at: int) -> list[str]:
    """What a row may act on, and determines a feature by definition."""
    schema, may = result.encoder.schema, result.question.may_act[at]
    own = [each for each in schema.definitions if each.name == feature.name]
    return [name for each in own for name in each.members if bool(may[schema.index([name])[0]])]


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


def unsure_needs(result: Recourses, at: int) -> list[str]:
    """What must follow, though it is not known that it does, in words."""
    return [
        line.label
        for line in needs(result.lines[at])
        if line.is_open or not (line.link == "effect" or _is_choice(result, at, line))
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
        own = max(own, -math.floor(math.log10(max(feature.usual_step, sys.float_info.min))))
        places = own if places is None else min(own, places)
    grain = 10.0 ** min(places or 0, sys.float_info.max_10_exp)
    whole = round(value * grain, 6)
    if not math.isfinite(whole):
        return value
    if away:
        whole = math.ceil(whole) if (change > 0) == (away > 0) else math.floor(whole)
    out = round(round(whole) / grain, max(places or 0, 0))
    return value if out in feature.codes else out


def _named(schema: Schema) -> set[str]:
    """The features that a letter may name besides the action: where some have labels, these."""
    return {f.called for f in schema if f.label} or {f.called for f in schema}


def _is_choice(result: Recourses, at: int, line: Line) -> bool:
    """Whether the applicant may act on what changes: it is a choice, and does not just happen."""
    (j,) = result.encoder.schema.index([line.feature])
    return bool(result.question.may_act[at, j])


def _draft(result: Recourses, at: int, digits: int | None, most: int) -> list[Line]:
    """What may be stated of an answer, with some digits and changes that must follow."""
    acts = [_farther(line, digits) for line in result.lines[at] if line.kind == "direct"]
    acts = [line._replace(least=line.new) for line in acts]
    must = [_bound(line, digits) for line in needs(result.lines[at])[:most]]
    bound, named = {line.feature for line in must}, _named(result.encoder.schema)
    usual = [
        _usual(line, digits or USUAL_DIGITS, needed=line.feature in bound)
        for line in followers(result.lines[at])
        if line.link == "effect" and line.in_sd >= LEAST_NAMED and line.label in named
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


def _accepted(result: Recourses, drafts: Sequence[list[Line]]) -> list[list[Line] | None]:
    """What is stated, with what the action alone forces, where the model accepts it as above."""
    reached, direct, x = result.proposal.rows, result.proposal.direct, result.x
    index, told = result.encoder.schema.index, torch.zeros_like(direct)
    acts = [[line for line in draft if line.kind == "direct"] for draft in drafts]
    musts = [[line for line in draft if line.is_needed] for draft in drafts]
    for i, some in enumerate(musts):
        told[i, list(index(line.feature for line in some))] = True
    repaired = result.question.repaired
    whole = repaired(_written(result, reached, acts), direct, forced=False)
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
    good &= result.question.accepts_part(whole, reached)
    good &= between(result.question, result.proposal, first, last, told)
    every = zip(drafts, forced, good.tolist(), strict=True)
    return [[*draft, *own] if fine else None for draft, own, fine in every]


def _add_least(result: Recourses, drafts: dict[int, list[Line]]) -> None:
    """Note from which value on the model accepts an action on one amount, with what follows then.

    More is asked for: by the margin and other criteria, or as the action alone is to be enough.
    """
    question, encoder, direct = result.question, result.encoder, result.proposal.direct
    single = [i for i in drafts if int(direct[i].sum()) == 1]
    acted = ((i, line) for i in single for line in result.lines[i] if line.kind == "direct")
    amounts = [(i, *encoder.schema.index([e.feature])) for i, e in acted if e.is_amount]
    if not amounts or question.trained.decoders is None:
        return
    at, feature = torch.tensor(amounts).T
    old, new = (rows[at, feature][:, None] for rows in (result.x, result.proposal.rows))
    values = in_steps(torch.lerp(old, new, LESS.to(old)), encoder.step[feature][:, None])
    values = question.case.feasible.limits.snap(values, feature, at)
    problem, acts = as_actions(question.case, result.proposal, at, question.trained)
    with torch.inference_mode():
        rows = problem.decode_actions(acts.rows, acts.sets, values[..., None]).flatten(0, 1)
    told, every = torch.ones_like(rows).bool(), at.repeat_interleave(len(LESS))
    fine = accepted_parts(question, result.proposal, every, rows, told).view(values.shape)
    counts = fine.long().cumprod(1).sum(1).tolist()
    for (i, _), own, count in zip(amounts, values.tolist(), counts, strict=True):
        (line, *others), x = drafts[i], float(drafts[i][0].old)
        less = [each for each in own[:count] if abs(each - x) < abs(float(line.new) - x)]
        drafts[i] = [line._replace(least=[line.new, *less][-1]), *others]


def _forced(result: Recourses, at: int, alone: Tensor) -> list[Line]:
    """What a stated action forces, given the row with the action alone, (p,)."""
    schema = result.encoder.schema
    moved, direct, lines = alone != result.x[at], result.proposal.direct[at], []
    exact = determined(schema, moved[None], direct[None])[0]
    for j in (moved & ~direct).nonzero()[:, 0].tolist():
        feature, none = schema.features[j], [math.nan] * 4
        old, cell = feature.cells(torch.stack([result.x[at, j], alone[j]]).numpy())
        head = None, 0, feature.name, feature.called, "forced", old
        rest = 0, 0, 1.0, 1.0, math.nan, feature.unit, bool(exact[j]), "", None, None, feature
        lines.append(Line._make([*head, cell, cell, cell, *none, *rest]))
    return lines


def _written(result: Recourses, rows: Tensor, lines: list[list[Line]], end: str = "new") -> Tensor:
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
