"""Said: answers in; what a letter says of them, in amounts that the model accepts, out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress, product

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.kinds import read
from dear_plugin.results.descriptions import Answered, answered
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Question
from dear_plugin.results.result import Result
from dear_plugin.results.wording import Move
from dear_plugin.search.credibility import HALF

# Significant digits of a change, and how many of the changes that must follow are named: what the
# model accepts first is said. None is for the exact value, and for all that must follow.
DIGITS: tuple[int | None, ...] = (2, 3, None)
NAMED: tuple[int | None, ...] = (2, None)
MOST_USUAL = 2
# An indirect change is named from this many standard deviations of the training rows on.
LEAST_NAMED = 0.1


@dataclass(frozen=True)
class Said:
    """What a letter says of an answer.

    Attributes:
        actions: what is acted on, with rounded amounts.
        usual: what usually follows, the largest change first.
        needed: what must follow, up to where it must.
        digits: the significant digits of amounts.
    """

    actions: tuple[Move, ...]
    usual: tuple[Move, ...]
    needed: tuple[Move, ...]
    digits: int | None


def said(result: Result, positions: Sequence[int]) -> list[Said]:
    """What is said of the answers at m positions, all of which act.

    The row that has what is said, and nothing else, is accepted by the user's model, as is the row
    that has everything that is expected to follow.
    """
    rows, left = answered(result, positions), list(range(len(positions)))
    # The answer itself, with all that follows, is accepted in any case.
    found = [_draft(row, None, None, share=1.0) for row in rows]
    digits = DIGITS if result.proposal.searched else DIGITS[-1:]
    for most, places in product(NAMED, digits):
        if left:
            drafts = [_draft(rows[at], places, most) for at in left]
            done = _accepted([rows[at] for at in left], drafts)
            for at, draft in compress(zip(left, drafts, strict=True), done):
                found[at] = draft
            left = [at for at, good in zip(left, done, strict=True) if not good]
    return found


def rounded(move: Move, value: float, digits: int | None, away: int = 0) -> float:
    """A value that a number changes to, with some significant digits of its change.

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
        own = digits - 1 - math.floor(math.log10(abs(change)))
        places = own if places is None else min(own, places)
    grain = 10.0 ** (places or 0)
    whole = round(value * grain, 6)
    if away:
        whole = math.ceil(whole) if (change > 0) == (away > 0) else math.floor(whole)
    return round(round(whole) / grain, max(places or 0, 0))


def _draft(
    row: Answered, digits: int | None, most: int | None, share: float | None = None
) -> Said:
    """What may be said of an answer.

    Args:
        row: with the answer.
        digits: of amounts.
        most: the number of changes that must follow; None for all.
        share: how much of them must happen where some must; None for the reliance.
    """
    acted = tuple(_farther(move, digits) for move in row.moves.values() if move.direct)
    follows, reliance = _by_size(row), float(row.result.spread.reliance[row.at])
    part = reliance if share is None else share
    needed = [_bound(move, part, digits) for move in follows] if reliance > 0.0 else []
    usual = tuple(move for move, size in follows.items() if size >= LEAST_NAMED)
    bounds = tuple(move for move in needed if move is not None)
    return Said(acted, usual[:MOST_USUAL], bounds[:most], digits)


def _farther(move: Move, digits: int | None) -> Move:
    """An action with a rounded new value, which is farther unless no row has gone so far."""
    if not move.is_amount:
        return move
    (low, high), new = move.feature.bounds, float(move.new)
    value = rounded(move, new, digits, away=1)
    return replace(move, new=value if low <= value <= high else rounded(move, new, digits, -1))


def _bound(move: Move, share: float, digits: int | None) -> Move | None:
    """Up to where a change must follow, where a share of it is needed; None for nowhere."""
    if not move.is_amount:
        return move if share >= HALF else None
    old, new = float(move.old), float(move.new)
    part = rounded(move, old + share * (new - old), digits, away=1)
    return replace(move, new=part if abs(part - old) <= abs(new - old) else new)


def _by_size(row: Answered) -> dict[Move, float]:
    """The indirect changes that are likely, with their sizes, the largest first."""
    deviations = row.result.question.method.trained.deviations.clamp_min(1e-9).tolist()
    sizes = {
        move: abs(move.size) / deviations[j] if move.is_amount else 1.0
        for j, move in row.moves.items()
        if not move.direct and not move.is_uncertain
    }
    return dict(sorted(sizes.items(), key=lambda each: -each[1]))


def _accepted(rows: Sequence[Answered], drafts: Sequence[Said]) -> list[bool]:
    """Whether the model accepts what is said, without and with all that is expected to follow."""
    result, at = rows[0].result, torch.tensor([row.at for row in rows])
    question, proposal = result.question.select(at), result.proposal.select(at)
    direct, x = proposal.direct, question.case.x
    least, whole = torch.where(direct, proposal.rows, x), proposal.rows.clone()
    for i, draft in enumerate(drafts):
        _write(least[i], proposal.rows[i], draft.actions + draft.needed, result)
        _write(whole[i], proposal.rows[i], draft.actions, result)
    good, feasible = torch.ones(len(x), dtype=torch.bool), question.case.feasible
    for i, j in (direct & (least != proposal.rows)).nonzero().tolist():
        one = torch.tensor([j]), torch.tensor([i])
        good[i] &= feasible.admits(least[i : i + 1, [j]], *one)[0, 0]
    for tried in (least, whole):
        good &= _wanted(question, tried, direct)
    accepted: list[bool] = good.tolist()
    return accepted


def _wanted(question: Question, rows: Tensor, direct: Tensor) -> Tensor:
    """(m,) bool, whether the user's model decides as wanted for rows, (m, p)."""
    proposal = Proposal(rows, direct, torch.zeros(len(rows)), [""] * len(rows))
    return question.write(proposal, torch.arange(len(rows))).success


def _write(row: Tensor, reached: Tensor, moves: Sequence[Move], result: Result) -> None:
    """Write changes into a row, (p,); those that are no amounts as the answer has them."""
    schema = result.encoder.schema
    for move in moves:
        for j in schema.positions([move.feature.name]):
            row[j] = reached[j]
        if move.is_amount:
            value = pd.Series([move.new], dtype=float)
            row[j] = float(read(move.feature, value).values[0])
