"""Descriptions: the texts of `Recourses.describe`, one for each row of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.results.lazy_answers import Credibility
from dear_plugin.results.proposal import ACCEPTED
from dear_plugin.results.spread import Spread
from dear_plugin.results.wording import (
    NO_ACTION,
    Change,
    Expected,
    certainty,
    nearest,
    sentence,
)

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
        if bool(result.acts[position]):
            return None
        return _unchanged(row, bool(result.changed[position].any()))

    def _with_action(self, position: int, worth: Credibility, spread: Spread, place: int) -> str:
        """The text of a row with an action; `place` is its place in `worth` and `spread`."""
        result = self.result
        changed, direct = result.changed[position], result.proposal.direct[position]
        follows, row = changed & ~direct, result.outcome.iloc[position]
        may_follow = follows | ((spread.moved[place] > 0) & ~direct)
        words = sentence(
            self.changes(position, changed & direct),
            self.changes(position, follows),
            result.lazy_answers.flip_probabilities(position),
            self._expected(follows, spread, place),
        )
        if not row["success"]:
            return f"{words}; {row['reason']}"
        more = []
        if spread.count and bool(may_follow.any()):
            confidence, reliance = worth.confidence[place], worth.reliance[place]
            more = certainty(float(reliance), round(confidence * spread.count), spread.count)
        if worth.credible[place] or not result.proposal.searched:
            return " ".join([f"{words}.", *more]) if more else words
        note = result.proposal.all_notes[position]
        return nearest(words, more, note, float(worth.plausibility[place]))

    def _expected(self, follows: Tensor, spread: Spread, place: int) -> dict[str, Expected]:
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
