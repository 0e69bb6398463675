"""Graph: training rows linked to their neighbours, where a step costs more in thin air."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# A link of length zero would be no link at all, and one that is not there has no logarithm.
SHORTEST, LONGEST = 1e-9, 1e9


@dataclass(frozen=True)
class FaceConfig:
    """Which rows are linked and where paths may end.

    Attributes:
        k: how many neighbours a row is linked to, at most: the nearest.
        radius: the longest link, Euclidean on the encoding.
        confidence: t_p, the least probability of the wanted class at the end of a path.
    """

    k: int = 50
    radius: float = math.inf
    confidence: float = 0.75


@dataclass(frozen=True)
class Graph:
    """r rows, linked to their neighbours.

    The weight of a link of length l is `f(z) l`, z the density half-way and f falling. Among k
    neighbours `z = k / (r eta l^v)` in v dimensions, eta the unit ball's volume; within a radius
    `z = (radius / l)^v`: in both z falls with l^v alone, in a unit that is arbitrary. Here the
    unit is the typical link's density, and `f(z) = log(1 + 1/z)`: the paper's `-log z` where the
    air is thin, and never negative where it is not.

    Attributes:
        tree: (r, d) k-d tree of the rows.
        paths: which are linked.
        volume: v, how many numbers vary; a category adds nothing to a volume.
        typical: the length of a link at which z = 1.
        matrix: (r, r) sparse, the weights.
    """

    tree: Any
    paths: FaceConfig
    volume: int
    typical: float
    matrix: Any

    @classmethod
    def of(cls, points: Floats, paths: FaceConfig, volume: int) -> Graph:
        """Link rows, (r, d)."""
        from scipy.sparse import csr_matrix
        from scipy.spatial import cKDTree

        tree, r = cKDTree(points), len(points)
        # In the order of the leaves, neighbours are asked about after one another.
        length, near = _nearest(tree, points[tree.indices], paths, 1)
        back = tree.indices.argsort()
        length, near = length[back], near[back]
        linked = np.isfinite(length)
        typical = float(np.median(length[linked])) if linked.any() else 1.0
        start = np.broadcast_to(np.arange(r)[:, None], near.shape)[linked]
        weight = weights(length[linked], typical, volume)
        one_way = csr_matrix((weight, (start, near[linked])), shape=(r, r))
        return cls(tree, paths, volume, typical, one_way.maximum(one_way.T))

    def ends(self, points: Floats, wanted: npt.NDArray[np.bool_]) -> Ints:
        """Where the shortest paths from some points to any wanted row end, -1 without a path.

        Args:
            points: (m, d), which need not be rows of the graph: they are linked as rows are.
            wanted: (r,) bool.
        """
        from scipy.sparse.csgraph import dijkstra

        if not wanted.any():
            return np.full(len(points), -1)
        # Links have no direction: one search from all wanted rows at once answers everybody.
        far, _, ends = dijkstra(
            self.matrix, indices=np.flatnonzero(wanted), return_predecessors=True, min_only=True
        )
        length, near = _nearest(self.tree, points, self.paths, 0)
        first = weights(length, self.typical, self.volume)
        path = first + np.append(far, np.inf)[near]
        best = path.argmin(1)
        everyone = np.arange(len(points))
        found = np.append(ends, -1)[near[everyone, best]]
        return np.where(np.isfinite(path[everyone, best]), found, -1)


def weights(length: Floats, typical: float, volume: int) -> Floats:
    """What links of some lengths, any shape, cost."""
    size = np.clip(length, SHORTEST, LONGEST)
    thin = volume * np.log(size / max(typical, SHORTEST))
    cost: Floats = np.maximum(length, SHORTEST) * np.logaddexp(0.0, thin)
    return cost


def _nearest(tree: Any, points: Floats, paths: FaceConfig, skip: int) -> tuple[Floats, Ints]:
    """Lengths and rows of the links of points, (m, k) each; infinite and r where there is none."""
    k = min(paths.k + skip, max(tree.n, 2))
    length, near = tree.query(points, k=k, distance_upper_bound=paths.radius)
    return length[:, skip:], near[:, skip:]
