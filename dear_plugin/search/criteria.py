"""Criteria: what is asked of an answer, each one function of some actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from dear_plugin.search.credibility import (
    Actions,
    Evidence,
    confidence,
    plausibility,
    reliance,
    support,
)
from dear_plugin.search.problem import Search, SearchProblem

# What rounding may take from a share.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class CriterionResult:
    """How much m actions have of what a criterion asks.

    Attributes:
        share: (m,) how much, from 0 to 1.
        least: (m,) or a number, how much is enough.
        short: (m,) or a number, by how much larger a margin may be expected to do.
    """

    share: Tensor
    least: Tensor | float
    short: Tensor | float = 0.0


Criterion = Callable[[Actions], CriterionResult]


def criteria(
    problem: SearchProblem, search: Search, evidence: Evidence, *, whole: bool = False
) -> dict[str, Criterion]:
    """What `search` asks of answers, by name; what costs least to find out comes first.

    Args:
        problem: who asks what.
        search: what is asked.
        evidence: what answers are judged by.
        whole: find out how much there is also of answers that have too little.
    """
    out: dict[str, Criterion] = {}
    if search.min_plausibility:

        @cache
        def _own() -> Tensor:
            """(n,) what is asked of each row: nobody has to be less odd than they are."""
            return evidence.plausibility.of(problem.x).clamp_max(search.min_plausibility)

        def _plausible(actions: Actions) -> CriterionResult:
            least = _own()[actions.rows]
            if whole:
                return CriterionResult(plausibility(problem, actions, evidence), least)
            return CriterionResult(evidence.plausibility.at_least(actions.reached, least), least)

        out["plausibility"] = _plausible
    if search.max_reliance < 1.0:
        out["reliance"] = lambda actions: CriterionResult(
            1.0 - reliance(problem, actions), 1.0 - search.max_reliance
        )
    if search.min_support is not None:
        wanted = search.min_support
        out["support"] = lambda actions: CriterionResult(
            support(problem, actions, evidence), wanted
        )
    if search.min_confidence:

        def _sure(actions: Actions) -> CriterionResult:
            share, short = confidence(problem, actions, 0.0 if whole else search.min_confidence)
            return CriterionResult(share, search.min_confidence, short)

        out["confidence"] = _sure
    return out


def scored(actions: Actions, wanted: Sequence[Criterion]) -> tuple[Tensor, Tensor]:
    """(m,) as in `Choice.score`; (m,) by how much larger a margin may be expected to do."""
    m = len(actions)
    score, short = torch.full((m,), torch.inf, dtype=torch.float64), torch.zeros(m)
    at = torch.arange(m)
    for passed, criterion in enumerate(wanted):
        if not len(at):
            break
        verdict = criterion(actions.part(at))
        fine = verdict.share >= verdict.least - TOLERANCE
        missing = (verdict.least - verdict.share).clamp_min(0.0).double()
        score[at] = torch.where(fine, torch.inf, passed + 1.0 - missing)
        short[at] = torch.as_tensor(verdict.short).expand(len(at))
        at = at[fine]
    return score, short
