"""Neighbours: the nearest training rows of a row, Euclidean on the encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder

NEIGHBOURS = 5
LEAST_REACH = 1e-100


@dataclass
class Neighbours:
    """A k-d tree over training rows.

    Attributes:
        rows: (n, p) the training rows.
        encoder: expands them, (n, d).
    """

    rows: Tensor
    encoder: Encoder

    def nearest(self, rows: Tensor, k: int = NEIGHBOURS) -> npt.NDArray[np.int64]:
        """(m, k) int64, the nearest training rows of rows, (m, p), nearest first."""
        _, near = self._tree.query(self._points(rows), k=_ranks(k, len(self.rows)))
        return np.asarray(near, dtype=np.int64)

    def distance(self, rows: Tensor, k: int = NEIGHBOURS, *, skip: int = 0) -> Tensor:
        """(m,) double, the mean distance of rows, (m, p), to their k nearest training rows.

        Args:
            rows: the rows.
            k: the number of neighbours.
            skip: the number of nearest rows to leave out: 1 if the rows are training rows.
        """
        ranks = _ranks(k + skip, len(self.rows))[skip:] or [1]
        distances, _ = self._tree.query(self._points(rows), k=ranks)
        return torch.from_numpy(np.asarray(distances, dtype=np.float64).mean(1))

    def within(self, rows: Tensor, reach: Tensor) -> Tensor:
        """(m,) bool, whether rows, (m, p), have a training row within reach, (m,) double."""
        points, limit = self._points(rows), reach.numpy()
        out = np.zeros(len(points), dtype=bool)
        # A query has one upper bound: rows are grouped by the binary exponent of their limit.
        exponents = np.frexp(limit)[1]
        for exponent in np.unique(exponents):
            at = np.flatnonzero(exponents == exponent)
            # The bound is exclusive, and its square must not underflow.
            most = limit[at].max() * (1.0 + 1e-9) + LEAST_REACH
            distances, _ = self._tree.query(points[at], k=1, distance_upper_bound=most)
            out[at] = distances <= limit[at]
        return torch.from_numpy(out)

    @lazy
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        # Midpoint splits: with many ties, balanced trees are slow (three times slower on Adult).
        return cKDTree(self._points(self.rows), leafsize=32, balanced_tree=False)

    def _points(self, rows: Tensor) -> npt.NDArray[np.float64]:
        points: npt.NDArray[np.float64] = self.encoder.expand(rows).double().numpy()
        return points


def _ranks(k: int, n: int) -> list[int]:
    """The ranks 1 ... k, at most n."""
    return list(range(1, min(k, n) + 1))
