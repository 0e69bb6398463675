"""Descriptions: rows of a result as texts, and their changes as tables for figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data import kinds
from dear_plugin.evaluation.consistency import CLEAR
from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.result import Result
from dear_plugin.results.wording import (
    ENOUGH,
    SURE,
    Change,
    Move,
    agreed,
    enough,
    level,
    sentence,
    succeeds,
    unclear,
    weak,
)

# The expected changes that a description names.
MOST_EXPECTED = 3
# The columns of the changes that a figure draws.
COLUMNS = ("feature", "values", "kind", "change", "low", "high")


def describe(result: Result, positions: Sequence[int]) -> list[str]:
    """The texts of the rows at m positions; what they share is computed once."""
    part = _part(result, positions)
    words = [_without_action(part, at) for at in range(len(part))]
    acting = [at for at, text in enumerate(words) if text is None]
    each = zip(acting, answered(part, acting), strict=True)
    known = {at: row.text for at, row in each}
    return [known.get(at) or text or "" for at, text in enumerate(words)]


def panel(result: Result, position: int) -> tuple[pd.DataFrame, str, str]:
    """What a figure of a row shows: its changes (`COLUMNS`), its title and its text."""
    title = head(result, position)
    if not result.acts[position]:
        return pd.DataFrame(columns=COLUMNS), title, describe(result, [position])[0]
    (row,) = answered(result, [position])
    return row.table, title, row.worth_text


def head(result: Result, position: int) -> str:
    """The row and its score, before and after where it has an action.

    A row that cannot be read has no score.
    """
    row, acts = result.outcome.iloc[position], bool(result.acts[position])
    name = f"Row {result.factuals.index[position]}"
    if pd.isna(row["score_before"]):
        return name
    is_probability = result.question.case.goal.scores_are_probabilities
    before, after = (
        f"{row[column]:.0%}" if is_probability else f"{row[column]:.4g}"
        for column in ("score_before", "score_after")
    )
    what = "probability of the wanted decision" if is_probability else "predicted value"
    attempt = "not solved; nearest attempt, " if acts and not row["success"] else ""
    scores = f"{before} → {after}" if acts else before
    return f"{name}: {attempt}{what} {scores}"


def changes(result: Result, position: int) -> dict[int, Move]:
    """What changes in a row, by the position of the feature."""
    before, after = (frame.iloc[position] for frame in result.labelled)
    steps = (result.proposal.rows[position] - result.x[position]) / result.encoder.unit
    direct, out = result.proposal.direct[position].tolist(), {}
    forced = (result.proposal.rows[position] == result.alone[position]).tolist()
    for j in result.changed[position].nonzero()[:, 0].tolist():
        feature = result.encoder.schema.features[j]
        kind: Change = "direct" if direct[j] else "forced" if forced[j] else "indirect"
        move = Move(feature, before[feature.name], after[feature.name], kind)
        out[j] = replace(move, size=float(steps[j])) if move.is_amount else move
    # What follows moves what it defines.
    for each in (r for r in result.encoder.schema.relations if r.is_definition):
        name, *others = result.encoder.schema.index(each.members)
        if name in out and out[name].kind == "indirect" and not out.keys().isdisjoint(others):
            out[name] = replace(out[name], kind="forced")
    return out


def forced_moves(result: Result, position: int, alone: Tensor) -> list[Move]:
    """What an action forces in a row, given the row with the action alone, (p,)."""
    schema, own = result.encoder.schema, result.labelled[0].iloc[position]
    defined = {n for each in schema.relations if each.is_definition for n in each.members}
    moves = []
    for j in (alone != result.x[position]).nonzero()[:, 0].tolist():
        feature, name = schema.features[j], schema.names[j]
        if not result.proposal.direct[position, j]:
            (cell,) = kinds.of(feature).cells(feature, alone[[j]].numpy())
            moves.append(Move(feature, own[name], cell, "forced", is_exact=name in defined))
    return moves


def unclear_changes(result: Result, position: int) -> dict[str, float]:
    """What a row acts on that the model does not clearly favour, with the consistency."""
    if not result.proposal.searched or not bool(result.outcome["success"].iloc[position]):
        return {}
    shares = result.question.consistency(result.proposal, torch.tensor([position]))[0].tolist()
    moves = changes(result, position)
    return {move.feature.called: shares[j] for j, move in moves.items() if shares[j] < CLEAR}


def _without_action(result: Result, position: int) -> str | None:
    """The text of a row without an action; None where it has one."""
    row, reason = result.outcome.iloc[position], result.outcome["reason"].iloc[position]
    if not row["success"] and result.proposal.searched:
        return f"no recourse found: {result.actions['reason'].iloc[position]}"
    if result.acts[position]:
        return None
    moves = bool(result.changed[position].any())
    explained = bool(reason) and not bool(result.proposal.accepted[position])
    if row["success"] and not explained and not moves:
        return "nothing to change: the decision is already the wanted one"
    return f"{'no action' if moves else 'nothing changes'}: {reason or Reason.ROUNDED_AWAY}"


def answered(result: Result, positions: Sequence[int]) -> list[Answered]:
    """The rows at positions, all of which act, with what is known of their answers."""
    part = _part(result, positions) if positions else result
    return [Answered(part, place) for place in range(len(positions))]


def _part(result: Result, positions: Sequence[int]) -> Result:
    """The rows at positions as a result of their own."""
    every = list(positions) == list(range(len(result)))
    return result if every else result.select(torch.tensor(positions, dtype=torch.int64))


@dataclass(frozen=True)
class Answered:
    """One row of a result with an action, and what is known of it.

    Attributes:
        result: some rows.
        at: the position of the row among them.
    """

    result: Result
    at: int

    @property
    def text(self) -> str:
        """The action, its indirect changes, and what is known of them."""
        result, row = self.result, self.result.outcome.iloc[self.at]
        direct = [m for m in self.moves.values() if m.kind == "direct"]
        flips = result.question.method._flip_probabilities(
            result.question.case, result.proposal, self.at
        )
        shares = {level(result.encoder.schema.features[j]): each for j, each in flips.items()}
        rest = len(self.sizes) - len(self._largest)
        words = sentence(direct, self._largest, shares, rest, forced=self.forced)
        if not row["success"]:
            words, against = f"{words}; {row['reason']}", self._contradicted
            return " ".join([f"{words}.", *against]) if against else words
        more = self._certainty
        if self._is_credible:
            return " ".join([f"{words}.", *more]) if more else words
        return weak(words, more, self._lacks)

    @property
    def worth_text(self) -> str:
        """What is known of the action besides its changes: `certainty`, or its reason."""
        row = self.result.outcome.iloc[self.at]
        if not row["success"]:
            return f"Not solved: {self.result.actions['reason'].iloc[self.at]}."
        if self._is_credible:
            return " ".join(self._certainty)
        return " ".join([*self._certainty, f"Weak answer: {self._lacks}."])

    @property
    def table(self) -> pd.DataFrame:
        """The changed features, those acted on first, then by size: `COLUMNS`."""
        moves = sorted(self.moves.values(), key=lambda m: (not m.direct, -abs(m.size)))
        lines = [(m.feature.title, m.in_short, m.kind, m.size, *m.shares) for m in moves]
        return pd.DataFrame(lines, columns=COLUMNS)

    @lazy
    def moves(self) -> dict[int, Move]:
        """What changes in the row, with what resamples give, by the position of the feature."""
        return {
            j: self._resampled(j, move) if move.kind == "indirect" else move
            for j, move in changes(self.result, self.at).items()
        }

    @lazy
    def forced(self) -> list[Move]:
        """What the action alone changes by definition."""
        return forced_moves(self.result, self.at, self.result.alone[self.at])

    def _resampled(self, j: int, move: Move) -> Move:
        """An indirect change with its ranges, or in how many resamples it happens."""
        spread, found = self.result.spread, self.result.ranges
        moved, all_of_it = int(spread.moved[self.at, j]), (found.low, found.high)
        low, high = (each[self.at, j].item() for each in all_of_it)
        one = found.low_one[self.at, j].item(), found.high_one[self.at, j].item()
        least = spread.least[self.at, j].item()
        move = replace(move, least=self._value(move, j, least))
        if move.is_amount:
            return replace(move, low=low, high=high, one=one)
        agree = one[0] < one[1] or moved == spread.count
        return move if agree else replace(move, times=(moved, spread.count))

    def _value(self, move: Move, j: int, least: float) -> Any:
        """A row value of a feature that changes, in user units."""
        for row, value in ((self.result.x, move.old), (self.result.proposal.rows, move.new)):
            if float(row[self.at, j]) == least:
                return value
        return least

    @property
    def _is_credible(self) -> bool:
        """Whether nothing is said against the answer; as with actions that the user gave."""
        return bool(self.result.credibility.credible[self.at]) or not self.result.proposal.searched

    @property
    def _largest(self) -> list[Move]:
        """The `MOST_EXPECTED` largest indirect changes, in the order of the features."""
        return [self.moves[j] for j in sorted([*self.sizes][:MOST_EXPECTED])]

    @lazy
    def sizes(self) -> dict[int, float]:
        """The sizes of the indirect changes by the position of the feature, the largest first.

        Changes of numbers are in standard deviations of the training rows; a changed category, or
        a change from or to a special value, counts 1.
        """
        deviations = self._trained.deviations.clamp_min(1e-9).tolist()
        sizes = {
            j: abs(move.size) / deviations[j] if move.is_amount else 1.0
            for j, move in self.moves.items()
            if move.kind == "indirect"
        }
        return dict(sorted(sizes.items(), key=lambda each: -each[1]))

    @property
    def relies(self) -> bool:
        """Whether the answer counts on what follows."""
        return bool(self.result.spread.reliance[self.at] > 0.0)

    @property
    def needed(self) -> list[Move]:
        """The changes that must follow, the largest first."""
        moves = (self.moves[j] for j in self.sizes if self.relies)
        return [move for move in moves if move.is_needed]

    @property
    def _certainty(self) -> list[str]:
        """Whether the action alone is enough, and the confidence; empty without resamples.

        The confidence is left out where no resample changes anything besides the action.
        """
        spread, direct = self.result.spread, self.result.proposal.direct[self.at]
        count, resampled = spread.count, (spread.moved[self.at] > 0) & ~direct
        if not bool(resampled.any()) and all(move.direct for move in self.moves.values()):
            return [*([ENOUGH] if count else []), *self._agreed, *self._unclear]
        times, rows = round(float(spread.confidence[self.at]) * count), len(self._trained.rows)
        words = enough(
            self.needed if self.relies else None,
            forced=bool(self.forced),
            alone=bool(spread.alone[self.at]),
            gain=bool(spread.gain[self.at]),
            sure=times >= SURE * count,
        )
        told = succeeds(times, count, rows)
        return [words, told, *self._agreed, *self._unclear, *self._contradicted]

    @property
    def _agreed(self) -> list[str]:
        """How many copies of the model accept the answer."""
        share = float(self.result.actions["agreement"].iloc[self.at])
        return [] if math.isnan(share) else [agreed(share, len(self._trained.copies))]

    @property
    def _trained(self) -> Trained:
        return self.result.question.method.trained

    @property
    def _unclear(self) -> list[str]:
        """What is acted on without a clear direction of the model."""
        return list(filter(None, [unclear(unclear_changes(self.result, self.at))]))

    @property
    def _contradicted(self) -> list[str]:
        """What held-out rows contradict of the indirect changes, where they were diagnosed."""
        acted_on = self.result.outcome["acted_on"].iloc[self.at]
        known = self.result.question.method._contradicted(acted_on)
        features = [m.feature.name for m in self.moves.values() if m.kind == "indirect"]
        return [f"Held-out rows contradict {known[f]}." for f in features if f in known]

    @property
    def _lacks(self) -> str:
        """What the answer lacks."""
        return str(self.result.actions["reason"].iloc[self.at]).removeprefix(Reason.LACKING.start)
