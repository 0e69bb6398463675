"""FACE: the training row at the end of the shortest path through dense regions.

Poyiadzi, Sokol, Santos-Rodriguez, De Bie and Flach, "FACE: Feasible and Actionable Counterfactual
Explanations", AIES 2020, arXiv 1909.09369. Training rows are linked to their neighbours; a path is
the longer the thinner the regions it leads through; it begins at the person who asks and ends at a
row that the model accepts.
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
from dear_plugin.baselines.nearest import accepted
from dear_plugin.data.schema import Kind
from dear_plugin.methods.base import Case
from dear_plugin.problem.target import ClassGoal, Goal
from dear_plugin.results.proposal import Proposal

PEOPLE_A_TIME = 256


class Face(Baseline[FaceConfig], ABC):
    """What both graphs have in common.

    There is one graph for each combination of the schema's immutable features, so that no path
    leads through people of another sex; what else a call forbids holds for the end of the path.
    People who are alike are one node. Paths end at rows of which the model is sure (the paper's
    t_p); who has no such path may end where the model just agrees. Any model will do.
    """

    @property
    def _volume(self) -> int:
        """How many numbers vary within a graph."""
        return sum(f.kind is Kind.NUMERIC and not f.immutable for f in self.schema)

    def _validate_model(self) -> None:
        """Any model will do."""

    def _learn(self, rows: Tensor) -> None:
        self._people = rows.unique(dim=0)
        self._scores = self.classifier.scores(self._people)
        self._graphs: dict[bytes, tuple[Tensor, Graph]] = {}
        for key, at in self._groups(self._people):
            points = self.encoder.expand(self._people[at]).double().numpy()
            self._graphs[key] = at, Graph.of(points, self.config, self._volume)

    def _propose(self, case: Case) -> Proposal:
        pool, everyone = CandidatePool.of(case, self.classifier), torch.arange(len(case))
        self._search(
            pool, everyone, replace(case, goal=with_threshold(case.goal, self.config.confidence))
        )
        self._search(pool, everyone[~pool.solved], case)
        return pool.proposal(
            "no path of neighbours leads to a row that is accepted and admissible"
        )

    def _search(self, pool: CandidatePool, asking: Tensor, case: Case) -> None:
        """Note where the paths of some people, (q,), of a case end."""
        for key, group in self._groups(case.x[asking]):
            if key in self._graphs:
                for who in asking[group].split(PEOPLE_A_TIME):
                    self._walk(pool, who, case.select(who), *self._graphs[key])

    def _walk(
        self, pool: CandidatePool, who: Tensor, case: Case, at: Tensor, graph: Graph
    ) -> None:
        """Note where the paths of some people, (q,), end in the graph of some rows, (r,)."""
        feasible_mask = CandidatePool.of(case, self.classifier).feasible_mask(self._people[at])
        wanted = feasible_mask & accepted(case, self._scores[at])
        points = self.encoder.expand(case.x).double().numpy()
        packed = np.packbits(wanted.numpy(), axis=1)
        _, first, same = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        ends = np.full(len(who), -1)
        for i, row in enumerate(first):
            asking = same.ravel() == i
            ends[asking] = graph.ends(points[asking], wanted[row].numpy())
        found = torch.from_numpy(ends >= 0)
        reached = self._people[at[torch.from_numpy(ends)[found]]]
        pool.update(pool.project(reached[:, None], who[found]), who[found])

    def _groups(self, rows: Tensor) -> Iterator[tuple[bytes, Tensor]]:
        """The rows, (m,), of every combination of the immutable features in rows, (n, p)."""
        project = torch.tensor([f.immutable for f in self.schema])
        kinds, which = torch.where(project, rows, 0.0).unique(dim=0, return_inverse=True)
        order = which.argsort(stable=True)
        counts = which.bincount(minlength=len(kinds)).tolist()
        for kind, at in zip(kinds, order.split(counts), strict=True):
            # Zero has two signs, and one meaning.
            yield (kind + 0.0).numpy().tobytes(), at


@final
class FaceKNN(Face):
    """FACE on the graph of the k nearest neighbours, 50 as in the DEAR paper.

    Arguments are those of `RecourseMethod`; `config` is a `FaceConfig`.
    """

    def _default_config(self) -> FaceConfig:
        return FaceConfig()


@final
class FaceEpsilon(Face):
    """FACE on the graph of neighbours within a radius, 0.25 as in the DEAR paper.

    The nearest 50 of them are linked, or a dense region would link everyone to everyone.

    Arguments are those of `FaceKNN`.
    """

    def _default_config(self) -> FaceConfig:
        return FaceConfig(radius=0.25)


def with_threshold(goal: Goal, confidence: float) -> Goal:
    """A goal that asks for at least so much probability; a range of values has none."""
    if not isinstance(goal, ClassGoal):
        return goal
    return replace(goal, threshold=max(goal.threshold or 0.0, confidence))
