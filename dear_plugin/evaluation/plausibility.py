"""Plausibility: the conformal p-value of a row's distance to the training rows.

It ignores labels; `Support` measures the neighbours' decisions. Conformal p-values follow Vovk et
al. (2005), "Algorithmic Learning in a Random World".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import without_special
from dear_plugin.evaluation.neighbours import Neighbours

# The size of the random subsample of training rows that is used.
MOST_ROWS = 5_000
# The quantiles whose distance is the unit of a number.
CENTRAL = (0.05, 0.95)


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

    @lazy
    def _neighbours(self) -> Neighbours:
        rng = torch.Generator().manual_seed(0)
        order = torch.randperm(len(self.rows), generator=rng)
        return Neighbours(
            self.rows[order[:MOST_ROWS]], self.encoder, robust_units(self.rows, self.encoder)
        )

    @lazy
    def _calibration(self) -> Tensor:
        """(n,) double, the sorted mean distances of training rows, each without itself."""
        near = self._neighbours
        return near.distance(near.rows, skip=1).sort().values


def robust_units(rows: Tensor, encoder: Encoder) -> Tensor:
    """(d,) double, the units of encoded columns: robust ones, whatever the outliers.

    A number counts in units of the range of its central nine tenths, or of its standard deviation
    where that is zero; a column of a category, or of a special level, in units of sqrt(2).

    Args:
        rows: (n, p) training rows.
        encoder: expands them, (n, d).
    """
    units = torch.full((encoder.d,), math.sqrt(2.0), dtype=torch.float64)
    for j, feature in enumerate(encoder.schema):
        if feature.is_number:
            values = without_special(encoder.scaled(rows[:, j], j)).numpy()
            low, high = np.quantile(values, CENTRAL)
            units[encoder.starts[j]] = high - low or values.std() or 1.0
    return units
