"""Matched: answers of DEAR and of baselines in, cost differences at equal plausibility out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from torch import Tensor

from dear_plugin.benchmark.metrics.decision import Floats, Truths, where
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.encoder import Encoder
from dear_plugin.evaluation.matched import difference, is_plausible
from dear_plugin.evaluation.plausibility import Plausibility


@dataclass(frozen=True)
class PlausibilityTest:
    """The plausibility of answers and of their factuals.

    Attributes:
        train: the training rows.
        encoder: the encoder of the rows.
        factuals: (n, p) the factuals.
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
        """Answers of a method: counterfactuals, (n, p), costs, (n,), and which rows it solves."""
        found = self._plausibility.of(rows).double().numpy()
        plausible = solved & is_plausible(found, self._own)
        return Answers(method, where(solved, cost), where(solved, found), plausible)


@dataclass(frozen=True)
class Answers:
    """One method's answers of n rows; NaN without an answer.

    Attributes:
        method: its name.
        cost: (n,) total cost.
        plausibility: (n,) of the counterfactuals.
        plausible: (n,) bool, whether it is at least the required plausibility.
    """

    method: str
    cost: Floats
    plausibility: Floats
    plausible: Truths

    def columns(self, confidence: Floats, reliance: Floats) -> dict[str, float]:
        """The mean metrics over solved rows.

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


def differences(dear: Iterable[Answers], baselines: Sequence[Answers]) -> Iterator[Row]:
    """DEAR's cost minus a baseline's, the median over rows with plausible answers of both.

    Args:
        dear: several configurations of DEAR.
        baselines: of the same rows, in the same order.
    """
    for baseline in baselines:
        for line in dear:
            found = difference(line.cost, baseline.cost, line.plausible & baseline.plausible)
            yield {
                "DEAR": line.method,
                "baseline": baseline.method,
                "rows": found.rows,
                "cost": found.cost,
                "baseline cost": found.other,
                "difference": str(found.difference),
                "cheaper": found.cheaper,
            }


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
