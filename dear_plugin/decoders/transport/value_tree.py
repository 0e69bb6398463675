"""Value trees: the values of each feature split in two repeatedly, until every value is alone.

A distribution over t values is parametrised by t - 1 shares: at every split, the share of rows on
its left side among the rows that reach it. The shares are shrunk one by one; multiplied along the
paths, they always give a distribution. Splits halve the rows, so that frequent values are
separated first and few rows in a tail decide few splits.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.supports import Supports

# The logarithm of a share of zero.
LOG_ZERO = -60.0


@dataclass(frozen=True)
class ValueTree:
    """The splits of all features' values.

    Attributes:
        order: (t,) the order of the values: numeric and binary features as they are, categories
            without an order by decreasing frequency.
        low: (q,) the first position of the part that each split cuts.
        cut: (q,) the first position of its right side.
        high: (q,) the end of the part.
        feature: (q,) the feature.
    """

    order: Tensor
    low: Tensor
    cut: Tensor
    high: Tensor
    feature: Tensor

    @classmethod
    def of(cls, total: Tensor, supports: Supports) -> ValueTree:
        """Split the values by the number of rows with each, (t,)."""
        order = torch.arange(len(total))
        for j in supports.blocks:
            here = supports.segment(j)
            order[here] = here.start + total[here].argsort(descending=True, stable=True)
        cumulative = torch.nn.functional.pad(total[order].double().cumsum(0), (1, 0)).tolist()
        cuts: list[tuple[int, int, int, int]] = []
        for j in supports.counted.tolist():
            here = supports.segment(j)
            cuts += [(*cut, j) for cut in _splits(cumulative, here.start, here.stop)]
        table = torch.tensor(cuts, dtype=torch.int64).view(-1, 4)
        return cls(order, *table.unbind(1))

    def subset(self, at: Tensor) -> ValueTree:
        """The splits with these indices, (r,)."""
        return ValueTree(self.order, self.low[at], self.cut[at], self.high[at], self.feature[at])

    def counts(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(..., q) rows left of each split, and in total, from rows by value, (..., t)."""
        return self.counts_between(self.cumulative(rows))

    def cumulative(self, rows: Tensor) -> Tensor:
        """(..., t + 1) rows with one of the first values in order, from (..., t)."""
        return torch.nn.functional.pad(rows[..., self.order].cumsum(-1), (1, 0))

    def counts_between(self, cumulative: Tensor) -> tuple[Tensor, Tensor]:
        """(..., q) as `counts`, from the result of `cumulative`."""
        low, cut, high = (cumulative[..., at] for at in (self.low, self.cut, self.high))
        return cut - low, high - low

    def probabilities(self, left: Tensor) -> Tensor:
        """(..., t) the distributions whose shares on the left sides are (..., q)."""
        t = len(self.order)
        a, b = left.log().clamp_min(LOG_ZERO), torch.log1p(-left).clamp_min(LOG_ZERO)
        steps = left.new_zeros(*left.shape[:-1], t + 1)
        for at, step in ((self.low, a), (self.cut, b - a), (self.high, -b)):
            steps.index_add_(-1, at, step)
        made = steps[..., :t].cumsum(-1).exp()
        return torch.empty_like(made).index_copy_(-1, self.order, made)


def _splits(cumulative: list[float], start: int, stop: int) -> list[tuple[int, int, int]]:
    """The splits of positions from start to stop, breadth first: (low, cut, high) each."""
    cuts, parts = [], [(start, stop)]
    for low, high in parts:
        if high - low < 2:
            continue
        middle = (cumulative[low] + cumulative[high]) / 2.0
        at = bisect_left(cumulative, middle, low, high)
        # The position before may be nearer to the middle.
        if at - 1 > low and middle - cumulative[at - 1] < cumulative[at] - middle:
            at -= 1
        at = min(max(at, low + 1), high - 1)
        cuts.append((low, at, high))
        parts += [(low, at), (at, high)]
    return cuts
