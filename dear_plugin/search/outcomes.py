"""Outcomes: actions in; their costs, margins, and whether each is enough by itself, out."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

from dear_plugin.search.asking import Asking, answered
from dear_plugin.search.problem import SearchProblem

# Actions of which the margin without indirect changes is evaluated at once.
AT_ONCE = 2048
# (n,) each: the least margin of a success, and of an answer.
Least: TypeAlias = tuple[Tensor, Tensor]


def evaluate(
    problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """(m,) the cost and (m,) the margin of actions; see `evaluation`."""
    wanted = evaluation(problem, rows, sets, values)
    cost, margin, _ = answered(problem.scores, wanted)
    return cost, margin


def evaluation(
    problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor, least: Least | None = None
) -> Asking[tuple[Tensor, Tensor, Tensor]]:
    """(m,) each, the cost, the margin and whether the action alone is enough; see `judged`.

    Args:
        problem: the rows, the sets and the model.
        rows: (m,) the row.
        sets: (m,) the set acted on.
        values: (m, w) the new values.
        least: see `judged`.
    """
    reached = problem.decode_actions(rows, sets, values[:, None])[:, 0]
    alone = problem.x[rows].scatter(1, problem.sets.positions[sets], values)
    still = problem.sets.masks[sets], problem.still(sets)
    return (yield from judged(problem, rows, reached, alone, still=still, least=least))


def judged(
    problem: SearchProblem,
    rows: Tensor,
    reached: Tensor,
    alone: Tensor,
    *,
    still: tuple[Tensor, Tensor],
    least: Least | None,
) -> Asking[tuple[Tensor, Tensor, Tensor]]:
    """(m,) the cost and (m,) the margin of rows, -inf for what is excluded; (m,) bool, alone.

    Margins have 11 bits: models round differently in batches of another size, and what a
    search chooses must not depend on that.

    Args:
        problem: the rows, the sets and the model.
        rows: (m,) the factual row.
        reached: (m, p) the counterfactuals.
        alone: (m, p) the factuals with the action alone.
        still: (m, p) bool, what is acted on, and what does not move with it besides.
        least: (n,) the least margin of a success, and that from which on it is evaluated whether
            the action alone, with what it forces, succeeds; None to ask for none.
    """
    x, m = problem.x.index_select(0, rows), len(rows)
    # A further call costs as much as many rows.
    at_once = least is not None and m <= AT_ONCE
    frozen = _forced(problem, x, alone, still[1], rows) if at_once else alone[:0]
    scores = yield torch.cat([reached, frozen])
    margin = margins_of(problem, scores[:m], reached, rows)
    margin = margin.masked_fill(problem.feasible.creates_impossible(x, reached), -torch.inf)
    margin = (margin.view(torch.int32) & -(1 << 12)).view(torch.float32)
    enough = torch.zeros(m, dtype=torch.bool)
    if least is not None:
        at = (margin >= least[1][rows]).nonzero()[:, 0]
        if at_once:
            frozen, more = frozen[at], scores[m:][at]
        elif len(at):
            frozen = _forced(problem, x[at], alone[at], still[1][at], rows[at])
            more = yield frozen
        if len(at):
            enough[at] = margins_of(problem, more, frozen, rows[at], True) >= least[0][rows[at]]
    return _cost(problem, x, reached, rows, still[0]), margin, enough


def margins_of(
    problem: SearchProblem,
    scores: Tensor,
    reached: Tensor,
    rows: Tensor,
    alone: Tensor | bool = False,
) -> Tensor:
    """(m,) the margins of counterfactuals, -inf for those that break a rule.

    Args:
        problem: the rows and the goal.
        scores: (m, c) their scores.
        reached: (m, p) the counterfactuals.
        rows: (m,) the factual row of each.
        alone: (m,) bool, those with an action alone, see `Admissible.keeps_rules`.
    """
    margin = problem.goal.margin(scores, rows)
    if len(problem.feasible.rules):
        satisfied = problem.feasible.keeps_rules(reached, rows, alone)
        margin = margin.masked_fill(~satisfied, -torch.inf)
    return margin.float()


def _cost(
    problem: SearchProblem, x: Tensor, reached: Tensor, rows: Tensor, acted: Tensor
) -> Tensor:
    """(m,) the l1 cost of counterfactuals, (m, p), of what is acted on, (m, p) bool."""
    distance = problem.classifier.encoder.distance(reached, x)
    costs = problem.feasible.limits.costs
    if costs is not None or problem.indirect_weight != 1.0:
        own = torch.ones(()) if costs is None else costs[rows]
        distance = distance * own.where(acted, problem.indirect_weight)
    cost: Tensor = distance.sum(1).float()
    return cost


def _forced(
    problem: SearchProblem, x: Tensor, alone: Tensor, still: Tensor, rows: Tensor
) -> Tensor:
    """(m, p) rows with actions alone, (m, p), and what these force."""
    return problem.feasible.repair(x, alone[:, None], still, rows, forced=True)[:, 0]


def alone(problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
    """(m, p) the factuals with actions alone, and what these force; see `evaluation`."""
    alone = problem.x[rows].scatter(1, problem.sets.positions[sets], values)
    return _forced(problem, problem.x.index_select(0, rows), alone, problem.still(sets), rows)


def weights(problem: SearchProblem, rows: Tensor, features: Tensor) -> Tensor:
    """(...) what a unit of features, (...), counts where rows, (...), act on them."""
    shares, costs = problem.classifier.encoder.shares[features], problem.feasible.limits.costs
    return shares if costs is None else shares * costs[rows, features]


def direct_cost(problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
    """(m, c) the cost of values, (m, c, w), without indirect changes, a bound of the cost."""
    positions = problem.sets.positions[sets]
    own = problem.x[rows[:, None], positions][:, None]
    number = problem.classifier.encoder.amounts(values, own, at=positions[:, None])
    scaled = (values - own).abs().div_(problem.classifier.encoder.unit[positions][:, None])
    labels = problem.classifier.encoder.between(values, own, at=positions[:, None])
    change = torch.where(number, scaled, labels)
    change *= weights(problem, rows[:, None], positions)[:, None]
    change[..., 1:] *= positions[:, None, 1:] != positions[:, None, :1]
    cost: Tensor = change.sum(2).float()
    return cost
