"""RangeGoal: a wanted interval of the values that a regression model predicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dear_plugin.errors import TargetError
from dear_plugin.problem.goals import Goal
from dear_plugin.problem.scores import margin_unit


@dataclass(frozen=True)
class RangeGoal(Goal):
    """A wanted interval of predicted values.

    Attributes:
        low: the least wanted value.
        high: the greatest wanted value.
        missing: (n,) the margin that each factual prediction lacks, the unit of slack where the
            interval is open.
        required: the distance that a search keeps from either end.

    Example:
        >>> from dear_plugin import RangeGoal
        >>> RangeGoal(low=200.0, high=220.0).accepts(torch.tensor([[205.0], [190.0]]))
        tensor([ True, False])
    """

    low: float
    high: float
    missing: Tensor | None = None
    required: float = 0.0

    scores_are_probabilities: ClassVar[bool] = False

    def margin(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the distance to the nearer end, negative outside, in the model's units."""
        value = scores[:, 0]
        return torch.minimum(value - self.low, self.high - value)

    def evaluate(
        self, scores: Tensor, idx: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin and (m,) bool: the value lies inside."""
        margin = self.margin(scores, idx)
        return margin, margin >= slack * self._span(idx) + self.required * (slack > 0.0)

    def required_margin(self) -> Tensor | float:
        """The required margin, in the model's units."""
        return self.required

    def least_margin(self, slack: float) -> Tensor:
        """(n,) the slack in units of the interval, or of the row's distance to it."""
        if self.missing is None:
            raise TargetError("the goal is bound to no rows: call bind(scores) first")
        span = torch.as_tensor(self._span(None), dtype=torch.float32)
        return (slack * span).expand(len(self.missing)).clone()

    def with_margin(self, share: float, scores: Tensor) -> Goal:
        """The goal with a share of the values' unit, or of half the interval, as its margin."""
        return replace(self, required=self._required(share, scores))

    def beyond(self, share: float, scores: Tensor) -> Goal:
        """The goal whose ends lie farther inwards by that margin."""
        if share == 0.0:
            return self
        required = self._required(share, scores)
        farther = None if self.missing is None else self.missing + required
        low, high = self.low + required, self.high - required
        return replace(self, low=low, high=high, missing=farther, required=0.0)

    def score(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the predicted value."""
        return scores[:, 0]

    def select(self, idx: Tensor) -> Goal:
        """The goal of the rows at positions (q,): the same interval."""
        return self if self.missing is None else replace(self, missing=self.missing[idx])

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = lambda: None) -> Goal:
        """The goal with the margin that each factual row lacks."""
        return replace(self, missing=(-self.margin(scores)).clamp_min(0.0))

    def _required(self, share: float, scores: Tensor) -> float:
        """A share of the values' unit, or of half the interval."""
        scale = float(margin_unit(self.margin(scores).float(), scores[:, 0].float()))
        return share * min(scale, (self.high - self.low) / 2.0)

    def _span(self, idx: Tensor | None) -> Tensor | float:
        """The unit of slack, in the model's units."""
        width = self.high - self.low
        if math.isfinite(width):
            return width
        if self.missing is None:
            return 1.0
        return self.missing if idx is None else self.missing[idx]
