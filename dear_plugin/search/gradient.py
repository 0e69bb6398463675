"""Gradient search: Algorithm 1 accelerated, batched over rows and sets.

Gradient descent on the `Objective` of the paper's Algorithm 1, started from the closed form of
Proposition 2, `d = m / (lambda + ||w||^2) w`, with steps scaled by the running size of the
gradient and lambda lowered until success. The target score s lies past the boundary: for an s on
the boundary, the l1 term would keep the minimum below it. The first success is then moved back to
the boundary. The paper's own loop is `descent_search`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.evaluation.costs import direct_action
from dear_plugin.search.candidates import snapped
from dear_plugin.search.group import move_back
from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.objective import Objective
from dear_plugin.search.problem import Search, SearchProblem

# How far past the boundary the target score lies.
AIM = 0.5
LAMBDAS = (0.5, 0.1, 0.02, 0.0)
STEPS = 40
CHECK_EVERY = 5
RATE = 0.03
# Added to the gradient's scale: the sign of a tiny gradient is rounding noise of the batch.
DAMPING = 1e-2


def gradient_search(problem: SearchProblem, search: Search, incumbents: Incumbents) -> None:
    """Find the cheapest success of Algorithm 1 for every row and set.

    Args:
        problem: the search problem; its decoder must be differentiable.
        search: `slack` and `refine` are used.
        incumbents: updated with the successes.

    Raises:
        DearError: the decoder or the model has no derivatives.
    """
    descent = _GradientDescent.of(problem)
    for weight in LAMBDAS:
        # Each pair stops on its own: a row's answer does not depend on the other rows.
        open_pairs = problem.actionable & ~incumbents.solved_pairs
        if not bool(open_pairs.any()):
            break
        descent.start(weight)
        for step in range(STEPS):
            if step % CHECK_EVERY == 0:
                _check(problem, search, incumbents, descent, open_pairs)
            descent.step(weight)
        _check(problem, search, incumbents, descent, open_pairs)
    rows, sets = (problem.actionable & incumbents.solved_pairs).nonzero(as_tuple=True)
    if len(rows):
        move_back(problem, rows, sets, incumbents.values[rows, sets], search, incumbents)


@dataclass
class _GradientDescent:
    """The state of the descent, for all sets at once.

    Attributes:
        objective: the loss.
        action: (s, n, d) d_S, zero outside of S.
        second_moment: (s, n, d) the running second moment of the gradient.
    """

    objective: Objective
    action: Tensor
    second_moment: Tensor

    @classmethod
    def of(cls, problem: SearchProblem) -> _GradientDescent:
        """Start at the factual rows."""
        objective = Objective.of(problem)
        zero = torch.zeros(objective.x.shape)
        return cls(objective, zero, zero.clone())

    def start(self, weight: float) -> None:
        """Set the action to Proposition 2's closed form, clipped to the unit box."""
        objective = self.objective
        margin, slope = objective.margin_and_slope(torch.zeros(objective.x.shape))
        wanted = AIM + objective.problem.goal.extra_margin() - margin
        action = direct_action(wanted, slope, max(weight, 1e-2))
        self.action = (objective.x + action).clamp(0.0, 1.0) - objective.x
        self.action = self.action * objective.mask
        self.second_moment = torch.zeros(objective.x.shape)

    def step(self, weight: float) -> None:
        """One step of descent, scaled by the running size of the gradient."""
        gradient = self.objective.gradient(self.action, weight, AIM)
        self.second_moment = 0.9 * self.second_moment + 0.1 * gradient.square()
        self.action = self.action - RATE * gradient / (self.second_moment.sqrt() + DAMPING)

    @property
    def values(self) -> Tensor:
        """(s, n, c, w) the new values of every set's features.

        With categories c = 2: rows with the largest level of every block, and rows with the level
        that increased most.
        """
        objective = self.objective
        values = [objective.values(self.action)]
        if bool(objective.problem.classifier.encoder.blocks.any()):
            values.append(self._gained(values[0]))
        return torch.stack(values, 2)

    def _gained(self, values: Tensor) -> Tensor:
        """(s, n, w) values, with categories at the level that increased most."""
        problem = self.objective.problem
        blocks = problem.classifier.encoder.blocks[problem.sets.positions][:, None]
        return torch.where(blocks, self.objective.values(self.action, 1e-6), values)


def _check(
    problem: SearchProblem,
    search: Search,
    incumbents: Incumbents,
    descent: _GradientDescent,
    pairs: Tensor,
) -> None:
    """Evaluate the current actions of some pairs, (n, s) bool, snapped, and update incumbents.

    Pairs that an earlier lambda solved are skipped: else an answer would depend on other rows.
    """
    rows, sets = pairs.nonzero(as_tuple=True)
    values = snapped(problem, rows, sets, descent.values[sets, rows])
    incumbents.update(rows, sets, values, problem.evaluate(rows, sets, values, search.slack))
