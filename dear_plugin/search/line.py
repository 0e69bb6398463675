"""Line search: the smallest change of one feature that succeeds, for all rows and sets at once.

For one feature the problem is one-dimensional: scan its admissible values, then close in on the
smallest change that succeeds. It needs no gradient, finds non-monotone solutions, and cannot
stall on a plateau.
"""

from __future__ import annotations

from itertools import chain

import torch
from torch import Tensor

from dear_plugin.search.bisect import Bracket, bisect
from dear_plugin.search.candidates import CandidateGrids, others, special_levels
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
    """Note the cheapest success of every row and singleton.

    Args:
        problem: who asks what.
        grids: the values to try first.
        search: how finely.
        incumbents: where to note it.
        prune: ask only about what may still become a row's cheapest.
    """
    asked = problem.actionable & grids.numeric
    coarse, between = grids.values
    (first,) = CandidateScan.over(problem, asked, [coarse], search.slack, coarse.shape[1])
    look = CandidateScan.search if prune else CandidateScan.update
    # What the nearer half finds leaves little to ask of the other.
    for half in first.halves():
        look(half, problem, incumbents)
    promising = asked & _promising(incumbents, search.deepen)
    (second,) = CandidateScan.over(problem, promising, [between], search.slack)
    look(second, problem, incumbents)
    scans = [first, second]
    if not problem.classifier.is_module:
        # Trees have steps anywhere: right beside the factual, and around values that many have.
        steps = [CandidateScan.near(problem, asked, search.slack)]
        steps += CandidateScan.over(problem, asked, [grids.common], search.slack)
        for scan in steps:
            look(scan, problem, incumbents)
        scans += steps
    # To be of another category costs one: many rows have something cheaper by now.
    willing = problem.actionable & (incumbents.known > 1.0)[:, None] if prune else problem.actionable
    discrete = chain(others(problem, willing, grids), special_levels(problem))
    for rows, sets, values in discrete:
        incumbents.update(rows, sets, values, problem.evaluate(rows, sets, values, search.slack))
    bisect(problem, Bracket.of(problem, scans, incumbents), search, incumbents, prune)
    unsolved = asked & ~incumbents.solved[:, None]
    if search.rescue and bool(unsolved.any()):
        # Narrow intervals of success may lie between the values tried so far. What succeeds here
        # stands as it is: a bracket around it would take more evaluations than other rows get.
        every = torch.linspace(0, grids.dense.shape[1] - 1, min(search.rescue, DENSE))
        dense = grids.dense[:, every.round().long()]
        (third,) = CandidateScan.over(problem, unsolved, [dense], search.slack)
        look(third, problem, incumbents)


def _promising(incumbents: Incumbents, count: int) -> Tensor:
    """(n, s) bool: every set of unsolved rows, the cheapest few of solved ones.

    Successes need not be monotone: a window nearer to the factual may lie between coarse values.
    """
    if not count:
        return ~incumbents.solved[:, None].expand(incumbents.cost.shape)
    last = incumbents.cost.kthvalue(
        min(count, incumbents.cost.shape[1]), dim=1, keepdim=True
    ).values
    return (incumbents.cost <= last) & (incumbents.cost.isfinite() | ~incumbents.solved[:, None])
