"""FACE: the training row at the end of the shortest path through dense regions.

Poyiadzi, Sokol, Santos-Rodriguez, De Bie and Flach, "FACE: Feasible and Actionable Counterfactual
Explanations", AIES 2020, arXiv 1909.09369. Training rows are linked to their neighbours, and links
are longer where rows are sparse; a path starts at the factual row and ends at a training row that
the model accepts.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from dataclasses import replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from dear_plugin.baselines.base import Baseline
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.baselines.graph import FaceConfig, Graph
from dear_plugin.baselines.nearest import ends_mask
from dear_plugin.data.schema import Kind
from dear_plugin.methods.base import Case
from dear_plugin.problem.target import ClassGoal, Goal
from dear_plugin.results.proposal import Proposal

ROWS_A_TIME = 256


class Face(Baseline[FaceConfig], ABC):
    """FACE on one graph for each combination of the schema's immutable features.

    Thus no path leads through rows of another sex; the constraints of a call hold for the end of a
    path only. Equal training rows are one node. Paths end at rows accepted with a probability of
    `config.confidence` (the paper's t_p) that are denser than a share `config.density` of their
    graph (for its t_d); rows without such a path may end at any accepted row.
    Any model can be used.
    """

    follows_margin = False

    def _learn(self, rows: Tensor) -> None:
        self._nodes = rows.unique(dim=0)
        self._scores = self.classifier.scores(self._nodes)
        self._graphs: dict[bytes, tuple[Tensor, Graph]] = {}
        # How many numbers vary within a graph.
        volume = sum(f.kind is Kind.NUMERIC and not f.immutable for f in self.schema)
        for key, nodes in self._groups(self._nodes):
            points = self.encoder.expand(self._nodes[nodes]).double().numpy()
            self._graphs[key] = nodes, Graph.of(points, self.config, volume)

    def _propose(self, case: Case) -> Proposal:
        pool, idx = CandidatePool.of(case, self.classifier), torch.arange(len(case))
        confident = with_threshold(case.goal, self.config.confidence)
        self._search(pool, idx, replace(case, goal=confident), dense=True)
        self._search(pool, idx[~pool.solved], case, dense=False)
        return pool.proposal("no path of neighbours leads to a row that is accepted and feasible")

    def _search(self, pool: CandidatePool, idx: Tensor, case: Case, *, dense: bool) -> None:
        """Add the ends of the paths of some rows, (q,), to the pool; dense ends, or any."""
        for key, members in self._groups(case.x[idx]):
            if key in self._graphs:
                nodes, graph = self._graphs[key]
                may_end = torch.from_numpy(graph.dense) if dense else torch.ones(len(nodes)).bool()
                for part in idx[members].split(ROWS_A_TIME):
                    ends = self._ends(case.select(part), nodes, graph, may_end)
                    found = (ends >= 0).nonzero()[:, 0]
                    reached = self._nodes[nodes[ends[found]]]
                    pool.update(pool.project(reached[:, None], part[found]), part[found])

    def _ends(self, case: Case, nodes: Tensor, graph: Graph, may_end: Tensor) -> Tensor:
        """(q,) the nodes, of (r,), at which the paths of q rows end; -1 without one."""
        pool, at = CandidatePool.of(case, self.classifier), may_end.nonzero()[:, 0]
        wanted = torch.zeros(len(case), len(nodes), dtype=torch.bool)
        wanted[:, at] = ends_mask(pool, case, self._nodes[nodes[at]], self._scores[nodes[at]])
        points = self.encoder.expand(case.x).double().numpy()
        # One search of the graph for all rows with the same wanted nodes.
        packed = np.packbits(wanted.numpy(), axis=1)
        _, first, same = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        ends = np.full(len(case), -1)
        for i, row in enumerate(first):
            alike = same.ravel() == i
            ends[alike] = graph.ends(points[alike], wanted[row].numpy())
        return torch.from_numpy(ends)

    def _groups(self, rows: Tensor) -> Iterator[tuple[bytes, Tensor]]:
        """A key and the rows, (q,), of every combination of immutable features in (n, p)."""
        immutable = torch.tensor([f.immutable for f in self.schema])
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
        >>> from dear_plugin.baselines import FaceKNN
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = FaceKNN(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> method.generate(frame.head(5)).outcome["success"].sum()
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
        >>> from dear_plugin.baselines import FaceEpsilon
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = FaceEpsilon(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> method.generate(frame.head(5)).outcome["success"].sum()
        4
    """

    default_config = FaceConfig(radius=0.25)


def with_threshold(goal: Goal, confidence: float) -> Goal:
    """A goal with at least this probability as its threshold; a range of values unchanged."""
    if not isinstance(goal, ClassGoal):
        return goal
    return replace(goal, threshold=max(goal.threshold or 0.0, confidence))
