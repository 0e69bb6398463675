"""The paper's Algorithm 1 to the letter, batched over rows and sets.

From d_S = 0, plain gradient descent on the `Objective` with a constant step, until the decision
of the rounded row changes. The first action that succeeds is the answer: it is not moved back to
the boundary. If the decoder's reconstruction of a row is accepted, the loop ends before its first
step, and the action has size zero; this is the only solver that returns such actions.

The loss is `(f(x_cf) - s)^2 + lambda ||x - x_cf||_1` with `x_cf = g(v, x_S + d_S)`. Score and
cost are those of rows clipped to their ranges; what the clipping removes is added as the hinge of
the paper's appendix. The projection of rows enforces the constraints exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.numbers import Array
from dear_plugin.search.problem import SearchProblem, arrays, evaluate, tensors
from dear_plugin.search.settings import DescentSchedule, Search
from dear_plugin.search.table import Actions, Table, part_of


class Descent:
    """The solver "paper": one action of each row and set.

    Args:
        table: what was tried.
        search: the settings.
    """

    derives: ClassVar = True

    def __init__(self, table: Table, search: Search) -> None:
        self.table, self._schedule = table, search.schedule

    def given(self) -> list[Actions]:
        """See `Solver`."""
        return self._on(self.table.problem.may_act)

    def larger(self, row: Array, sets: Array, sums: Array) -> list[Actions]:
        """See `Solver`."""
        wanted = np.zeros(self.table.need.shape, dtype=bool)
        wanted[row, sets] = True
        return self._on(wanted)

    def others(self, wanted: Array) -> list[Actions]:
        """See `Solver`."""
        return []

    def beside(self, good: Array, rows: Array, bound: Array) -> list[Actions]:
        """See `Solver`."""
        return []

    def _on(self, wanted: Array) -> list[Actions]:
        """The actions on sets of rows, (n, s) bool."""
        table, problem = self.table, self.table.problem
        decoder, schema = problem.decoders.decoder, problem.classifier.encoder.schema
        parts = [len(decoder.parts(schema, members)) for members in problem.sets.members]
        # Several parts are decoded one after another, which no derivative follows.
        wanted = wanted & problem.may_act & (np.array(parts) == 1)
        if not wanted.any():
            return []
        which = np.flatnonzero(wanted.any(0))
        least = tensors(table.aim, table.enough - table.aim)
        some = problem.sets.only(which.tolist())
        part = replace(problem, sets=some, may_act=wanted[:, which], latents_by_set={})
        row, sets, values = arrays(*descended(part, self._schedule, *least))
        # An action of size zero succeeds where the decoder's reconstruction is accepted.
        kept = (values != part.own(row, sets)).any(1) | table.takes_all
        return [part_of((row, which[sets], values), kept)]


def descended(
    problem: SearchProblem, schedule: DescentSchedule, least: Tensor, more: Tensor | float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """The first success of Algorithm 1 for every row and set, else the action that comes nearest.

    Args:
        problem: the search problem; its decoder must be differentiable.
        schedule: the settings.
        least: (n,) the least margin of a success.
        more: (n,) or a number, how much more margin an answer needs.

    Returns:
        Rows (m,), sets (m,) and the values, (m, w), of their features.

    Raises:
        DearError: the decoder or the model has no derivatives.
    """
    objective = Objective.of(problem, more)
    rows, sets = tensors(*problem.may_act.nonzero())
    (best,) = tensors(problem.own(*arrays(rows, sets)))
    most = torch.full((len(rows),), -torch.inf)
    for weight in schedule.weights:
        for action in descend(objective, weight, schedule):
            at = (most < least[rows]).nonzero()[:, 0]
            if not len(at):
                return rows, sets, best
            r, s = rows[at], sets[at]
            wanted = arrays(r, s, objective.values(action)[s, r][:, None])
            (values,) = tensors(problem.snapped(*wanted)[:, 0])
            margin = evaluate(problem, r, s, values)[1]
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


@dataclass(frozen=True)
class Objective:
    """The loss as a function of the actions.

    Attributes:
        problem: the search problem; its decoder must be differentiable.
        x: (s, n, d) encoded factual rows.
        v: s tensors, (n, k), their latents.
        mask: (s, 1, d) the columns of each set.
        more: (n,) or a number, the margin past the target score.
    """

    problem: SearchProblem
    x: Tensor
    v: list[Tensor]
    mask: Tensor
    more: Tensor | float = 0.0

    @classmethod
    def of(cls, problem: SearchProblem, more: Tensor | float = 0.0) -> Objective:
        """The objective of a search problem."""
        encoder = problem.classifier.encoder
        x = encoder.expand(problem.x).expand(len(problem.sets), -1, -1)
        mask = problem.sets.masks[:, encoder.feature_of][:, None].float()
        latents = [problem.latents(i) for i in range(len(problem.sets))]
        return cls(problem, x, latents, mask, more)

    def gradient(self, action: Tensor, weight: float, target: float) -> Tensor:
        """(s, n, d) the derivative of the loss at actions, (s, n, d).

        Args:
            action: d_S, zero outside of S.
            weight: lambda.
            target: the target score s, as a margin; `more` is added.
        """
        action = action.detach().requires_grad_(True)
        loss = self._loss(action, weight, target)
        (gradient,) = torch.autograd.grad(loss.sum(), action)
        return gradient * self.mask

    def values(self, action: Tensor) -> Tensor:
        """(s, n, w) the new values of every set's features at actions, (s, n, d).

        Of a category, it is the level with the largest column of `x + d_S`.
        """
        problem = self.problem
        rows = problem.classifier.encoder.collapse((self.x + action).detach(), problem.x)
        positions = problem.sets.positions[:, None].expand(-1, rows.shape[1], -1)
        return rows.gather(2, positions)

    def _reached(self, action: Tensor) -> Tensor:
        a, problem = self.x + action * self.mask, self.problem
        decoders = [problem.decoders.of(members) for members in problem.sets.members]
        each = zip(decoders, self.x, self.v, a, strict=True)
        return torch.stack([decoder.follow(*rows) for decoder, *rows in each])

    def _margin(self, reached: Tensor) -> Tensor:
        s, n, d = reached.shape
        scores = self.problem.classifier.differentiable(reached.reshape(s * n, d))
        return self.problem.goal.margin(scores, torch.arange(n).repeat(s)).view(s, n)

    def _loss(self, action: Tensor, weight: float, target: float) -> Tensor:
        """(s, n) Algorithm 1's loss with the hinge of directions and ranges."""
        problem = self.problem
        encoder = problem.classifier.encoder
        reached = self._reached(action)
        of = encoder.feature_of
        ends = problem.feasible.limits.floor, problem.feasible.limits.ceiling
        floor, ceiling = (encoder.scaled(each).float()[:, of] for each in ends)
        inside = torch.where(encoder.blocks[of], reached, torch.clamp(reached, floor, ceiling))
        error = (self._margin(inside) - target - self.more).square()
        cost = ((inside - self.x).abs() * encoder.weights).sum(2)
        hinge = (reached - inside).abs().sum(2)
        return error + weight * cost + hinge
