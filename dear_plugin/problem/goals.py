"""Goals: a wanted class bound to rows; scores of a model in, margins and decisions out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.errors import ModelError, TargetError
from dear_plugin.problem.scores import (
    log_odds,
    logit,
    margin_unit,
    most_likely,
    own_and_others,
    score_decides,
)

# The highest threshold, short of a probability of 1.
HIGHEST = 1.0 - 1e-9


def _none() -> None:
    return None


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
    def evaluate(
        self, scores: Tensor, idx: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin; (m,) bool: it is at least `slack` and the model's decision agrees.

        A search uses some slack; then the margin must exceed the required one as well.
        """

    def accepts(self, scores: Tensor, idx: Tensor | None = None, slack: float = 0.0) -> Tensor:
        """(m,) bool, the second of `evaluate`."""
        return self.evaluate(scores, idx, slack)[1]

    @abstractmethod
    def required_margin(self) -> Tensor | float:
        """(n,) or a number, how much more margin than the slack a search requires."""

    @abstractmethod
    def least_margin(self, slack: float) -> Tensor:
        """(n,) the margin that `accepts` requires with a slack above 0, less `required_margin`."""

    @abstractmethod
    def with_margin(self, share: float, scores: Tensor) -> Goal:
        """This goal with a required margin.

        Args:
            share: the margin as a share of the unit of margins, see `margin_unit`.
            scores: (m, c) the scores of training rows.
        """

    @abstractmethod
    def beyond(self, share: float, scores: Tensor) -> Goal:
        """The goal that accepts what `with_margin` accepts in a search, for all methods.

        For one of two classes the threshold is higher, and the ends of a range lie farther
        inwards; one of more classes has a required margin all the same.

        Args:
            share: how much farther, as in `with_margin`.
            scores: (m, c) the scores of training rows.
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
    def wanted(self, n: int) -> Tensor:
        """(n, 2) double, the least and the greatest score of the wanted decision.

        NaN where the score alone does not decide, as with more than two classes.

        Args:
            n: the number of bound rows.
        """

    @abstractmethod
    def select(self, idx: Tensor) -> Goal:
        """The goal of the rows at positions (q,)."""

    @abstractmethod
    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = _none) -> Goal:
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
        required: (c,) for each class, the extra margin of a search; None for 0.

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
    required: Tensor | None = None

    scores_are_probabilities: ClassVar[bool] = True

    def margin(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) log-odds of the class over the threshold, or log p_c - max other log p."""
        wanted = self._wanted(scores, idx)
        least = -math.inf if self.threshold is None else logit(self.threshold)
        if scores.shape[1] <= 2:
            odds = self._binary_log_odds(scores, wanted)
            if self.cutoffs is not None:
                return odds - self.cutoffs[0].clamp_min(least)[wanted]
            return odds if self.threshold is None else odds - least
        own, others = own_and_others(scores, wanted)
        margin = own - others.amax(1)
        if self.cutoffs is not None:
            margin = margin - self.cutoffs[0, wanted]
        if self.threshold is None:
            return margin
        return torch.minimum(margin, own - others.logsumexp(1) - least)

    def evaluate(
        self, scores: Tensor, idx: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin and (m,) bool; an exact tie is the first class, as in argmax.

        With slack, the margin implies the model's decision. A threshold below 1/2 for one of two
        classes decides alone.
        """
        margin = self.margin(scores, idx)
        if slack > 0.0 and self.required is not None:
            return margin, margin >= slack + self.required[self._wanted(scores, idx)]
        reached = margin >= slack
        if slack > 0.0 or self.cutoffs is not None or score_decides(self.threshold, scores):
            return margin, reached
        return margin, reached & (most_likely(scores) == self._wanted(scores, idx))

    def required_margin(self) -> Tensor | float:
        """(n,) the required margin of each row's class."""
        return 0.0 if self.required is None else self.required[self.columns]

    def least_margin(self, slack: float) -> Tensor:
        """(n,) the slack."""
        return torch.full((len(self.columns),), slack)

    def with_margin(self, share: float, scores: Tensor) -> Goal:
        """The goal with a share of the unit of each class's margins as its margin."""
        return replace(self, required=self._required(share, scores))

    def beyond(self, share: float, scores: Tensor) -> Goal:
        """The goal with its margin; for two classes, in its threshold and cut-offs."""
        if share == 0.0:
            return self
        required = self._required(share, scores)
        if scores.shape[1] > 2:
            return replace(self, required=required)
        lowest = 0.0 if self.cutoffs is None else float(self.cutoffs[0].min())
        least = lowest if self.threshold is None else logit(self.threshold)
        threshold = 1.0 / (1.0 + math.exp(-least - float(required[self.columns].max())))
        higher = None if self.cutoffs is None else self.cutoffs + required
        return replace(self, threshold=min(threshold, HIGHEST), cutoffs=higher, required=None)

    def succeeds(self, scores: Tensor, decide: Callable[[], Tensor | None]) -> Tensor:
        """(n,) bool: the model decides for the class, and the threshold is reached."""
        decided = None if score_decides(self.threshold, scores) else decide()
        if decided is None:
            return self.accepts(scores)
        wanted = self._wanted(scores, None)
        if self.threshold is None:
            return decided == wanted
        return (decided == wanted) & (log_odds(scores, wanted) >= logit(self.threshold))

    def score(self, scores: Tensor, idx: Tensor | None = None) -> Tensor:
        """(m,) the probability of the wanted class."""
        wanted = self._wanted(scores, idx)
        if scores.shape[1] <= 2:
            return torch.sigmoid(self._binary_log_odds(scores, wanted))
        return scores.softmax(1).gather(1, wanted[:, None])[:, 0]

    def wanted(self, n: int) -> Tensor:
        """(n, 2) double, the probability from which on the class is decided for, and 1."""
        if self.count is not None and self.count > 2:
            return torch.full((n, 2), torch.nan).double()
        least = torch.full((n,), logit(self.threshold or 0.5))
        if self.cutoffs is not None:
            floor = -math.inf if self.threshold is None else logit(self.threshold)
            least = self.cutoffs[0].clamp_min(floor)[self.columns]
        return torch.stack([least.double().sigmoid(), torch.ones(n).double()], 1)

    def select(self, idx: Tensor) -> Goal:
        """The goal of the rows at positions (q,)."""
        return replace(self, columns=self.columns[idx])

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = _none) -> Goal:
        """The goal with the number of columns, and cut-offs unless a score decides alone."""
        needed = None if score_decides(self.threshold, scores) else cutoffs()
        return replace(self, count=scores.shape[1], cutoffs=needed)

    def _required(self, share: float, scores: Tensor) -> Tensor:
        """(c,) the share of the unit of each class's margins, from scores of training rows."""
        each = [torch.full((len(scores),), label) for label in range(max(scores.shape[1], 2))]
        goals = [ClassGoal(label, self.threshold, cutoffs=self.cutoffs) for label in each]
        return torch.stack([share * margin_unit(goal.margin(scores)) for goal in goals])

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
        if least == most:
            return self.columns[:1].expand(m)
        return self.columns if idx is None else self.columns[idx]

    def _binary_log_odds(self, scores: Tensor, wanted: Tensor) -> Tensor:
        """(m,) log-odds of the wanted one of two classes."""
        of_one = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        least, most = self._column_range
        if least == most:
            return of_one if least == 1 else -of_one
        return torch.where(wanted == 1, of_one, -of_one)


def with_strict_cutoffs(goal: Goal) -> Goal:
    """A goal with the cut-offs at which the model almost surely decides for the class."""
    if not isinstance(goal, ClassGoal) or goal.cutoffs is None:
        return goal
    return replace(goal, cutoffs=goal.cutoffs[1:].expand(2, -1))
