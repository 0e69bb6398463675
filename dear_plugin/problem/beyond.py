"""Beyond: a goal in; the goal that lies farther past the boundary, for any method, out."""

from __future__ import annotations

import math
from dataclasses import replace

from torch import Tensor

from dear_plugin.problem.goals import ClassGoal, Goal, RangeGoal
from dear_plugin.problem.scores import logit

# The highest threshold, short of a probability of 1.
HIGHEST = 1.0 - 1e-9


def beyond(goal: Goal, share: float, scores: Tensor) -> Goal:
    """A goal that accepts what `goal.with_lead` accepts in a search.

    A method that knows of no lead aims farther all the same: for one of two classes the threshold
    is higher, and the ends of a range lie farther inwards. One of more classes has a lead.

    Args:
        goal: bound to n rows.
        share: how much farther, as a share of the spread of the model's scores.
        scores: (m, c) the scores of training rows.
    """
    if share == 0.0:
        return goal
    leading = goal.with_lead(share, scores)
    if isinstance(leading, RangeGoal):
        return _narrowed(leading)
    if isinstance(leading, ClassGoal) and scores.shape[1] <= 2:
        return _raised(leading)
    return leading


def _narrowed(goal: RangeGoal) -> RangeGoal:
    """A range without its lead, by which both ends move inwards."""
    lead, shortfall = goal.lead, goal.shortfall
    farther = None if shortfall is None else shortfall + lead
    return replace(goal, low=goal.low + lead, high=goal.high - lead, shortfall=farther, lead=0.0)


def _raised(goal: ClassGoal) -> ClassGoal:
    """A goal for one of two classes whose threshold and cut-offs are higher by its lead."""
    lead, cutoffs = goal.lead, goal.cutoffs
    if lead is None:
        return goal
    lowest = 0.0 if cutoffs is None else float(cutoffs[0].min())
    least = lowest if goal.threshold is None else logit(goal.threshold)
    threshold = 1.0 / (1.0 + math.exp(-least - float(lead[goal.columns].max())))
    higher = None if cutoffs is None else cutoffs + lead
    return replace(goal, threshold=min(threshold, HIGHEST), cutoffs=higher, lead=None)
