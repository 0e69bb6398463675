"""Tables: the conditional distributions at every node, and their inverses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.nodes import Bins
from dear_plugin.decoders.supports import Supports

CELLS = 1 << 25


@dataclass
class Tables:
    """What was counted, for all sets, nodes and features.

    Attributes:
        below: (s, g, t) P(x_j < value | a).
        share: (s, g, t) P(x_j = value | a).
        inverse: (s, p, q, g) the value of feature j at the q-th standing at node a.
    """

    below: Tensor
    share: Tensor
    inverse: Tensor

    @property
    def ranks(self) -> int:
        """How many standings are told apart (q)."""
        return self.inverse.shape[2]

    def standing(self, codes: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        """P(x_j < own value) and P(x_j = own value) at each row's own node, (n, s, p) each.

        Args:
            codes: (n, p) indices of the own values.
            node: (n, s) the own nodes.
        """
        s, g, t = self.share.shape
        at = (torch.arange(s) * g + node)[..., None] * t + codes[:, None]
        return self.below.take(at), self.share.take(at)

    def reached(self, v: Tensor, node: Tensor, sets: Tensor) -> Tensor:
        """The value at the same standing at other nodes, (m, c, p).

        Args:
            v: (m, p) standings.
            node: (m, c) nodes.
            sets: (m,) sets.
        """
        return self.inverse.take(self._base(v, sets)[:, None] + node[..., None])

    def between(
        self, v: Tensor, left: Tensor, weight: Tensor, sets: Tensor, columns: Tensor
    ) -> Tensor:
        """As `reached` for some columns, linear between the two nodes around a."""
        base = self._base(v, sets)[:, None, columns]
        last = self.inverse.shape[3] - 1
        low = self.inverse.take(base + left[..., None])
        high = self.inverse.take(base + (left + 1).clamp_max(last)[..., None])
        return torch.lerp(low, high, weight[..., None])

    def _base(self, v: Tensor, sets: Tensor) -> Tensor:
        """(m, p) where each standing's nodes begin in the flat inverse table."""
        _, p, q, g = self.inverse.shape
        rank = (v * q).long().clamp_(0, q - 1)
        return ((sets[:, None] * p + torch.arange(p)) * q + rank) * g


def count(rows: Tensor, supports: Supports, bins: Bins, ranks: int) -> Tables:
    """Count conditional distributions and invert them.

    Args:
        rows: (n, p) training rows.
        supports: the values of each feature.
        bins: where each set counts.
        ranks: how many standings to tell apart, at most.
    """
    s, g, b = bins.mix.shape
    t, p = len(supports.values), rows.shape[1]
    counts = _histogram(bins.of_row, supports.codes(rows), (s, b, t))
    size = counts[..., : int(supports.sizes[0])].sum(2, keepdim=True).clamp_min(1.0)
    share = bins.mix @ (counts / size)
    total = share.cumsum(2)
    first = torch.repeat_interleave(supports.starts, supports.sizes)
    before = torch.where(first > 0, total[..., (first - 1).clamp_min(0)], 0.0)
    upto = (total - before).clamp_(0.0, 1.0)
    ranks = max(16, min(ranks, CELLS // (s * p * g)))
    return Tables(upto - share, share, _invert(upto, supports, ranks))


def _histogram(bins: Tensor, codes: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """(s, b, t) how many rows of each bin hold each value; in blocks of bounded memory."""
    s, b, t = shape
    counts = torch.zeros(s * b * t)
    at = (torch.arange(s) * b + bins) * t
    for rows in torch.arange(len(codes)).split(max(1, CELLS // (8 * s * codes.shape[1]))):
        flat = (at[rows][:, :, None] + codes[rows][:, None, :]).flatten()
        counts += torch.bincount(flat, minlength=s * b * t)
    return counts.view(shape)


def _invert(upto: Tensor, supports: Supports, ranks: int) -> Tensor:
    """(s, p, q, g) the smallest value whose cumulative share reaches each standing.

    A standing (q + 1/2) / ranks lies above every value whose cumulative share it exceeds, so its
    value's index is how many values that are: one scatter and one cumulative sum.
    """
    s, g, _ = upto.shape
    out = []
    for j, (start, size) in enumerate(zip(supports.starts, supports.sizes, strict=True)):
        segment = supports.segment(j)
        passed = (upto[..., segment] * ranks + 0.5).floor().long().clamp_(0, ranks)
        tally = torch.zeros(s, g, ranks + 1, dtype=torch.int64)
        tally.scatter_add_(2, passed, torch.ones_like(passed))
        index = tally.cumsum(2)[..., :ranks].clamp_max(int(size) - 1)
        out.append(supports.values[index + int(start)].transpose(1, 2))
    return torch.stack(out, 1).contiguous()
