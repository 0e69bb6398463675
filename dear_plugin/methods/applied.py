"""Applied: the outcome of given actions, and why rows may not act so; nothing is searched."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Feature, Kind
from dear_plugin.methods.optimizer import Optimizer, OptimizerOf, by_set
from dear_plugin.problem.case import Case
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.proposal import Proposal, identity_proposal
from dear_plugin.results.values import number
from dear_plugin.search import SearchProblem

ROWS_AT_ONCE = 1024


def outcome(
    case: Case,
    values: Tensor,
    encoder: Encoder,
    optimizer_of: OptimizerOf,
) -> Proposal:
    """The outcome of given actions; rows that may not act so stay, with the reason.

    Args:
        case: the n rows.
        values: (n, p) the new values of the features acted on, NaN elsewhere.
        encoder: of the schema.
        optimizer_of: the optimizer of a set, given by the positions of its features.
    """
    none = torch.zeros(len(case), dtype=torch.bool)
    proposal = replace(identity_proposal(case.x, none), reasons=_refusals(case, values, encoder))
    acting = (~proposal.failed).nonzero()[:, 0]
    for optimizer, at, every in by_set(~values.isnan(), acting, optimizer_of):
        for rows in every.split(ROWS_AT_ONCE):
            part = _applied(optimizer, case.select(rows), at, values[rows])
            proposal = proposal.merged(part, rows)
    return proposal


def decide(proposal: Proposal, acted: Tensor, accepted: Tensor) -> Proposal:
    """A proposal in which rows without an action say whether they are accepted as they are.

    Args:
        proposal: the outcome of n rows.
        acted: (n,) bool, rows with an action.
        accepted: (n,) bool, rows that the model accepts as they are.
    """
    accepted = accepted & ~acted
    rows = zip(proposal.reasons, acted.tolist(), accepted.tolist(), strict=True)
    reasons = [r if acts else "" if done else Reason.NOT_ACTED for r, acts, done in rows]
    return replace(proposal, reasons=reasons, accepted=accepted, searched=False)


def _applied(optimizer: Optimizer, case: Case, at: int, values: Tensor) -> Proposal:
    """The outcome of given actions on the set at a position; `values`, (m, p), are admissible."""
    problem = optimizer.problem(case)
    with torch.inference_mode():
        sets = torch.full((len(case),), at)
        snapped_values = _as_searched(problem, sets, values[:, optimizer.sets.positions[at]])
        every = torch.arange(len(case))
        proposal = optimizer.decoded(problem, every, sets, snapped_values)
        # Values finer than the resolution of the search are kept as given.
        proposal = replace(proposal, rows=torch.where(proposal.direct, values, proposal.rows))
        return proposal.clone()


def _as_searched(problem: SearchProblem, sets: Tensor, wanted: Tensor) -> Tensor:
    """Given values, (m, w), bit by bit as the search has them when it tries the same."""
    rows, where = torch.arange(len(wanted)), problem.sets.positions[sets]
    own = problem.x.gather(1, where)
    unchanged = wanted == own
    inside = [
        problem.feasible.admits(own[:, [i]], where[:, i], rows) for i in range(where.shape[1])
    ]
    # A row without a change keeps its values, as does a feature whose own value no action reaches.
    kept = unchanged & (unchanged.all(1, keepdim=True) | ~torch.cat(inside, 1))
    return torch.where(kept, own, problem.snapped(rows, sets, wanted[:, None])[:, 0])


def _refusals(case: Case, values: Tensor, encoder: Encoder) -> list[str]:
    """(n,) why a row may not take its action; "" where it may."""
    reasons: list[list[str]] = [[] for _ in range(len(case))]
    feasible = case.feasible
    for j in (~values.isnan()).any(0).nonzero()[:, 0].tolist():
        rows = (~values[:, j].isnan()).nonzero()[:, 0]
        feature, column = encoder.schema.features[j], torch.full((len(rows),), j)
        wanted, not_actionable = values[rows, j], feasible.not_actionable[rows, j]
        outside = ~feasible.admits(wanted[:, None], column, rows)[:, 0]
        outside &= wanted != case.x[rows, j]
        for i in (not_actionable | outside).nonzero()[:, 0].tolist():
            at = int(rows[i])
            reasons[at].append(
                Reason.NOT_ACTIONABLE.format(feature.name)
                if bool(not_actionable[i])
                else _not_admissible(case, feature, at, j, float(wanted[i]))
            )
    return [", ".join(parts) for parts in reasons]


def _not_admissible(case: Case, feature: Feature, row: int, j: int, wanted: float) -> str:
    """Why a row may not take a value of the feature at position j."""
    if feature.kind is not Kind.NUMERIC:
        return Reason.NOT_THIS_VALUE.format(feature.name, feature.categories[int(wanted)])
    feasible = case.feasible
    low, high, value = (
        number(feature.bounds[0] + end * feature.width, feature.precision)
        for end in (float(feasible.low[row, j]), float(feasible.high[row, j]), wanted)
    )
    if feasible.low[row, j] > feasible.high[row, j]:
        return Reason.NO_VALUE.format(feature.name, value)
    return Reason.OUTSIDE.format(feature.name, value, low, high)
