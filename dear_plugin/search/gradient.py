"""Gradient search: the paper's Algorithm 1, batched over rows and sets.

Gradient descent on d_S of `(f(x_cf) - s)^2 + lambda ||x - x_cf||_1`, started from the closed form
of Proposition 2, `d = m / (lambda + ||w||^2) w`, with lambda lowered until success. The target
score s lies past the boundary: for an s on the boundary, the l1 term would keep the minimum below
it. The first success is then moved back to the boundary. Directions and ranges add the hinge of
the paper's appendix; the projection of rows enforces them exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.evaluation.costs import direct_action
from dear_plugin.search.candidates import snapped
from dear_plugin.search.group import move_back
from dear_plugin.search.incumbent import Incumbents
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
        problem: the search problem.
        x: (s, n, d) encoded factual rows.
        v: (s, n, k) their latents.
        mask: (s, 1, d) the columns of each set.
        action: (s, n, d) d_S, zero outside of S.
        second_moment: (s, n, d) the running second moment of the gradient.
    """

    problem: SearchProblem
    x: Tensor
    v: Tensor
    mask: Tensor
    action: Tensor
    second_moment: Tensor

    @classmethod
    def of(cls, problem: SearchProblem) -> _GradientDescent:
        """Start at the factual rows."""
        encoder = problem.classifier.encoder
        s = len(problem.sets)
        x = encoder.expand(problem.x).expand(s, -1, -1)
        mask = problem.sets.masks[:, encoder.feature_of][:, None].float()
        zero = torch.zeros(x.shape)
        return cls(problem, x, problem.v.transpose(0, 1), mask, zero, zero.clone())

    def start(self, weight: float) -> None:
        """Set the action to Proposition 2's closed form, clipped to the unit box."""
        margin, slope = self._margin_and_slope(torch.zeros(self.x.shape))
        wanted = AIM + self.problem.goal.extra_margin() - margin
        action = direct_action(wanted, slope * self.mask, max(weight, 1e-2))
        self.action = (self.x + action).clamp(0.0, 1.0) - self.x
        self.action = self.action * self.mask
        self.second_moment = torch.zeros(self.x.shape)

    def step(self, weight: float) -> None:
        """One step of descent, scaled by the running size of the gradient."""
        action = self.action.detach().requires_grad_(True)
        loss = self._loss(action, weight)
        (gradient,) = torch.autograd.grad(loss.sum(), action)
        self.second_moment = 0.9 * self.second_moment + 0.1 * gradient.square()
        moved = action.detach() - RATE * gradient / (self.second_moment.sqrt() + DAMPING)
        self.action = moved * self.mask

    @property
    def values(self) -> Tensor:
        """(s, n, c, w) the new values of every set's features.

        With categories c = 2: rows with the largest level of every block, and rows with the level
        that increased most.
        """
        encoder = self.problem.classifier.encoder
        rows = encoder.collapse((self.x + self.action).detach())[:, :, None]
        if bool(encoder.blocks.any()):
            gained = encoder.collapse((1e-6 * self.x + self.action).detach())[:, :, None]
            rows = torch.cat([rows, torch.where(encoder.blocks, gained, rows)], 2)
        positions = self.problem.sets.positions[:, None, None].expand(-1, *rows.shape[1:3], -1)
        return rows.gather(3, positions)

    def _margin_and_slope(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """(s, n) the margin and (s, n, d) its derivative along x_S."""
        action = action.requires_grad_(True)
        margin = self._margin(self._reached(action))
        (slope,) = torch.autograd.grad(margin.sum(), action)
        return margin.detach(), slope

    def _reached(self, action: Tensor) -> Tensor:
        return self.problem.decoder.follow(self.x, self.v, self.x + action * self.mask)

    def _margin(self, reached: Tensor) -> Tensor:
        s, n, d = reached.shape
        scores = self.problem.classifier.differentiable(reached.reshape(s * n, d))
        return self.problem.goal.margin(scores, torch.arange(n).repeat(s)).view(s, n)

    def _loss(self, action: Tensor, weight: float) -> Tensor:
        """(s, n) Algorithm 1's loss with the hinge of directions and ranges."""
        problem = self.problem
        encoder = problem.classifier.encoder
        reached = self._reached(action)
        of = encoder.feature_of
        floor, ceiling = problem.feasible.floor[:, of], problem.feasible.ceiling[:, of]
        inside = torch.where(encoder.blocks[of], reached, torch.clamp(reached, floor, ceiling))
        # Score and cost are those of the clipped rows.
        error = (self._margin(inside) - AIM - problem.goal.extra_margin()).square()
        cost = ((inside - self.x).abs() * encoder.weights).sum(2)
        hinge = (reached - inside).abs().sum(2)
        return error + weight * cost + hinge


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
