"""Tables: the conditional distributions of counted features at every node, and their inverses.

In: training rows, the supported values and the partitions; out: P(x_j | a) by node, the quantile
functions, and from these the values that rows have at other nodes at the same rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import isqrt

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.bins import MAX_NODES, Partition
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.lookup import pick
from dear_plugin.decoders.transport.posterior import Posterior, SetCounts
from dear_plugin.decoders.transport.rank_levels import GRID, edges, level_table, midpoints
from dear_plugin.decoders.transport.supports import Supports

MAX_ENTRIES = 24_000_000
MIN_DETAIL = 16
ENTRIES_A_CHUNK = 1 << 20
MIDDLE = 1e-3
ROUNDING = 1e-6
# Added to probabilities before they are divided: 0 / 0 is 1.
TINY = 1e-9


def detail(slots: int, features: int) -> tuple[int, int]:
    """The number of nodes, and of values or ranks, for tables of about `MAX_ENTRIES` entries."""
    room = MAX_ENTRIES // (slots * features)
    nodes = min(MAX_NODES, max(MIN_DETAIL, isqrt(room)))
    return nodes, max(MIN_DETAIL, room // nodes)


def max_cells(sets: int, features: int) -> int:
    """The maximum number of cells for which tables have `MIN_DETAIL` nodes and values."""
    return max(1, MAX_ENTRIES // (sets * features * MIN_DETAIL**2))


@dataclass
class Tables:
    """The distributions of features with atoms, at the nodes of all slots.

    Attributes:
        below: (g, t) P(x_j < value | a).
        share: (g, t) P(x_j = value | a).
        inverse: (1 + f * q, g) the value of each ranked feature at the q-th rank level; the first
            line is zero.
        line: (p,) the first line of each feature in `inverse`, 0 if it is not ranked.
        edges: (q - 1,) the inner edges of the rank levels.
    """

    below: Tensor
    share: Tensor
    inverse: Tensor
    line: Tensor
    edges: Tensor

    @classmethod
    def of(
        cls,
        sample: TrainingSample,
        supports: Supports,
        parts: list[Partition],
        ranks: int,
        linked: Tensor,
    ) -> Tables:
        """Estimate the conditional distributions of training rows and invert them.

        Args:
            sample: the training rows.
            supports: the values of each feature.
            parts: the bins and nodes of each slot.
            ranks: the number of rank levels.
            linked: (s, p) bool, which features are associated with each set.
        """
        shape = sum(len(part.nodes) for part in parts), len(supports.values)
        below, share = torch.empty(shape), torch.empty(shape)
        inverse = torch.zeros(1 + len(supports.ranked) * ranks, shape[0])
        codes, s, k = supports.codes(sample.rows), len(sample.sets), len(sample.cells)
        total = histogram(sample.own, codes, k, shape[1]).double()
        posterior = Posterior.of(total, sample.within, supports, linked)
        starts = [0, *accumulate(len(part.nodes) for part in parts)]
        for i, part in enumerate(parts[:s]):
            counted = counts_of_set(part, sample, codes, i, shape[1])
            for cell, bins in enumerate(posterior.probabilities(i, counted)):
                here = slice(starts[cell * s + i], starts[cell * s + i + 1])
                share[here] = part.mix @ bins
                cumulative = _cumulative(share[here], supports)
                below[here] = cumulative - share[here]
                inverse[1:, here] = _invert(cumulative, supports, ranks)
        return cls(below, share, inverse, first_lines(supports, ranks), edges(ranks).float())

    def ranks_of(self, codes: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        """P(x_j < own value) and P(x_j = own value) at each row's own nodes, (n, s, c) each.

        Args:
            codes: (c, n) the own values of the counted features.
            node: (n, s) the own nodes.
        """
        at = node[..., None] * self.share.shape[1] + codes.T[:, None]
        return pick(self.below, at), pick(self.share, at)

    def quantiles(self, x: Tensor, v: Tensor, node: Tensor) -> Tensor:
        """(m, c - 1, p) the values of ranked features at the same ranks at other nodes.

        Args:
            x: (m, p) the factual rows.
            v: (m, p) their ranks.
            node: (m, c) nodes, their own first.
        """
        at = self._levels(v).add_(self.line).mul_(self.inverse.shape[1])
        start = pick(self.inverse, at + node[:, :1])
        # In memory nodes come first, rows second: sums over either then need no copies.
        out = pick(self.inverse, at + node.T[1:, :, None]).transpose(0, 1)
        # A value that is not supported is kept until its nearest supported value changes.
        rows, columns = (start != x * self._ranked_as_one).nonzero(as_tuple=True)
        if not len(rows):
            return out
        there, own = out[rows, :, columns], start[rows, columns]
        out[rows, :, columns] = torch.where(there == own[:, None], x[rows, columns, None], there)
        return out

    def maximal_coupling(self, own: Tensor, v: Tensor, node: Tensor, values: slice) -> Tensor:
        """(m, c - 1) the categories of rows at other nodes, by maximal coupling.

        Args:
            own: (m,) their categories.
            v: (m,) their ranks.
            node: (m, c) nodes, their own first.
            values: the indices of the feature's categories.
        """
        share, at = self.share[:, values], own.long()
        before = share[node[:, 0], at] + TINY
        kept = (share[node[:, 1:], at[:, None]] + TINY) / before[:, None]
        under = self.below[:, values][node[:, 0], at]
        tie = off_middle(((v - under) / before).clamp_(0.0, 1.0))[:, None].expand_as(kept)
        out = own[:, None].repeat(1, kept.shape[1])
        size = max(1, ENTRIES_A_CHUNK // share.shape[1])
        for at in (kept < tie).nonzero().split(size):
            row, column = at.unbind(1)
            gain = (share[node[row, column + 1]] - share[node[row, 0]]).clamp_min_(0.0)
            made = new_categories(gain, tie[row, column], kept[row, column])
            out[row, column] = made.to(out.dtype)
        return out

    def _levels(self, v: Tensor) -> Tensor:
        """(m, p) int32, the rank level of each feature; 0 if it is not ranked."""
        return pick(self._level_table, (v * GRID).int()).mul_(self._ranked)

    @lazy
    def _level_table(self) -> Tensor:
        """(GRID,) the rank levels of evenly spaced ranks."""
        return level_table(self.edges)

    @lazy
    def _ranked(self) -> Tensor:
        """(p,) bool, features with lines in `inverse`."""
        return self.line > 0

    @lazy
    def _ranked_as_one(self) -> Tensor:
        """(p,) 1 for features with lines in `inverse`; times 0 the others equal their line."""
        return self._ranked.float()


def off_middle(tie: Tensor) -> Tensor:
    """Ranks among rows of the same category, any shape, with those of 1/2 moved below it.

    Otherwise rounding would decide for a rank of 1/2 when a probability exactly halves.
    """
    return torch.where((tie - 0.5).abs() < MIDDLE, 0.5 - ROUNDING, tie)


def new_categories(gain: Tensor, tie: Tensor, kept: Tensor) -> Tensor:
    """(m,) the categories of rows that do not keep theirs.

    Args:
        gain: (m, c) the increase of the probability of each category.
        tie: (m,) the ranks among rows of the same category; a rank of 1/2 gives the category with
            the largest increase.
        kept: (m,) the probability to keep the category.
    """
    drawn = (tie - kept) / (1.0 - kept).clamp_min(1e-9)
    cumulative = gain.cumsum(1) / gain.sum(1, keepdim=True).clamp_min(1e-9)
    random = (cumulative < drawn[:, None]).sum(1).clamp_max(gain.shape[1] - 1)
    return torch.where((tie - 0.5).abs() < MIDDLE, gain.argmax(1), random)


def first_lines(supports: Supports, ranks: int) -> Tensor:
    """(p,) int32, the first line in `inverse` of each ranked feature, 0 for the others."""
    line = torch.zeros(len(supports.sizes), dtype=torch.int32)
    count = len(supports.ranked)
    line[supports.ranked] = 1 + ranks * torch.arange(count, dtype=torch.int32)
    return line


def counts_of_set(
    part: Partition, sample: TrainingSample, codes: Tensor, i: int, t: int
) -> SetCounts:
    """The number of rows of each cell and bin of set i with each of t values."""
    members, (k, b) = sample.sets.members[i], (len(sample.cells), part.mix.shape[1])
    number = sample.encoder.schema.features[members[0]].kind is Kind.NUMERIC
    counts = histogram(sample.own * b + part.bins, codes, k * b, t)
    return SetCounts(counts.view(k, b, t), number and len(members) == 1)


def _cumulative(share: Tensor, supports: Supports) -> Tensor:
    """P(x_j <= value | a) at the nodes of one slot, (g, t)."""
    first = torch.repeat_interleave(supports.starts, supports.sizes)
    total = torch.nn.functional.pad(share.cumsum(1, dtype=torch.float64), (1, 0))
    return (total[:, 1:] - total[:, first]).clamp_(0.0, 1.0).float()


def histogram(bins: Tensor, codes: Tensor, b: int, t: int) -> Tensor:
    """(b, t) the number of rows of each bin, (n,), with each value, (c, n); in bounded memory."""
    start = bins.int() * t
    counts = torch.zeros(b * t, dtype=torch.int64)
    for some in codes.split(max(1, ENTRIES_A_CHUNK // max(len(bins), 1))):
        counts += torch.bincount((some + start).flatten(), minlength=b * t)
    return counts.view(b, t).float()


def _invert(cumulative: Tensor, supports: Supports, ranks: int) -> Tensor:
    """(f * q, g) the smallest value whose cumulative probability reaches each rank.

    Its index is the number of values whose cumulative probability is below the rank: one scatter
    and one cumulative sum.
    """
    features = supports.ranked
    sizes, starts = supports.sizes[features], supports.starts[features]
    middles = midpoints(ranks).float()
    passed = torch.bucketize(cumulative[:, supports.ranked_values], middles, right=True)
    passed += torch.arange(len(features)).repeat_interleave(sizes) * (ranks + 1)
    counts = torch.zeros(len(cumulative), len(features) * (ranks + 1), dtype=torch.int32)
    counts.scatter_add_(1, passed, torch.ones_like(passed, dtype=torch.int32))
    counts = counts.view(len(cumulative), len(features), ranks + 1)[..., :ranks]
    index = counts.cumsum(2, dtype=torch.int32)
    index = torch.minimum(index, (sizes - 1).int()[:, None]) + starts.int()[:, None]
    return pick(supports.values, index).flatten(1).T
