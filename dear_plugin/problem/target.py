"""Target: a wanted class or range as a signed margin, >= 0 when the decision is the wanted one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dear_plugin.errors import TargetError, unknown
from dear_plugin.problem.goals import ClassGoal, Goal, RangeGoal, with_strict_cutoffs

__all__ = ["ClassGoal", "Goal", "RangeGoal", "Target", "goal_of", "with_strict_cutoffs"]

# No model has as many, and a tensor holds no number of any size.
MOST_CLASSES = 2**31
# Of a model's classes, so many are suggested.
MOST_NAMED = 3


@dataclass(frozen=True)
class Target:
    """What the model should say. Build it with `of_class` or `of_range`.

    Attributes:
        label: one class, or a tuple with one class per row; None for a range.
        threshold: the least probability of the class. The model must decide for the class as well,
            unless the threshold is below 1/2 and there are two classes: then it alone decides.
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
        The decision is the model's `predict` where it has one beside `predict_proba`, whatever
        the probabilities say; else the likeliest class.

        A threshold below 1/2 for one of two classes asks for less than the decision: then the
        probability decides alone, and `predict` is not asked.

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


def goal_of(
    target: Target | None, n: int, classes: Sequence[Hashable] | None, output: str
) -> Goal:
    """A target bound to n rows; None is class 1.

    Args:
        target: what the model should say, or None.
        n: how many rows are asked about.
        classes: the model's labels, or None.
        output: what the model returns, see `Classifier`.

    Raises:
        TargetError: what is no target, one of another kind of model, or none where the model's
            classes are not 0 and 1.
    """
    wanted = Target.of_class(_class_one(classes)) if target is None else target
    if not isinstance(wanted, Target):
        raise TargetError(
            f"target must be a Target, {wanted!r} came: a class is Target.of_class({wanted!r})"
        )
    if wanted.is_range != (output == "values"):
        raise TargetError(
            "Target.of_range is for models with output='values', Target.of_class (the default)"
            f" for all others; {wanted} came with output={output!r}"
        )
    return wanted.resolve(n, classes)


def _class_one(classes: Sequence[Hashable] | None) -> Hashable:
    """Class 1, where a model names no classes, or 0 and 1; no other name says what is wanted."""
    if classes is None or set(classes) == {0, 1}:
        return 1
    meant = " or ".join(f"target=Target.of_class({label!r})" for label in classes[:MOST_NAMED])
    raise TargetError(
        f"which of the classes {list(classes)} is wanted? Only 0 and 1 (or False and True) have a"
        f" default: say {meant}"
    )


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
