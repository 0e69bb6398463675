"""Goals: a wanted class or range bound to rows; scores in, margins and decisions out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.errors import ModelError, TargetError
from dear_plugin.problem.scores import log_odds, logit, margin_unit, most_likely, score_decides

# The highest wanted probability, short of 1.
HIGHEST = 1.0 - 1e-9
# Rows whose margins to all training rows are held in memory at a time.
BATCH = 1024


class Goal(ABC):
    """A target bound to n rows; it reads scores, (m, c), from `Classifier.scores`.

    `idx`, (m,) int64, is the bound row of each score; None means one score per bound row.

    Attributes:
        scores_are_probabilities: whether `score` gives probabilities.
    """

    scores_are_probabilities: ClassVar[bool]

    @abstractmethod
    def margin(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the signed margin."""

    @abstractmethod
    def accepts(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) bool: the margin is at least 0, and the model's decision agrees."""

    @abstractmethod
    def aim(self, past: float, *, surely: bool = False) -> Tensor:
        """(n,) the margin of a row a little past the boundary, where the decision agrees.

        Args:
            past: how far, in log-odds, or as a share of the wanted interval.
            surely: whether the model's own `predict` should almost surely agree.
        """

    @abstractmethod
    def unit(self, scores: Tensor) -> Tensor:
        """(n,) the unit of each row's margins, see `margin_unit`.

        Args:
            scores: (r, c) the scores of training rows.
        """

    def succeeds(self, scores: Tensor, decide: Callable[[], Tensor | None]) -> Tensor:
        """(n,) bool: success of the bound rows by the decision of the user's model.

        Args:
            scores: (n, c) their scores.
            decide: returns (n,) int64, the column that the model itself decides for; None where
                its scores are its only decision.
        """
        return self.accepts(scores)

    @abstractmethod
    def score(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the reported score: the wanted class's probability, or the predicted value."""

    @abstractmethod
    def wanted(self, aim: Tensor) -> Tensor:
        """(n, 2) double, the least and the greatest score with a margin of `aim`, (n,), or more.

        NaN where the score alone does not decide, as with more than two classes.
        """

    @abstractmethod
    def select(self, idx: Tensor) -> Goal:
        """The goal of the rows at positions (q,)."""

    @abstractmethod
    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = lambda: None) -> Goal:
        """This goal with what it needs to know about the model.

        Args:
            scores: (n, c) the scores of the factual rows.
            cutoffs: returns `ClassGoal.cutoffs`; called only where they are needed.
        """


@dataclass(frozen=True)
class ClassGoal(Goal):
    """A wanted class per row.

    Attributes:
        columns: (n,) int64, the wanted column of the scores.
        threshold: the least probability, or None.
        count: the number of columns of scores; None accepts any.
        cutoffs: (2, c) for each class, the least margin at which the model itself decides for it,
            and one at which it does so almost surely; None where it decides for the likeliest.

    Example:
        >>> from dear_plugin import ClassGoal
        >>> goal = ClassGoal(torch.tensor([1, 1]))
        >>> goal.accepts(torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))  # scores of two rows
        tensor([ True, False])
    """

    columns: Tensor
    threshold: float | None = None
    count: int | None = None
    cutoffs: Tensor | None = None

    scores_are_probabilities: ClassVar[bool] = True

    def margin(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) log-odds of the class over the threshold, or log p_c - max other log p."""
        wanted = self._wanted(scores, idx)
        margin, odds = log_odds(scores, wanted)
        if self.cutoffs is not None:
            margin = margin - self.cutoffs[0, wanted]
        if self.threshold is None:
            return margin
        alone, odds = score_decides(self.threshold, scores), odds - logit(self.threshold)
        return odds if alone else torch.minimum(margin, odds)

    def accepts(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) bool; an exact tie is the first class, as in argmax.

        A threshold below 1/2 for one of two classes decides alone.
        """
        reached = self.margin(scores, idx) >= 0.0
        if self.cutoffs is not None or score_decides(self.threshold, scores):
            return reached
        return reached & (most_likely(scores) == self._wanted(scores, idx))

    def aim(self, past: float, *, surely: bool = False) -> Tensor:
        """(n,) so many log-odds; if `surely`, past the second of the cut-offs."""
        aim = torch.full((len(self.columns),), past)
        if not surely or self.cutoffs is None:
            return aim
        return (aim + (self._boundary(1) - self._boundary(0))[self.columns]).float()

    def unit(self, scores: Tensor) -> Tensor:
        """(n,) the unit of the margins of each row's class."""
        each = [torch.full((len(scores),), label) for label in range(max(scores.shape[1], 2))]
        goals = [ClassGoal(label, self.threshold, cutoffs=self.cutoffs) for label in each]
        return torch.stack([margin_unit(goal.margin(scores)) for goal in goals])[self.columns]

    def succeeds(self, scores: Tensor, decide: Callable[[], Tensor | None]) -> Tensor:
        """(n,) bool: the model decides for the class, and the threshold is reached."""
        decided = None if score_decides(self.threshold, scores) else decide()
        if decided is None:
            return self.accepts(scores)
        wanted = self._wanted(scores, None)
        if self.threshold is None:
            return decided == wanted
        return (decided == wanted) & (log_odds(scores, wanted)[1] >= logit(self.threshold))

    def score(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the probability of the wanted class."""
        return torch.sigmoid(log_odds(scores, self._wanted(scores, idx))[1])

    def wanted(self, aim: Tensor) -> Tensor:
        """(n, 2) double, the probability with such a margin, and 1."""
        if self._many:
            return torch.full((len(aim), 2), torch.nan).double()
        least = (aim + self._boundary(0)[self.columns]).double().sigmoid().clamp_max(HIGHEST)
        return torch.stack([least, torch.ones_like(least)], 1)

    def select(self, idx: Tensor) -> Goal:
        """The goal of the rows at positions (q,)."""
        return replace(self, columns=self.columns[idx])

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = lambda: None) -> Goal:
        """The goal with the number of columns, and cut-offs unless a score decides alone."""
        needed = None if score_decides(self.threshold, scores) else cutoffs()
        return replace(self, count=scores.shape[1], cutoffs=needed)

    @property
    def _many(self) -> bool:
        """Whether there are more than two classes."""
        return self.count is not None and self.count > 2

    def _boundary(self, i: int) -> Tensor:
        """(c,) the least log-odds of each class, by the cut-offs at position i."""
        least = 0.0 if self.threshold is None else logit(self.threshold)
        if self.cutoffs is None:
            return torch.full((max(self.count or 2, 2),), least)
        alone = self._many or self.threshold is None
        return self.cutoffs[i] if alone else self.cutoffs[i].clamp_min(least)

    @lazy
    def _column_range(self) -> tuple[int, int]:
        """The least and greatest wanted column; (0, 0) without rows."""
        if not len(self.columns):
            return 0, 0
        return int(self.columns.min()), int(self.columns.max())

    def _wanted(self, scores: Tensor, idx: Tensor | None) -> Tensor:
        (m, now), (least, most) = scores.shape, self._column_range
        # Scores of no rows do not reveal the number of classes.
        if m and self.count not in (None, now):
            raise ModelError(
                f"the model returned {now} columns, {self.count} before: its classes changed"
            )
        if m and (most >= max(now, 2) or least < 0):
            raise TargetError(f"class {most} wanted, the model has {max(now, 2)} classes")
        return self.columns if idx is None else self.columns[idx]


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
        values, parts = (
            scores[:, 0].float(),
            zip(low.split(BATCH), high.split(BATCH), strict=True),
        )
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
