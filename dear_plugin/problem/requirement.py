"""Requirement: what the counterfactuals of a case must meet besides the target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from torch import Tensor


class Requirement(ABC):
    """What counterfactuals of n rows must meet besides the target.

    It may be expensive to evaluate: a method evaluates it for candidates that would be chosen.
    """

    @abstractmethod
    def met(self, reached: Tensor, rows: Tensor) -> Tensor:
        """(m,) bool, whether counterfactuals, (m, p), of the rows at positions (m,) meet it."""

    @abstractmethod
    def mask(self, reached: Tensor) -> Tensor:
        """(n, r) bool, for which of the n rows each of r counterfactuals, (r, p), meets it."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """The requirement of the rows at positions (q,)."""
