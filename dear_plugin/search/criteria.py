"""Criteria: the requirements of a search on answers, each a function of some actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

from dear_plugin.results.wording import LACKING, join, short_of
from dear_plugin.search.credibility import (
    Decoded,
    Evidence,
    Queries,
    Reached,
    confidence,
    plausibility,
    reliance,
    support,
)
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.settings import Search

# Rounding error of a share.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class CriterionResult:
    """How well m actions meet a criterion.

    Attributes:
        share: (m,) the measured value, from 0 to 1.
        least: (m,) or a number, the required value.
        shortfall: (m,) or a number, how much more margin may be expected to suffice.
    """

    share: Tensor
    least: Tensor | float
    shortfall: Tensor | float = 0.0


R = TypeVar("R", bound=Reached)
Criterion = Callable[[Decoded], CriterionResult]

# The criteria by name, the cheapest to evaluate first.
ORDER = ("plausibility", "reliance", "support", "confidence")


def criteria(
    problem: SearchProblem, search: Search, evidence: Evidence, *, whole: bool = False
) -> dict[str, Criterion]:
    """The criteria of a search by name, the cheapest to evaluate first.

    Args:
        problem: the search problem.
        search: the required values.
        evidence: what answers are compared with.
        whole: compute exact values also for actions that fail a criterion.
    """
    out: dict[str, Criterion] = {**of_rows(problem, search, evidence, whole=whole)}
    if search.max_reliance < 1.0:
        out["reliance"] = lambda actions: CriterionResult(
            1.0 - reliance(problem, actions), 1.0 - search.max_reliance
        )
    if search.min_confidence:

        def _confidence(actions: Decoded) -> CriterionResult:
            least = 0.0 if whole else search.min_confidence
            share, shortfall = confidence(problem, actions, least)
            return CriterionResult(share, search.min_confidence, shortfall)

        out["confidence"] = _confidence
    return {name: out[name] for name in ORDER if name in out}


def of_rows(
    queries: Queries, search: Search, evidence: Evidence, *, whole: bool = False
) -> dict[str, Callable[[Reached], CriterionResult]]:
    """The criteria of a search that depend on the counterfactual alone: those of any method.

    Args:
        queries: the factual rows and their targets.
        search: the required values.
        evidence: what answers are compared with.
        whole: compute exact values also for rows that fail a criterion.
    """
    out: dict[str, Callable[[Reached], CriterionResult]] = {}
    if search.min_plausibility:

        @cache
        def _required() -> Tensor:
            """(n,) the required plausibility: not more than the factual's own."""
            return evidence.plausibility.of(queries.x).clamp_max(search.min_plausibility)

        def _plausibility(actions: Reached) -> CriterionResult:
            least = _required()[actions.rows]
            return CriterionResult(plausibility(actions, evidence), least)

        out["plausibility"] = _plausibility
    if search.min_support is not None:
        least_support = search.min_support
        out["support"] = lambda actions: CriterionResult(
            support(queries, actions, evidence), least_support
        )
    return out


def scored(
    actions: R, wanted: Mapping[str, Callable[[R], CriterionResult]]
) -> tuple[Tensor, Tensor, Tensor]:
    """Evaluate criteria of m actions in order; one that is not met ends the evaluation.

    Returns:
        (m,) the score, as of `Actions`; (m,) how much more margin may be expected to suffice; and
        (m, 4) the measured values in the order of `ORDER`, NaN where not evaluated.
    """
    m = len(actions)
    score, shortfall = torch.full((m,), torch.inf, dtype=torch.float64), torch.zeros(m)
    measured, at = torch.full((m, len(ORDER)), torch.nan), torch.arange(m)
    for passed, (name, criterion) in enumerate(wanted.items()):
        if not len(at):
            break
        result = criterion(actions.part(at))
        passes = result.share >= result.least - TOLERANCE
        missing = (result.least - result.share).clamp_min(0.0).double()
        score[at] = torch.where(passes, torch.inf, passed + 1.0 - missing)
        shortfall[at] = torch.as_tensor(result.shortfall).expand(len(at))
        measured[at, ORDER.index(name)] = result.share.float()
        at = at[passes]
    return score, shortfall, measured


def missing(actions: R, wanted: Mapping[str, Callable[[R], CriterionResult]]) -> list[str]:
    """(m,) text on the criteria that actions do not meet; "" where they meet all.

    Args:
        actions: m actions.
        wanted: whole criteria, see `criteria`.
    """
    results = {name: criterion(actions) for name, criterion in wanted.items()}
    return [text and f"{LACKING}{text}" for text in unmet(len(actions), results)]


def unmet(m: int, results: Mapping[str, CriterionResult]) -> list[str]:
    """(m,) the criteria that m answers do not meet, with values; "" where they meet all."""
    parts: list[list[str]] = [[] for _ in range(m)]
    for name, result in results.items():
        least = torch.as_tensor(result.least).expand(m)
        for texts, share, required in zip(parts, result.share, least, strict=True):
            if share < required - TOLERANCE:
                texts.append(short_of(name, float(share), float(required)))
    return [join(each) for each in parts]
