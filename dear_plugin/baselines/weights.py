"""Weights: descents of the gradient whose weight lambda of the cost is searched row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor

from dear_plugin.baselines.base import Baseline, require_gradient
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal

FACTOR = 8.0

# A pool of m rows, where they start, (m, d), and a lambda each, (m,) -> (m,) bool, which succeed.
Descend: TypeAlias = Callable[[CandidatePool, Tensor, Tensor], Tensor]


class WeightSearch(Protocol):
    """The settings of `search_weights`."""

    @property
    def weight(self) -> float:
        """The first lambda."""

    @property
    def rounds(self) -> int:
        """How many lambdas are tried."""

    @property
    def starts(self) -> int:
        """How often rows without a success start, from other points each time."""

    @property
    def seed(self) -> int:
        """Of these points."""


WeightConfig = TypeVar("WeightConfig", bound=WeightSearch)


class WeightedDescent(Baseline[WeightConfig], ABC):
    """A method that learns nothing and descends the gradient of the model, with lambdas."""

    @abstractmethod
    def _descents(self) -> Sequence[Descend]:
        """What to try, in order; see `search_weights`."""

    def _validate_model(self) -> None:
        require_gradient(self)

    def _learn(self, rows: Tensor) -> None:
        """Nothing is learned."""

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        search_weights(pool, self.config, self._descents())
        return pool.proposal("no descent from the row or from random points reaches the target")


@dataclass(frozen=True)
class Weights:
    """The lambda of m rows: the largest with a success gives the cheapest counterfactual.

    Attributes:
        now: (m,) what to try next.
        succeeded: (m,) the largest that succeeded, 0 where none did.
        failed: (m,) the smallest that failed, infinite where none did.
    """

    now: Tensor
    succeeded: Tensor
    failed: Tensor

    @classmethod
    def starting(cls, weight: float, m: int) -> Weights:
        """The same first value for all rows."""
        return cls(torch.full((m,), weight), torch.zeros(m), torch.full((m,), torch.inf))

    def after(self, success: Tensor) -> Weights:
        """What to try after these successes, (m,) bool: bisection of the logarithm."""
        succeeded = torch.where(success, torch.maximum(self.succeeded, self.now), self.succeeded)
        failed = torch.where(success, self.failed, torch.minimum(self.failed, self.now))
        middle = (succeeded * failed).sqrt()
        now = torch.where(failed.isinf(), self.now * FACTOR, middle)
        return Weights(torch.where(succeeded == 0.0, self.now / FACTOR, now), succeeded, failed)


def search_weights(pool: CandidatePool, config: WeightSearch, descents: Sequence[Descend]) -> None:
    """Try lambdas from the rows and, for those without a success, on the way to random points.

    Args:
        pool: of the rows, which keeps what is found.
        config: how many of both.
        descents: from some points with some lambdas; those after the first are tried from the
            rows themselves, where a case has a requirement that no success meets.
    """
    encoder = pool.classifier.encoder
    rng = torch.Generator().manual_seed(config.seed)
    for share, part in pool.restarts(config.starts):
        point, (low, high) = torch.rand(encoder.d, generator=rng), part.bounds
        x = encoder.expand(part.case.x)
        start = x + share * (low + (high - low) * point - x)
        first = share > 0.0 or part.case.requirement is None
        for descend, rows, attempt in part.attempts(descents[:1] if first else descents):
            weights = Weights.starting(config.weight, len(attempt.case))
            for _ in range(config.rounds):
                weights = weights.after(descend(attempt, start[rows], weights.now))
