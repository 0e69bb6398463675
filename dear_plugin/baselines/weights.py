"""Weights: the weight lambda of the cost, searched row by row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

FACTOR = 8.0


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
