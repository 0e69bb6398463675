"""Matched: costs of two methods for the same people, where both lead to a plausible place.

What leads where nobody is may cost little; so costs are compared among people for whom both
answers pass what the default asks: no odder than one training row in twenty, or than the factual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from torch import Tensor

from dear_plugin.benchmark.rulers import estimate
from dear_plugin.benchmark.rulers.decision import Floats, Truths, where
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.encoder import Encoder
from dear_plugin.evaluation.plausibility import Plausibility

LEAST = 0.05
# What rounding may take from a share.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Oddness:
    """How odd answers are, beside the people who asked.

    Attributes:
        train: the training rows.
        encoder: the gate.
        factuals: (n, p) the people.
    """

    train: pd.DataFrame
    encoder: Encoder
    factuals: Tensor

    @cached_property
    def _plausibility(self) -> Plausibility:
        return Plausibility(self.encoder.rows(self.train), self.encoder)

    @cached_property
    def _own(self) -> Floats:
        return self._plausibility.of(self.factuals).double().numpy()

    def answers(self, method: str, rows: Tensor, cost: Floats, solved: Truths) -> Answers:
        """One method's answers, (n, p), with costs, (n,), to the people whom it solves, (n,)."""
        found = self._plausibility.of(rows).double().numpy()
        plausible = found >= np.minimum(LEAST, self._own) - TOLERANCE
        return Answers(method, where(solved, cost), where(solved, found), solved & plausible)


@dataclass(frozen=True)
class Answers:
    """One method's answers to n people; NaN where it has none.

    Attributes:
        method: its name.
        cost: (n,) total cost.
        plausibility: (n,) of where they lead.
        plausible: (n,) bool, whether that is enough.
    """

    method: str
    cost: Floats
    plausibility: Floats
    plausible: Truths

    def columns(self, confidence: Floats, reliance: Floats) -> dict[str, float]:
        """What the answers are worth, over people solved.

        Args:
            confidence: (n,) of each answer.
            reliance: (n,) of each answer.
        """
        solved = np.isfinite(self.plausibility)
        alone = np.where(np.isnan(reliance), np.nan, reliance == 0.0)
        measured = {
            "confidence": confidence,
            "plausibility": self.plausibility,
            "plausible": self.plausible.astype(float),
            "alone": alone,
        }
        return {name: _mean(values[solved]) for name, values in measured.items()}


def differences(ours: Iterable[Answers], rivals: Sequence[Answers]) -> Iterator[Row]:
    """Our cost minus a rival's, the median over people for whom both are plausible.

    Args:
        ours: lines of DEAR.
        rivals: of the same people, in the same order.
    """
    for rival in rivals:
        for line in ours:
            both = line.plausible & rival.plausible
            gap = line.cost[both] - rival.cost[both]
            yield {
                "DEAR": line.method,
                "rival": rival.method,
                "people": int(both.sum()),
                "cost": _median(line.cost[both]),
                "rival's cost": _median(rival.cost[both]),
                "difference": str(estimate(gap, np.zeros(len(gap)), median=True)),
                "cheaper": _mean(np.where(gap < 0.0, 1.0, 0.0)),
            }


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")
