"""Weights: how much cost counts against the decision, searched for row by row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

FACTOR = 8.0


@dataclass(frozen=True)
class Weights:
    """The trade-off lambda of m people: the largest that still brings success is the cheapest.

    Attributes:
        now: (m,) what to try.
        fine: (m,) the largest that succeeded, 0 where none did.
        much: (m,) the smallest that failed, infinite where none did.
    """

    now: Tensor
    fine: Tensor
    much: Tensor

    @classmethod
    def starting(cls, weight: float, m: int) -> Weights:
        """Everybody starts from the same."""
        return cls(torch.full((m,), weight), torch.zeros(m), torch.full((m,), torch.inf))

    def after(self, won: Tensor) -> Weights:
        """What to try next, given who had a success, (m,) bool: bisection of the logarithm."""
        fine = torch.where(won, torch.maximum(self.fine, self.now), self.fine)
        much = torch.where(won, self.much, torch.minimum(self.much, self.now))
        middle = (fine * much).sqrt()
        now = torch.where(much.isinf(), self.now * FACTOR, middle)
        return Weights(torch.where(fine == 0.0, self.now / FACTOR, now), fine, much)
