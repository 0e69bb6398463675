"""Line search: the smallest change of one feature that succeeds, for all rows and sets at once.

For one feature the problem is one-dimensional: scan its admissible values, then bisect to the
smallest change that succeeds. It needs no gradient, finds non-monotone solutions, and does not
stop on a plateau.
"""

from __future__ import annotations

from itertools import chain

import torch
from torch import Tensor

from dear_plugin.search.bisect import Bracket, bisect
from dear_plugin.search.candidates import CandidateGrids, other_categories, special_levels
from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.problem import Search, SearchProblem
from dear_plugin.search.representatives import DENSE
from dear_plugin.search.scan import CandidateScan


def line_search(
    problem: SearchProblem,
    grids: CandidateGrids,
    search: Search,
    incumbents: Incumbents,
    prune: bool = True,
) -> None:
    """Find the cheapest success of every row and singleton.

    Args:
        problem: the search problem.
        grids: the candidate values.
        search: the resolution of the search.
        incumbents: updated with the successes.
        prune: evaluate only what may become a row's cheapest success.
    """
    numeric = problem.actionable & grids.numeric
    evaluate = CandidateScan.search if prune else CandidateScan.update
    scans = _scan_grids(problem, grids, search, incumbents, prune)
    # A change of category costs one; many rows have a cheaper success by now.
    discrete = problem.actionable
    if prune:
        discrete = discrete & (incumbents.cost_bound > 1.0)[:, None]
    candidates = chain(other_categories(problem, discrete, grids), special_levels(problem))
    for rows, sets, values in candidates:
        incumbents.update(rows, sets, values, problem.evaluate(rows, sets, values, search.slack))
    bisect(problem, Bracket.of(problem, scans, incumbents), search, incumbents, prune)
    unsolved = numeric & ~incumbents.solved[:, None]
    if search.rescue and bool(unsolved.any()):
        # Narrow intervals of success may lie between the values tried so far. Successes found
        # here are not bisected, which would take more evaluations than other rows get.
        some = torch.linspace(0, grids.dense.shape[1] - 1, min(search.rescue, DENSE))
        dense = grids.dense[:, some.round().long()]
        (scan,) = CandidateScan.over(problem, unsolved, [dense], search.slack)
        evaluate(scan, problem, incumbents)


def _scan_grids(
    problem: SearchProblem,
    grids: CandidateGrids,
    search: Search,
    incumbents: Incumbents,
    prune: bool,
) -> list[CandidateScan]:
    """Evaluate the grids of numeric singletons; the first scan covers all pairs."""
    numeric = problem.actionable & grids.numeric
    evaluate = CandidateScan.search if prune else CandidateScan.update
    coarse, between = grids.values
    (first,) = CandidateScan.over(problem, numeric, [coarse], search.slack, coarse.shape[1])
    # The nearer half first: its successes exclude most values of the other one.
    for half in first.halves():
        evaluate(half, problem, incumbents)
    promising = numeric & _promising(incumbents, search.deepen)
    more = CandidateScan.over(problem, promising, [between], search.slack)
    if not problem.classifier.is_module:
        # Trees have steps anywhere: next to the factual, and around frequent values.
        more.append(CandidateScan.near(problem, numeric, search.slack))
        more += CandidateScan.over(problem, numeric, [grids.common], search.slack)
    for scan in more:
        evaluate(scan, problem, incumbents)
    return [first, *more]


def _promising(incumbents: Incumbents, count: int) -> Tensor:
    """(n, s) bool: all sets of unsolved rows, the `count` cheapest ones of solved rows.

    Successes need not be monotone: one nearer to the factual may lie between coarse values.
    """
    if not count:
        return ~incumbents.solved[:, None].expand(incumbents.cost.shape)
    count = min(count, incumbents.cost.shape[1])
    last = incumbents.cost.kthvalue(count, dim=1, keepdim=True).values
    return (incumbents.cost <= last) & (incumbents.cost.isfinite() | ~incumbents.solved[:, None])
