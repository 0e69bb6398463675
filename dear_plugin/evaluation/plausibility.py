"""Plausibility: the conformal p-value of a row's distance to the training rows.

It ignores labels; `Support` measures the neighbours' decisions. Conformal p-values follow Vovk et
al. (2005), "Algorithmic Learning in a Random World".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.evaluation.neighbours import Neighbours

# The size of the random subsample of training rows that is used.
MOST_ROWS = 5_000
# The tolerance of a minimum p-value in rows, for the rounding error of float32.
TOLERANCE = 0.01


@dataclass
class Plausibility:
    """Conformal p-values of rows by their mean distance to the nearest training rows.

    Attributes:
        rows: (n, p) the training rows.
        encoder: expands them, (n, d).
    """

    rows: Tensor
    encoder: Encoder

    def of(self, rows: Tensor) -> Tensor:
        """(m,) p-values of rows, (m, p), in (0, 1].

        `(1 + #{i: d_i >= d}) / (n + 1)`, where d is the mean distance to the 5 nearest training
        rows and d_i that of training row i without itself, over at most 5,000 training rows.
        """
        at = torch.searchsorted(self._calibration, self._neighbours.distance(rows))
        n = len(self._calibration)
        return (1.0 + n - at) / (n + 1.0)

    def at_least(self, rows: Tensor, least: Tensor) -> Tensor:
        """(m,) as `of`, but 0 where no training row is near enough for a p-value of `least`, (m,).

        A bounded query for one near row is much faster than one for the nearest rows.
        """
        n = len(self._calibration)
        beyond = (least.double() * (n + 1.0) - 1.0 - TOLERANCE).ceil().long().clamp(0, n)
        far = torch.cat([self._calibration, self._calibration.new_full((1,), torch.inf)])
        near = self._neighbours.within(rows, far[n - beyond]).nonzero()[:, 0]
        share = torch.zeros(len(rows), dtype=torch.float64)
        share[near] = self.of(rows[near]).double()
        return share

    @lazy
    def _neighbours(self) -> Neighbours:
        rng = torch.Generator().manual_seed(0)
        order = torch.randperm(len(self.rows), generator=rng)
        return Neighbours(self.rows[order[:MOST_ROWS]], self.encoder)

    @lazy
    def _calibration(self) -> Tensor:
        """(n,) double, the sorted mean distances of training rows, each without itself."""
        near = self._neighbours
        return near.distance(near.rows, skip=1).sort().values
