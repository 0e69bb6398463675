"""Graph: training rows linked to their neighbours, with longer links where rows are sparse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Lengths are clipped: a sparse matrix has no links of length zero, and infinity has no logarithm.
SHORTEST, LONGEST = 1e-9, 1e9


@dataclass(frozen=True)
class FaceConfig:
    """The settings of FACE.

    Attributes:
        k: how many neighbours a row is linked to, at most: the nearest.
        radius: the longest link, Euclidean on the encoding.
        confidence: t_p, the least probability of the wanted class at the end of a path.
        density: t_d, the least density at the end of a path, as the share of the rows of its graph
            that may be sparser; 0 for none. The paper's t_d is a value of a density of two
            features (0.001); a share has no unit, and 0.05 leaves out the sparsest row of twenty.

    Example:
        >>> from dear_plugin.baselines import FaceConfig
        >>> dense = FaceConfig(k=100)
    """

    k: int = 50
    radius: float = math.inf
    confidence: float = 0.75
    density: float = 0.05


@dataclass(frozen=True)
class Graph:
    """r rows, linked to their neighbours.

    The weight of a link of length l is `f(z) l`, z the density half-way and f decreasing. Among k
    neighbours `z = k / (r eta l^v)` in v dimensions, eta the unit ball's volume; within a radius
    `z = (radius / l)^v`: in both z depends on l^v alone, in an arbitrary unit. Here the unit is
    the density at the median link, and `f(z) = log(1 + 1/z)`: about the paper's `-log z` where
    rows are sparse, and never negative.

    Attributes:
        tree: (r, d) k-d tree of the rows.
        config: which are linked.
        volume: v, how many numbers vary; categories add nothing to a volume.
        typical: the median length of a link, at which z = 1.
        matrix: (r, r) sparse, the weights.
        dense: (r,) bool, rows of at least the density `config.density`.
    """

    tree: Any
    config: FaceConfig
    volume: int
    typical: float
    matrix: Any
    dense: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, points: Floats, config: FaceConfig, volume: int) -> Graph:
        """Link rows, (r, d)."""
        from scipy.sparse import csr_matrix
        from scipy.spatial import cKDTree

        tree, r = cKDTree(points), len(points)
        # In the order of the leaves, successive queries visit the same part of the tree.
        length, near = _nearest(tree, points[tree.indices], config, 1)
        back = tree.indices.argsort()
        length, near = length[back], near[back]
        linked = np.isfinite(length)
        typical = float(np.median(length[linked])) if linked.any() else 1.0
        start = np.broadcast_to(np.arange(r)[:, None], near.shape)[linked]
        weight = weights(length[linked], typical, volume)
        one_way = csr_matrix((weight, (start, near[linked])), shape=(r, r))
        dense = _dense(length, config, volume)
        return cls(tree, config, volume, typical, one_way.maximum(one_way.T), dense)

    def ends(self, points: Floats, wanted: npt.NDArray[np.bool_]) -> Ints:
        """(m,) the end of the shortest path from each point to a wanted row, -1 without a path.

        Args:
            points: (m, d), which need not be rows of the graph: they are linked as rows are.
            wanted: (r,) bool.
        """
        from scipy.sparse.csgraph import dijkstra

        if not wanted.any():
            return np.full(len(points), -1)
        # Links have no direction: one search from all wanted rows gives the paths of all points.
        distance, _, ends = dijkstra(
            self.matrix, indices=np.flatnonzero(wanted), return_predecessors=True, min_only=True
        )
        length, near = _nearest(self.tree, points, self.config, 0)
        path = weights(length, self.typical, self.volume) + np.append(distance, np.inf)[near]
        best = np.arange(len(points)), path.argmin(1)
        return np.where(np.isfinite(path[best]), np.append(ends, -1)[near[best]], -1)


def weights(length: Floats, typical: float, volume: int) -> Floats:
    """The weights of links of some lengths, of any shape."""
    size = np.clip(length, SHORTEST, LONGEST)
    sparsity = volume * np.log(size / max(typical, SHORTEST))
    cost: Floats = np.maximum(length, SHORTEST) * np.logaddexp(0.0, sparsity)
    return cost


def _dense(length: Floats, config: FaceConfig, volume: int) -> npt.NDArray[np.bool_]:
    """(r,) bool, which rows are dense enough, from the lengths of their links, (r, k).

    The density is that of the neighbours within the longest link, or within the radius where the
    row has fewer of them.
    """
    linked = np.isfinite(length)
    farthest = np.where(linked, length, 0.0).max(1)
    most = config.radius if np.isfinite(config.radius) else farthest
    reach = np.clip(np.where(linked.all(1), farthest, most), SHORTEST, LONGEST)
    density = np.log(np.maximum(linked.sum(1), 0.5)) - volume * np.log(reach)
    enough: npt.NDArray[np.bool_] = density >= np.quantile(density, config.density)
    return enough


def _nearest(tree: Any, points: Floats, config: FaceConfig, skip: int) -> tuple[Floats, Ints]:
    """Lengths and rows of the links of points, (m, k) each; infinite and r where there is none."""
    k = min(config.k + skip, max(tree.n, 2))
    length, near = tree.query(points, k=k, distance_upper_bound=config.radius)
    return length[:, skip:], near[:, skip:]
