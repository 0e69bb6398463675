"""Descriptions: the rows of a result in; their texts, and the changes that figures draw, out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.lazy_answers import Credibility
from dear_plugin.results.spread import Spread
from dear_plugin.results.values import Change, amount_of, ends
from dear_plugin.results.wording import (
    ENOUGH,
    Expected,
    certainty,
    nearest,
    sentence,
)

if TYPE_CHECKING:
    from dear_plugin.results.recourses import Recourses

# The expected changes that a description names.
MOST_EXPECTED = 3
# Letters of a value in a figure; longer ones end in an ellipsis.
MOST_LETTERS = 30
# The columns of the changes that a figure draws.
COLUMNS = ("feature", "values", "direct", "change", "low", "high")


def describe(result: Recourses, positions: Sequence[int]) -> list[str]:
    """The texts of the rows at m positions; what they share is computed once."""
    words = {at: _without_action(result, at) for at in positions}
    acting = [at for at, text in words.items() if text is None]
    words |= {row.at: row.text for row in answered(result, acting)}
    return [words[at] or "" for at in positions]


def panel(result: Recourses, position: int) -> tuple[pd.DataFrame, str, str]:
    """What a figure of a row shows: its changes (`COLUMNS`), its title and its text."""
    title = head(result, position)
    if not result.acts[position]:
        return pd.DataFrame(columns=COLUMNS), title, describe(result, [position])[0]
    (row,) = answered(result, [position])
    return row.table, title, row.worth_text


def head(result: Recourses, position: int) -> str:
    """The row and its score, before and after where it has an action.

    A row that cannot be read has no score.
    """
    row, acts = result.outcome.iloc[position], bool(result.acts[position])
    name = f"Row {result.factuals.index[position]}"
    if pd.isna(row["score_before"]):
        return name
    is_probability = result.lazy_answers.scores_are_probabilities
    before, after = (
        f"{row[column]:.0%}" if is_probability else f"{row[column]:.4g}"
        for column in ("score_before", "score_after")
    )
    what = "probability of the wanted decision" if is_probability else "predicted value"
    attempt = "not solved; nearest attempt, " if acts and not row["success"] else ""
    scores = f"{before} → {after}" if acts else before
    return f"{name}: {attempt}{what} {scores}"


def changes(result: Recourses, position: int, mask: Tensor) -> list[Change]:
    """The features of a mask, (p,), with their old and new value in a row."""
    before, after = result.factuals.iloc[position], result.counterfactuals.iloc[position]
    picked = [result.encoder.schema.features[j] for j in mask.nonzero()[:, 0].tolist()]
    return [(f, before[f.name], after[f.name]) for f in picked]


def _without_action(result: Recourses, position: int) -> str | None:
    """The text of a row without an action; None where it has one."""
    row, reason = result.outcome.iloc[position], result.outcome["reason"].iloc[position]
    if not row["success"] and result.proposal.searched:
        return f"no recourse found: {reason}"
    if result.acts[position]:
        return None
    moves = bool(result.changed[position].any())
    explained = bool(reason) and not bool(result.proposal.accepted[position])
    if row["success"] and not explained and not moves:
        return "nothing to change: the decision is already the wanted one"
    return f"{'no action' if moves else 'nothing changes'}: {reason or Reason.ROUNDED_AWAY}"


def answered(result: Recourses, positions: Sequence[int]) -> list[Answered]:
    """The rows at positions, all of which act, with what is known of their answers."""
    if not positions:
        return []
    idx, answers = torch.tensor(positions), result.lazy_answers
    worth, spread = answers.credibility(idx), answers.spread(idx)
    return [Answered(result, at, worth, spread, place) for place, at in enumerate(positions)]


@dataclass(frozen=True)
class Answered:
    """One row of a result with an action, and what is known of it.

    Attributes:
        result: n rows.
        at: the position of the row.
        worth: the credibility of some rows, this one among them.
        spread: of the same rows over redraws of the decoder.
        place: the position of the row among them.
    """

    result: Recourses
    at: int
    worth: Credibility
    spread: Spread
    place: int

    @property
    def text(self) -> str:
        """The action, its indirect changes, and what is known of them."""
        result, changed = self.result, self.result.changed[self.at]
        largest, follows = self._largest, self._follows
        words = sentence(
            changes(result, self.at, changed & ~follows),
            changes(result, self.at, largest),
            result.lazy_answers.flip_probabilities(self.at),
            self._expected(largest),
            int(follows.sum() - largest.sum()),
        )
        row = result.outcome.iloc[self.at]
        if not row["success"]:
            return f"{words}; {row['reason']}"
        more = self._certainty
        if self._is_credible:
            return " ".join([f"{words}.", *more]) if more else words
        rarity = float(self.worth.plausibility[self.place])
        return nearest(words, more, result.proposal.notes[self.at], rarity)

    @property
    def worth_text(self) -> str:
        """What is known of the action besides its changes: `certainty`, or its reason."""
        row = self.result.outcome.iloc[self.at]
        if not row["success"]:
            return f"Not solved: {row['reason']}."
        if self._is_credible:
            return " ".join(self._certainty)
        reason = row["reason"] or self.worth.lacking[self.place]
        return " ".join([*self._certainty, f"{reason[:1].upper()}{reason[1:]}."])

    @property
    def table(self) -> pd.DataFrame:
        """The changed features, those acted on first, then by size: `COLUMNS`."""
        result, low, high = self.result, self.spread.low, self.spread.high
        direct, changed = result.proposal.direct[self.at], result.changed[self.at]
        size = torch.where(self._is_amount, self._step, 1.0)
        measured = self._is_amount & ~direct
        ends = (torch.where(measured, end[self.place], size) for end in (low, high))
        expected = self._expected(self._follows)
        every = changes(result, self.at, changed)
        numbers = zip(COLUMNS[2:], (direct, size, *ends), strict=True)
        frame = pd.DataFrame(
            {
                "feature": [feature.name for feature, _, _ in every],
                "values": [values(each, expected.get(each[0].name)) for each in every],
                **{name: column[changed].numpy() for name, column in numbers},
            }
        )
        order = np.lexsort((-frame["change"].abs(), ~frame["direct"]))
        return frame.iloc[order].reset_index(drop=True)

    @property
    def _is_credible(self) -> bool:
        """Whether nothing is said against the answer; as with actions that the user gave."""
        return bool(self.worth.credible[self.place]) or not self.result.proposal.searched

    @property
    def _follows(self) -> Tensor:
        """(p,) bool, the features that change indirectly."""
        return self.result.changed[self.at] & ~self.result.proposal.direct[self.at]

    @property
    def _step(self) -> Tensor:
        """(p,) the changes, in row units."""
        return self.result.proposal.rows[self.at] - self.result.x[self.at]

    @property
    def _is_amount(self) -> Tensor:
        """(p,) bool, the numbers that are no special value before or after."""
        before, after = self.result.x[self.at], self.result.proposal.rows[self.at]
        special: Tensor = is_special(before) | is_special(after)
        return self.result.encoder.is_number & ~special

    @property
    def _largest(self) -> Tensor:
        """(p,) bool, the `MOST_EXPECTED` largest indirect changes.

        Changes of numbers are in standard deviations of the training rows; a changed category, or
        a change from or to a special value, counts 1.
        """
        steps = self._step.abs().double() / self.result.lazy_answers.deviations.clamp_min(1e-9)
        follows = self._follows
        size = torch.where(self._is_amount, steps, 1.0).masked_fill(~follows, -1.0)
        largest = torch.zeros_like(follows)
        largest[size.argsort(descending=True, stable=True)[:MOST_EXPECTED]] = True
        return largest & follows

    @property
    def _certainty(self) -> list[str]:
        """Whether the action alone is enough, and the confidence; empty without redraws.

        The confidence is left out where no redraw changes anything besides the action.
        """
        count, direct = self.spread.count, self.result.proposal.direct[self.at]
        if not bool((self._follows | (self.spread.moved[self.place] > 0) & ~direct).any()):
            return [ENOUGH] if count else []
        confidence, reliance = self.worth.confidence[self.place], self.worth.reliance[self.place]
        return certainty(float(reliance), round(confidence * count), count)

    def _expected(self, follows: Tensor) -> dict[str, Expected]:
        """The uncertain changes among indirect ones, (p,) bool, by name."""
        out, spread = {}, self.spread
        for j in follows.nonzero()[:, 0].tolist():
            feature = self.result.encoder.schema.features[j]
            moved, low, high = (
                each[self.place, j].item() for each in (spread.moved, spread.low, spread.high)
            )
            if feature.kind is Kind.NUMERIC and low < high:
                out[feature.name] = Expected(low * feature.width, high * feature.width)
            elif moved < spread.count and low == high == 0.0:
                out[feature.name] = Expected(times=(int(moved), spread.count))
        return out


def values(change: Change, expected: Expected | None) -> str:
    """The old and the new value of a feature, with what redraws of the decoder give instead.

    Args:
        change: of the feature.
        expected: its uncertain indirect change; None where the redraws agree, or there are none.
    """
    feature, old, _ = change
    text = " → ".join(_clipped(end) for end in ends(*change))
    if expected is None:
        return text
    if expected.times is not None:
        return f"{text} ({expected.times[0]} of {expected.times[1]} redraws)"
    low, high = (amount_of(feature, float(old) + by) for by in (expected.low, expected.high))
    return f"{text} ({low} to {high})" if low != high else text


def _clipped(text: str) -> str:
    """A text of at most `MOST_LETTERS` letters."""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1].rstrip()}…"
