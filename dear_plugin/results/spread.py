"""Spread: a record of confidence, reliance and ranges of changes of answers under resamples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.results.proposal import Batch

# Quantiles over the resamples that bound the reported range.
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Spread(Batch):
    """What m answers do under resamples of the decoder, none of which a search has seen.

    Attributes:
        confidence: (m,) double, the share of resamples under which an answer succeeds.
        reliance: (m,) double, the least share of the indirect change from which on it succeeds.
        alone: (m,) bool, whether the model accepts the action alone, with what it forces.
        gain: (m,) double, 1 where the action itself helps, see `Shares`.
        least: (m, p) the row with the share of the indirect change that is the reliance.
        low: (m, p) the 10th percentile of a number's change over the resamples, or its change in
            the answer where that is less, in user units; 0 for categories.
        high: (m, p) the 90th percentile, or the change in the answer where that is more.
        moved: (m, p) int64, the number of resamples in which a feature changes.
        count: the number of resamples; 0 without any.
    """

    confidence: Tensor
    reliance: Tensor
    alone: Tensor
    gain: Tensor
    least: Tensor
    low: Tensor
    high: Tensor
    moved: Tensor
    count: int

    @classmethod
    def of(cls, x: Tensor, rows: Tensor, resampled: Tensor, numbers: Tensor) -> Spread:
        """The spread of answers over r resamples; of none, the changes of the answers.

        Confidence is 1 and reliance 0 here, as where all changes are direct.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            resampled: (m, r, p) the counterfactuals under the resamples.
            numbers: (p,) bool, the numeric features.
        """
        count, own = resampled.shape[1], _steps(x, rows[:, None], numbers)
        steps = _steps(x, resampled, numbers).sort(1).values
        first, last = math.floor(LOW * (count - 1)), math.ceil(HIGH * (count - 1))
        low, high = (torch.cat([own, steps[:, at : at + 1]], 1) for at in (first, last))
        moved, one = (resampled != x[:, None]).sum(1), torch.ones(len(x), dtype=torch.float64)
        none, alone = torch.zeros_like(one), torch.ones(len(x), dtype=torch.bool)
        ends = low.amin(1), high.amax(1)
        return cls(one, none, alone, one, rows, *ends, moved, count)


def _steps(x: Tensor, rows: Tensor, numbers: Tensor) -> Tensor:
    """(m, r, p) the changes of numbers; 0 for categories, and from or to a special value."""
    here = x[:, None]
    amount = numbers & ~is_special(here) & ~is_special(rows)
    return torch.where(amount, rows - here, 0.0)
