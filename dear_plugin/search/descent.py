"""Descent: the paper's Algorithm 1 to the letter, batched over rows and sets.

From d_S = 0, plain gradient descent on the `Objective` with a constant step, until the decision
of the rounded row changes. The first action that succeeds is the answer: it is not moved back to
the boundary. If the decoder's reconstruction of a row is accepted, the loop ends before its first
step, and the action has size zero; this is the only solver that returns such actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from dear_plugin.search.candidates import snapped
from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.objective import Objective
from dear_plugin.search.problem import Search, SearchProblem
from dear_plugin.search.schedule import DescentSchedule


def descent_search(problem: SearchProblem, search: Search, incumbents: Incumbents) -> None:
    """Find the first success of Algorithm 1 for every row and set.

    Args:
        problem: the search problem; its decoder must be differentiable.
        search: `schedule` and `slack` are used.
        incumbents: updated with the successes.

    Raises:
        DearError: the decoder or the model has no derivatives.
    """
    problem = replace(problem, zero_actions=True)
    objective = Objective.of(problem)
    for weight in search.schedule.weights:
        for action in descend(objective, weight, search.schedule):
            if not _check(problem, search, incumbents, objective.values(action)):
                return


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


def _check(problem: SearchProblem, search: Search, incumbents: Incumbents, values: Tensor) -> bool:
    """Evaluate the current values, (s, n, w), of pairs without a success; False if there are none.

    A pair that has a success is skipped: the first one counts.
    """
    open_pairs = problem.actionable & ~incumbents.solved_pairs
    rows, sets = open_pairs.nonzero(as_tuple=True)
    if not len(rows):
        return False
    tried = snapped(problem, rows, sets, values[sets, rows][:, None])
    incumbents.update(rows, sets, tried, problem.evaluate(rows, sets, tried, search.slack))
    return True
