"""RangeGoal: a wanted interval of the values that a regression model predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dear_plugin.errors import TargetError
from dear_plugin.problem.goals import Goal
from dear_plugin.problem.scores import margin_unit

# Rows whose margins to all training rows are held in memory at a time.
ROWS = 1024


@dataclass(frozen=True)
class RangeGoal(Goal):
    """A wanted interval of predicted values.

    Attributes:
        low: the least wanted value, one for all rows or (n,).
        high: the greatest wanted value, likewise.
        missing: (n,) the margin that each factual prediction lacks, the unit of slack where the
            interval is open.
        required: the distance that a search keeps from either end, likewise.

    Example:
        >>> from dear_plugin import RangeGoal
        >>> RangeGoal(low=200.0, high=220.0).accepts(torch.tensor([[205.0], [190.0]]))
        tensor([ True, False])
    """

    low: float | Tensor
    high: float | Tensor
    missing: Tensor | None = None
    required: float | Tensor = 0.0

    scores_are_probabilities: ClassVar[bool] = False

    def margin(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the distance to the nearer end, negative outside, in the model's units."""
        value = scores[:, 0]
        return torch.minimum(value - _own(self.low, idx), _own(self.high, idx) - value)

    def evaluate(
        self, scores: Tensor, idx: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin and (m,) bool: the value lies inside."""
        margin = self.margin(scores, idx)
        required = _own(self.required, idx) if slack > 0.0 else 0.0
        return margin, margin >= slack * _own(self._span, idx) + required

    def required_margin(self) -> Tensor | float:
        """The required margin, in the model's units."""
        return self.required

    def least_margin(self, slack: float) -> Tensor:
        """(n,) the slack in units of the interval, or of the row's distance to it."""
        if self.missing is None:
            raise TargetError("the goal is bound to no rows: call bind(scores) first")
        return (slack * self._span).float().expand(len(self.missing)).clone()

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

    def wanted(self, n: int) -> Tensor:
        """(n, 2) double, the interval."""
        ends = (torch.as_tensor(each).double().expand(n) for each in (self.low, self.high))
        return torch.stack(list(ends), 1)

    def select(self, idx: Tensor) -> RangeGoal:
        """The goal of the rows at positions (q,)."""
        missing = None if self.missing is None else self.missing[idx]
        low, high, required = (_own(each, idx) for each in (self.low, self.high, self.required))
        return RangeGoal(low, high, missing, required)

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = lambda: None) -> Goal:
        """The goal with the margin that each factual row lacks."""
        return replace(self, missing=(-self.margin(scores)).clamp_min(0.0))

    def _required(self, share: float, scores: Tensor) -> float | Tensor:
        """A share of the values' unit, or of half the interval; (n,) where rows have their own."""
        ends = [torch.as_tensor(each, dtype=torch.float64) for each in (self.low, self.high)]
        low, high = (each.reshape(-1) for each in torch.broadcast_tensors(*ends))
        values, parts = scores[:, 0].float(), zip(low.split(ROWS), high.split(ROWS), strict=True)
        margins = (torch.minimum(values - a[:, None], b[:, None] - values) for a, b in parts)
        units = torch.cat([margin_unit(each.float(), values) for each in margins])
        required = share * torch.minimum(units.double(), (high - low) / 2.0)
        return required if any(each.ndim for each in ends) else float(required)

    @property
    def _span(self) -> Tensor:
        """() or (n,) the unit of slack, in the model's units."""
        width = torch.as_tensor(self.high - self.low, dtype=torch.float64)
        default = width.new_ones(()) if self.missing is None else self.missing.double()
        return torch.where(width.isfinite(), width, default.to(width.device))


def _own(value: float | Tensor, idx: Tensor | None) -> float | Tensor:
    """What all rows share, or the own values of the rows at positions (m,); None for all."""
    if idx is None or not isinstance(value, Tensor) or not value.ndim:
        return value
    return value[idx]
