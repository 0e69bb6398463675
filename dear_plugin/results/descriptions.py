"""Descriptions: the texts of `Recourses.describe`, one for each row of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special
from dear_plugin.results.lazy_answers import Credibility
from dear_plugin.results.proposal import ACCEPTED
from dear_plugin.results.spread import Spread
from dear_plugin.results.values import Change
from dear_plugin.results.wording import (
    ENOUGH,
    NO_ACTION,
    Expected,
    certainty,
    nearest,
    sentence,
)

# The expected changes that a description names.
MOST_EXPECTED = 3

if TYPE_CHECKING:
    from dear_plugin.results.recourses import Recourses


@dataclass(frozen=True)
class Descriptions:
    """The rows of a result in words.

    Attributes:
        result: n rows.
    """

    result: Recourses

    def of(self, positions: list[int]) -> list[str]:
        """The texts of the rows at m positions; what they share is computed once."""
        words = {at: self._without_action(at) for at in positions}
        rows = torch.tensor([at for at, text in words.items() if text is None], dtype=torch.int64)
        if len(rows):
            answers = self.result.lazy_answers
            worth, spread = answers.credibility(rows), answers.spread(rows)
            for place, at in enumerate(rows.tolist()):
                words[at] = self._with_action(at, worth, spread, place)
        return [words[at] or "" for at in positions]

    def worth(self, position: int) -> str:
        """What is known of a row's action besides its changes: `certainty`, or its reason."""
        rows, row = torch.tensor([position]), self.result.outcome.iloc[position]
        if not row["success"]:
            return f"Not solved: {row['reason']}."
        worth = self.result.lazy_answers.credibility(rows)
        spread = self.result.lazy_answers.spread(rows)
        more = self._certainty(position, worth, spread, 0)
        if worth.credible[0] or not self.result.proposal.searched:
            return " ".join(more)
        reason = row["reason"] or worth.lacking[0]
        return " ".join([*more, f"{reason[:1].upper()}{reason[1:]}."])

    def head(self, position: int) -> str:
        """The row and its score, before and after where it has an action.

        A row that cannot be read has no score.
        """
        row, result, acts = self.result.outcome.iloc[position], self.result, self.acts(position)
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

    def acts(self, position: int) -> bool:
        """Whether a feature acted on changes in a row."""
        return bool(self.result.acts[position])

    def changes(self, position: int, mask: Tensor) -> list[Change]:
        """The features of a mask, (p,), with their old and new value."""
        result = self.result
        before = result.factuals.iloc[position]
        after = result.counterfactuals.iloc[position]
        features = result.encoder.schema.features
        picked = [features[j] for j in mask.nonzero()[:, 0].tolist()]
        return [(f, before[f.name], after[f.name]) for f in picked]

    def _without_action(self, position: int) -> str | None:
        """The text of a row without an action; None where it has one."""
        result, row = self.result, self.result.outcome.iloc[position]
        if not row["success"] and result.proposal.searched:
            return f"no recourse found: {row['reason']}"
        if self.acts(position):
            return None
        return _unchanged(row, bool(result.changed[position].any()))

    def _with_action(self, position: int, worth: Credibility, spread: Spread, place: int) -> str:
        """The text of a row with an action; `place` is its place in `worth` and `spread`."""
        result = self.result
        changed, direct = result.changed[position], result.proposal.direct[position]
        follows, row = changed & ~direct, result.outcome.iloc[position]
        largest = self._largest(position, follows)
        words = sentence(
            self.changes(position, changed & direct),
            self.changes(position, largest),
            result.lazy_answers.flip_probabilities(position),
            self.expected(largest, spread, place),
            int(follows.sum() - largest.sum()),
        )
        if not row["success"]:
            return f"{words}; {row['reason']}"
        more = self._certainty(position, worth, spread, place)
        if worth.credible[place] or not result.proposal.searched:
            return " ".join([f"{words}.", *more]) if more else words
        note = result.proposal.all_notes[position]
        return nearest(words, more, note, float(worth.plausibility[place]))

    def _largest(self, position: int, follows: Tensor) -> Tensor:
        """(p,) bool, the `MOST_EXPECTED` largest changes of a row among `follows`, (p,) bool.

        Changes of numbers are in standard deviations of the training rows; a changed category, or
        a change from or to a special value, counts 1.
        """
        result = self.result
        before, after = result.x[position], result.proposal.rows[position]
        numbers = torch.tensor([f.kind is Kind.NUMERIC for f in result.encoder.schema])
        amount = numbers & ~is_special(before) & ~is_special(after)
        steps = (after - before).abs().double() / result.lazy_answers.deviations.clamp_min(1e-9)
        size = torch.where(amount, steps, 1.0).masked_fill(~follows, -1.0)
        largest = torch.zeros_like(follows)
        largest[size.argsort(descending=True, stable=True)[:MOST_EXPECTED]] = True
        return largest & follows

    def _certainty(
        self, position: int, worth: Credibility, spread: Spread, place: int
    ) -> list[str]:
        """Whether the action alone is enough, and the confidence; empty without redraws.

        The confidence is left out where no redraw changes anything besides the action.
        """
        result = self.result
        direct = result.proposal.direct[position]
        may_follow = (result.changed[position] | (spread.moved[place] > 0)) & ~direct
        if not bool(may_follow.any()):
            return [ENOUGH] if spread.count else []
        confidence, reliance = worth.confidence[place], worth.reliance[place]
        return certainty(float(reliance), round(confidence * spread.count), spread.count)

    def expected(self, follows: Tensor, spread: Spread, place: int) -> dict[str, Expected]:
        """The uncertain changes of the features that change indirectly, (p,) bool, by name."""
        out = {}
        for j in follows.nonzero()[:, 0].tolist():
            feature, moved = self.result.encoder.schema.features[j], int(spread.moved[place, j])
            low, high = float(spread.low[place, j]), float(spread.high[place, j])
            if feature.kind is Kind.NUMERIC and low < high:
                out[feature.name] = Expected(low * feature.width, high * feature.width)
            elif moved < spread.count and low == high == 0.0:
                out[feature.name] = Expected(times=(moved, spread.count))
        return out


def _unchanged(row: pd.Series, moves: bool) -> str:
    """The text of a row of `outcome` without an action; `moves` says whether it changes."""
    if row["success"] and row["reason"] in ("", ACCEPTED) and not moves:
        return "nothing to change: the decision is already the wanted one"
    return f"{'no action' if moves else 'nothing changes'}: {row['reason'] or NO_ACTION}"
