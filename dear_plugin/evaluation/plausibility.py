"""Plausibility: how odd a row is among all training rows, as a conformal p-value.

Label-free: whether the neighbours get the wanted decision is `Support`. Source: DESIGN, section 8;
conformal p-values after Vovk et al. (2005), "Algorithmic Learning in a Random World".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.evaluation.neighbours import Neighbours

# So many training rows, drawn once, stand for all of them.
MOST_ROWS = 5_000
# Of a row, when so many are asked for: a share of float32 is a little more or less.
TOLERANCE = 0.01


@dataclass
class Plausibility:
    """Whether there are training rows near a row.

    Attributes:
        rows: (n, p) the training rows.
        encoder: expands them, (n, d).
    """

    rows: Tensor
    encoder: Encoder

    def of(self, rows: Tensor) -> Tensor:
        """(m,) p-values of rows, (m, p): the share of training rows at least as odd, in (0, 1].

        `(1 + #{i: d_i >= d}) / (n + 1)`, d the mean distance to the 5 nearest training rows and
        d_i that of training row i, itself left out; over 5,000 training rows, if there are more.
        """
        at = torch.searchsorted(self._calibration, self._neighbours.distance(rows))
        n = len(self._calibration)
        return (1.0 + n - at) / (n + 1.0)

    def at_least(self, rows: Tensor, least: Tensor) -> Tensor:
        """(m,) as `of`, but 0 where no training row is near enough for `least`, (m,).

        That no row is near is found out much sooner than how far the nearest ones are.
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
        """(n,) double, the distances of training rows, themselves left out; sorted."""
        near = self._neighbours
        return near.distance(near.rows, skip=1).sort().values
