"""Wish: what each row of a call should become, in DiCE's words and in the engine's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dear_dice.model import Decided, Scores
from dear_plugin import Target

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# DiCE admits a threshold of exactly 1, which no log-odds can reach.
NEARLY = 1.0 - 1e-6
# The share of a range kept clear at its ends, where DiCE's arithmetic may round to the other side.
PAD = 1e-4


@dataclass(frozen=True)
class DesiredOutcome:
    """The wanted class of every row, or the wanted range.

    Attributes:
        classes: (n,) class numbers, the columns of the model's scores; empty for a regressor.
        least: the least probability of the wanted class; None leaves it to the model's decision.
        span: the range for a regressor.
    """

    classes: Rows
    least: float | None = None
    span: tuple[float, float] | None = None

    @classmethod
    def of_classes(cls, classes: list[int], threshold: float, nodes: int) -> DesiredOutcome:
        """Read DiCE's `stopping_threshold` for wanted classes.

        It is the least probability of the wanted class, as DiCE documents it; where class 0 of
        two is wanted it is also the greatest probability of class 1, as DiCE computes it. Up to
        one half it asks for no more than the model's decision.

        Args:
            classes: (n,) the wanted class numbers.
            threshold: DiCE's `stopping_threshold`.
            nodes: how many columns the model's scores have.
        """
        both = nodes <= 2 and 0 in classes
        least = min(max(threshold, 1.0 - threshold) if both else threshold, NEARLY)
        return cls(np.array(classes, dtype=np.int64), least if least > 0.5 else None)

    @classmethod
    def of_range(cls, span: Any) -> DesiredOutcome:
        """A regressor's `desired_range`."""
        return cls(np.empty(0, dtype=np.int64), span=(float(span[0]), float(span[1])))

    @property
    def target(self) -> Target:
        """The same for the engine."""
        if self.span is not None:
            low, high = self.span
            pad = PAD * (high - low) if math.isfinite(high - low) else 0.0
            return Target.of_range(low + pad, high - pad)
        return Target.of_class(self.classes, self.least)

    def met(self, scores: Scores, decided: Decided, rows: Rows) -> Mask:
        """(m,) whether rows got what was wanted of them.

        Args:
            scores: (m, c) what DiCE reads off the model.
            decided: (m,) the outcomes by DiCE's own rule.
            rows: (m,) which row of the call each belongs to.
        """
        if self.span is not None:
            return np.asarray((decided >= self.span[0]) & (decided <= self.span[1]))
        wanted = self.classes[rows]
        return np.asarray((decided == wanted) & (_chance(scores, wanted) >= (self.least or 0.0)))


def _chance(scores: Scores, wanted: Rows) -> Scores:
    """(m,) the probability of the wanted class; a single column is that of class 1."""
    both = np.column_stack([1.0 - scores, scores]) if scores.shape[1] == 1 else scores
    own = np.take_along_axis(both, wanted[:, None], 1)[:, 0]
    return np.asarray(own / both.sum(1))
