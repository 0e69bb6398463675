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
        missing: (n,) the margin that each factual prediction lacks: an open interval has no width.

    Example:
        >>> from dear_plugin import RangeGoal
        >>> RangeGoal(low=200.0, high=220.0).accepts(torch.tensor([[205.0], [190.0]]))
        tensor([ True, False])
    """

    low: float | Tensor
    high: float | Tensor
    missing: Tensor | None = None

    scores_are_probabilities: ClassVar[bool] = False

    def margin(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the distance to the nearer end, negative outside, in the model's units."""
        value = scores[:, 0]
        return torch.minimum(value - _own(self.low, idx), _own(self.high, idx) - value)

    def accepts(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) bool: the value lies inside."""
        return self.margin(scores, idx) >= 0.0

    def aim(self, past: float, *, surely: bool = False) -> Tensor:
        """(n,) a share of the interval's width, or of the row's distance to an open one."""
        missing = self._bound
        width = torch.as_tensor(self.high - self.low, dtype=torch.float64, device=missing.device)
        return (past * torch.where(width.isfinite(), width, missing.double())).float()

    def unit(self, scores: Tensor) -> Tensor:
        """(n,) double, the unit of the values, at most half the interval."""
        ends = [torch.as_tensor(each, dtype=torch.float64) for each in (self.low, self.high)]
        low, high = (each.reshape(-1) for each in torch.broadcast_tensors(*ends))
        values, parts = scores[:, 0].float(), zip(low.split(ROWS), high.split(ROWS), strict=True)
        margins = (torch.minimum(values - a[:, None], b[:, None] - values) for a, b in parts)
        units = torch.cat([margin_unit(each.float(), values) for each in margins])
        return torch.minimum(units.double(), (high - low) / 2.0).expand(len(self._bound))

    def score(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the predicted value."""
        return scores[:, 0]

    def wanted(self, aim: Tensor) -> Tensor:
        """(n, 2) double, the interval, from either end so far inwards."""
        low, high = (torch.as_tensor(each).double() for each in (self.low, self.high))
        return torch.stack([low + aim, high - aim], 1)

    def select(self, idx: Tensor) -> RangeGoal:
        """The goal of the rows at positions (q,)."""
        missing = None if self.missing is None else self.missing[idx]
        return RangeGoal(_own(self.low, idx), _own(self.high, idx), missing)

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = lambda: None) -> Goal:
        """The goal with the margin that each factual row lacks."""
        return replace(self, missing=(-self.margin(scores)).clamp_min(0.0))

    @property
    def _bound(self) -> Tensor:
        """(n,) the missing margins of the rows."""
        if self.missing is None:
            raise TargetError("the goal is bound to no rows: call bind(scores) first")
        return self.missing


def _own(value: float | Tensor, idx: Tensor | None) -> float | Tensor:
    """What all rows share, or the own values of the rows at positions (m,); None for all."""
    if idx is None or not isinstance(value, Tensor) or not value.ndim:
        return value
    return value[idx]
