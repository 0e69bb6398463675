"""Criteria: the requirements of a search on answers, each a function of some actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.case import Case, Requirement
from dear_plugin.problem.goals import Goal
from dear_plugin.search.asking import Asking, answered
from dear_plugin.search.credibility import (
    Decoded,
    Reached,
    by_share,
    confidence,
    unseen,
)
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.settings import CRITERIA, Search

# Rounding error of a share.
TOLERANCE = 1e-6

R = TypeVar("R", bound=Reached)
# Of m counterfactuals: (m,) the measured values, from 0 to 1; (m,) or a number, how much more
# margin may be expected to suffice; and what else is measured. A measure gives that, or asks the
# model and then gives it.
Measured: TypeAlias = tuple[Tensor, Tensor | float, Mapping[str, Tensor]]
Measure: TypeAlias = Callable[[Any], Any]


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
    problem: SearchProblem,
    search: Search,
    evidence: Trained,
    own: Tensor | None = None,
    *,
    reported: bool = False,
) -> dict[str, Criterion]:
    """The criteria of a search by name, the cheapest to evaluate first.

    Args:
        problem: the search problem.
        search: the required values; the search asks for more, see `Search.stricter`.
        evidence: what answers are compared with.
        own: (n,) the plausibility of the factuals, if it is known.
        reported: what is reported of answers: what is required, under resamples that no search
            evaluates.
    """
    wanted = search if reported else search.stricter
    draws = unseen(problem.decoders.decoder) if reported else None
    measures = {
        **measures_of_rows(problem.goal, evidence, wanted.min_agreement),
        **measures_of_actions(problem, evidence, wanted.min_confidence, draws),
    }
    own = evidence.plausibility(problem.x) if own is None else own
    least = least_values(wanted, own)
    return {name: Criterion(measures[name], least[name]) for name in least if name in measures}


def measures_of_rows(goal: Goal, evidence: Trained, least: float = 0.0) -> dict[str, Measure]:
    """What depends on the counterfactual alone: the criteria that any method can meet.

    Args:
        goal: the targets of the rows.
        evidence: what answers are compared with; without copies there is no agreement.
        least: the agreement to reach.
    """
    agree = evidence.agreement
    measures: dict[str, Measure] = {
        "agreement": lambda found: (*agree(found.reached, goal, found.rows, least), {}),
        "plausibility": lambda found: (evidence.plausibility(found.reached), 0.0, {}),
        "support": lambda found: (evidence.support(found.reached, goal, found.rows), 0.0, {}),
    }
    return {n: each for n, each in measures.items() if evidence.copies or n != "agreement"}


def measures_of_actions(
    problem: SearchProblem, evidence: Trained, least: float, draws: Tensor | None = None
) -> dict[str, Measure]:
    """What depends on the action and the decoder; for `least` and `draws` see `confidence`."""

    def consistency(actions: Decoded) -> Measured:
        x, acted = problem.x[actions.rows], problem.sets.masks[actions.sets]
        goal, rows = problem.goal, actions.rows
        return evidence.consistency.of(x, actions.reached, acted, goal, rows).amin(1), 0.0, {}

    def gain(actions: Decoded) -> Asking[Measured]:
        shares = yield from by_share(problem, actions)
        return shares.gain, 0.0, {"reliance": 1.0 - shares.reliance}

    def reliance(actions: Decoded) -> Asking[Measured]:
        return 1.0 - (yield from by_share(problem, actions)).reliance, 0.0, {}

    def confident(actions: Decoded) -> Asking[Measured]:
        return (*(yield from confidence(problem, actions, least, draws)), {})

    own = {} if problem.has_order else {"gain": gain}
    return {"consistency": consistency, **own, "reliance": reliance, "confidence": confident}


def least_values(search: Search, own: Tensor) -> dict[str, Tensor]:
    """(n,) the required value of each criterion of a search, by name, in order.

    An answer need not be more plausible than the factual, whose plausibility is `own`, (n,).
    """
    least = {name: torch.full_like(own, value) for name, value in search.required.items()}
    if "plausibility" in least:
        least["plausibility"] = least["plausibility"].minimum(own)
    return least


def margins(case: Case, search: Search, trained: Trained) -> Tensor:
    """(n,) the margin that an answer of each row must have, see `Search.margin`."""
    if not search.margin:
        return case.aim
    return case.aim + (search.margin * case.goal.unit(trained.scores)).float()


def scored(actions: R, wanted: Mapping[str, Criterion]) -> tuple[Tensor, Tensor, Tensor]:
    """As `scoring`, by criteria that do not ask the model."""
    return answered(_no_model, scoring(actions, wanted))


def scoring(actions: R, wanted: Mapping[str, Criterion]) -> Asking[tuple[Tensor, Tensor, Tensor]]:
    """Evaluate criteria of m actions in order; one that is not met ends the evaluation.

    Returns:
        (m,) double, the number of criteria met plus 1 minus what is missing of the next one,
        infinite for all; (m,) how much more margin may be expected to suffice; and (m, c) the
        measured values in the order of `CRITERIA`, NaN where not evaluated.
    """
    m = len(actions)
    score, more_margin = torch.full((m,), torch.inf, dtype=torch.float64), torch.zeros(m)
    measured, at = torch.full((m, len(CRITERIA)), torch.nan), torch.arange(m)
    for passed, (name, criterion) in enumerate(wanted.items()):
        if not len(at):
            break
        found = measured[at]
        more_margin[at] = yield from measuring(actions.part(at), name, criterion.measure, found)
        measured[at], share = found, found[:, CRITERIA.index(name)]
        missing = criterion.least[actions.rows[at]] - share
        passes = missing <= TOLERANCE
        score[at] = torch.where(passes, torch.inf, passed + 1.0 - missing.double())
        at = at[passes]
    return score, more_margin, measured


def measuring(found: Reached, name: str, measure: Measure, known: Tensor) -> Asking[Tensor]:
    """Evaluate a criterion of m counterfactuals where it is not known.

    Args:
        found: the counterfactuals.
        name: the name of the criterion.
        measure: its measure.
        known: (m, c) the values in the order of `CRITERIA`, NaN if unknown; they are filled.

    Returns:
        (m,) how much more margin may be expected to suffice.
    """
    more_margin = torch.zeros(len(found))
    new = known[:, CRITERIA.index(name)].isnan().nonzero()[:, 0]
    if len(new):
        measured = measure(found.part(new))
        share, more, also = measured if isinstance(measured, tuple) else (yield from measured)
        more_margin[new] = torch.as_tensor(more).expand(len(new))
        for other, values in ((name, share), *also.items()):
            known[new, CRITERIA.index(other)] = values.to(known)
    return more_margin


def measured_rows(found: Reached, measures: Mapping[str, Measure], known: Tensor) -> Tensor:
    """(m, c) the values of m counterfactuals by measures that do not ask the model.

    What is known, (m, c), is not evaluated again.
    """
    values = known.clone()
    for name, measure in measures.items():
        answered(_no_model, measuring(found, name, measure, values))
    return values


def _no_model(rows: Tensor) -> Tensor:
    raise AssertionError(f"criteria of rows ask no model, got {len(rows)} rows")


@dataclass(frozen=True)
class RowCriteria(Requirement):
    """What a search requires of counterfactuals, however they were found.

    Attributes:
        wanted: the criteria of the rows of a call.
        at: (m,) the positions of m of them.
    """

    wanted: Mapping[str, Criterion]
    at: Tensor

    @classmethod
    def of(cls, case: Case, search: Search, evidence: Trained) -> RowCriteria | None:
        """The criteria of the rows of a call; None where a search has none of them."""
        measures = measures_of_rows(case.goal, evidence)
        if not search.required.keys() & measures.keys():
            return None
        least = least_values(search, evidence.plausibility(case.x))
        wanted = {n: Criterion(measures[n], v) for n, v in least.items() if n in measures}
        return cls(wanted, torch.arange(len(case)))

    def met(self, reached: Tensor, rows: Tensor) -> Tensor:
        """See `Requirement`."""
        return scored(Reached(self.at[rows], reached), self.wanted)[0] == torch.inf

    def mask(self, reached: Tensor) -> Tensor:
        """See `Requirement`."""
        mask = torch.ones(len(self.at), len(reached), dtype=torch.bool)
        for criterion in self.wanted.values():
            some = mask.any(0).nonzero()[:, 0]
            pairs = Reached(self.at[:, None].expand(-1, len(some)), reached[some])
            least = criterion.least[self.at, None] - TOLERANCE
            mask[:, some] &= criterion.measure(pairs)[0] >= least
        return mask

    def select(self, rows: Tensor) -> RowCriteria:
        """See `Requirement`."""
        return replace(self, at=self.at[rows])
