"""Obstacles: what cannot be acted on and stands in the way of an answer; rows in, features out."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dear_plugin.results.question import Question
from dear_plugin.search.credibility import Reached
from dear_plugin.search.criteria import Criterion, RowCriteria, margins, scored

# Training rows among which the most usual accepted one is sought.
SOUGHT = 200


def obstacles(question: Question, start: Tensor) -> Tensor:
    """(m, p) bool, features that are not acted on, but for which m rows would have an answer.

    In a trial such a feature takes its value in the most usual accepted training row. The feature
    that brings the row nearest to the margin and the criteria of rows is freed, then another one,
    up to as many as a search acts on together. None where these do not suffice.

    Args:
        question: of m rows without a credible answer.
        start: (m, p) the rows of the trials: the nearest attempts, or the factuals.
    """
    method, (m, p) = question.method, start.shape
    usual, every = _usual(question), torch.eye(p, dtype=torch.bool)
    left = (~method._acts | question.case.feasible.limits.not_actionable) & (start != usual)
    left &= torch.tensor([not feature.identifier for feature in method.encoder.schema])
    freed, found = torch.zeros(m, p, dtype=torch.bool), torch.zeros(m, dtype=torch.bool)
    criteria = RowCriteria.of(question.case, method.search, method.trained)
    wanted = {} if criteria is None else criteria.wanted
    for _ in range(method.search.max_features):
        rows, one = (left & ~found[:, None]).nonzero(as_tuple=True)
        if not len(rows):
            break
        trials = torch.where(freed[rows] | every[one], usual[rows], start[rows])
        near = torch.full(left.shape, -torch.inf, dtype=torch.float64)
        near[rows, one] = _nearness(question, wanted, Reached(rows, trials))
        best, at = near.max(1)
        some = (best > -torch.inf).nonzero()[:, 0]
        freed[some] |= every[at[some]]
        left[some, at[some]] = False
        found |= best == torch.inf
    return freed & found[:, None]


def _usual(question: Question) -> Tensor:
    """(m, p) for each row the most usual training row that its target accepts."""
    trained, m = question.method.trained, len(question.case)
    rows, scores = (each[:SOUGHT] for each in trained.scored)
    order = trained.plausibility(rows).argsort(descending=True, stable=True)
    owner = torch.arange(m).repeat_interleave(len(rows))
    accepted = question.case.goal.accepts(scores[order].repeat(m, 1), owner).view(m, -1)
    return rows[order[accepted.int().argmax(1)]]


def _nearness(question: Question, wanted: Mapping[str, Criterion], found: Reached) -> Tensor:
    """(q,) double, how near trials are to the margin and the criteria; infinite where met.

    A criterion that is met counts 1; of the next one, and of the margin, what is missing does.
    """
    case, trained = question.case, question.method.trained
    margin = case.goal.margin(trained.classifier.scores(found.reached), found.rows)
    least = margins(case, question.method.search, trained)[found.rows]
    short, met = (least - margin).double().clamp_min(0.0), scored(found, wanted)[0]
    part = met.clamp_max(1.0 + len(wanted)) - short / (1.0 + short)
    return torch.where(short > 0.0, part, met)
