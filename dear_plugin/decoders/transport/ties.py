"""Ties: who comes first among people with the same x_j, by what else is known of them.

A ridge regression of x_j on the other mutable features gives everyone a score. The rank of a
person's score among people with the same x_j *in the same bin of x_S* leaves v_j as independent of
x_S as random ties do. Of a category, those whom it fits least come last: they are first to leave.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.transport.bins import Partition, ordered
from dear_plugin.decoders.transport.conditioning import Crowd
from dear_plugin.decoders.transport.lookup import pick, places
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.tables import CELLS

RIDGE = 1e-3
MOST_RANKS, LEAST_RANKS = 16, 4
MOST_BINS, LEAST_BINS = 16, 2
RESOLUTION = 1 << 16


@dataclass
class Ties:
    """Scores, and how they are spread.

    Attributes:
        weights: (d, d) double, the score of each encoded column, from the others.
        offset: (d,) double, what is added, so that training scores lie between 0 and 1.
        bin_of: (g,) the nearest bin of every node, counted over all slots; coarser ones than those
            of the tables.
        spread: (b * t, q) the quantiles of scores in each bin and at each value.
        encoder: the gate.
    """

    weights: Tensor
    offset: Tensor
    bin_of: Tensor
    spread: Tensor
    encoder: Encoder

    @classmethod
    def of(cls, crowd: Crowd, supports: Supports, parts: list[Partition]) -> Ties:
        """Score training rows and tabulate their scores; arguments as in `Tables.of`."""
        weights, offset = _ridge(crowd, supports)
        t = len(supports.values)
        most = max(LEAST_BINS, min(MOST_BINS, CELLS // max(len(parts) * t * LEAST_RANKS, 1)))
        coarse = [_coarse(part, most) for part in parts]
        starts = torch.tensor([0, *(int(c.max()) + 1 for c in coarse)]).cumsum(0)
        near = [c[part.mix.argmax(1)] for c, part in zip(coarse, parts, strict=True)]
        bin_of = torch.cat([bins + start for bins, start in zip(near, starts[:-1], strict=True)])
        cells = int(starts[-1]) * t
        ranks = min(MOST_RANKS, max(LEAST_RANKS, CELLS // max(cells, 1)))
        ties = cls(weights, offset, bin_of.int(), torch.empty(cells, ranks), crowd.encoder)
        codes = supports.codes(crowd.rows)
        scores = ties._scores(crowd.rows, supports)
        for slot, (part, bins) in enumerate(zip(parts, coarse, strict=True)):
            people = crowd.cells[slot // len(crowd.sets)]
            keys = bins.int()[part.bins] * t + codes[:, people]
            here = slice(int(starts[slot]) * t, int(starts[slot + 1]) * t)
            ties.spread[here] = _quantiles(keys, scores[:, people], here.stop - here.start, ranks)
        return ties

    def ranks_of(self, rows: Tensor, supports: Supports, codes: Tensor, node: Tensor) -> Tensor:
        """(n, s, c) where rows, (n, p), stand among those with their x_j and about their x_S.

        Args:
            rows: the rows.
            supports: the values of each feature.
            codes: (c, n) the rows' own values.
            node: (n, s) their nodes.
        """
        q = self.spread.shape[1]
        key = pick(self.bin_of, node)[..., None] * len(supports.values) + codes.T[:, None]
        score = self._scores(rows, supports).T[:, None].expand(key.shape)
        sides = [places(self.spread, key * q, 1, q, score, how) for how in (torch.lt, torch.le)]
        return (sides[0] + sides[1]) / (2.0 * q)

    def _scores(self, rows: Tensor, supports: Supports) -> Tensor:
        """(c, n) the score of each row's value of each counted feature."""
        encoder = self.encoder
        every = encoder.expand(rows).double() @ self.weights + self.offset
        # Coarse enough that people alike score the same, however many are scored at a time.
        every = (every.clamp_(0.0, 1.0) * RESOLUTION).round_().float() / RESOLUTION
        starts = torch.tensor(encoder.starts)[supports.counted]
        level = torch.where(encoder.blocks[supports.counted], rows[:, supports.counted], 0.0)
        return every.gather(1, starts + level.long()).T.contiguous()


def _coarse(part: Partition, most: int) -> Tensor:
    """(b,) at most so many bins of about equally many people, for each bin of a partition."""
    size = torch.bincount(part.bins, minlength=part.mix.shape[1])
    if len(size) <= most:
        return torch.arange(len(size))
    middle = (size.cumsum(0) - size / 2) / size.sum()
    return (middle * most).long().clamp_max(most - 1)


def _ridge(crowd: Crowd, supports: Supports) -> tuple[Tensor, Tensor]:
    """(d, d) and (d,) scores of every column from the other mutable features, in [0, 1]."""
    encoder, x = crowd.encoder, crowd.encoder.expand(crowd.rows).double()
    x = x - x.mean(0)
    gram = x.T @ x
    ridge = RIDGE * gram.diagonal().clamp_min(1e-9 * len(x)).diag()
    mutable = torch.tensor([not f.immutable for f in encoder.schema])[encoder.feature_of]
    weights = torch.zeros_like(gram)
    for j in supports.counted.tolist():
        own = encoder.feature_of == j
        others = (mutable & ~own).nonzero()[:, 0]
        known = (gram + ridge)[others[:, None], others]
        slopes = torch.linalg.solve(known, gram[others][:, own])
        weights[others[:, None], own.nonzero()[:, 0]] = -slopes if encoder.blocks[j] else slopes
    score = encoder.expand(crowd.rows).double() @ weights
    low, high = score.amin(0), score.amax(0)
    width = (high - low).clamp_min(1e-9)
    return weights / width, -low / width


def _quantiles(keys: Tensor, scores: Tensor, count: int, ranks: int) -> Tensor:
    """(count, q) quantiles of the scores of each key, evenly below and above where it has none."""
    both = ordered((keys.double() * 2.0 + scores).flatten())
    size = torch.bincount(keys.flatten(), minlength=count)[:, None]
    first = size.cumsum(0) - size
    at = first + ((torch.arange(ranks) + 0.5) / ranks * size).long()
    found = both[at.clamp_max(len(both) - 1)] - torch.arange(count)[:, None] * 2.0
    empty = torch.where(torch.arange(ranks) < ranks // 2, -torch.inf, torch.inf)
    return torch.where(size > 0, found, empty).float()
