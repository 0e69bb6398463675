"""Trends (step 5): ratios whose logarithms are linear in the ranks of x_S and of the values.

It is one degree of freedom of a whole feature (Agresti 2010, 6.2), which few rows show, and holds
beyond the outer bins; what rows show besides is for `ratios`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LEAST = 1e-12
# The least statistic of a trend, at an error rate of .01; the steps that its slope is found in,
# their largest size, and the largest slope.
TREND, STEPS, MOST_STEP, MOST_SLOPE = 6.63, 4, 1.0, 3.0


class Trend(NamedTuple):
    """The trend of one feature in r samples.

    Attributes:
        slope: (r, 1, 1).
        value: (t,) the places of its values, 0 without one.
    """

    slope: Tensor
    value: Tensor

    @classmethod
    def of(
        cls, observed: Tensor, expected: Tensor, place: Tensor, value: Tensor, *, drawn: bool
    ) -> Trend:
        """The trend of rows; none where it is not significant.

        Args:
            observed: (r, b, t) rows.
            expected: (r, b, t) rows if the distributions were equal, up to a factor of each bin.
            place: (b,) the places of the bins; all 0 without an order.
            value: (t,) the places of the values, NaN without one.
            drawn: see `shrinkage.shrunk`.
        """
        known, value, z = ~value.isnan(), value.nan_to_num(), place[:, None]
        observed, expected = observed * known, expected * known
        n = observed.sum(2, keepdim=True)
        slope, statistic = torch.zeros(len(n), 1, 1).double(), torch.zeros(())
        if not bool(place.any() and value.any()):
            return cls(slope, value)
        for step in range(STEPS):
            share = expected * (slope * z * value).exp()
            share = share / share.sum(2, keepdim=True).clamp_min(LEAST)
            mean = (share * value).sum(2, keepdim=True)
            spread = (share * value.square()).sum(2, keepdim=True) - mean.square()
            score = (z * ((observed @ value)[..., None] - n * mean)).sum(1, keepdim=True)
            size = (z.square() * n * spread).sum(1, keepdim=True).clamp_min(LEAST)
            if step == 0:
                statistic = score.square() / size - 2.0 * drawn
            slope = slope + (score / size).clamp(-MOST_STEP, MOST_STEP)
            slope = slope.clamp(-MOST_SLOPE, MOST_SLOPE)
        # Shrunk by the noise that is in it.
        kept = torch.where(statistic > TREND, 1.0 - 1.0 / statistic.clamp_min(TREND), 0.0)
        return cls(slope * kept, value)

    def at(self, place: Tensor) -> Tensor:
        """(r, q, t) the ratios at some places, (q,)."""
        return (self.slope * place[:, None] * self.value).exp()
