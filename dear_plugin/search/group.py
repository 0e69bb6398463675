"""Group search: several features acted on together, without derivatives.

Well spread combinations are tried; the cheapest success of each set is then drawn back towards the
factual, all features along a ray first, then one at a time.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.candidates import Grids, cornered, inward, snapped, together
from dear_plugin.search.incumbent import HAIR, Found
from dear_plugin.search.problem import Answer, Question, Search

SWEEPS = 2
# So many sets of each row are drawn back, the cheapest.
FEW = 3


def group_search(
    question: Question, grids: Grids, search: Search, found: Found, prune: bool = True
) -> None:
    """Note the cheapest success of every row and group; arguments as in `line_search`."""
    asked = question.may & grids.several
    for rows, sets, values in cornered(question, asked):
        _try(question, rows, sets, values, search, found)
    known = found.known
    solved = known.isfinite()[:, None] & prune
    _scan(question, asked & ~solved, grids.combinations, search, found)
    # Where something is known, only what costs less is looked at.
    for rows, sets, values in inward(question, asked & solved, grids.combinations, known):
        answer = question.ask(rows, sets, values, search.slack)
        found.note(rows, sets, values, answer)
        at = _cheapest(rows, torch.where(answer.good, answer.cost, torch.inf).amin(1))
        best = found.values[rows[at], sets[at]]
        draw_back(question, rows[at], sets[at], best, search, found)
    unsolved = ~found.solved[:, None]
    _scan(question, asked & unsolved, grids.lattice, search, found)


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
    question: Question, grids: Grids, starts: Tensor, search: Search, found: Found
) -> None:
    """Note what succeeds at or near values of the only set, (n, w), and what is less far.

    Where these fail, one feature after another is set to where the margin is greatest.
    """
    rows, sets = question.may.nonzero(as_tuple=True)
    if not len(rows):
        return
    best = snapped(question, rows, sets, starts[rows][:, None])
    margin = _try(question, rows, sets, best, search, found).margin[:, 0]
    for _ in range(SWEEPS):
        for i in range(best.shape[2]):
            lost = (~found.solved[rows]).nonzero()[:, 0]
            if not len(lost):
                return
            r, s = rows[lost], sets[lost]
            tried = best[lost].repeat(1, grids.combinations.shape[1], 1)
            tried[..., i] = grids.combinations[s][..., i]
            tried = snapped(question, r, s, tried)
            told = _try(question, r, s, tried, search, found).margin
            # What rounding alone tells apart is equal, and the first wins; see `Found`.
            top = told.amax(1)
            hair = HAIR * top.abs()
            first = (told >= (top - hair)[:, None]).int().argmax(1)
            ahead = (top > margin[lost] + hair).nonzero()[:, 0]
            best[lost[ahead], 0] = tried[ahead, first[ahead]]
            margin[lost[ahead]] = top[ahead]


def _scan(question: Question, asked: Tensor, grid: Tensor, search: Search, found: Found) -> None:
    for rows, sets, values in together(question, asked, grid):
        _try(question, rows, sets, values, search, found)


def _try(
    question: Question, rows: Tensor, sets: Tensor, values: Tensor, search: Search, found: Found
) -> Answer:
    """Ask for combinations, then draw the cheapest success of each set back."""
    answer = question.ask(rows, sets, values, search.slack)
    found.note(rows, sets, values, answer)
    least, at = torch.where(answer.good, answer.cost, torch.inf).min(1)
    solved = least.isfinite()
    if bool(solved.any()):
        best = values[torch.arange(len(rows)), at][solved]
        draw_back(question, rows[solved], sets[solved], best, search, found)
    return answer


def draw_back(
    question: Question, rows: Tensor, sets: Tensor, best: Tensor, search: Search, found: Found
) -> None:
    """Move successes, (m, w), towards the factual for as long as they succeed."""
    positions = question.sets.positions[sets]
    own = question.x[rows[:, None], positions]
    discrete = question.limits.steps[positions] >= 1.0
    best = _towards(question, rows, sets, best, torch.where(discrete, best, own), search, found)
    for _ in range(SWEEPS):
        for i in range(best.shape[1]):
            base = best.clone()
            base[:, i] = own[:, i]
            best = _towards(question, rows, sets, best, base, search, found)


def _towards(
    question: Question,
    rows: Tensor,
    sets: Tensor,
    good: Tensor,
    base: Tensor,
    search: Search,
    found: Found,
) -> Tensor:
    """Bisect from successes, (m, w), towards a base; the last success on the way."""
    low = base
    for step in range((search.refine + 1) // 2 + 1):
        # The base itself is tried first: a feature that is not needed is given back at once.
        middle = base if step == 0 else (low + good) / 2.0
        tried = snapped(question, rows, sets, middle[:, None])
        answer: Answer = question.ask(rows, sets, tried, search.slack)
        found.note(rows, sets, tried, answer)
        low = torch.where(answer.good, low, tried[:, 0])
        good = torch.where(answer.good, tried[:, 0], good)
    return good
