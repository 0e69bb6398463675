"""Posterior: estimates of the conditional distributions P(x_j | bin of x_S, cell) from counts.

In: the number of rows of each cell and bin with each value; out: probabilities. A feature without
a significant association with x_S has the same distribution in every bin, exactly. For the others,
the log-odds of the left side of each split of the values (`ValueTree`) are the sum of an effect of
the cell and an effect of the bin. All cells share the effects of bins, so small cells contribute
as much as their rows allow; the effects are shrunk by empirical Bayes (`shrinkage`). A cell whose
counts contradict the shared effects has additional effects of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.effects import SplitCounts, solve
from dear_plugin.decoders.transport.shrinkage import shrunk_means
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.value_tree import ValueTree

ENTRIES_A_BATCH = 1 << 20


@dataclass(frozen=True)
class SetCounts:
    """The counts for one set.

    Attributes:
        counts: (k, b, t) the number of rows of each cell (without those of finer cells) and bin
            with each value; (r, k, b, t) in r redraws.
        ordered: whether the bins are those of a numeric feature, in order.
    """

    counts: Tensor
    ordered: bool


@dataclass(frozen=True)
class Posterior:
    """The estimator: what all sets share.

    Attributes:
        tree: the splits of all values.
        within: (k, k) double, 1 where the second cell lies within the first; cell 0 has all rows.
        own_share: (k, q) the share on the left of each split, of rows of a cell but not of finer
            ones.
        cell_share: (k, q) the same of all rows of a cell.
        linked: (s, p) bool, which features are associated with each set.
    """

    tree: ValueTree
    within: Tensor
    own_share: Tensor
    cell_share: Tensor
    linked: Tensor

    @classmethod
    def of(cls, total: Tensor, within: Tensor, supports: Supports, linked: Tensor) -> Posterior:
        """Split the values and compute the shares of cells.

        Args:
            total: (k, t) the number of rows of each cell (without those of finer cells) with each
                value.
            within: see the attributes.
            supports: the values of each feature.
            linked: see the attributes.
        """
        tree = ValueTree.of(total.sum(0), supports)
        overall = _left_share(*tree.counts(total.sum(0, keepdim=True)), None)
        own, cell = (_left_share(*tree.counts(n), overall) for n in (total, within @ total))
        return cls(tree, within, own, cell, linked)

    def probabilities(self, i: int, counted: SetCounts) -> Tensor:
        """(k, b, t) P(x_j = value | bin, cell) for set i."""
        b = counted.counts.shape[1]
        left = self.cell_share[:, None].repeat(1, b, 1)
        linked = self.linked[i][self.tree.feature].nonzero()[:, 0]
        data = self.tree.cumulative(counted.counts)
        for at in linked.split(max(1, ENTRIES_A_BATCH // (b * len(left)))):
            left[..., at] = solve(self._counts(at, data, counted.ordered), self.within)
        return self.tree.probabilities(left).float()

    def redrawn(self, i: int, drawn: SetCounts) -> Tensor:
        """(r, k, b, t) the probabilities for set i in redraws with counts (r, k, b, t).

        The splits and the linked features stay those of the data: the distributions of other
        features are unchanged.
        """
        r, k, b, _ = drawn.counts.shape
        left = self.cell_share[:, None].float().repeat(r, 1, b, 1)
        linked = self.linked[i][self.tree.feature].nonzero()[:, 0]
        data = self.tree.cumulative(drawn.counts)
        for at in linked.split(max(1, ENTRIES_A_BATCH // (b * k * r))):
            # The splits of all redraws, (r, q), are computed as r * q splits of one sample.
            on_left, total = (
                each.permute(1, 2, 0, 3).reshape(k, b, -1)
                for each in self.tree.subset(at).counts_between(data)
            )
            shares = self._shares(on_left.sum(1), total.sum(1))
            made = solve(SplitCounts(on_left, total, *shares, drawn.ordered), self.within)
            left[..., at] = made.view(k, b, r, -1).permute(2, 0, 1, 3)
        return self.tree.probabilities(left)

    def _counts(self, at: Tensor, cumulative: Tensor, ordered: bool) -> SplitCounts:
        """The counts at some splits, (q,), from `ValueTree.cumulative` of all counts."""
        left, total = self.tree.subset(at).counts_between(cumulative)
        shares = self.own_share[:, at], self.cell_share[:, at]
        return SplitCounts(left.double(), total.double(), *shares, ordered)

    def _shares(self, left: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """`own_share` and `cell_share` of rows, (k, q), left of splits and in total."""
        overall = _left_share(left.sum(0, keepdim=True), total.sum(0, keepdim=True), None)
        within = self.within.to(left.dtype)
        cell = within @ left, within @ total
        return _left_share(left, total, overall), _left_share(*cell, overall)


def _left_share(left: Tensor, total: Tensor, overall: Tensor | None) -> Tensor:
    """(k, q) the share of rows on the left side of splits, shrunk to the overall one, (1, q)."""
    share = left / total.clamp_min(1e-9)
    if overall is None:
        return torch.where(total > 0, share, 0.5)
    mean = overall[0]
    if len(share) == 1:
        return overall
    return shrunk_means(share, total, mean, mean * (1.0 - mean)).to(left.dtype)
