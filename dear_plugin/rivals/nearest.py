"""The nearest training row that the model accepts, as a counterfactual."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from dear_plugin.methods.base import Case, RecourseMethod
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.candidate_pool import CandidatePool

CELLS_A_TIME = 1 << 23


@final
class NearestAccepted(RecourseMethod):
    """The nearest training row, in l1 cost, that the model accepts and that is feasible.

    It needs no gradient and takes any model. Nearest unlike neighbours come from case-based
    explanation: Keane and Smyth, "Good Counterfactuals and Where to Find Them", ICCBR 2020.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Example:
        >>> from dear_plugin import Schema
        >>> from dear_plugin.rivals import NearestAccepted
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = NearestAccepted(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> method.generate(frame.head(5)).actions["success"].sum()
        5
    """

    follows_margin = False

    def _learn(self, rows: Tensor) -> None:
        unique = rows.unique(dim=0)
        self._unique, self._scores = unique, self.classifier.scores(unique)

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        unique, weights, expand = self._unique, self.encoder.weights, self.encoder.expand
        others = expand(unique) * weights
        for idx, part in pool.parts(CELLS_A_TIME // len(unique)):
            wanted = ends_mask(part, unique, self._scores)
            distance = torch.cdist(expand(part.case.x) * weights, others, p=1.0)
            distance = torch.where(wanted, distance, torch.inf)
            least, nearest = distance.min(1)
            found = least.isfinite()
            reached = pool.project(unique[nearest[found]][:, None], idx[found])
            pool.update(reached, idx[found])
        return pool.proposal("no training row that the model accepts keeps the constraints")


def ends_mask(
    pool: CandidatePool, rows: Tensor, scores: Tensor, confidence: float = 0.0
) -> Tensor:
    """(m, r) bool: which of r training rows, (r, p), may be the counterfactual of which row.

    Args:
        pool: of the m rows.
        rows: (r, p) training rows.
        scores: (r, classes) their scores.
        confidence: the least probability, of a goal that has one.
    """
    case = pool.case
    goal, idx = case.goal, torch.arange(len(case)).repeat_interleave(len(rows))
    scores = scores.repeat(len(case), 1)
    accepted = case.reaches(scores, idx)
    if confidence and goal.scores_are_probabilities:
        accepted &= goal.score(scores, idx) >= confidence
    mask = pool.feasible_mask(rows) & accepted.view(len(case), len(rows))
    if case.requirement is not None:
        some = mask.any(0).nonzero()[:, 0]
        mask[:, some] &= case.requirement.mask(rows[some])
    return mask
