"""Gradient descents that search the weight of the cost, lambda, for each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.base import Baseline
from dear_plugin.rivals.candidate_pool import CandidatePool

# The least squared norm of a gradient, which bounds the length of a step.
LEAST_SQUARE = 1e-6

FACTOR = 8.0

# A pool of m rows, where they start, (m, d), and a lambda each, (m,) -> (m,) bool, which succeed.
Descend: TypeAlias = Callable[[CandidatePool, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class WeightSearch:
    """The settings of a search for lambda.

    Attributes:
        weight: the first lambda.
        rounds: the number of lambdas that are tried.
        steps: the number of steps for each lambda.
        starts: the number of starts of rows without a success, each from other points.
        seed: the seed of these points; global generators are not used.
    """

    weight: float = 1.0
    rounds: int = 10
    steps: int = 50
    starts: int = 5
    seed: int = 0


WeightConfig = TypeVar("WeightConfig", bound=WeightSearch)


class WeightedDescent(Baseline[WeightConfig], ABC):
    """A method that learns nothing and descends the gradient of the model, with lambdas."""

    needs_gradient = True

    @abstractmethod
    def _descents(self) -> Sequence[Descend]:
        """What to try, in order, from some points with some lambdas.

        Those after the first are tried from the rows themselves, where a case has a requirement
        that no success meets.
        """

    def _propose(self, case: Case) -> Proposal:
        """Try lambdas from the rows and, without a success, on the way to random points."""
        pool, descents = CandidatePool.of(case, self.classifier), self._descents()
        rng = torch.Generator().manual_seed(self.config.seed)
        for share, part in pool.restarts(self.config.starts):
            point, (low, high) = torch.rand(self.encoder.d, generator=rng), part.bounds
            x = self.encoder.expand(part.case.x)
            start = x + share * (low + (high - low) * point - x)
            first = share > 0.0 or case.requirement is None
            for descend, rows, attempt in part.attempts(descents[:1] if first else descents):
                weights = Weights.starting(self.config.weight, len(attempt.case))
                for _ in range(self.config.rounds):
                    weights = weights.after(descend(attempt, start[rows], weights.now))
        return pool.proposal("no descent from the row or from random points reaches the target")

    @lazy
    def _tangents(self) -> Tensor:
        """(d, d) the projection of gradients onto one-hot blocks whose columns add up to 1."""
        feature, d = self.encoder.feature_of, self.encoder.d
        together = (feature[:, None] == feature) & self.encoder.blocks[feature]
        return torch.eye(d) - together / together.sum(1).clamp_min(1)

    def _movable(self, pool: CandidatePool, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients, (m, d), where columns can change, and their squared norms, (m, 1)."""
        low, high = pool.bounds
        gradient = torch.where(low < high, gradient @ self._tangents, 0.0)
        return gradient, gradient.square().sum(1, keepdim=True).clamp_min(LEAST_SQUARE)

    def _proximal(self, pool: CandidatePool, change: Tensor, shrink: Tensor) -> Tensor:
        """Rows with changes, (m, d), after the proximal step of an l1 cost.

        Args:
            pool: the rows.
            change: the change of the encoded factual rows.
            shrink: (m, 1) how much nearer to zero it is, in units of the cost.
        """
        less = change.abs() - shrink * self.encoder.weights
        moved = self.encoder.expand(pool.case.x) + change.sign() * less.clamp_min(0.0)
        return torch.clamp(moved, *pool.bounds)


@dataclass(frozen=True)
class Weights:
    """The lambda of m rows: the largest with a success gives the cheapest counterfactual.

    Attributes:
        now: (m,) the next lambda.
        succeeded: (m,) the largest lambda that succeeded, or 0.
        failed: (m,) the smallest lambda that failed, or infinity.
    """

    now: Tensor
    succeeded: Tensor
    failed: Tensor

    @classmethod
    def starting(cls, weight: float, m: int) -> Weights:
        """The same first value for all rows."""
        return cls(torch.full((m,), weight), torch.zeros(m), torch.full((m,), torch.inf))

    def after(self, success: Tensor) -> Weights:
        """The next lambdas, given which rows succeeded, (m,) bool: bisection of the logarithm."""
        succeeded = torch.where(success, torch.maximum(self.succeeded, self.now), self.succeeded)
        failed = torch.where(success, self.failed, torch.minimum(self.failed, self.now))
        middle = (succeeded * failed).sqrt()
        now = torch.where(failed.isinf(), self.now * FACTOR, middle)
        return Weights(torch.where(succeeded == 0.0, self.now / FACTOR, now), succeeded, failed)


def straight_through(pool: CandidatePool, soft: Tensor) -> tuple[Tensor, Tensor]:
    """The feasible rows, (m, p), nearest to encoded ones, (m, d), and these rows encoded.

    The second has the value of the rounded rows and the gradient of the soft ones (a
    straight-through estimator): the descent sees the rows that a user would get.
    """
    encoder = pool.classifier.encoder
    inside = torch.clamp(soft.detach(), *pool.bounds)
    rows = pool.project(encoder.collapse(inside, pool.case.x)[:, None])[:, 0]
    return rows, soft + (encoder.expand(rows) - soft).detach()


def margin_gradients(pool: CandidatePool, encoded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, (m, classes), margins, (m,), and gradients of these, (m, d), at rows, (m, d)."""
    with torch.enable_grad():
        at = encoded.detach().requires_grad_(True)
        scores = pool.classifier.differentiable(at)
        margin = pool.case.goal.margin(scores)
        (gradient,) = torch.autograd.grad(margin.sum(), at)
    return scores.detach(), margin.detach().float(), gradient
