"""Criteria: the requirements of a search on answers, each a function of some actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from dear_plugin.problem.goals import Goal
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.wording import join, short_of
from dear_plugin.search.credibility import Evidence, Reached, confidence, reliance
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.settings import CRITERIA, Search

# Rounding error of a share.
TOLERANCE = 1e-6

R = TypeVar("R", bound=Reached)
# Of m counterfactuals: (m,) the measured values, from 0 to 1; and (m,) or a number, how much more
# margin may be expected to suffice.
Measure = Callable[[Any], tuple[Tensor, Tensor | float]]


@dataclass(frozen=True)
class Criterion:
    """What a search requires of the counterfactuals of n rows.

    Attributes:
        measure: the measured values of m counterfactuals.
        least: (n,) the required value of each row.
    """

    measure: Measure
    least: Tensor


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
    least = 0.0 if whole else search.min_confidence
    of_rows = criteria_of_rows(problem.x, problem.goal, search, evidence)
    of_actions = _criteria(
        torch.zeros(len(problem)),
        search,
        reliance=lambda actions: (1.0 - reliance(problem, actions), 0.0),
        confidence=lambda actions: confidence(problem, actions, least),
    )
    both = of_rows | of_actions
    return {name: both[name] for name in search.required}


def criteria_of_rows(
    x: Tensor, goal: Goal, search: Search, evidence: Evidence
) -> dict[str, Criterion]:
    """The criteria that depend on the counterfactual alone: those of any method.

    Args:
        x: (n, p) the factual rows.
        goal: their targets.
        search: the required values.
        evidence: what answers are compared with.
    """
    own = evidence.plausibility.of(x) if search.min_plausibility else torch.zeros(len(x))
    return _criteria(
        own,
        search,
        plausibility=lambda actions: (evidence.plausibility.of(actions.reached), 0.0),
        support=lambda actions: (
            evidence.support.of(actions.reached, goal.select(actions.rows)),
            0.0,
        ),
    )


def _criteria(own: Tensor, search: Search, **measures: Measure) -> dict[str, Criterion]:
    """Those of some criteria that a search asks for; for `own` see `least_values`."""
    least = least_values(own, search)
    return {name: Criterion(measures[name], least[name]) for name in least if name in measures}


def least_values(own: Tensor, search: Search) -> dict[str, Tensor]:
    """(n,) the required values of n rows by criterion.

    Args:
        own: (n,) the plausibility of the factuals; an answer need not be more plausible.
        search: the required values.
    """
    least = {name: torch.full_like(own, value) for name, value in search.required.items()}
    if "plausibility" in least:
        least["plausibility"] = least["plausibility"].minimum(own)
    return least


def scored(actions: R, wanted: Mapping[str, Criterion]) -> tuple[Tensor, Tensor, Tensor]:
    """Evaluate criteria of m actions in order; one that is not met ends the evaluation.

    Returns:
        (m,) the score, see `Actions`; (m,) how much more margin may be expected to suffice; and
        (m, 4) the measured values in the order of `CRITERIA`, NaN where not evaluated.
    """
    m = len(actions)
    score, more_margin = torch.full((m,), torch.inf, dtype=torch.float64), torch.zeros(m)
    measured, at = torch.full((m, len(CRITERIA)), torch.nan), torch.arange(m)
    for passed, (name, criterion) in enumerate(wanted.items()):
        if not len(at):
            break
        share, more = criterion.measure(actions.part(at))
        missing = criterion.least[actions.rows[at]] - share
        passes = missing <= TOLERANCE
        score[at] = torch.where(passes, torch.inf, passed + 1.0 - missing.double())
        more_margin[at] = torch.as_tensor(more).expand(len(at))
        measured[at, CRITERIA.index(name)] = share.float()
        at = at[passes]
    return score, more_margin, measured


def missing(actions: R, wanted: Mapping[str, Criterion]) -> list[str]:
    """(m,) text on the criteria that actions do not meet; "" where they meet all.

    Args:
        actions: m actions.
        wanted: whole criteria, see `criteria`.
    """
    shares = {name: criterion.measure(actions)[0] for name, criterion in wanted.items()}
    least = {name: criterion.least[actions.rows] for name, criterion in wanted.items()}
    return [text and Reason.LACKING.format(text) for text in unmet(len(actions), shares, least)]


def unmet(m: int, shares: Mapping[str, Tensor], least: Mapping[str, Tensor]) -> list[str]:
    """(m,) the criteria that m answers do not meet, with values; "" where they meet all."""
    parts: list[list[str]] = [[] for _ in range(m)]
    for name, required in least.items():
        for texts, share, value in zip(
            parts, shares[name].tolist(), required.tolist(), strict=True
        ):
            if share < value - TOLERANCE:
                texts.append(short_of(name, share, value))
    return [join(each) for each in parts]
