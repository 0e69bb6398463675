"""Ties: an order among rows with the same x_j, by a score of their other features.

A ridge regression of x_j on the other mutable features gives every row a score. The rank of the
score among rows with the same x_j *in the same bin of x_S* keeps v_j as independent of x_S as
random ties do. Of a category, the rows that it fits least have the highest ranks: they leave it
first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.transport.bins import Partition, sorted_values
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.lookup import count_below, pick
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.tables import MAX_ENTRIES

RIDGE = 1e-3
MAX_RANKS, MIN_RANKS = 16, 4
MAX_BINS, MIN_BINS = 16, 2
RESOLUTION = 1 << 16


@dataclass
class Ties:
    """Scores and their quantiles.

    Attributes:
        weights: (d, d) double, the weights of the score of each encoded column on the others.
        offset: (d,) double, added so that training scores lie between 0 and 1.
        bin_of: (g,) the nearest bin of every node, numbered over all slots; bins are coarser than
            those of the tables.
        spread: (b * t, q) the quantiles of scores in each bin and at each value.
        encoder: encodes rows for the regression.
    """

    weights: Tensor
    offset: Tensor
    bin_of: Tensor
    spread: Tensor
    encoder: Encoder

    @classmethod
    def of(cls, sample: TrainingSample, supports: Supports, parts: list[Partition]) -> Ties:
        """Score training rows and tabulate their scores; arguments as in `Tables.of`."""
        weights, offset = _ridge(sample, supports)
        t = len(supports.values)
        max_bins = MAX_ENTRIES // max(len(parts) * t * MIN_RANKS, 1)
        max_bins = max(MIN_BINS, min(MAX_BINS, max_bins))
        coarse = [_coarse(part, max_bins) for part in parts]
        starts = torch.tensor([0, *(int(c.max()) + 1 for c in coarse)]).cumsum(0)
        near = [c[part.mix.argmax(1)] for c, part in zip(coarse, parts, strict=True)]
        bin_of = torch.cat([bins + start for bins, start in zip(near, starts[:-1], strict=True)])
        entries = int(starts[-1]) * t
        ranks = min(MAX_RANKS, max(MIN_RANKS, MAX_ENTRIES // max(entries, 1)))
        ties = cls(weights, offset, bin_of.int(), torch.empty(entries, ranks), sample.encoder)
        codes = supports.codes(sample.rows)
        scores = ties._scores(sample.rows, supports)
        for slot, (part, bins) in enumerate(zip(parts, coarse, strict=True)):
            rows = sample.cells[slot // len(sample.sets)]
            keys = bins.int()[part.bins] * t + codes[:, rows]
            here = slice(int(starts[slot]) * t, int(starts[slot + 1]) * t)
            ties.spread[here] = _quantiles(keys, scores[:, rows], here.stop - here.start, ranks)
        return ties

    def ranks_of(self, rows: Tensor, supports: Supports, codes: Tensor, node: Tensor) -> Tensor:
        """(n, s, c) the ranks of rows, (n, p), among rows with the same x_j near the same x_S.

        Args:
            rows: the rows.
            supports: the values of each feature.
            codes: (c, n) the rows' own values.
            node: (n, s) their nodes.
        """
        q = self.spread.shape[1]
        key = pick(self.bin_of, node)[..., None] * len(supports.values) + codes.T[:, None]
        score = self._scores(rows, supports).T[:, None].expand(key.shape)
        low, high = (
            count_below(self.spread, key * q, 1, q, score, below) for below in (torch.lt, torch.le)
        )
        return (low + high) / (2.0 * q)

    def _scores(self, rows: Tensor, supports: Supports) -> Tensor:
        """(c, n) the score of each row's value of each counted feature."""
        encoder = self.encoder
        every = encoder.expand(rows).double() @ self.weights + self.offset
        # Rounded, so that equal rows have equal scores in batches of any size.
        every = (every.clamp_(0.0, 1.0) * RESOLUTION).round_().float() / RESOLUTION
        starts = torch.tensor(encoder.starts)[supports.counted]
        level = torch.where(encoder.blocks[supports.counted], rows[:, supports.counted], 0.0)
        return every.gather(1, starts + level.long()).T.contiguous()


def _coarse(part: Partition, max_bins: int) -> Tensor:
    """(b,) for each bin of a partition, one of at most `max_bins` bins of about equal size."""
    size = torch.bincount(part.bins, minlength=part.mix.shape[1])
    if len(size) <= max_bins:
        return torch.arange(len(size))
    middle = (size.cumsum(0) - size / 2) / size.sum()
    return (middle * max_bins).long().clamp_max(max_bins - 1)


def _ridge(sample: TrainingSample, supports: Supports) -> tuple[Tensor, Tensor]:
    """(d, d) and (d,) scores of every column from the other mutable features, in [0, 1]."""
    encoder, x = sample.encoder, sample.encoder.expand(sample.rows).double()
    x = x - x.mean(0)
    gram = x.T @ x
    ridge = RIDGE * gram.diagonal().clamp_min(1e-9 * len(x)).diag()
    mutable = torch.tensor([not f.immutable for f in encoder.schema])[encoder.feature_of]
    weights = torch.zeros_like(gram)
    for j in supports.counted.tolist():
        own = encoder.feature_of == j
        others = (mutable & ~own).nonzero()[:, 0]
        system = (gram + ridge)[others[:, None], others]
        slopes = torch.linalg.solve(system, gram[others][:, own])
        weights[others[:, None], own.nonzero()[:, 0]] = -slopes if encoder.blocks[j] else slopes
    score = encoder.expand(sample.rows).double() @ weights
    low, high = score.amin(0), score.amax(0)
    width = (high - low).clamp_min(1e-9)
    return weights / width, -low / width


def _quantiles(keys: Tensor, scores: Tensor, count: int, ranks: int) -> Tensor:
    """(count, q) quantiles of the scores of each key; -inf and inf, half each, without scores."""
    both = sorted_values((keys.double() * 2.0 + scores).flatten())
    size = torch.bincount(keys.flatten(), minlength=count)[:, None]
    first = size.cumsum(0) - size
    at = first + ((torch.arange(ranks) + 0.5) / ranks * size).long()
    found = both[at.clamp_max(len(both) - 1)] - torch.arange(count)[:, None] * 2.0
    empty = torch.where(torch.arange(ranks) < ranks // 2, -torch.inf, torch.inf)
    return torch.where(size > 0, found, empty).float()
