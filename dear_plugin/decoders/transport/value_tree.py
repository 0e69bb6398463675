"""Splits: each feature's values cut in two, and each part again, until every value is alone.

A distribution over t values is t - 1 shares: at every split, the share of those on its left side
among those who come to it. Shares can be shrunk one by one, and whatever they become, multiplied
along the way they make a distribution again. A part is cut where it leaves about as many people on
either side: what is common is told apart first, and in a tail few people decide on few splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.supports import Supports

# The logarithm of a share of nothing.
NEVER = -60.0


@dataclass(frozen=True)
class ValueTree:
    """The splits of all features' values.

    Attributes:
        order: (t,) the values in the order in which they are cut: numbers and pairs as they are,
            categories without an order by how many people have them.
        low: (q,) the first place of the part that each split cuts.
        cut: (q,) the first place of its right side.
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
        """Cut the values by how many rows hold each, (t,)."""
        order = torch.arange(len(total))
        for j in supports.blocks:
            here = supports.segment(j)
            decreasing_mask = total[here].argsort(descending=True, stable=True)
            order[here] = here.start + decreasing_mask
        upto = torch.nn.functional.pad(total[order].double().cumsum(0), (1, 0)).tolist()
        cuts: list[tuple[int, int, int, int]] = []
        for j in supports.counted.tolist():
            here = supports.segment(j)
            cuts += [(*cut, j) for cut in _halved(upto, here.start, here.stop)]
        table = torch.tensor(cuts, dtype=torch.int64).view(-1, 4)
        return cls(order, *table.unbind(1))

    def some(self, at: Tensor) -> ValueTree:
        """Some of the splits, (r,)."""
        return ValueTree(self.order, self.low[at], self.cut[at], self.high[at], self.feature[at])

    def counts(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(..., q) who is on the left side of each split and who comes to it, from (..., t)."""
        return self.between(self.upto(rows))

    def upto(self, rows: Tensor) -> Tensor:
        """(..., t + 1) who is at one of the first values in order, from (..., t)."""
        return torch.nn.functional.pad(rows[..., self.order].cumsum(-1), (1, 0))

    def between(self, upto: Tensor) -> tuple[Tensor, Tensor]:
        """(..., q) as `counts`, of what `upto` gives."""
        low, cut, high = (upto[..., at] for at in (self.low, self.cut, self.high))
        return cut - low, high - low

    def shares(self, left: Tensor) -> Tensor:
        """(..., t) the distributions whose shares on the left sides are (..., q)."""
        t = len(self.order)
        a, b = left.log().clamp_min(NEVER), torch.log1p(-left).clamp_min(NEVER)
        steps = left.new_zeros(*left.shape[:-1], t + 1)
        for at, step in ((self.low, a), (self.cut, b - a), (self.high, -b)):
            steps.index_add_(-1, at, step)
        made = steps[..., :t].cumsum(-1).exp()
        return torch.empty_like(made).index_copy_(-1, self.order, made)


def _halved(upto: list[float], start: int, stop: int) -> list[tuple[int, int, int]]:
    """The parts of places from start to stop, and where each is cut, the largest first."""
    from bisect import bisect_left

    cuts, parts = [], [(start, stop)]
    for low, high in parts:
        if high - low < 2:
            continue
        middle = (upto[low] + upto[high]) / 2.0
        at = bisect_left(upto, middle, low, high)
        # Of the two places around the middle, the one that leaves the sides more alike.
        if at - 1 > low and middle - upto[at - 1] < upto[at] - middle:
            at -= 1
        at = min(max(at, low + 1), high - 1)
        cuts.append((low, at, high))
        parts += [(low, at), (at, high)]
    return cuts
