"""NearestAccepted: the closest training row that the model accepts; nobody should lose to it."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.methods.base import Case, RecourseMethod
from dear_plugin.results.proposal import Proposal

CELLS_A_TIME = 1 << 23


@final
class NearestAccepted(RecourseMethod):
    """The nearest training row, in l1 cost, that the model accepts and that the limits admit.

    It needs no gradient and takes any model. The nearest unlike neighbour is as old as case-based
    explanation: Keane and Smyth, "Good Counterfactuals and Where to Find Them", ICCBR 2020.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.
    """

    def _learn(self, rows: Tensor) -> None:
        """(n, p) the people to look among; the model may decide later."""
        self._people = rows.unique(dim=0)
        self._scores = self.classifier.scores(self._people)

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        for who in torch.arange(len(case)).split(max(1, CELLS_A_TIME // len(self._people))):
            self._try(pool, who)
        return pool.proposal("no training row that the model accepts keeps the constraints")

    def _try(self, pool: CandidatePool, who: Tensor) -> None:
        """Note the nearest accepted row of some people, (q,)."""
        part = CandidatePool.of(pool.case.select(who), self.classifier)
        may = part.feasible_mask(self._people) & accepted(part.case, self._scores)
        gap = distances(self, part.case.x, self._people)
        least, at = torch.where(may, gap, torch.inf).min(1)
        found = least.isfinite()
        rows = pool.project(self._people[at[found]][:, None], who[found])
        pool.update(rows, who[found])


def accepted(case: Case, scores: Tensor) -> Tensor:
    """Which rows are what who wants, (m, r) bool, from their scores, (r, classes)."""
    m, r = len(case), len(scores)
    rows = torch.arange(m).repeat_interleave(r)
    everyone = scores.repeat(m, 1)
    return case.goal.accepts(everyone, rows, case.slack).view(m, r)


def distances(method: RecourseMethod, x: Tensor, rows: Tensor) -> Tensor:
    """l1 cost, (m, r), between rows (m, p) and (r, p)."""
    encoder = method.encoder
    weights = encoder.weights
    return torch.cdist(encoder.expand(x) * weights, encoder.expand(rows) * weights, p=1.0)
