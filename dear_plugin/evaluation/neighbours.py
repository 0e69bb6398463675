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
# Above so many encoded columns, all distances are cheaper than a tree.
MOST_COLUMNS, ROWS_A_BATCH = 128, 512


@dataclass
class Neighbours:
    """The nearest training rows, by a k-d tree, or by all distances where rows are wide.

    Attributes:
        rows: (n, p) the training rows.
        encoder: expands them, (n, d).
        units: (d,) the units of the encoded columns in distances; None for 1.
    """

    rows: Tensor
    encoder: Encoder
    units: Tensor | None = None

    def query(
        self, rows: Tensor, k: int, *, skip: int = 0
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """(m, k) the distances of rows, (m, p), to their nearest training rows, and these.

        Args:
            rows: the rows.
            k: the number of neighbours.
            skip: the number of nearest rows to leave out: 1 if the rows are training rows.
        """
        ranks = list(range(1 + skip, min(k + skip, len(self.rows)) + 1)) or [1]
        points = self._points(rows)
        if self.encoder.d > MOST_COLUMNS:
            distances, near = _nearest(self._known, points, ranks)
        else:
            distances, near = self._tree.query(points, k=ranks)
        out, new = np.asarray(distances, dtype=np.float64), self.encoder.is_new(rows)
        if bool(new.any()):
            out = np.sqrt(out**2 + self._differences(new)[:, None])
        return out, np.asarray(near, dtype=np.int64)

    def _differences(self, new: Tensor) -> npt.NDArray[np.float64]:
        """(m,) what makes new categories, (m, p) bool, as distant as any other two, squared."""
        more = torch.where(self.encoder.blocks, 1.0, 0.75).double() * self.encoder.shares.sign()
        if self.units is not None:
            more = more / self.units[list(self.encoder.starts)] ** 2
        return np.asarray((new * more).sum(1))

    def nearest(self, rows: Tensor, k: int = NEIGHBOURS) -> npt.NDArray[np.int64]:
        """(m, k) int64, the nearest training rows of rows, (m, p), nearest first."""
        return self.query(rows, k)[1]

    def distance(self, rows: Tensor, k: int = NEIGHBOURS, *, skip: int = 0) -> Tensor:
        """(m,) double, the mean distance of rows, (m, p), to their nearest; see `query`."""
        return torch.from_numpy(self.query(rows, k, skip=skip)[0].mean(1))

    @lazy
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        # Midpoint splits: with many ties, balanced trees are slow (three times slower on Adult).
        return cKDTree(self._known, leafsize=32, balanced_tree=False)

    @lazy
    def _known(self) -> npt.NDArray[np.float64]:
        """(n, d) the points of the training rows."""
        return self._points(self.rows)

    def _points(self, rows: Tensor) -> npt.NDArray[np.float64]:
        points = self.encoder.expand(rows).double()
        scaled = points if self.units is None else points / self.units
        compared = scaled[..., self.encoder.compared]
        # Where all are identifiers, no two rows differ.
        return np.asarray((compared if compared.shape[-1] else 0.0 * scaled[..., :1]).numpy())


def _nearest(
    known: npt.NDArray[np.float64], points: npt.NDArray[np.float64], ranks: list[int]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """(m, k) the distances of points, (m, d), to those of some ranks among known ones, and these.

    A product of matrices finds them; their distances are then computed exactly.
    """
    every, found = torch.from_numpy(known), []
    squares = every.square().sum(1)
    for some in torch.from_numpy(points).split(ROWS_A_BATCH):
        near = (squares - 2.0 * some @ every.T).topk(ranks[-1], largest=False).indices
        exact = (every[near] - some[:, None]).square().sum(2).sqrt()
        distances, order = exact.sort(dim=1, stable=True)
        found.append((distances, near.gather(1, order)))
    first, second = (torch.cat(each)[:, ranks[0] - 1 :] for each in zip(*found, strict=True))
    return first.numpy(), second.numpy()
