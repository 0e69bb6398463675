"""FACE: the training row at the end of the shortest path through dense regions.

Poyiadzi, Sokol, Santos-Rodriguez, De Bie and Flach, "FACE: Feasible and Actionable Counterfactual
Explanations", AIES 2020, arXiv 1909.09369. Training rows are linked to their neighbours, and links
are longer in sparse regions. A path starts at the factual and ends at a training row that the
model accepts.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.base import Baseline
from dear_plugin.rivals.candidate_pool import CandidatePool
from dear_plugin.rivals.nearest import ends_mask

ROWS_A_TIME = 256
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Lengths are clipped: a sparse matrix has no links of length zero, and infinity has no logarithm.
SHORTEST, LONGEST = 1e-9, 1e9


@dataclass(frozen=True)
class FaceConfig:
    """The settings of FACE.

    Attributes:
        k: the largest number of neighbours that a row is linked to.
        radius: the largest length of a link, Euclidean on encoded columns.
        confidence: t_p, the smallest probability of the wanted class at the end of a path.
        density: t_d, as the share of the sparsest rows of a graph at which no path ends: 0.05
            leaves out the sparsest row of twenty, 0 none. The paper's t_d is a density of two
            features (0.001), which has a unit.

    Example:
        >>> from dear_plugin.rivals import FaceConfig
        >>> dense = FaceConfig(k=100)
    """

    k: int = 50
    radius: float = math.inf
    confidence: float = 0.75
    density: float = 0.05


class Face(Baseline[FaceConfig], ABC):
    """FACE on one graph for each combination of the schema's immutable features.

    No path leads through rows of another sex. The constraints of a call hold only for the end of a
    path. Equal training rows are one node. Paths end at rows that are accepted with the
    probability `config.confidence` (the paper's t_p) and are denser than the share
    `config.density` of their graph (its t_d). If there is no such path, it may end at any accepted
    row. Any model can be used.
    """

    follows_margin = False

    def _learn(self, rows: Tensor) -> None:
        nodes_of_all = rows.unique(dim=0)
        scores = self.classifier.scores(nodes_of_all)
        graphs: dict[bytes, tuple[Tensor, Graph]] = {}
        # How many numbers vary within a graph.
        volume = int((self._acts & ~self.encoder.labelled).sum())
        for key, nodes in self._groups(nodes_of_all):
            points = self._points(nodes_of_all[nodes])
            graphs[key] = nodes, Graph.of(points, self.config, volume)
        self._nodes, self._scores, self._graphs = nodes_of_all, scores, graphs

    def _propose(self, case: Case) -> Proposal:
        pool, idx = CandidatePool.of(case, self.classifier), torch.arange(len(case))
        self._search(pool, idx, dense=True)
        self._search(pool, idx[~pool.solved], dense=False)
        return pool.proposal("no path of neighbours leads to a row that is accepted and feasible")

    def _search(self, pool: CandidatePool, idx: Tensor, *, dense: bool) -> None:
        """Add the ends of the paths of some rows, (q,), to the pool; dense ends, or any."""
        for key, members in self._groups(pool.case.x[idx]):
            if key in self._graphs:
                nodes, graph = self._graphs[key]
                for part in idx[members].split(ROWS_A_TIME):
                    ends = self._ends(pool.select(part), nodes, graph, dense=dense)
                    found = (ends >= 0).nonzero()[:, 0]
                    reached = self._nodes[nodes[ends[found]]]
                    pool.update(pool.project(reached[:, None], part[found]), part[found])

    def _ends(self, pool: CandidatePool, nodes: Tensor, graph: Graph, *, dense: bool) -> Tensor:
        """(q,) the nodes, of (r,), at which the paths of q rows end; -1 without one."""
        m, at, least = len(pool.case), torch.arange(len(nodes)), 0.0
        if dense:
            at, least = at[torch.from_numpy(graph.dense)], self.config.confidence
        wanted = torch.zeros(m, len(nodes), dtype=torch.bool)
        some = nodes[at]
        wanted[:, at] = ends_mask(pool, self._nodes[some], self._scores[some], least)
        points = self._points(pool.case.x)
        # One search of the graph for all rows with the same wanted nodes.
        packed = np.packbits(wanted.numpy(), axis=1)
        _, first, same = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        ends = np.full(m, -1)
        for i, row in enumerate(first):
            alike = same.ravel() == i
            ends[alike] = graph.ends(points[alike], wanted[row].numpy())
        return torch.from_numpy(ends)

    def _points(self, rows: Tensor) -> npt.NDArray[np.float64]:
        """(q, h) the encoded columns of rows, (q, p), that are compared."""
        return np.asarray(self.encoder.expand(rows)[:, self.encoder.compared].double().numpy())

    def _groups(self, rows: Tensor) -> Iterator[tuple[bytes, Tensor]]:
        """A key and the rows, (q,), of every combination of immutable features in (n, p)."""
        immutable = torch.tensor([f.immutable and not f.identifier for f in self.schema])
        groups, group = torch.where(immutable, rows, 0.0).unique(dim=0, return_inverse=True)
        order = group.argsort(stable=True)
        counts = group.bincount(minlength=len(groups)).tolist()
        for values, members in zip(groups, order.split(counts), strict=True):
            # + 0.0: the bytes of -0.0 and 0.0 differ.
            yield (values + 0.0).numpy().tobytes(), members


@final
class FaceKNN(Face):
    """FACE on the graph of the k nearest neighbours, 50 as in the DEAR paper.

    Arguments are those of `RecourseMethod`; `config` is a `FaceConfig`.

    Example:
        >>> from dear_plugin import Schema
        >>> from dear_plugin.rivals import FaceKNN
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = FaceKNN(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> method.generate(frame.head(5)).actions["success"].sum()
        5
    """

    default_config = FaceConfig()


@final
class FaceEpsilon(Face):
    """FACE on the graph of neighbours within a radius, 0.25 as in the DEAR paper.

    Only the nearest 50 of them are linked, which bounds the number of links in dense regions.

    Arguments are those of `FaceKNN`.

    Example:
        >>> from dear_plugin import Schema
        >>> from dear_plugin.rivals import FaceEpsilon
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = FaceEpsilon(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> method.generate(frame.head(5)).actions["success"].sum()
        4
    """

    default_config = FaceConfig(radius=0.25)


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
