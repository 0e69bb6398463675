"""Group search: several features acted on together, without derivatives.

Well spread combinations are tried; the cheapest success of each set is then drawn back towards the
factual, all features along a ray first, then one at a time.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.candidates import CandidateGrids, cornered, inward, snapped, together
from dear_plugin.search.incumbent import TOLERANCE, Incumbents
from dear_plugin.search.problem import Evaluation, Search, SearchProblem

SWEEPS = 2
# So many sets of each row are drawn back, the cheapest.
FEW = 3


def group_search(
    problem: SearchProblem,
    grids: CandidateGrids,
    search: Search,
    incumbents: Incumbents,
    prune: bool = True,
) -> None:
    """Note the cheapest success of every row and group; arguments as in `line_search`."""
    asked = problem.actionable & grids.several
    for rows, sets, values in cornered(problem, asked):
        _try(problem, rows, sets, values, search, incumbents)
    known = incumbents.known
    solved = known.isfinite()[:, None] & prune
    _scan(problem, asked & ~solved, grids.combinations, search, incumbents)
    # Where something is known, only what costs less is looked at.
    for rows, sets, values in inward(problem, asked & solved, grids.combinations, known):
        evaluation = problem.evaluate(rows, sets, values, search.slack)
        incumbents.update(rows, sets, values, evaluation)
        at = _cheapest(rows, torch.where(evaluation.valid, evaluation.cost, torch.inf).amin(1))
        best = incumbents.values[rows[at], sets[at]]
        draw_back(problem, rows[at], sets[at], best, search, incumbents)
    unsolved = ~incumbents.solved[:, None]
    _scan(problem, asked & unsolved, grids.lattice, search, incumbents)


def _cheapest(rows: Tensor, price: Tensor) -> Tensor:
    """(q,) ascending, the cheapest few pairs of each row that succeed.

    Args:
        rows: (m,) the row of each pair, ascending.
        price: (m,) its cost; infinite where it fails.
    """
    order = torch.from_numpy(np.lexsort((price.numpy(), rows.numpy())))
    start = torch.searchsorted(rows, rows)
    few = order[(torch.arange(len(rows)) - start < FEW) & price[order].isfinite()]
    return few.sort().values


def start_search(
    problem: SearchProblem,
    grids: CandidateGrids,
    starts: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> None:
    """Note what succeeds at or near values of the only set, (n, w), and what is less far.

    Where these fail, one feature after another is set to where the margin is greatest.
    """
    rows, sets = problem.actionable.nonzero(as_tuple=True)
    if not len(rows):
        return
    best = snapped(problem, rows, sets, starts[rows][:, None])
    margin = _try(problem, rows, sets, best, search, incumbents).margin[:, 0]
    for _ in range(SWEEPS):
        for i in range(best.shape[2]):
            lost = (~incumbents.solved[rows]).nonzero()[:, 0]
            if not len(lost):
                return
            r, s = rows[lost], sets[lost]
            tried = best[lost].repeat(1, grids.combinations.shape[1], 1)
            tried[..., i] = grids.combinations[s][..., i]
            tried = snapped(problem, r, s, tried)
            told = _try(problem, r, s, tried, search, incumbents).margin
            # What rounding alone tells apart is equal, and the first wins; see `Incumbents`.
            top = told.amax(1)
            hair = TOLERANCE * top.abs()
            first = (told >= (top - hair)[:, None]).int().argmax(1)
            ahead = (top > margin[lost] + hair).nonzero()[:, 0]
            best[lost[ahead], 0] = tried[ahead, first[ahead]]
            margin[lost[ahead]] = top[ahead]


def _scan(
    problem: SearchProblem, asked: Tensor, grid: Tensor, search: Search, incumbents: Incumbents
) -> None:
    for rows, sets, values in together(problem, asked, grid):
        _try(problem, rows, sets, values, search, incumbents)


def _try(
    problem: SearchProblem,
    rows: Tensor,
    sets: Tensor,
    values: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> Evaluation:
    """Ask for combinations, then draw the cheapest success of each set back."""
    evaluation = problem.evaluate(rows, sets, values, search.slack)
    incumbents.update(rows, sets, values, evaluation)
    least, at = torch.where(evaluation.valid, evaluation.cost, torch.inf).min(1)
    solved = least.isfinite()
    if bool(solved.any()):
        best = values[torch.arange(len(rows)), at][solved]
        draw_back(problem, rows[solved], sets[solved], best, search, incumbents)
    return evaluation


def draw_back(
    problem: SearchProblem,
    rows: Tensor,
    sets: Tensor,
    best: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> None:
    """Move successes, (m, w), towards the factual for as long as they succeed."""
    positions = problem.sets.positions[sets]
    own = problem.x[rows[:, None], positions]
    discrete = problem.feasible.steps[positions] >= 1.0
    best = _towards(
        problem, rows, sets, best, torch.where(discrete, best, own), search, incumbents
    )
    for _ in range(SWEEPS):
        for i in range(best.shape[1]):
            base = best.clone()
            base[:, i] = own[:, i]
            best = _towards(problem, rows, sets, best, base, search, incumbents)


def _towards(
    problem: SearchProblem,
    rows: Tensor,
    sets: Tensor,
    valid: Tensor,
    base: Tensor,
    search: Search,
    incumbents: Incumbents,
) -> Tensor:
    """Bisect from successes, (m, w), towards a base; the last success on the way."""
    low = base
    for step in range((search.refine + 1) // 2 + 1):
        # The base itself is tried first: a feature that is not needed is given back at once.
        middle = base if step == 0 else (low + valid) / 2.0
        tried = snapped(problem, rows, sets, middle[:, None])
        evaluation: Evaluation = problem.evaluate(rows, sets, tried, search.slack)
        incumbents.update(rows, sets, tried, evaluation)
        low = torch.where(evaluation.valid, low, tried[:, 0])
        valid = torch.where(evaluation.valid, tried[:, 0], valid)
    return valid
