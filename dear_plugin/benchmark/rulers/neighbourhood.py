"""Neighbourhood: is there anybody near? Outliers and distances among given rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin.benchmark.rulers.decision import Floats, Truths
from dear_plugin.data.encoder import Encoder

NEIGHBOURS = 5
# The local outlier factor looks at so many neighbours, scikit-learn's default.
LOCAL = 20
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Neighbourhood:
    """Rows that others are held against, Euclidean on the encoding.

    Label-free: whether neighbours are accepted is support, whether there are any is asked here.

    Attributes:
        encoder: the gate.
        rows: (n, p) the rows; a random choice of `MOST_ROWS` of them is used where there are more.
    """

    encoder: Encoder
    rows: Tensor

    def outliers(self, rows: Tensor) -> Truths:
        """(m,) bool: rows, (m, p), that scikit-learn's `LocalOutlierFactor` calls outliers.

        With `novelty=True` and its own threshold, a factor above 1.5 (Breunig et al. 2000).
        """
        found: Truths = self._factor.predict(self._points(rows)) < 0
        return found

    def distance(self, rows: Tensor) -> Floats:
        """(m,) the mean distance of rows, (m, p), to their 5 nearest, in scaled units."""
        gap, _ = self._factor.kneighbors(self._points(rows), NEIGHBOURS)
        mean: Floats = gap.mean(1)
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
