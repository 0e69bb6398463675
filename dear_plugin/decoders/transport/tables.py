"""Tables: the conditional distributions at every node, and their inverses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import isqrt

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.bins import MAX_NODES, Partition
from dear_plugin.decoders.transport.conditioning import Crowd
from dear_plugin.decoders.transport.lookup import pick
from dear_plugin.decoders.transport.posterior import Counts, Posterior
from dear_plugin.decoders.transport.rank_levels import PLACES, edges, graded, middles
from dear_plugin.decoders.transport.supports import Supports

CELLS = 24_000_000
LEAST_DETAIL = 16
ENTRIES_A_COUNT = 1 << 20
TIE = 1e-3
ROUNDING = 1e-6
NOBODY = 1e-9


def detail(slots: int, features: int) -> tuple[int, int]:
    """How many nodes, and how many values or standings, keep tables near `CELLS` entries each."""
    room = CELLS // (slots * features)
    nodes = min(MAX_NODES, max(LEAST_DETAIL, isqrt(room)))
    return nodes, max(LEAST_DETAIL, room // nodes)


def most_cells(sets: int, features: int) -> int:
    """How many cells of people may be counted apart, so that each is told in some detail."""
    return max(1, CELLS // (sets * features * LEAST_DETAIL**2))


@dataclass
class Tables:
    """What was counted of features with atoms, at the nodes of all slots.

    Attributes:
        below: (g, t) P(x_j < value | a).
        share: (g, t) P(x_j = value | a).
        inverse: (1 + f * q, g) the value of each ranked feature at the q-th standing; the first
            line is zero.
        line: (p,) the line of `inverse` where each feature begins, the first if it is not ranked.
        edges: (q - 1,) where one standing ends and the next begins.
    """

    below: Tensor
    share: Tensor
    inverse: Tensor
    line: Tensor
    edges: Tensor

    @classmethod
    def of(
        cls, crowd: Crowd, supports: Supports, parts: list[Partition], ranks: int, told: Tensor
    ) -> Tables:
        """Count the conditional distributions of training rows and invert them.

        Args:
            crowd: the training rows.
            supports: the values of each feature.
            parts: the bins and nodes of each slot.
            ranks: how many standings to tell apart.
            told: (s, p) bool, which features have to do with each set.
        """
        shape = sum(len(part.nodes) for part in parts), len(supports.values)
        below, share = torch.empty(shape), torch.empty(shape)
        inverse = torch.zeros(1 + len(supports.ranked) * ranks, shape[0])
        codes, s, k = supports.codes(crowd.rows), len(crowd.sets), len(crowd.cells)
        total = histogram(crowd.own, codes, k, shape[1]).double()
        belief = Posterior.of(total, crowd.within, supports, told)
        starts = [0, *accumulate(len(part.nodes) for part in parts)]
        for which, part in enumerate(parts[:s]):
            counted = counted_of(part, crowd, codes, which, shape[1])
            for cell, bins in enumerate(belief.shares(which, counted)):
                here = slice(starts[cell * s + which], starts[cell * s + which + 1])
                share[here] = part.mix @ bins
                upto = _upto(share[here], supports)
                below[here] = upto - share[here]
                inverse[1:, here] = _invert(upto, supports, ranks)
        return cls(below, share, inverse, lines(supports, ranks), edges(ranks).float())

    def ranks_of(self, codes: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        """P(x_j < own value) and P(x_j = own value) at each row's own nodes, (n, s, c) each.

        Args:
            codes: (c, n) the own values of the counted features.
            node: (n, s) the own nodes.
        """
        at = node[..., None] * self.share.shape[1] + codes.T[:, None]
        return pick(self.below, at), pick(self.share, at)

    def reached(self, x: Tensor, v: Tensor, node: Tensor) -> Tensor:
        """(m, c - 1, p) the values of ranked features at the same standing at other nodes.

        Args:
            x: (m, p) the factual rows.
            v: (m, p) their standings.
            node: (m, c) nodes, their own first.
        """
        at = self._graded(v).add_(self.line).mul_(self.inverse.shape[1])
        start = pick(self.inverse, at + node[:, :1])
        # In memory values come first, people second: what all values share then needs no copies.
        out = pick(self.inverse, at + node.T[1:, :, None]).transpose(0, 1)
        # Nearly everybody has a supported value. Who has another keeps it until that one moves.
        rows, columns = (start != x * self._ranked_as_one).nonzero(as_tuple=True)
        if not len(rows):
            return out
        there, own = out[rows, :, columns], start[rows, columns]
        out[rows, :, columns] = torch.where(there == own[:, None], x[rows, columns, None], there)
        return out

    def coupled(self, own: Tensor, v: Tensor, node: Tensor, values: slice) -> Tensor:
        """(m, c - 1) the categories that people have at other nodes, by maximal coupling.

        Args:
            own: (m,) their categories.
            v: (m,) their standings.
            node: (m, c) nodes, their own first.
            values: where the feature's categories are.
        """
        share, at = self.share[:, values], own.long()
        # Whoever is one of a kind among people with their x_S remains it: 0 / 0 is 1 here.
        before = share[node[:, 0], at] + NOBODY
        kept = (share[node[:, 1:], at[:, None]] + NOBODY) / before[:, None]
        under = self.below[:, values][node[:, 0], at]
        tie = settled(((v - under) / before).clamp_(0.0, 1.0))[:, None].expand_as(kept)
        out = own[:, None].repeat(1, kept.shape[1])
        some = max(1, ENTRIES_A_COUNT // share.shape[1])
        for at in (kept < tie).nonzero().split(some):
            who, where = at.unbind(1)
            gain = (share[node[who, where + 1]] - share[node[who, 0]]).clamp_min_(0.0)
            out[who, where] = exchanged(gain, tie[who, where], kept[who, where]).to(out.dtype)
        return out

    def _graded(self, v: Tensor) -> Tensor:
        """(m, p) int32 which of its standings each feature has; the first if it is not ranked."""
        return pick(self._grades, (v * PLACES).int()).mul_(self._ranked)

    @lazy
    def _grades(self) -> Tensor:
        """(PLACES,) the standings, to be looked up."""
        return graded(self.edges)

    @lazy
    def _ranked(self) -> Tensor:
        """(p,) bool, features with lines in `inverse`."""
        return self.line > 0

    @lazy
    def _ranked_as_one(self) -> Tensor:
        """(p,) 1 for features with lines in `inverse`; times 0 the others equal their line."""
        return self._ranked.float()


def settled(tie: Tensor) -> Tensor:
    """Places among people of the same category, any shape, of which none is exactly the middle.

    Rounding must not decide for who stands there when a probability exactly halves.
    """
    return torch.where((tie - 0.5).abs() < TIE, 0.5 - ROUNDING, tie)


def exchanged(gain: Tensor, tie: Tensor, kept: Tensor) -> Tensor:
    """(m,) the categories that people get who do not keep theirs.

    Args:
        gain: (m, c) by how much the share of each category grows.
        tie: (m,) their places among people of the same category; who is in the middle gets what
            gains most.
        kept: (m,) the part of the category that keeps it.
    """
    drawn = (tie - kept) / (1.0 - kept).clamp_min(1e-9)
    heap = gain.cumsum(1) / gain.sum(1, keepdim=True).clamp_min(1e-9)
    random = (heap < drawn[:, None]).sum(1).clamp_max(gain.shape[1] - 1)
    return torch.where((tie - 0.5).abs() < TIE, gain.argmax(1), random)


def lines(supports: Supports, ranks: int) -> Tensor:
    """(p,) int32, the first line in `inverse` of each ranked feature, 0 for the others."""
    line = torch.zeros(len(supports.sizes), dtype=torch.int32)
    count = len(supports.ranked)
    line[supports.ranked] = 1 + ranks * torch.arange(count, dtype=torch.int32)
    return line


def counted_of(part: Partition, crowd: Crowd, codes: Tensor, which: int, t: int) -> Counts:
    """How many rows of each cell and bin of a set hold each value."""
    members, (k, b) = crowd.sets.members[which], (len(crowd.cells), part.mix.shape[1])
    number = crowd.encoder.schema.features[members[0]].kind is Kind.NUMERIC
    counts = histogram(crowd.own * b + part.bins, codes, k * b, t)
    return Counts(counts.view(k, b, t), number and len(members) == 1)


def _upto(share: Tensor, supports: Supports) -> Tensor:
    """P(x_j <= value | a) at the nodes of one slot, (g, t)."""
    first = torch.repeat_interleave(supports.starts, supports.sizes)
    total = torch.nn.functional.pad(share.cumsum(1, dtype=torch.float64), (1, 0))
    return (total[:, 1:] - total[:, first]).clamp_(0.0, 1.0).float()


def histogram(bins: Tensor, codes: Tensor, b: int, t: int) -> Tensor:
    """(b, t) how many rows of each bin, (n,), hold each value, (c, n); in bounded memory."""
    start = bins.int() * t
    counts = torch.zeros(b * t, dtype=torch.int64)
    for some in codes.split(max(1, ENTRIES_A_COUNT // max(len(bins), 1))):
        counts += torch.bincount((some + start).flatten(), minlength=b * t)
    return counts.view(b, t).float()


def _invert(upto: Tensor, supports: Supports, ranks: int) -> Tensor:
    """(f * q, g) the smallest value whose cumulative share reaches each standing.

    A standing lies above every value whose cumulative share it exceeds, so its value's index is
    how many values that are: one scatter and one cumulative sum.
    """
    features = supports.ranked
    sizes, starts = supports.sizes[features], supports.starts[features]
    passed = torch.bucketize(upto[:, supports.places], middles(ranks).float(), right=True)
    passed += torch.arange(len(features)).repeat_interleave(sizes) * (ranks + 1)
    tally = torch.zeros(len(upto), len(features) * (ranks + 1), dtype=torch.int32)
    tally.scatter_add_(1, passed, torch.ones_like(passed, dtype=torch.int32))
    tally = tally.view(len(upto), len(features), ranks + 1)[..., :ranks]
    index = tally.cumsum(2, dtype=torch.int32)
    index = torch.minimum(index, (sizes - 1).int()[:, None]) + starts.int()[:, None]
    return pick(supports.values, index).flatten(1).T
