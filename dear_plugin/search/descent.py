"""Descent: the paper's Algorithm 1 to the letter, batched over rows and sets.

From d_S = 0, plain gradient descent on the `Objective` with a constant step, until the decision
of the rounded row changes. The first action that succeeds is the answer: it is not moved back to
the boundary. If the decoder's reconstruction of a row is accepted, the loop ends before its first
step, and the action has size zero; this is the only solver that returns such actions.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dear_plugin.search.objective import Objective
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.schedule import DescentSchedule


def descended(
    problem: SearchProblem, schedule: DescentSchedule, least: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The first success of Algorithm 1 for every row and set, else the action that comes nearest.

    Args:
        problem: the search problem; its decoder must be differentiable.
        schedule: the settings.
        least: (n,) the least margin of a success.

    Returns:
        Rows (m,), sets (m,) and the values, (m, w), of their features.

    Raises:
        DearError: the decoder or the model has no derivatives.
    """
    objective = Objective.of(problem)
    rows, sets = problem.actionable.nonzero(as_tuple=True)
    best = problem.own(rows, sets)
    most = torch.full((len(rows),), -torch.inf)
    for weight in schedule.weights:
        for action in descend(objective, weight, schedule):
            at = (most < least[rows]).nonzero()[:, 0]
            if not len(at):
                return rows, sets, best
            r, s = rows[at], sets[at]
            values = problem.snapped(r, s, objective.values(action)[s, r][:, None])[:, 0]
            margin = problem.evaluate(r, s, values)[1]
            better = margin > most[at]
            best[at[better]], most[at[better]] = values[better], margin[better]
    return rows, sets, best


def descend(objective: Objective, weight: float, schedule: DescentSchedule) -> Iterator[Tensor]:
    """The actions of the descent, (s, n, d): zero, then one after each step.

    Args:
        objective: the loss.
        weight: lambda.
        schedule: the step, the target score and the limit on steps.
    """
    action = torch.zeros(objective.x.shape)
    yield action
    for _ in range(schedule.steps):
        gradient = objective.gradient(action, weight, schedule.target)
        if not bool(gradient.any()):
            return
        action = action - schedule.step * gradient
        yield action
