"""Consistency: the share of training rows that gain by the same kind of change.

It is computed from the model alone, on the curves of Goldstein et al. (2015), "Peeking Inside the
Black Box" (individual conditional expectations): some training rows with one feature set to each
of a few values, all else as it is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.target import Goal

logger = logging.getLogger(__name__)

# The rows and values of a number: at most 1,000 model rows a feature of up to 50 values.
MODEL_ROWS, MOST_ROWS, FEWEST_ROWS, POINTS = 1_000, 200, 20, 5
# The quantiles of which the values of a number are chosen.
QUANTILES = torch.arange(1, 40, dtype=torch.float64) / 40.0
# Relative rounding error of a margin: a smaller change is none.
TOLERANCE = 1e-5
# Below this share the model has no clear direction.
CLEAR = 0.7
# Margins that are held in memory at a time.
CELLS = 1 << 22


@dataclass(frozen=True)
class Curves:
    """The scores of r training rows at g values of a feature.

    Attributes:
        scores: (r, g, c) the scores.
        amounts: the first values, which are amounts; the others are levels.
    """

    scores: Tensor
    amounts: int

    def pairs(self, start: int, end: int) -> tuple[Tensor, Tensor]:
        """(q,) the values before and after the changes of a kind, see `ColumnKind.changes`.

        Of an amount to a larger one: those about half of the values apart.
        """
        amounts, step = torch.arange(self.amounts), max(1, self.amounts // 2)
        if start < 0 and end < 0:
            low, high = amounts[: max(self.amounts - step, 0)], amounts[step:]
            return (low, high) if end > start else (high, low)
        one = amounts if start < 0 else torch.tensor([self.amounts + start])
        other = amounts if end < 0 else torch.tensor([self.amounts + end])
        return one.repeat_interleave(len(other)), other.repeat(len(one))


class Consistency:
    """The consistency of changes with what the model makes of the same kind of change elsewhere.

    A kind is a number up or down, one category to another, or a special level left or entered.
    Of the training rows whose margin such a change moves, the share that gain; 1 where it moves
    none, as then the change acts by what follows alone. The model is called when a feature is
    first requested, with at most 1,000 rows for one of up to 50 values.

    Args:
        rows: (n, p) training rows in random order, which the model can score.
        classifier: the model.
    """

    def __init__(self, rows: Tensor, classifier: Classifier) -> None:
        self.rows, self.classifier = rows, classifier
        self._curves: dict[int, Curves | None] = {}

    def of(self, x: Tensor, reached: Tensor, acted: Tensor, goal: Goal, idx: Tensor) -> Tensor:
        """(m, p) double, the consistency of each change of what is acted on; 1 elsewhere.

        NaN where the model takes no rows that change in this feature alone.

        Args:
            x: (m, p) the factual rows.
            reached: (m, p) the counterfactuals.
            acted: (m, p) bool, the features acted on.
            goal: the targets of n rows.
            idx: (m,) the row of each counterfactual.
        """
        out, moved = torch.ones(x.shape, dtype=torch.float64), acted & (x != reached)
        for j in moved.any(0).nonzero()[:, 0].tolist():
            at = moved[:, j].nonzero()[:, 0]
            out[at, j] = self._share(j, x[at, j], reached[at, j], goal, idx[at])
        return out

    def _share(self, j: int, before: Tensor, after: Tensor, goal: Goal, idx: Tensor) -> Tensor:
        """(m,) double, the consistency of changes of feature j, (m,) values each."""
        curves, feature = self._curves_of(j), self._encoder.features[j]
        places = feature.changes(before, after)
        if curves is None:
            return torch.full((len(idx),), torch.nan, dtype=torch.float64)
        keys, which = torch.cat([places, idx[:, None]], 1).unique(dim=0, return_inverse=True)
        shares = torch.empty(len(keys), dtype=torch.float64)
        for start, end in keys[:, :2].unique(dim=0).tolist():
            at = ((keys[:, 0] == start) & (keys[:, 1] == end)).nonzero()[:, 0]
            shares[at] = _gaining(curves, curves.pairs(start, end), goal, keys[at, 2])
        return shares[which]

    def _curves_of(self, j: int) -> Curves | None:
        """The curves of feature j; None where the model takes no such rows."""
        if j not in self._curves:
            try:
                with torch.inference_mode(False):  # they outlive the caller's inference mode
                    self._curves[j] = self._measured(j)
            except Exception as error:  # of the user's model, which may check its rows
                logger.warning("no consistency of %r: %s", self._encoder.schema.names[j], error)
                self._curves[j] = None
        return self._curves[j]

    def _measured(self, j: int) -> Curves:
        """The curves of feature j: the model is called."""
        values, amounts = self._values(j)
        ordinary = self._encoder.amounts(self.rows[:, j], at=j)
        rows = self.rows[ordinary] if bool(ordinary.any()) else self.rows
        count = max(FEWEST_ROWS, min(MOST_ROWS, MODEL_ROWS // len(values)))
        grid = rows[:count, None].repeat(1, len(values), 1)
        grid[:, :, j] = values.to(grid)
        scores = self.classifier.scores(grid.flatten(0, 1))
        return Curves(scores.view(*grid.shape[:2], -1), amounts)

    def _values(self, j: int) -> tuple[Tensor, int]:
        """(g,) the values of a feature, and how many of the first are amounts."""
        feature, known = self._encoder.schema.features[j], self.rows[:, j]
        amounts = _spread(known[self._encoder.amounts(known, at=j)])
        levels, missing = feature.label_values, feature.missing_value
        if not bool((known == missing).any()):
            levels = levels.masked_fill(levels == missing, 0.0)  # the model may not take it
        return torch.cat([amounts, levels]), len(amounts)

    @property
    def _encoder(self) -> Encoder:
        return self.classifier.encoder


def _spread(values: Tensor) -> Tensor:
    """Up to `POINTS` of the values of a number, (n,): evenly spaced quantiles, all distinct."""
    if not len(values):
        return values
    found = values.double().quantile(QUANTILES, interpolation="nearest").unique()
    distinct: Tensor = values.unique() if len(found) == 1 else found.to(values)
    places = torch.linspace(0, len(distinct) - 1, min(POINTS, len(distinct))).round().long()
    return distinct[places]


def _gaining(curves: Curves, pairs: tuple[Tensor, Tensor], goal: Goal, idx: Tensor) -> Tensor:
    """(m,) double, the share of training rows that gain, for the goals of rows, (m,)."""
    before, after = (curves.scores[:, at].flatten(0, 1) for at in pairs)
    out, q = torch.ones(len(idx), dtype=torch.float64), len(before)
    if not q:
        return out
    for at in torch.arange(len(idx)).split(max(1, CELLS // q)):
        rows = idx[at].repeat_interleave(q)
        low, high = (goal.margin(s.repeat(len(at), 1), rows).double() for s in (before, after))
        change, error = high - low, TOLERANCE * (low.abs() + high.abs())
        gain, loss = (
            each.view(-1, q).sum(1).double() for each in (change > error, change < -error)
        )
        moved = gain + loss
        out[at] = torch.where(moved > 0.0, gain / moved.clamp_min(1.0), 1.0)
    return out
