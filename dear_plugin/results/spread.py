"""Spread: how far the indirect changes of answers agree over redraws of the decoder."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.results.rows import Rows

# Quantiles over the redraws that bound the reported range.
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Spread(Rows):
    """The changes of m rows over redraws of the decoder, by feature, in row units.

    Attributes:
        low: (m, p) the 10th percentile of a number's change over the redraws, or its change in
            the answer where that is less; 0 for categories.
        high: (m, p) the 90th percentile, or the change in the answer where that is more.
        moved: (m, p) int64, the number of redraws in which a feature changes.
        count: the number of redraws; 0 without redraws.
    """

    low: Tensor
    high: Tensor
    moved: Tensor
    count: int

    @classmethod
    def of(cls, x: Tensor, rows: Tensor, redrawn: Tensor, numbers: Tensor) -> Spread:
        """The spread of answers over r redraws; of no redraws, the changes of the answers.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            redrawn: (m, r, p) the counterfactuals under the redraws.
            numbers: (p,) bool, the numeric features.
        """
        count, own = redrawn.shape[1], _steps(x, rows[:, None], numbers)
        steps = _steps(x, redrawn, numbers).sort(1).values
        first, last = math.floor(LOW * (count - 1)), math.ceil(HIGH * (count - 1))
        low, high = (torch.cat([own, steps[:, at : at + 1]], 1) for at in (first, last))
        return cls(low.amin(1), high.amax(1), (redrawn != x[:, None]).sum(1), count)


def _steps(x: Tensor, rows: Tensor, numbers: Tensor) -> Tensor:
    """(m, r, p) the changes of numbers; 0 for categories, and from or to a special value."""
    here = x[:, None]
    amount = numbers & ~is_special(here) & ~is_special(rows)
    return torch.where(amount, rows - here, 0.0)
