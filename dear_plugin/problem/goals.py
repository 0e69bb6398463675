"""Goals: a target bound to rows, which reads the scores of a model as signed margins."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.errors import ModelError, TargetError

# How far the quartiles of a normal distribution lie apart, in standard deviations.
QUARTILES_APART = 1.349


def _none() -> None:
    return None


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
        """(m,) bool: the margin is at least `slack` and the model's own decision agrees.

        A search aims past the boundary, with some slack; then the lead is asked as well.
        """

    @abstractmethod
    def extra_margin(self) -> Tensor | float:
        """(n,) or a number, by how much a search exceeds the margin."""

    @abstractmethod
    def with_lead(self, share: float, scores: Tensor) -> Goal:
        """This goal for a search that aims farther past the boundary.

        Args:
            share: how far, as a share of the spread of the model's scores.
            scores: (m, c) the scores of training rows.
        """

    def evaluate(
        self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin and (m,) whether it is accepted: both at once are cheaper."""
        return self.margin(scores, rows), self.accepts(scores, rows, slack)

    def succeeds(self, scores: Tensor, decide: Callable[[], Tensor | None]) -> Tensor:
        """(n,) bool: success of the bound rows, as the user's model decides.

        Args:
            scores: (n, c) their scores.
            decide: gives (n,) int64, the column that the model itself decides for; or None where
                it has no decision but its scores.
        """
        return self.accepts(scores)

    @abstractmethod
    def score(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) what a person reads: the class's probability, or the predicted value."""

    @abstractmethod
    def select(self, rows: Tensor) -> Goal:
        """The goal of some of the rows, in that order."""

    @abstractmethod
    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = _none) -> Goal:
        """This goal for a model that says `scores`, (n, c), of the bound rows as they are.

        Args:
            scores: (n, c).
            cutoffs: gives `ClassGoal.cutoffs`, where they are needed.
        """


@dataclass(frozen=True)
class ClassGoal(Goal):
    """A wanted class per row.

    Attributes:
        columns: (n,) int64, the wanted column of the scores.
        threshold: the least probability, or None.
        count: how many columns scores have; None is any.
        cutoffs: (2, c) for each class, the least margin at which the model itself decides for it,
            and one at which it does so almost surely; None where it decides for the likeliest.
    """

    columns: Tensor
    threshold: float | None = None
    count: int | None = None
    cutoffs: Tensor | None = None
    lead: Tensor | None = None

    def margin(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) log-odds of the class over the threshold, or log p_c - max other log p."""
        wanted = self._wanted(scores, rows)
        least = -math.inf if self.threshold is None else _logit(self.threshold)
        if scores.shape[1] <= 2:
            odds = self._log_odds(scores, wanted)
            if self.cutoffs is not None:
                return odds - self.cutoffs[0].clamp_min(least)[wanted]
            return odds if self.threshold is None else odds - least
        own, others = _own_and_others(scores, wanted)
        margin = own - others.amax(1)
        if self.cutoffs is not None:
            margin = margin - self.cutoffs[0, wanted]
        if self.threshold is None:
            return margin
        return torch.minimum(margin, own - others.logsumexp(1) - least)

    def accepts(self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0) -> Tensor:
        """(m,) bool; an exact tie is the first class's, as argmax has it.

        Where a threshold below 1/2 is set for one of two classes, nothing else is asked.
        """
        if slack > 0.0:
            return self.evaluate(scores, rows, slack)[1]
        fine = self.margin(scores, rows) >= slack
        if self.cutoffs is not None or _by_score(self.threshold, scores):
            return fine
        return fine & (most_likely(scores) == self._wanted(scores, rows))

    def evaluate(
        self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """(m,) the margin and (m,) bool; a margin past 0 is the model's own decision."""
        if slack <= 0.0:
            return super().evaluate(scores, rows, slack)
        margin = self.margin(scores, rows)
        if self.lead is None:
            return margin, margin >= slack
        return margin, margin >= slack + self.lead[self._wanted(scores, rows)]

    def extra_margin(self) -> Tensor | float:
        """(n,) the lead of each row's class."""
        return 0.0 if self.lead is None else self.lead[self.columns]

    def with_lead(self, share: float, scores: Tensor) -> Goal:
        """The goal with a lead: a share of the spread of each class's margins."""
        count = max(scores.shape[1], 2)
        each = [torch.full((len(scores),), label) for label in range(count)]
        margins = [ClassGoal(label, self.threshold).margin(scores) for label in each]
        return replace(self, lead=torch.stack([share * _spread(m) for m in margins]))

    def succeeds(self, scores: Tensor, decide: Callable[[], Tensor | None]) -> Tensor:
        """(n,) bool: the model decides for the class, and the threshold is reached."""
        decided = None if _by_score(self.threshold, scores) else decide()
        if decided is None:
            return self.accepts(scores)
        wanted = self._wanted(scores, None)
        if self.threshold is None:
            return decided == wanted
        return (decided == wanted) & (_log_odds(scores, wanted) >= _logit(self.threshold))

    def score(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) the probability of the wanted class."""
        wanted = self._wanted(scores, rows)
        if scores.shape[1] <= 2:
            return torch.sigmoid(self._log_odds(scores, wanted))
        return scores.softmax(1).gather(1, wanted[:, None])[:, 0]

    def select(self, rows: Tensor) -> Goal:
        """The goal of some of the rows."""
        return replace(self, columns=self.columns[rows])

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = _none) -> Goal:
        """The goal, for scores with as many columns, and cut-offs unless a score decides."""
        own = None if _by_score(self.threshold, scores) else cutoffs()
        return replace(self, count=scores.shape[1], cutoffs=own)

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
        lead: by how much a search stays inside of either end.
    """

    low: float
    high: float
    short: Tensor | None = None
    lead: float = 0.0

    def margin(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) the distance to the nearer end, negative outside, in the model's units."""
        value = scores[:, 0]
        return torch.minimum(value - self.low, self.high - value)

    def accepts(self, scores: Tensor, rows: Tensor | None = None, slack: float = 0.0) -> Tensor:
        """(m,) bool: the value lies inside."""
        return self.margin(scores, rows) >= slack * self._span(rows) + self.lead * (slack > 0.0)

    def extra_margin(self) -> Tensor | float:
        """The lead, in the model's units."""
        return self.lead

    def with_lead(self, share: float, scores: Tensor) -> Goal:
        """The goal with a lead: a share of the spread of the values, of half the interval."""
        spread = float(_spread(scores[:, 0].float()))
        return replace(self, lead=share * min(spread, (self.high - self.low) / 2.0))

    def score(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """(m,) the predicted value."""
        return scores[:, 0]

    def select(self, rows: Tensor) -> Goal:
        """The same interval holds for every row."""
        return self if self.short is None else replace(self, short=self.short[rows])

    def bind(self, scores: Tensor, cutoffs: Callable[[], Tensor | None] = _none) -> Goal:
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


def _spread(values: Tensor) -> Tensor:
    """The standard deviation of normal values, (m,), by their quartiles; 0 of none."""
    if not len(values):
        return values.new_zeros(())
    low, high = values.quantile(values.new_tensor([0.25, 0.75]))
    spread: Tensor = (high - low) / QUARTILES_APART
    return spread.float()


def with_strict_cutoffs(goal: Goal) -> Goal:
    """A goal that aims where the model itself decides for the class almost surely."""
    if not isinstance(goal, ClassGoal) or goal.cutoffs is None:
        return goal
    return replace(goal, cutoffs=goal.cutoffs[1:].expand(2, -1))


def most_likely(scores: Tensor) -> Tensor:
    """(m,) int64, the column that scores, (m, c), decide for; of equals the first."""
    if scores.shape[1] > 2:
        return scores.argmax(1)
    return (scores[:, -1] > (scores[:, 0] if scores.shape[1] == 2 else 0.0)).long()


def _own_and_others(scores: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The wanted column, (m,), and the scores with it blanked, (m, c)."""
    own = scores.gather(1, wanted[:, None])[:, 0]
    return own, scores.scatter(1, wanted[:, None], -math.inf)


def _log_odds(scores: Tensor, wanted: Tensor) -> Tensor:
    """(m,) log-odds of the wanted column against all others together."""
    if scores.shape[1] == 1:
        return torch.where(wanted == 1, scores[:, 0], -scores[:, 0])
    own, others = _own_and_others(scores, wanted)
    return own - others.logsumexp(1)


def _by_score(threshold: float | None, scores: Tensor) -> bool:
    """Whether the probability alone decides: a threshold below 1/2 for one of two classes."""
    return threshold is not None and threshold < 0.5 and scores.shape[1] <= 2


def _logit(p: float) -> float:
    return math.log(p / (1.0 - p))
