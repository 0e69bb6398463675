"""What is needed beside an action, and what a letter states of an answer: the model is evaluated.

Needed is what the model accepts with just these changes, and refuses without any one of them. An
answer is stated as advice, in round amounts, if that is true of the model and can be
said; else it is noted what stands in the way.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, compress, product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.cells import cells_of, read_column
from dear_plugin.data.encoder import patch
from dear_plugin.data.feature import Feature
from dear_plugin.data.names import may_be_said
from dear_plugin.data.numbers import in_steps
from dear_plugin.data.schema import Schema
from dear_plugin.evaluation.trained import CLEAR
from dear_plugin.problem.rules import ROUNDS
from dear_plugin.results.changes import (
    Hindrance,
    Line,
    Role,
    followers,
    is_amount,
    needed_changes,
    same,
    unclear_changes,
)
from dear_plugin.results.proposal import Proposal, Question, Scored, selected
from dear_plugin.results.reasons import depends_most
from dear_plugin.results.worth import Worth, as_actions
from dear_plugin.search.settings import CRITERIA

# Rows that the model evaluates at a time, and values between two ends.
ROWS_AT_A_TIME = 1 << 16
BETWEEN = 32
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
# A computed number has the decimals of its column up to so many, or else these digits.
MOST_DECIMALS = 3
# Changes of amounts of more than so many steps are no advice where they are more than these
# shares: of the usual range in all; of the own value, in a rise and in a fall (by judgement).
FAR, FEW, FARTHEST = 0.5, 2, {True: 1 / 3, False: 0.5}

Lines: TypeAlias = list[Line]


def needed_ranges(question: Question, proposal: Proposal, worth: Worth) -> Tensor:
    """(n, p) where the changes that must follow begin; they end in the answer.

    The action is accepted with these changes from `Worth.least` on, see `between`, or else they
    are the answer's own; where it is accepted, it is refused, by the user's model or a rule, with
    any one of them left out. What is not needed beside the others has the value before.
    """
    x, relies = question.case.x, worth.reliance > 0.0
    out = torch.where(relies[:, None], worth.least, x)
    left = (relies & ~torch.from_numpy(worth.alone)).nonzero()[:, 0]
    for start in (worth.least, proposal.rows):
        if len(left):
            some, own = selected(question, left), selected(proposal, left)
            follow = _told(some, own, start[left])
            last = own.rows.where(follow | own.direct, x[left])
            first = start[left].where(follow, last)
            out[left] = first
            left = left[~between(some, own, first, last, follow)]
    return out


def between(
    question: Question, proposal: Proposal, first: Tensor, last: Tensor, follow: Tensor
) -> Tensor:
    """(n,) bool, whether the model accepts first rows, last ones, and those in between.

    Each number takes `BETWEEN` values from end to end, and these are combined at random.

    Args:
        question: of n rows.
        proposal: of the answers.
        first: (n, p) rows with the actions and what must follow.
        last: (n, p) likewise, of which only amounts count.
        follow: (n, p) bool, what must follow.
    """
    x, wide = question.case.x, (first != last).any(1).nonzero()[:, 0]
    some = torch.rand(BETWEEN, x.shape[1], generator=torch.Generator().manual_seed(0))
    shares = torch.cat([some.argsort(0) / (BETWEEN - 1), torch.ones(1, x.shape[1])])
    low, high = first[wide, None], last[wide, None]
    rows = question.case.feasible.limits.rounded(x[wide], torch.lerp(low, high, shares.to(low)))
    rows = rows.where(question.encoder.amounts(low, high), low).flatten(0, 1)
    at = torch.cat([torch.arange(len(x)), wide.repeat_interleave(len(shares))])
    refused = ~accepted_parts(question, proposal, at, torch.cat([first, rows]), follow[at])
    out = torch.ones(len(x), dtype=torch.bool)
    out[at[refused]] = False
    return out


def accepted_parts(
    question: Question, proposal: Proposal, at: Tensor, rows: Tensor, follow: Tensor
) -> Tensor:
    """(m,) bool, whether the model accepts rows, (m, p), at positions, with what they force."""
    found, parts = [], (each.split(ROWS_AT_A_TIME) for each in (at, rows, follow))
    for i, part, also in zip(*parts, strict=True):
        some, own = selected(question, i), selected(proposal, i)
        found.append(some.accepts_part(some.repaired(part, own.direct, also), own.rows))
    return torch.cat(found)


def _told(question: Question, proposal: Proposal, start: Tensor) -> Tensor:
    """(n, p) bool, the indirect changes up to some rows, (n, p), none of which can be left out.

    The smallest are left out first, as many as can be, until no single one can.
    """
    x, direct, encoder = question.case.x, proposal.direct, question.encoder
    follow = (start != x) & ~direct
    for each in encoder.schema.definitions:
        own, *others = encoder.schema.index(each.members)
        # What follows moves what it defines.
        follow[:, own] &= ~(follow | direct)[:, others].any(1)
    sizes = encoder.distance(start, x) / question.trained.deviations.clamp_min(1e-9)

    def accepted(at: Tensor, some: Tensor) -> Tensor:
        rows = torch.where(direct[at], proposal.rows[at], torch.where(some, start[at], x[at]))
        return accepted_parts(question, proposal, at, rows, some)

    at, j = follow.nonzero().T
    while len(at):
        fine = accepted(at, follow[at].scatter(1, j[:, None], False))
        free = torch.zeros_like(follow)
        free[at[fine], j[fine]] = True
        at, place = (torch.arange(follow.shape[1]) < free.sum(1)[:, None]).nonzero().T
        if not len(at):
            break
        order = sizes.where(free, torch.inf).argsort(1).argsort(1)
        fine = accepted(at, follow[at] & (order[at] > place[:, None]))
        # Each single one can be left out, the smallest as well.
        many = torch.zeros(len(x), dtype=torch.int64)
        many.scatter_reduce_(0, at, place * fine, "amax")
        follow &= (order > many[:, None]) | ~free
        at, j = (follow & free.any(1)[:, None]).nonzero().T
    return follow


def determined(schema: Schema, moved: Tensor, direct: Tensor) -> Tensor:
    """(n, p) bool, what an action sets to just one value, where an order would only bound it.

    Args:
        schema: of the features.
        moved: (n, p) bool, what the action alone changes.
        direct: (n, p) bool, what is acted on.
    """
    bounded = {name for pair in schema.orders for name in pair}
    known = direct | torch.tensor([feature.name not in bounded for feature in schema])
    defined = [[*schema.index(each.members)] for each in schema.definitions]
    for at in defined * ROUNDS:
        own, others = (moved & ~known)[:, at], (moved & known)[:, at]
        # What alone of its members is open has the value that they leave it.
        known[:, at] |= own & ((own.sum(1) == 1) & others.any(1))[:, None]
    return known


def statements(
    question: Question, written: Scored, worth: Worth, in_the_way: Tensor, lines: Sequence[Lines]
) -> tuple[list[Lines], list[Hindrance]]:
    """The lines of m answers with what a letter states of them, and what stands in its way.

    Args:
        question: m rows.
        written: the answers.
        worth: of them.
        in_the_way: (m, p) bool, see `obstacles`.
        lines: (m,) of the answers.
    """
    schema, proposal = question.encoder.schema, written.proposal
    acts = proposal.direct & (proposal.rows != question.case.x)
    done = written.success & acts.any(1)
    # No part of what follows undoes it.
    undone = (worth.reliance > 0.0) & torch.from_numpy(worth.alone)
    lines = [_with_roles(question, at, own) for at, own in enumerate(lines)]
    lines = _as_model_needs(question, proposal, lines, done & worth.credible)
    advised = _advised(schema, lines, acts)
    vague = _vague(question, proposal, advised & ~acts).tolist()
    # What is needed has a known direction, and is an effect or a choice of the applicant.
    unsure = [any(e.is_open or not e.role for e in needed_changes(own)) for own in lines]
    searched = proposal.searched
    rare = _rare(question, advised & (done & searched)[:, None], proposal.rows).tolist()
    unfit = [
        _unfit(schema, own, rare[at], vague[at]) if searched and fine else {}
        for at, (own, fine) in enumerate(zip(lines, done.tolist(), strict=True))
    ]
    sure = (done & worth.credible & ~undone).tolist()
    fit = [not any(some.values()) for some in unfit]
    good = [at for at in range(len(lines)) if sure[at] and fit[at] and not unsure[at]]
    found = stated(question, proposal, lines, good)
    unreadable = torch.from_numpy(question.unreadable != "")
    needless = (question.accepted & ~acts.any(1) | unreadable).tolist()
    hindrances = [Hindrance()] * len(lines)
    without = [at for at in range(len(lines)) if not (at in found or needless[at])]
    near = _nearest(question, proposal, lines, [at for at in without if not done[at]])
    # Each answer of rank 0 is the first one of a row; letters to rows with a way need no more.
    starts = [all(line.rank == 0 for line in own[:1]) for own in lines]
    row = [*accumulate(starts)]
    ways = {row[at] for at in found}
    first = [at for at in without if searched and starts[at] and row[at] not in ways]
    beside = _counting(question, in_the_way, first)
    for at in without:
        own = lines[at]
        acted = [line.label for line in own if line.kind == "direct"]
        counts = bool(worth.reliance[at] > 0) and any(e.kind == "indirect" for e in own)
        is_rare = bool(worth.lacks[at, CRITERIA.index("plausibility")])
        why = {
            **unfit[at],
            "rare": unfit[at].get("rare") or acted * is_rare,
            "depends": acted * (unsure[at] or counts),
            "narrow": acted,
        }
        hindrance = near.get(at) or _hindrance(own, why)
        hindrances[at] = hindrance._replace(beside=beside.get(at, ()))
    return [found.get(at, own) for at, own in enumerate(lines)], hindrances


def stated(
    question: Question, proposal: Proposal, lines: Sequence[Lines], positions: Sequence[int]
) -> dict[int, Lines]:
    """The lines of answers at positions, with what a letter states, where something can be.

    Amounts are round. What is needed is from `stated_least` to `stated`, and an action may be
    enough from `stated_least` on. The user's model accepts the rows with just what is stated, see
    `between`, and the row with all that is expected to follow.
    """
    found: dict[int, Lines] = {}
    digits = DIGITS if proposal.searched else DIGITS[-1:]
    first, *others = product(NAMED, digits)
    # The model evaluates the first draft of each, and then all the others at once.
    for some in ([first], others):
        left = [at for at in positions if at not in found]
        drafts = [(at, own) for at in left for own in _drafts(question, at, lines[at], some)]
        for at, draft in _accepted(question, proposal, drafts):
            found.setdefault(at, draft)
    _add_least(question, proposal, found)
    return found


def _drafts(
    question: Question, at: int, lines: Lines, some: Iterable[tuple[int, int | None]]
) -> list[Lines]:
    """What may be stated of an answer, by how many changes are named, and with which digits."""
    own = [_draft(question, at, lines, digits, most) for most, digits in some]
    return [each for i, each in enumerate(own) if each not in own[:i]]


def _hindrance(lines: Lines, why: Mapping[str, Any]) -> Hindrance:
    """What stands in the way of stating an answer of some lines as advice.

    Args:
        lines: of the answer.
        why: features in words by the sentence that names them, the first of which counts.
    """
    name = next(name for name, some in why.items() if some)
    advised = [_told_as(e, _farther(e, 2)) for e in lines if e.role == "advised"]
    return Hindrance(name, [*dict.fromkeys(why[name])], advised)


def _nearest(
    question: Question, proposal: Proposal, lines: Sequence[Lines], positions: Sequence[int]
) -> dict[int, Hindrance]:
    """How near answers at positions come that the model refuses.

    Amounts are round, and the model refuses them, too.
    """
    if not positions:
        return {}
    schema, idx = question.encoder.schema, torch.tensor(positions)
    some, own = selected(question, idx), selected(proposal, idx)
    acted = [[line for line in lines[at] if line.kind == "direct"] for at in positions]
    drafts, exact = ([[_towards(e, d) for e in each] for each in acted] for d in (2, None))
    rows = some.repaired(_written(schema, own.rows, own.rows, drafts), own.direct, forced=False)
    refused = ~some.accepts_part(rows, own.rows)
    shown = [drafts[i] if no else exact[i] for i, no in enumerate(refused.tolist())]
    return {
        at: Hindrance("nearest" if each else "nothing", [line.label for line in each], each)
        for at, each in zip(positions, shown, strict=True)
    }


def _counting(
    question: Question, in_the_way: Tensor, positions: Sequence[int]
) -> dict[int, list[Hindrance]]:
    """What counts most of what cannot be acted on, for rows at positions.

    It is what stands in the way, or else what the decision depends on most.

    Args:
        question: m rows.
        in_the_way: (m, p) bool, see `obstacles`.
        positions: of the rows.
    """
    if not positions:
        return {}
    schema = question.encoder.schema
    public = _may_be_named(schema)
    most = depends_most(selected(question, torch.tensor(positions)), public).tolist()
    out = {}
    for at, j in zip(positions, most, strict=True):
        fixed = [f.called for f in compress(schema, (in_the_way[at] & public).tolist())]
        some = fixed or [schema.features[j].called] * (j >= 0)
        out[at] = [Hindrance("fixed" if fixed else "most", some)] * bool(some)
    return out


def _towards(line: Line, digits: int | None) -> Line:
    """A line that states its new value, rounded towards the old one but not to it."""
    new = _rounded(line, digits, -1)
    return _told_as(line, line.new if same(new, line.old) else new)


def _told_as(line: Line, new: Any) -> Line:
    """A line that states a new value."""
    return line._replace(stated=new, stated_least=new)


def _may_be_named(schema: Schema) -> Tensor:
    """(p,) bool, the features that a letter may name, though they are not acted on.

    What others determine is not named: they are.
    """
    named, computed = _named(schema), {each.name for each in schema.definitions}
    return torch.tensor(
        [
            f.called in named
            and not (f.identifier or f.name in computed)
            and may_be_said(f.name, immutable=f.immutable)
            for f in schema
        ]
    )


def _unfit(
    schema: Schema, lines: Lines, rare: Sequence[bool], vague: Sequence[bool]
) -> dict[str, list[str]]:
    """Features for which an action is no advice, whatever follows, by why.

    It goes to rare values, or far, or the model does not clearly favour its direction.
    """
    unclear = [f.called for f in compress(schema, vague)]
    return {
        "rare": [f.called for f in compress(schema, rare)],
        "far": _far(schema, lines, "new"),
        "unclear": [*unclear_changes(lines), *unclear],
    }


def _rare(question: Question, advised: Tensor, rows: Tensor) -> Tensor:
    """(m, p) bool, amounts of rows, (m, p), beyond the central training values.

    Of all rows, and of those that are alike in all else; of advised features, (m, p) bool.
    """
    x, usual = question.case.x, question.trained.usual
    advised = advised & (x != rows) & question.encoder.amounts(x, rows)
    out = torch.zeros_like(advised)
    for j in advised.any(0).nonzero()[:, 0].tolist():
        at = advised[:, j].nonzero()[:, 0]
        (least, most), old, new = usual.ends(rows[at], j), x[at, j], rows[at, j]
        out[at, j] = (new < least.minimum(old)) | (new > most.maximum(old))
    return out


def _far(schema: Schema, lines: Lines, end: str) -> list[str]:
    """Of what is acted on, see `far_of`, with an end of each change."""
    own = [line for line in lines if line.role == "advised" and line.is_amount]
    own.sort(key=lambda line: schema.names.index(line.feature))
    return far_of(*((line.of, float(line.old), float(getattr(line, end))) for line in own))


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


def _with_roles(question: Question, at: int, lines: Lines) -> Lines:
    """Lines with what a letter says of each, as far as the order of causes decides it.

    It asks for what is acted on, and for what is needed beside it and the applicant may act on.
    It says that an effect is needed. Of what else is needed nothing can be said.
    """

    def role(line: Line) -> Role:
        if line.kind == "direct" or (line.is_needed and _is_choice(question, at, line)):
            return "advised"
        return "needed" if line.is_needed and _follows(question, at, line, choices) else ""

    choices = [line for line in _choices(question, at, lines) if not line.is_needed]
    return [line._replace(role=role(line)) for line in lines]


def _follows(question: Question, at: int, line: Line, choices: Lines) -> bool:
    """Whether what changes follows the action, and not what the applicant may leave as it is.

    Choices in between, that a letter does not ask for, may bring it about.
    """
    if line.link != "effect" or _is_choice(question, at, line):
        return False
    schema = question.encoder.schema
    order, (j,) = schema.causal_order, schema.index([line.feature])
    between = schema.index(each.feature for each in choices)
    return not any(j not in order.held([k]) and k in order.held([j]) for k in between)


def _as_model_needs(
    question: Question, proposal: Proposal, lines: Sequence[Lines], fine: Tensor
) -> list[Lines]:
    """Lines of which only that is advised, or needed, without which the model refuses.

    Without other changes that must follow the row cannot be: effects among them just follow.
    """
    schema, x, direct = question.encoder.schema, question.case.x, proposal.direct
    each = [(at, e) for at, own in enumerate(lines) if fine[at] for e in needed_changes(own)]
    if not each:
        return [*lines]
    idx, k = torch.tensor([at for at, _ in each]), torch.arange(len(each))
    j = torch.tensor([*schema.index(line.feature for _, line in each)])
    follow = torch.zeros_like(direct).index_put((idx, j), torch.tensor(True))[idx]
    follow[k, j] = False
    some, own = selected(question, idx), selected(proposal, idx)
    rows = torch.where(own.direct | follow, own.rows, x[idx])
    rows = some.repaired(rows, own.direct, follow)
    after, seen = patch(some.encoder, some.frame, x[idx], rows=rows)
    needless = some.decided(after, seen, k)[1].tolist()
    out = [*map(list, lines)]
    for (at, line), can_go in zip(each, needless, strict=True):
        if can_go:
            role: Role = "usual" if line.role == "needed" else ""
            out[at][out[at].index(line)] = line._replace(role=role)
    return out


def _advised(schema: Schema, lines: Sequence[Lines], like: Tensor) -> Tensor:
    """(m, p) bool, what letters ask for."""
    return _marked(schema, [[e for e in own if e.role == "advised"] for own in lines], like)


def _marked(schema: Schema, lines: Sequence[Lines], like: Tensor) -> Tensor:
    """(m, p) bool, the features of the lines of each answer."""
    out = torch.zeros_like(like)
    for i, own in enumerate(lines):
        out[i, list(schema.index(line.feature for line in own))] = True
    return out


def _vague(question: Question, proposal: Proposal, advised: Tensor) -> Tensor:
    """(m, p) bool, of advised features, (m, p) bool, what the model does not clearly favour."""
    trained, idx = question.trained, advised.any(1).nonzero()[:, 0]
    out = torch.zeros_like(advised)
    rows = question.case.x[idx], proposal.rows[idx], advised[idx]
    if proposal.searched and len(idx):
        out[idx] = trained.consistency.of(*rows, question.case.goal, idx) < CLEAR
    return out


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


def _is_choice(question: Question, at: int, line: Line) -> bool:
    """Whether the applicant may act on what changes: it is a choice, and does not just happen."""
    (j,) = question.encoder.schema.index([line.feature])
    return bool(question.may_act[at, j])


def _choices(question: Question, at: int, lines: Lines) -> Lines:
    """The effects that the applicant may choose, too."""
    return [e for e in lines if e.link == "effect" and _is_choice(question, at, e)]


def _draft(question: Question, at: int, lines: Lines, digits: int | None, most: int) -> Lines:
    """What may be stated of an answer, with some digits and of so many changes needed."""
    rest = [line.feature for line in needed_changes(lines) if line.role != "advised"]
    needed = {line.feature for line in needed_changes(lines)} - {*rest[most:]}
    named = _named(question.encoder.schema)
    choices = [line for line in _choices(question, at, lines) if line.role != "advised"]
    usual = [
        line.feature
        for line in sorted(followers(lines), key=lambda line: line.role != "usual")
        if line.role == "usual" or (line.in_sd >= LEAST_NAMED and not line.is_open)
        if line.label in named and _follows(question, at, line, choices)
    ]
    out = []
    for line in lines:
        own = line
        if line.kind == "direct":
            own = _told_as(line, _farther(line, digits))
        elif line.feature in needed:
            own = _bound(line, digits)
        if line.feature in usual[:MOST_USUAL]:
            # It is not short of what is needed.
            usually = _rounded(own, digits or USUAL_DIGITS, int(own.stated is not None))
            own = own._replace(stated_usual=usually)
        out.append(own)
    return out


def _farther(line: Line, digits: int | None) -> Any:
    """The new value of a change, rounded: farther, unless no row has gone so far."""
    farther, (low, high) = _rounded(line, digits, 1), line.of.bounds
    is_inside = not line.is_amount or low <= farther <= high
    return farther if is_inside else _rounded(line, digits, -1)


def _rounded(line: Line, digits: int | None, away: int) -> Any:
    """The new value of a change; of an amount rounded, see `rounded`."""
    if not line.is_amount:
        return line.new
    return rounded(line.of, float(line.old), float(line.new), digits, away=away)


def _bound(line: Line, digits: int | None) -> Line:
    """Between which ends a change is needed."""
    if not is_amount(line.of, line.old, line.least, line.new):
        return _told_as(line, line.least)
    old, least, new = map(float, (line.old, line.least, _farther(line, digits)))
    part = rounded(line.of, old, least, digits, away=1)
    part = float(in_steps(np.array(part), np.array(line.of.action_step), up=new > old))
    part = part if abs(part - old) <= abs(new - old) else new
    return line._replace(stated=new, stated_least=part)


def _accepted(
    question: Question, proposal: Proposal, given: Sequence[tuple[int, Lines]]
) -> list[tuple[int, Lines]]:
    """Of drafts with their positions those that the model accepts, with what the advice forces."""
    if not given:
        return []
    at, drafts = torch.tensor([at for at, _ in given]), [draft for _, draft in given]
    question, proposal = selected(question, at), selected(proposal, at)
    reached, direct, x = proposal.rows, proposal.direct, question.case.x
    schema, repaired = question.encoder.schema, question.repaired
    acts = [[line for line in draft if line.kind == "direct"] for draft in drafts]
    more = [[e for e in own if e.kind != "direct" and e.stated is not None] for own in drafts]
    chosen = [[line for line in own if line.role == "advised"] for own in more]
    whole = repaired(_written(schema, reached, reached, acts), direct, forced=False)
    alone = repaired(_written(schema, torch.where(direct, reached, x), reached, acts), direct)
    follow = _marked(schema, more, direct)
    first, last = (
        repaired(_written(schema, alone, reached, more, end), direct, follow)
        for end in ("stated_least", "stated")
    )
    # What the advice sets, and what else is needed does not move.
    advised, also = alone, _marked(schema, chosen, direct)
    if bool(also.any()):
        advised = repaired(_written(schema, alone, reached, chosen), direct, also)
    stay = torch.where(
        (last == advised) & ((first == alone) | also.any(1, keepdim=True)), advised, x
    )
    good, limits = torch.ones(len(x), dtype=torch.bool), question.case.feasible.limits
    for i, j in (direct & (alone != reached)).nonzero().tolist():
        good[i] &= limits.admits(alone[i : i + 1, [j]], torch.tensor([j]), torch.tensor([i]))[0, 0]
    # No rounding takes an amount to where none is advised.
    if proposal.searched:
        good &= ~_rare(question, _advised(schema, drafts, direct) & good[:, None], whole).any(1)
        good &= torch.tensor([not _far(schema, draft, "stated") for draft in drafts])
    good &= question.accepts_part(whole, reached)
    good &= between(question, proposal, first, last, follow)
    exact = determined(schema, stay != x, direct | also)
    return [
        (at, _forced(schema, draft, (x[i], stay[i], exact[i])))
        for i, ((at, draft), fine) in enumerate(zip(given, good.tolist(), strict=True))
        if fine
    ]


def _add_least(question: Question, proposal: Proposal, drafts: dict[int, Lines]) -> None:
    """Note from which values on the model accepts an action, with what follows then.

    The advice is more: by the margin and other criteria, or as the action alone is to be enough.
    Several amounts go as large a part of their way together. What is advised beside an action
    has its own.
    """
    encoder, x = question.encoder, question.case.x
    acted = {i: [e for e in drafts[i] if e.kind == "direct" and e.is_amount] for i in drafts}
    for i in drafts:
        acted[i] *= all(e.kind == "direct" for e in drafts[i] if e.role == "advised")
    if not any(acted.values()) or question.trained.decoders is None:
        return
    at = torch.tensor([i for i, own in acted.items() if own])
    problem, acts = as_actions(question.case, proposal, at, question.trained)
    old, new = x[at, None], proposal.rows[at, None]
    way = torch.lerp(old, new, LESS[:, None].to(old)).numpy()
    part = torch.from_numpy(in_steps(way, encoder.step.numpy()))
    part = question.case.feasible.limits.snap_rows(part, at)
    part = part.where(number := encoder.amounts(old, new), new)
    features = problem.sets.positions[acts.sets][:, None].expand(-1, len(LESS), -1)
    with torch.inference_mode():
        rows = problem.decode_actions(acts.rows, acts.sets, part.gather(2, features))
    follow, every = torch.ones_like(rows).bool().flatten(0, 1), at.repeat_interleave(len(LESS))
    fine = accepted_parts(question, proposal, every, rows.flatten(0, 1), follow).view(len(at), -1)
    fine &= ((part != old) | ~(number & proposal.direct[at, None])).all(2)
    counts = fine.long().cumprod(1).sum(1).tolist()
    for i, own, count in zip(at.tolist(), part, counts, strict=True):
        drafts[i] = [_with_least(encoder.schema, line, own[:count]) for line in drafts[i]]


def _with_least(schema: Schema, line: Line, parts: Tensor) -> Line:
    """A line of what is acted on with the least of some rows, (c, p), that are accepted."""
    if line.kind != "direct" or not line.is_amount:
        return line
    (j,), old = schema.index([line.feature]), float(line.old)
    less = [e for e in parts[:, j].tolist() if abs(e - old) < abs(float(line.stated) - old)]
    return line._replace(stated_least=[line.stated, *less][-1])


def _forced(schema: Schema, draft: Lines, rows: tuple[Tensor, Tensor, Tensor]) -> Lines:
    """A draft with what the stated action forces.

    Args:
        schema: of the features.
        draft: of an answer.
        rows: (p,) before, with the advice alone, and what that sets to just one value.
    """
    lines = {line.feature: line for line in draft}
    before, alone, exact = rows
    acted = {line.feature for line in draft if line.kind == "direct" or line.role == "advised"}
    for j in (before != alone).nonzero()[:, 0].tolist():
        feature = schema.features[j]
        if feature.name not in acted:
            old, cell = cells_of(feature, torch.stack([before[j], alone[j]]).numpy())
            line = lines.get(feature.name) or _unmoved(feature, old, draft[0])
            cell = _as_its_column(feature, cell) if exact[j] else cell
            stated = line._replace(stated_forced=cell, exact=bool(exact[j]))
            lines[feature.name] = stated
    return [*lines.values()]


def _as_its_column(feature: Feature, new: Any) -> Any:
    """A computed value with the decimals of its column; of many, those of three digits."""
    places = sys.float_info.dig if feature.precision is None else feature.precision
    if places <= MOST_DECIMALS or not new or not is_amount(feature, new):
        return new
    own = USUAL_DIGITS - 1 - math.floor(math.log10(abs(new)))
    return round(float(new), min(max(own, 0), places))


def _unmoved(feature: Feature, value: Any, beside: Line) -> Line:
    """A line of what an answer leaves, and its rounded action forces."""
    head = beside.row, beside.rank, feature.name, feature.called, "forced"
    rest = *[math.nan] * 4, 0, 0, 0.0, 0.0, math.nan, feature.unit, False, "", *[None] * 4
    return Line._make([*head, *[value] * 4, *rest, feature, ""])


def _written(
    schema: Schema, rows: Tensor, reached: Tensor, lines: list[Lines], end: str = "stated"
) -> Tensor:
    """Rows, (m, p), with values of lines; those of no amount or order as answers have them."""
    rows = rows.clone()
    for i, line in ((i, line) for i, own in enumerate(lines) for line in own):
        (j,), new = schema.index([line.feature]), getattr(line, end)
        rows[i, j] = reached[i, j]
        if is_amount(line.of, line.old, new):
            rows[i, j] = float(read_column(line.of, pd.Series([new], dtype=float)).values[0])
        elif new in line.of.ranked:
            # What is needed may be a level on the way to that of the answer.
            rows[i, j] = line.of.place(new)
    return rows
