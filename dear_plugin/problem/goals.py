"""Targets: the wanted class or range, and what the scores of rows say of it.

A `Target` is what a user asks; `goal_of` makes it the `Goal` of rows, which turns scores into
margins and decisions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin._validation import Named, suggesting
from dear_plugin.data.feature import COST, Feature
from dear_plugin.errors import (
    ConstraintError,
    DearError,
    ModelError,
    TargetError,
    argument,
    require_known,
    shown,
    unknown,
)

__all__ = ["ClassGoal", "Goal", "RangeGoal", "Target", "goal_of"]

# Larger integers do not fit a tensor, and are no class of any model.
MOST_CLASSES = 2**31
# The number of a model's classes that an error suggests.
SUGGESTED = 3


# What names a class by itself; other labels need `Target.of_class`.
Label = str | int | float | bool | np.generic


@dataclass(frozen=True)
class Target(Named):
    """The wanted prediction. Build it with `of_class` or `of_range`.

    Attributes:
        label: one class, or a tuple with one class per row; None for a range.
        threshold: the least probability of the class. The model must decide for the class as well,
            unless the threshold is below 1/2 and there are two classes: then it alone decides.
        low: the least wanted value of a regression model, or a tuple with one per row.
        high: the greatest wanted value, likewise.
        index: of the Series that has the values per row; None where they are in the rows' order.

    Example:
        >>> from dear_plugin import Target
        >>> sure = Target.of_class(1, threshold=0.8)
        >>> Target.of_range(low=200.0).is_range
        True
    """

    label: Any = None
    threshold: float | None = None
    low: float | tuple[float, ...] = -math.inf
    high: float | tuple[float, ...] = math.inf
    index: pd.Index | None = field(default=None, repr=False, compare=False)

    @classmethod
    @suggesting
    def of_class(cls, label: Any, threshold: float | None = None) -> Target:
        """The model's decision should be a class.

        The margin is `logit p_c - logit threshold` for two classes (threshold 0.5 if None), and
        `log p_c - max other log p` for more, with `p_c >= threshold` besides when one is given.
        The decision is the model's `predict` where it has one besides `predict_proba`, else the
        likeliest class.

        A threshold below 1/2 for one of two classes is weaker than the decision: then the
        probability decides alone, and `predict` is not called.

        Args:
            label: one class label, or one per row (list, array; Series, by its index).
            threshold: a probability in (0, 1).

        Raises:
            TargetError: a threshold outside (0, 1).
        """
        if threshold is not None and not 0.0 < _number(threshold) < 1.0:
            name = argument("threshold")
            raise TargetError(f"{name} must lie between 0 and 1, got {shown(threshold)}")
        per_row = not isinstance(label, str) and np.ndim(label) == 1
        own = tuple(np.asarray(label).tolist()) if per_row else label
        return cls(own, threshold, index=_index([label]))

    @classmethod
    @suggesting
    def of_range(cls, low: Any = None, high: Any = None) -> Target:
        """The predicted value should lie in `[low, high]`, in the model's own units.

        Args:
            low: the least wanted value, or one per row (list, array; Series, by its index) as
                `0.8 * model.predict(rows)`; None (or -inf) for an open end.
            high: the greatest wanted value, likewise; None (or inf) for an open end.

        Raises:
            TargetError: low above high, an end that is not a number, no finite bound, or ends of
                different lengths.
        """
        index = _index([low, high])
        if index is not None:
            if any(np.ndim(end) == 1 and not isinstance(end, pd.Series) for end in (low, high)):
                raise TargetError("of_range: one value per row is a Series for both ends or none")
            low, high = (in_order(end, index, "of_range", TargetError) for end in (low, high))
        lows, highs = _ends(low, -math.inf), _ends(high, math.inf)
        fit = 1 in (lows.size, highs.size) or lows.size == highs.size
        if not fit or not ((lows <= highs) & (np.isfinite(lows) | np.isfinite(highs))).all():
            raise TargetError(
                "a range needs numbers or None, one or one per row, low <= high, and one bound,"
                f" got ({shown(low)}, {shown(high)})"
            )
        return cls(low=_plain(lows), high=_plain(highs), index=index)

    def at(self, position: int) -> Target:
        """The target of one row, where each has its own."""
        own: dict[str, Any] = {k: values[position] for k, values in self._per_row.items()}
        return replace(self, **own, index=None)

    def for_rows(self, index: pd.Index) -> Target:
        """The target of rows of an index, (n,), with its values in their order.

        Raises:
            TargetError: it was made of a Series of another index.
        """
        if self.index is None:
            return self
        own: dict[str, Any] = {"index": None}
        for name, values in self._per_row.items():
            series = pd.Series(values, self.index, object)
            own[name] = tuple(in_order(series, index, "target", TargetError))
        return replace(self, **own)

    @property
    def _per_row(self) -> dict[str, tuple[Any, ...]]:
        """What each row has its own of."""
        own = {name: getattr(self, name) for name in ("label", "low", "high")}
        return {name: values for name, values in own.items() if isinstance(values, tuple)}

    @property
    def is_range(self) -> bool:
        """Whether the target is a range of values."""
        return (self.low, self.high) != (-math.inf, math.inf)

    def resolve(self, n: int, classes: Sequence[Hashable] | None) -> Goal:
        """Bind the target to n rows and the model's classes.

        Args:
            n: the number of rows.
            classes: the model's labels in column order; None for the numbers 0 ... c - 1.

        Raises:
            TargetError: an unknown class, or another number of values than rows.
        """
        what = "a range" if self.is_range else "a class"
        for values in self._per_row.values():
            per_row(values, pd.RangeIndex(n), "target", is_single, what, TargetError)
        if self.is_range:
            return RangeGoal(_bound(self.low), _bound(self.high))
        labels = self.label if isinstance(self.label, tuple) else (self.label,)
        columns = torch.tensor([_column(label, classes) for label in labels], dtype=torch.int64)
        return ClassGoal(columns.expand(n), self.threshold)


def goal_of(
    target: Target | Label | None, n: int, classes: Sequence[Hashable] | None, output: str
) -> Goal:
    """Bind a target to n rows; None is class 1.

    Args:
        target: the wanted prediction, the label of the wanted class, or None.
        n: the number of rows.
        classes: the model's labels, or None.
        output: what the model returns, see `Classifier`.

    Raises:
        TargetError: not a target, a target of another kind of model, or None where the model's
            classes are not 0 and 1.
    """
    if target is None and output == "values":
        raise TargetError(
            "a model with output='values' has no default target: pass"
            " target=Target.of_range(low, high)"
        )
    wanted = _class_one(classes) if target is None else target
    if isinstance(wanted, Label) and output != "values":
        wanted = Target.of_class(wanted)
    if not isinstance(wanted, Target):
        raise TargetError(
            "target must be a Target or the label of a class (of a model with output='values',"
            f" Target.of_range(low, high)), got {shown(wanted)}"
        )
    if wanted.is_range != (output == "values"):
        raise TargetError(
            "Target.of_range is for models with output='values', Target.of_class (the default)"
            f" for all others; got {wanted} with output={output!r}"
        )
    return wanted.resolve(n, classes)


def _class_one(classes: Sequence[Hashable] | None) -> Hashable:
    """Class 1, the default target of a model whose classes are unnamed, or 0 and 1."""
    if classes is None or set(classes) == {0, 1}:
        return 1
    options = " or ".join(f"target=Target.of_class({label!r})" for label in classes[:SUGGESTED])
    raise TargetError(
        f"which of the classes {list(classes)} is wanted? Only 0 and 1 (or False and True) have a"
        f" default: pass {options}"
    )


def _number(value: Any) -> float:
    """A value as a float, NaN where it is not a number."""
    try:
        return math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _index(values: Iterable[Any]) -> pd.Index | None:
    """The index of the first Series; None without any."""
    return next((value.index for value in values if isinstance(value, pd.Series)), None)


def _ends(value: Any, default: float) -> npt.NDArray[np.float64]:
    """() or (n,) an end of a range, NaN where it is not a number."""
    if np.ndim(value) == 1:
        return np.array([default if v is None else _number(v) for v in value])
    return np.array(default if value is None else _number(value))


def _plain(end: npt.NDArray[np.float64]) -> float | tuple[float, ...]:
    return tuple(end.tolist()) if end.ndim else float(end)


def _bound(end: float | tuple[float, ...]) -> float | Tensor:
    return torch.tensor(end, dtype=torch.float64) if isinstance(end, tuple) else end


def _column(label: Any, classes: Sequence[Hashable] | None) -> int:
    if classes is None:
        number = _number(label) if isinstance(label, bool | int | np.integer | float) else math.nan
        if number.is_integer() and abs(number) < MOST_CLASSES:
            return int(label)
        raise TargetError(
            "the model has no classes_ (or is not fitted), so the class must be a number from 0,"
            f" the column of its output; got {shown(label)}"
        )
    known = list(classes)
    if label not in known:
        raise TargetError(unknown("class", [label], known))
    return known.index(label)


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


def per_row(
    value: Any,
    index: pd.Index,
    name: str,
    one: Callable[[Any], bool],
    what: str = "a value",
    error: type[DearError] = ConstraintError,
) -> list[Any]:
    """What is given of rows: one value for all of them, as a list of one, or that of each row.

    Args:
        value: the user's: one value; a list or an array of n in the rows' order; or a Series,
            which has them by its index.
        index: (n,) that of the rows.
        name: the argument's name, for errors.
        one: whether something is the value of one row.
        what: the same in words.
        error: what is raised.

    Raises:
        DearError: neither, or a Series of another index (where labels repeat, in another order).

    Example:
        >>> rows = pd.Index(["ann", "bob"])
        >>> per_row(pd.Series([1, 2], ["bob", "ann"]), rows, "wanted", np.isscalar)
        [2, 1]
    """
    if one(value):
        return [value]
    items = list(in_order(value, index, name, error)) if is_plural(value) else [value]
    if isinstance(value, Mapping) or len(items) != len(index) or not all(map(one, items)):
        raise error(
            f"{name}: expected {what} for all rows, or a list of {len(index)}, one per row; got"
            f" {shown(value)}"
        )
    return items


def in_order(
    value: Any, index: pd.Index, name: str, error: type[DearError] = ConstraintError
) -> Any:
    """A Series as the list of its values in the order of rows, (n,); another value as it is.

    For arguments and errors see `per_row`.
    """
    if not isinstance(value, pd.Series):
        return value
    own, cells = value.index, value.tolist()
    if own.equals(index):
        return cells
    places = own.get_indexer(index) if own.is_unique and len(own) == len(index) else np.array([-1])
    if (places < 0).any():
        raise error(
            f"{name}: a Series has the index of the rows (in their order, where labels repeat);"
            f" got {len(own)} values with another index for {len(index)} rows."
            " series.loc[rows.index] aligns it; series.to_numpy() goes by position"
        )
    return [cells[place] for place in places]


def each(value: Any, n: int, name: str, one: type) -> Iterator[tuple[slice | list[int], Any]]:
    """Iterate over a constraint as (rows, value) pairs: one for all rows, or one per row.

    Args:
        value: the user's value; None yields nothing.
        n: the number of rows.
        name: the argument's name, for errors.
        one: the type of one row's value: `str` for a list of names, or `Mapping`.

    Raises:
        ConstraintError: a list of another length or of other values.
    """
    if value is None or (isinstance(value, tuple) and not value):
        return
    fits, what = (_is_names, "a list of names") if one is str else (_is_mapping, "a mapping")
    value = list(value) if is_plural(value) and not _is_mapping(value) else value
    items = per_row(value, pd.RangeIndex(n), name, fits, what)
    every = len(items) == 1 and items[0] is value
    for i, item in enumerate(items):
        if item is not None:
            yield slice(None) if every else [i], item


def _is_names(value: Any) -> bool:
    """Whether it is a list of names, or None for nothing."""
    return value is None or (is_plural(value) and all(isinstance(each, str) for each in value))


def _is_mapping(value: Any) -> bool:
    """Whether it is a mapping, or None for nothing."""
    return value is None or isinstance(value, Mapping)


def is_single(value: Any) -> bool:
    """Whether a value is no list or array of several."""
    return not np.ndim(value)


def is_plural(value: Any) -> bool:
    """Whether a value is iterable, and neither a string nor a frame, which iterates over names."""
    return isinstance(value, Iterable) and not isinstance(value, str | pd.DataFrame)


def interval(feature: Feature, pair: Any, n: int) -> tuple[Tensor, Tensor]:
    """The ends of a range, () or (n,) double each.

    Raises:
        ConstraintError: not a range of this feature.
    """
    where = f"{argument('ranges')}[{feature.name!r}]"
    if "ranges" not in feature.limited_by:
        raise ConstraintError(f"{where}: it has categories; use categories= instead")
    if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ConstraintError(f"{where}: expected (low, high), got {shown(pair)}")
    ends = [feature.place(end) for end in pair]
    low, high = (
        _numbers(where, default if end is None else end, n)
        for end, default in zip(ends, (-math.inf, math.inf), strict=True)
    )
    if not np.all(low <= high):
        raise ConstraintError(f"{where}: low must not exceed high, got {shown(pair)}")
    return torch.tensor(low), torch.tensor(high)  # copies: frames may be read-only


def costs_of(name: str, given: Any, n: int) -> Tensor:
    """What a unit of a feature costs, (1,) or (n,) double.

    Raises:
        ConstraintError: neither a number above 0, nor one per row.
    """
    where = f"{argument('costs')}[{name!r}]"
    values = per_row(given, pd.RangeIndex(n), where, is_single, "a number")
    numbers = [COST(where, value, ConstraintError) for value in values]
    return torch.tensor(numbers, dtype=torch.float64)


def _numbers(where: str, end: Any, n: int) -> Any:
    """An end of a range as an array, () or (n,)."""
    values = per_row(end, pd.RangeIndex(n), where, is_single, "a number")
    try:
        return np.asarray(values[0] if is_single(end) else values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConstraintError(
            f"{where}: an end is a number, or one per row, or None where it is open; got"
            f" {shown(end)}"
        ) from error


def codes_of(feature: Feature, levels: Any) -> list[int]:
    """The positions of allowed categories.

    Raises:
        ConstraintError: not categories of this feature.
    """
    where = f"{argument('categories')}[{feature.name!r}]"
    if "categories" not in feature.limited_by:
        raise ConstraintError(f"{where}: it is numeric; use ranges= instead")
    known = feature.choices
    values = list(levels) if is_plural(levels) else [levels]
    require_known(where, "values", values, known, ConstraintError)
    if not values:
        raise ConstraintError(f"{where}: expected at least one of {list(known)}, got []")
    codes = sorted(known.index(c) for c in values)
    if absent := [c for c in feature.ranked[codes[0] : codes[-1]] if c not in values]:
        raise ConstraintError(
            f"{where}: it has an order, so allowed levels are neighbours; got {values}, without"
            f" {absent}"
        )
    return codes


# The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349
# The largest unit of margins, as a divisor of the median margin of accepted rows.
REACHED = 0.6


def robust_deviation(values: Tensor) -> Tensor:
    """The robust standard deviation of values, (m,), from their quartiles; 0 without values."""
    if not len(values):
        return values.new_zeros(())
    low, high = values.quantile(values.new_tensor([0.25, 0.75]))
    scale: Tensor = (high - low) / NORMAL_IQR
    return scale.float()


def margin_unit(margins: Tensor, values: Tensor | None = None) -> Tensor:
    """(...) the unit of margins: what a model can reach, whatever the scale of its scores.

    The spread of the values, and at most 5/3 of the median margin of accepted rows: .3 of it is
    then at most half of that median.

    Args:
        margins: (..., m) of training rows.
        values: (m,) whose spread is taken; None takes that of the margins, (m,).
    """
    scale = robust_deviation(margins if values is None else values)
    accepted = margins.where(margins > 0.0, torch.nan)
    return (
        torch.fmin(scale, accepted.nanmedian(-1).values / REACHED) if accepted.numel() else scale
    )


def most_likely(scores: Tensor) -> Tensor:
    """(m,) int64, the column that scores, (m, c), decide for; the first of equal ones."""
    if scores.shape[1] > 2:
        return scores.argmax(1)
    return (scores[:, -1] > (scores[:, 0] if scores.shape[1] == 2 else 0.0)).long()


def log_odds(scores: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """(m,) each, log-odds of the wanted column against the likeliest other one, and all others."""
    if scores.shape[1] <= 2:
        of_one = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        odds = torch.where(wanted == 1, of_one, -of_one)
        return odds, odds
    own = scores.gather(1, wanted[:, None])[:, 0]
    others = scores.scatter(1, wanted[:, None], -math.inf)
    return own - others.amax(1), own - others.logsumexp(1)


def probabilities(scores: Tensor) -> Tensor:
    """(m, c) double, of every class; both of two, of which scores may have one column."""
    m, c = len(scores), max(scores.shape[1], 2)
    each = [log_odds(scores, torch.full((m,), label))[1] for label in range(c)]
    return torch.stack(each, 1).sigmoid().double()


def score_decides(threshold: float | None, scores: Tensor) -> bool:
    """Whether the probability alone decides: a threshold below 1/2 for one of two classes."""
    return threshold is not None and threshold < 0.5 and scores.shape[1] <= 2


def logit(p: float) -> float:
    """The log-odds of a probability."""
    return math.log(p / (1.0 - p))
