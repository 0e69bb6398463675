"""Target: the wanted class or range of predictions; `goal_of` makes it the `Goal` of rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._validation.settings import Named
from dear_plugin.errors import TargetError, argument, shown, unknown
from dear_plugin.problem.arguments import in_order
from dear_plugin.problem.goals import ClassGoal, Goal, RangeGoal

__all__ = ["ClassGoal", "Goal", "RangeGoal", "Target", "goal_of"]

# Larger integers do not fit a tensor, and are no class of any model.
MOST_CLASSES = 2**31
# The number of a model's classes that an error suggests.
MOST_NAMED = 3


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
        for values in self._per_row.values():
            if len(values) != n:
                what = "range" if self.is_range else "class"
                raise TargetError(
                    f"target: expected 1 {what} or {n}, got {len(values)} for {n} rows"
                )
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
    options = " or ".join(f"target=Target.of_class({label!r})" for label in classes[:MOST_NAMED])
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
