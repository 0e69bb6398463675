"""Group search: several features acted on together, without derivatives.

Well spread combinations are evaluated; the cheapest success of each set is then moved back towards
the factual, all features along a ray first, then one at a time.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.candidates import (
    CandidateGrids,
    below_cost,
    corner_candidates,
    group_candidates,
    snapped,
)
from dear_plugin.search.evaluation import Evaluation
from dear_plugin.search.incumbent import TOLERANCE, Incumbents
from dear_plugin.search.problem import Search, SearchProblem

SWEEPS = 2
# The number of cheapest sets of each row that are moved back.
FEW = 3


def group_search(
    problem: SearchProblem,
    grids: CandidateGrids,
    search: Search,
    incumbents: Incumbents,
    prune: bool = True,
) -> None:
    """Find the cheapest success of every row and group; arguments as in `line_search`."""
    groups = problem.actionable & grids.several
    for rows, sets, values in corner_candidates(problem, groups):
        _evaluate_and_move_back(problem, rows, sets, values, search, incumbents)
    bound = incumbents.cost_bound
    solved = bound.isfinite()[:, None] & prune
    _scan(problem, groups & ~solved, grids.combinations, search, incumbents)
    # Where a success is known, only what costs less is evaluated.
    for rows, sets, values in below_cost(problem, groups & solved, grids.combinations, bound):
        evaluation = problem.evaluate(rows, sets, values, search.slack)
        incumbents.update(rows, sets, values, evaluation)
        at = _cheapest(rows, torch.where(evaluation.valid, evaluation.cost, torch.inf).amin(1))
        best = incumbents.values[rows[at], sets[at]]
        move_back(problem, rows[at], sets[at], best, search, incumbents)
    unsolved = ~incumbents.solved[:, None]
    _scan(problem, groups & unsolved, grids.lattice, search, incumbents)


def _cheapest(rows: Tensor, cost: Tensor) -> Tensor:
    """(q,) ascending, the cheapest few pairs of each row that succeed.

    Args:
        rows: (m,) the row of each pair, ascending.
        cost: (m,) its cost; infinite where it fails.
    """
    order = torch.from_numpy(np.lexsort((cost.numpy(), rows.numpy())))
    start = torch.searchsorted(rows, rows)
    few = order[(torch.arange(len(rows)) - start < FEW) & cost[order].isfinite()]
    return few.sort().values


def start_search(
    problem: SearchProblem,
    grids: CandidateGrids,
    starts: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> None:
    """Find successes of a single set from start values, (n, w), and move them back.

    Where the start fails, one feature after another is set to its value of greatest margin.
    """
    rows, sets = problem.actionable.nonzero(as_tuple=True)
    if not len(rows):
        return
    best = snapped(problem, rows, sets, starts[rows][:, None])
    evaluation = _evaluate_and_move_back(problem, rows, sets, best, search, incumbents)
    margin = evaluation.margin[:, 0]
    for _ in range(SWEEPS):
        for i in range(best.shape[2]):
            unsolved = (~incumbents.solved[rows]).nonzero()[:, 0]
            if not len(unsolved):
                return
            r, s = rows[unsolved], sets[unsolved]
            tried = best[unsolved].repeat(1, grids.combinations.shape[1], 1)
            tried[..., i] = grids.combinations[s][..., i]
            tried = snapped(problem, r, s, tried)
            evaluation = _evaluate_and_move_back(problem, r, s, tried, search, incumbents)
            # Margins that differ by rounding only are equal, and the first counts.
            top = evaluation.margin.amax(1)
            tolerance = TOLERANCE * top.abs()
            first = (evaluation.margin >= (top - tolerance)[:, None]).int().argmax(1)
            improved = (top > margin[unsolved] + tolerance).nonzero()[:, 0]
            best[unsolved[improved], 0] = tried[improved, first[improved]]
            margin[unsolved[improved]] = top[improved]


def _scan(
    problem: SearchProblem, pairs: Tensor, grid: Tensor, search: Search, incumbents: Incumbents
) -> None:
    for rows, sets, values in group_candidates(problem, pairs, grid):
        _evaluate_and_move_back(problem, rows, sets, values, search, incumbents)


def _evaluate_and_move_back(
    problem: SearchProblem,
    rows: Tensor,
    sets: Tensor,
    values: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> Evaluation:
    """Evaluate combinations, then move the cheapest success of each pair back."""
    evaluation = problem.evaluate(rows, sets, values, search.slack)
    incumbents.update(rows, sets, values, evaluation)
    least, at = torch.where(evaluation.valid, evaluation.cost, torch.inf).min(1)
    solved = least.isfinite()
    if bool(solved.any()):
        best = values[torch.arange(len(rows)), at][solved]
        move_back(problem, rows[solved], sets[solved], best, search, incumbents)
    return evaluation


def move_back(
    problem: SearchProblem,
    rows: Tensor,
    sets: Tensor,
    best: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> None:
    """Move successes, (m, w), towards the factual while they succeed."""
    positions = problem.sets.positions[sets]
    own = problem.x[rows[:, None], positions]
    discrete = problem.feasible.steps[positions] >= 1.0
    base = torch.where(discrete, best, own)
    best = _bisect_towards(problem, rows, sets, best, base, search, incumbents)
    for _ in range(SWEEPS):
        for i in range(best.shape[1]):
            base = best.clone()
            base[:, i] = own[:, i]
            best = _bisect_towards(problem, rows, sets, best, base, search, incumbents)


def _bisect_towards(
    problem: SearchProblem,
    rows: Tensor,
    sets: Tensor,
    best: Tensor,
    base: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> Tensor:
    """(m, w) the last success on the way from successes, (m, w), to a base, (m, w)."""
    low = base
    for step in range((search.refine + 1) // 2 + 1):
        # The base first: it succeeds where a feature is not needed.
        middle = base if step == 0 else (low + best) / 2.0
        tried = snapped(problem, rows, sets, middle[:, None])
        evaluation = problem.evaluate(rows, sets, tried, search.slack)
        incumbents.update(rows, sets, tried, evaluation)
        low = torch.where(evaluation.valid, low, tried[:, 0])
        best = torch.where(evaluation.valid, tried[:, 0], best)
    return best
