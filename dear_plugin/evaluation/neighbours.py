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
    """A tree over training rows.

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
            k: how many neighbours.
            skip: how many of the nearest are left out: 1 for the training rows themselves.
        """
        ranks = _ranks(k + skip, len(self.rows))[skip:] or [1]
        away, _ = self._tree.query(self._points(rows), k=ranks)
        return torch.from_numpy(np.asarray(away, dtype=np.float64).mean(1))

    def within(self, rows: Tensor, reach: Tensor) -> Tensor:
        """(m,) bool, whether a training row lies within reach, (m,) double, of rows, (m, p)."""
        points, limit = self._points(rows), reach.numpy()
        out = np.zeros(len(points), dtype=bool)
        # A tree takes one limit for all: rows with limits of one size are asked for together.
        size = np.frexp(limit)[1]
        for each in np.unique(size):
            at = np.flatnonzero(size == each)
            # Just beyond it; the tree squares it, and of a very small number nothing is left.
            most = limit[at].max() * (1.0 + 1e-9) + LEAST_REACH
            away, _ = self._tree.query(points[at], k=1, distance_upper_bound=most)
            out[at] = away <= limit[at]
        return torch.from_numpy(out)

    @lazy
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        # Cut at midpoints: atoms make balanced trees slow to search, three times as slow on Adult.
        return cKDTree(self._points(self.rows), leafsize=32, balanced_tree=False)

    def _points(self, rows: Tensor) -> npt.NDArray[np.float64]:
        points: npt.NDArray[np.float64] = self.encoder.expand(rows).double().numpy()
        return points


def _ranks(k: int, n: int) -> list[int]:
    """The ranks 1 ... k, as many as there are rows."""
    return list(range(1, min(k, n) + 1))
