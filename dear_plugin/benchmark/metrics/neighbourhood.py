"""Neighbourhood: outliers and nearest-neighbour distances relative to reference rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin.benchmark.metrics.decision import Floats, Truths
from dear_plugin.data.encoder import Encoder

NEIGHBOURS = 5
# Neighbours of the local outlier factor, scikit-learn's default.
LOCAL = 20
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Neighbourhood:
    """Reference rows, with Euclidean distances on the encoding.

    It uses no labels, unlike support, which is the share of accepted neighbours.

    Attributes:
        encoder: the encoder of the rows.
        rows: (n, p) the reference rows; a random sample of `MOST_ROWS` of them if there are more.
    """

    encoder: Encoder
    rows: Tensor

    def outliers(self, rows: Tensor) -> Truths:
        """(m,) bool, rows, (m, p), that are outliers by scikit-learn's `LocalOutlierFactor`.

        With `novelty=True` and its default threshold, a factor above 1.5 (Breunig et al. 2000).
        """
        found: Truths = self._factor.predict(self._points(rows)) < 0
        return found

    def distance(self, rows: Tensor) -> Floats:
        """(m,) the mean distance of rows, (m, p), to their 5 nearest, in scaled units."""
        distances, _ = self._factor.kneighbors(self._points(rows), NEIGHBOURS)
        mean: Floats = distances.mean(1)
        return mean

    @cached_property
    def _factor(self) -> Any:
        from sklearn.neighbors import LocalOutlierFactor

        rng = torch.Generator().manual_seed(0)
        some = self.rows[torch.randperm(len(self.rows), generator=rng)[:MOST_ROWS]]
        return LocalOutlierFactor(n_neighbors=LOCAL, novelty=True).fit(self._points(some))

    def _points(self, rows: Tensor) -> Floats:
        points: Floats = self.encoder.expand(rows).double().numpy().astype(np.float64)
        return points
