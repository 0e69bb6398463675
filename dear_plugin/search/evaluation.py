"""Evaluation: cost, margin and success of actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Evaluation:
    """The outcome of actions, (m, c) each.

    Attributes:
        cost: l1 in scaled units, direct and indirect; meaningless for failures.
        margin: the goal's margin.
        valid: bool, success: the goal accepts the counterfactual.
    """

    cost: Tensor
    margin: Tensor
    valid: Tensor

    @classmethod
    def none(cls, shape: Sequence[int]) -> Evaluation:
        """Failures of infinite cost."""
        infinite = torch.full(shape, torch.inf)
        return cls(infinite, -infinite, torch.zeros(shape, dtype=torch.bool))

    def masked(self, mask: Tensor) -> Evaluation:
        """The evaluation within a mask, (m, c) bool; failures of margin -inf outside of it."""
        margin = self.margin.masked_fill(~mask, -torch.inf)
        return Evaluation(self.cost, margin, self.valid & mask)
