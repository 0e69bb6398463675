"""Said: answers in; what a letter says of them, in amounts that the model accepts, out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.kinds import read
from dear_plugin.results.descriptions import Answered, answered, forced_moves
from dear_plugin.results.result import Result
from dear_plugin.results.wording import Move

# Significant digits of amounts, None for the exact value, and how many of the changes that must
# follow are named: what the model accepts first is said.
DIGITS: tuple[int | None, ...] = (2, 3, None)
NAMED = (1, 2, 3)
MOST_USUAL = 2
# An indirect change is named from this many standard deviations of the training rows on.
LEAST_NAMED = 0.1


@dataclass(frozen=True)
class Said:
    """What a letter says of an answer.

    Attributes:
        actions: what is acted on, with rounded amounts.
        forced: what these change by definition.
        usual: what usually follows, the largest change first.
        needed: what must follow, up to where it must.
        digits: the significant digits of amounts.
    """

    actions: tuple[Move, ...]
    forced: tuple[Move, ...]
    usual: tuple[Move, ...]
    needed: tuple[Move, ...]
    digits: int | None


def said(result: Result, positions: Sequence[int]) -> list[Said | None]:
    """What is said of the answers at m positions, all of which act; None where nothing can be.

    The row that has what is said, and nothing else, is accepted by the user's model, as is the row
    that has everything that is expected to follow.
    """
    rows, found = answered(result, positions), dict[int, Said]()
    left = [at for at, row in enumerate(rows) if _can_be_recommended(row)]
    digits = DIGITS if result.proposal.searched else DIGITS[-1:]
    for most, places in product(NAMED, digits):
        drafts = [_draft(rows[at], places, most) for at in left]
        if left:
            done = _accepted([rows[at] for at in left], drafts)
            found |= {at: draft for at, draft in zip(left, done, strict=True) if draft}
        left = [at for at in left if at not in found]
    return [found.get(at) for at in range(len(rows))]


def rounded(move: Move, value: float, digits: int | None, away: int = 0) -> float:
    """A value that a number changes to, with some significant digits of it and of its change.

    Args:
        move: the change.
        value: between its ends, or its end.
        digits: None leaves the value as it is.
        away: 1 rounds away from the old value, -1 towards it, 0 to the nearest.
    """
    change, places = value - float(move.old), move.feature.precision
    if change == 0.0 or move.feature.observed or (digits is None and places is None):
        return value
    if digits is not None:
        sizes = [abs(each) for each in (change, value) if each]
        own = max(digits - 1 - math.floor(math.log10(size)) for size in sizes)
        own = max(own, -math.floor(math.log10(move.feature.usual_step)))
        places = own if places is None else min(own, places)
    grain = 10.0 ** (places or 0)
    whole = round(value * grain, 6)
    if away:
        whole = math.ceil(whole) if (change > 0) == (away > 0) else math.floor(whole)
    return round(round(whole) / grain, max(places or 0, 0))


def _can_be_recommended(row: Answered) -> bool:
    """Whether what an answer needs may be told.

    No part of what follows undoes the action; what is needed has a known direction, and is an
    effect or a choice of the applicant.
    """
    if not row.relies:
        return True
    needed, effects = row.needed, row.result.encoder.schema.causal_order.is_stated
    told = all(not m.is_open and (effects or _is_chosen(row, m)) for m in needed)
    return told and not bool(row.result.spread.alone[row.at])


def _draft(row: Answered, digits: int | None, most: int) -> Said:
    """What may be said of an answer.

    Args:
        row: with the answer.
        digits: of amounts.
        most: the number of changes that must follow.
    """
    acted = tuple(_farther(move, digits) for move in row.moves.values() if move.direct)
    usual = (row.moves[j] for j, size in row.sizes.items() if size >= LEAST_NAMED)
    told = [move for move in usual if not move.is_open and not _is_chosen(row, move)]
    needed = tuple(_bound(move, digits) for move in row.needed[:most])
    return Said(acted, (), tuple(told[:MOST_USUAL]), needed, digits)


def _is_chosen(row: Answered, move: Move) -> bool:
    """Whether the applicant may act on what changes: it is a choice, and does not just happen."""
    (j,) = row.result.encoder.schema.index([move.feature.name])
    question = row.result.question
    return bool(question.method._acts[j] & ~question.case.feasible.not_actionable[row.at, j])


def _farther(move: Move, digits: int | None) -> Move:
    """An action with a rounded new value, which is farther unless no row has gone so far."""
    if not move.is_amount:
        return move
    (low, high), new = move.feature.bounds, float(move.new)
    value = rounded(move, new, digits, away=1)
    return replace(move, new=value if low <= value <= high else rounded(move, new, digits, -1))


def _bound(move: Move, digits: int | None) -> Move:
    """Up to where a change must follow."""
    if not move.is_amount:
        return replace(move, new=move.least)
    old, new = float(move.old), float(move.new)
    part = rounded(move, float(move.least), digits, away=1)
    return replace(move, new=part if abs(part - old) <= abs(new - old) else new)


def _accepted(rows: Sequence[Answered], drafts: Sequence[Said]) -> list[Said | None]:
    """What is said where the model accepts it, without and with all that is expected to follow.

    With what the told action forces.
    """
    part = rows[0].result.select(torch.tensor([row.at for row in rows]))
    reached, direct, x = part.proposal.rows, part.proposal.direct, part.x
    least, whole = torch.where(direct, reached, x), reached.clone()
    for i, draft in enumerate(drafts):
        for tried in (least[i], whole[i]):
            _write(tried, reached[i], draft.actions, part)
    least, whole = part.repaired(least), part.repaired(whole)
    forced = [tuple(forced_moves(part, i, row)) for i, row in enumerate(least)]
    told = [replace(draft, forced=own) for draft, own in zip(drafts, forced, strict=True)]
    needed = torch.zeros_like(direct)
    for i, draft in enumerate(drafts):
        _write(least[i], reached[i], draft.needed, part)
        needed[i, list(part.encoder.schema.index(m.feature.name for m in draft.needed))] = True
    least = part.repaired(least, needed)
    good, feasible = torch.ones(len(x), dtype=torch.bool), part.question.case.feasible
    for i, j in (direct & (least != reached)).nonzero().tolist():
        one = torch.tensor([j]), torch.tensor([i])
        good[i] &= feasible.admits(least[i : i + 1, [j]], *one)[0, 0]
    for tried in (least, whole):
        good &= part.question.accepts_alone(tried)
    return [draft if fine else None for draft, fine in zip(told, good.tolist(), strict=True)]


def _write(row: Tensor, reached: Tensor, moves: Sequence[Move], result: Result) -> None:
    """Write changes into a row, (p,); those that are no amounts as the answer has them."""
    schema = result.encoder.schema
    for move in moves:
        (j,) = schema.index([move.feature.name])
        row[j] = reached[j]
        if move.is_amount:
            value = pd.Series([move.new], dtype=float)
            row[j] = float(read(move.feature, value).values[0])
