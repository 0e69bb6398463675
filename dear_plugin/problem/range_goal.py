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
        shortfall: (n,) the distance of each factual prediction to the interval, the unit of slack
            where the interval is open.
        lead: the distance that a search keeps from either end.

    Example:
        >>> from dear_plugin import RangeGoal
        >>> RangeGoal(low=200.0, high=220.0).accepts(torch.tensor([[205.0], [190.0]]))
        tensor([ True, False])
    """

    low: float
    high: float
    shortfall: Tensor | None = None
    lead: float = 0.0

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
        return margin, margin >= slack * self._span(idx) + self.lead * (slack > 0.0)

    def extra_margin(self) -> Tensor | float:
        """The lead, in the model's units."""
        return self.lead

    def least_margin(self, slack: float) -> Tensor:
        """(n,) the slack in units of the interval, or of the row's distance to it."""
        if self.shortfall is None:
            raise TargetError("the goal is bound to no rows: call bind(scores) first")
        span = torch.as_tensor(self._span(None), dtype=torch.float32)
        return (slack * span).expand(len(self.shortfall)).clone()

    def with_lead(self, share: float, scores: Tensor) -> Goal:
        """The goal with a share of the values' unit, or of half the interval, as its lead."""
        return replace(self, lead=self._lead(share, scores))

    def beyond(self, share: float, scores: Tensor) -> Goal:
        """The goal whose ends lie farther inwards by its lead."""
        if share == 0.0:
            return self
        lead = self._lead(share, scores)
        farther = None if self.shortfall is None else self.shortfall + lead
        low, high = self.low + lead, self.high - lead
        return replace(self, low=low, high=high, shortfall=farther, lead=0.0)

    def score(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the predicted value."""
        return scores[:, 0]

    def select(self, idx: Tensor) -> Goal:
        """The goal of the rows at positions (q,): the same interval."""
        return self if self.shortfall is None else replace(self, shortfall=self.shortfall[idx])

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = lambda: None) -> Goal:
        """The goal with the shortfall of each factual row."""
        return replace(self, shortfall=(-self.margin(scores)).clamp_min(0.0))

    def _lead(self, share: float, scores: Tensor) -> float:
        """A share of the values' unit, or of half the interval."""
        scale = float(margin_unit(self.margin(scores).float(), scores[:, 0].float()))
        return share * min(scale, (self.high - self.low) / 2.0)

    def _span(self, idx: Tensor | None) -> Tensor | float:
        """The unit of slack, in the model's units."""
        width = self.high - self.low
        if math.isfinite(width):
            return width
        if self.shortfall is None:
            return 1.0
        return self.shortfall if idx is None else self.shortfall[idx]
