"""Target: a wanted class or range as a signed margin, >= 0 when the decision is the wanted one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin.errors import ModelError, TargetError, unknown
from dear_plugin.lazy import lazy

# No model has as many, and a tensor holds no number of any size.
MOST_CLASSES = 2**31


@dataclass(frozen=True)
class Target:
    """What the model should say. Build it with `of_class` or `of_range`.

    Attributes:
        label: one class, or a tuple with one class per row; None for a range.
        threshold: the least probability of the class, besides being the model's decision.
        low: smallest wanted value of a regression model.
        high: largest wanted value of a regression model.
    """

    label: Any = None
    threshold: float | None = None
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of_class(cls, label: Any, threshold: float | None = None) -> Target:
        """The model's decision should be a class.

        The margin is `logit p_c - logit threshold` for two classes (threshold 0.5 if None), and
        `log p_c - max other log p` for more, with `p_c >= threshold` besides when one is given.

        Args:
            label: one class label, or one per row (list, array, Series).
            threshold: a probability in (0, 1).

        Raises:
            TargetError: a threshold outside (0, 1).
        """
        if threshold is not None and not 0.0 < _number(threshold) < 1.0:
            raise TargetError(f"threshold must lie between 0 and 1, {threshold!r} came")
        per_row = not isinstance(label, str) and np.ndim(label) == 1
        return cls(tuple(np.asarray(label).tolist()) if per_row else label, threshold)

    @classmethod
    def of_range(cls, low: float = -math.inf, high: float = math.inf) -> Target:
        """The predicted value should lie in `[low, high]`, in the model's own units.

        Raises:
            TargetError: low above high, no number, or no bound at all.
        """
        ends = _number(low), _number(high)
        if not ends[0] <= ends[1] or ends == (-math.inf, math.inf):
            raise TargetError(
                f"a range needs numbers, low <= high, and one bound, ({low!r}, {high!r}) came"
            )
        return cls(low=ends[0], high=ends[1])

    @property
    def is_range(self) -> bool:
        """Whether it asks for a value rather than a class."""
        return (self.low, self.high) != (-math.inf, math.inf)

    def resolve(self, n: int, classes: Sequence[Hashable] | None, device: str = "cpu") -> Goal:
        """Bind the target to n rows and the model's classes.

        Args:
            n: how many rows are asked about.
            classes: the model's labels in column order; None when it has numbers 0 ... c - 1.
            device: where the scores will be.

        Raises:
            TargetError: an unknown class, or another number of classes than rows.
        """
        if self.is_range:
            return RangeGoal(self.low, self.high)
        if not isinstance(self.label, tuple):
            column = torch.full((n,), _column(self.label, classes), device=device)
            return ClassGoal(column, self.threshold)
        if len(self.label) != n:
            came = len(self.label)
            raise TargetError(f"{came} classes came for {n} rows; give one, or one per row")
        columns = [_column(c, classes) for c in self.label]
        return ClassGoal(torch.tensor(columns, device=device), self.threshold)


def _number(value: Any) -> float:
    """A number, or NaN for what is none: it lies nowhere."""
    try:
        return math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _column(label: Any, classes: Sequence[Hashable] | None) -> int:
    if classes is None:
        number = _number(label) if isinstance(label, bool | int | np.integer | float) else math.nan
        if number.is_integer() and abs(number) < MOST_CLASSES:
            return int(label)
        raise TargetError(f"the class must be a number from 0, {label!r} came")
    known = list(classes)
    if label not in known:
        raise TargetError(unknown("class", [label], known))
    return known.index(label)


class Goal(ABC):
    """A target bound to rows: it reads scores, (m, c), as `Classifier.scores` gives them.

    `rows`, (m,) int64, says which bound row each score belongs to; None means one score per
    bound row, in order.
    """

    @abstractmethod
    def margin(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) the signed margin."""

    @abstractmethod
    def accepts(self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0) -> Tensor:
        """(m,) bool: the margin is at least `slack` and the model's own decision agrees."""

    def judge(
        self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin and (m,) whether it is accepted: both at once are cheaper."""
        return self.margin(scores, rows), self.accepts(scores, rows, slack)

    @abstractmethod
    def score(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) what a person reads: the class's probability, or the predicted value."""

    @abstractmethod
    def select(self, rows: Tensor) -> Goal:
        """The goal of some of the rows, in that order."""

    @abstractmethod
    def from_here(self, scores: Tensor) -> Goal:
        """This goal for a model that says `scores`, (n, c), of the bound rows as they are."""


@dataclass(frozen=True)
class ClassGoal(Goal):
    """A wanted class per row.

    Attributes:
        columns: (n,) int64, the wanted column of the scores.
        threshold: the least probability, or None.
        count: how many columns scores have; None is any.
    """

    columns: Tensor
    threshold: float | None = None
    count: int | None = None

    def margin(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) log-odds of the class over the threshold, or log p_c - max other log p."""
        wanted = self._wanted(scores, rows)
        cut = 0.5 if self.threshold is None else self.threshold
        offset = math.log(cut / (1.0 - cut))
        if scores.shape[1] <= 2:
            odds = self._log_odds(scores, wanted)
            return odds - offset if offset else odds
        own, others = _own_and_others(scores, wanted)
        margin = own - others.amax(1)
        if self.threshold is None:
            return margin
        return torch.minimum(margin, own - others.logsumexp(1) - offset)

    def accepts(self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0) -> Tensor:
        """(m,) bool; an exact tie is the first class's, as argmax has it.

        A threshold below 1/2 asks less than the model's own decision does; the slack holds there.
        """
        wanted = self._wanted(scores, rows)
        decided = (
            (scores[:, -1] > (scores[:, 0] if scores.shape[1] == 2 else 0.0)).long()
            if scores.shape[1] <= 2
            else scores.argmax(1)
        )
        fine = (decided == wanted) & (self.margin(scores, rows) >= slack)
        if self.threshold is None or slack <= 0.0:
            return fine
        return fine & (replace(self, threshold=None).margin(scores, rows) >= slack)

    def judge(
        self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin and (m,) bool; a margin past 1/2 is the model's own decision."""
        if self.threshold is not None or slack <= 0.0:
            return super().judge(scores, rows, slack)
        margin = self.margin(scores, rows)
        return margin, margin >= slack

    def score(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) the probability of the wanted class."""
        wanted = self._wanted(scores, rows)
        if scores.shape[1] <= 2:
            return torch.sigmoid(self._log_odds(scores, wanted))
        return scores.softmax(1).gather(1, wanted[:, None])[:, 0]

    def select(self, rows: Tensor) -> Goal:
        """The goal of some of the rows."""
        return replace(self, columns=self.columns[rows])

    def from_here(self, scores: Tensor) -> Goal:
        """The goal, for scores with as many columns."""
        return replace(self, count=scores.shape[1])

    @lazy
    def _ends(self) -> tuple[int, int]:
        """The least and greatest column wanted; (0, 0) of nobody."""
        if not len(self.columns):
            return 0, 0
        return int(self.columns.min()), int(self.columns.max())

    def _wanted(self, scores: Tensor, rows: Tensor | None) -> Tensor:
        (m, now), (least, most) = scores.shape, self._ends
        # Of nobody's scores it cannot be said how many classes there are.
        if m and self.count not in (None, now):
            raise ModelError(
                f"the model returned {now} columns, {self.count} before: its classes changed"
            )
        if m and (most >= max(now, 2) or least < 0):
            raise TargetError(f"class {most} wanted, the model has {max(now, 2)} classes")
        if least == most:
            return self.columns[:1].expand(m)
        return self.columns if rows is None else self.columns[rows]

    def _log_odds(self, scores: Tensor, wanted: Tensor) -> Tensor:
        """(m,) log-odds of the wanted one of two classes."""
        of_one = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        least, most = self._ends
        if least == most:
            return of_one if least == 1 else -of_one
        return torch.where(wanted == 1, of_one, -of_one)


@dataclass(frozen=True)
class RangeGoal(Goal):
    """A wanted interval of predicted values.

    Attributes:
        low: the smallest.
        high: the largest.
        short: (n,) how far each row falls short of it as it is: an open interval has no width
            of its own to measure slack by.
    """

    low: float
    high: float
    short: Tensor | None = None

    def margin(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) the distance to the nearer end, negative outside, in the model's units."""
        value = scores[:, 0]
        return torch.minimum(value - self.low, self.high - value)

    def accepts(self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0) -> Tensor:
        """(m,) bool: the value lies inside."""
        return self.margin(scores, rows) >= slack * self._span(rows)

    def score(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) the predicted value."""
        return scores[:, 0]

    def select(self, rows: Tensor) -> Goal:
        """The same interval holds for every row."""
        return self if self.short is None else replace(self, short=self.short[rows])

    def from_here(self, scores: Tensor) -> Goal:
        """The goal, with how far each row is from it."""
        return replace(self, short=(-self.margin(scores)).clamp_min(0.0))

    def _span(self, rows: Tensor | None) -> Tensor | float:
        """What slack is a share of, in the model's units."""
        width = self.high - self.low
        if math.isfinite(width):
            return width
        if self.short is None:
            return 1.0
        return self.short if rows is None else self.short[rows]


def _own_and_others(scores: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The wanted column, (m,), and the scores with it blanked, (m, c)."""
    own = scores.gather(1, wanted[:, None])[:, 0]
    return own, scores.scatter(1, wanted[:, None], -math.inf)
