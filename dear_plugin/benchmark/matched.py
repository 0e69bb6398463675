"""Matched: answers of DEAR and of baselines in, cost differences out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from torch import Tensor

from dear_plugin.benchmark.metrics.decision import Floats, Truths, where
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.encoder import Encoder
from dear_plugin.evaluation.intervals import difference, is_plausible
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

    def answers(
        self, method: str, rows: Tensor, cost: Floats, support: Floats, solved: Truths
    ) -> Answers:
        """Answers of a method.

        Args:
            method: its name.
            rows: (n, p) counterfactuals.
            cost: (n,) of each.
            support: (n,) of each.
            solved: (n,) bool, the solved rows.
        """
        found = self._plausibility.of(rows).double().numpy()
        plausible = solved & is_plausible(found, self._own)
        cost, found, support = (where(solved, values) for values in (cost, found, support))
        return Answers(method, cost, found, support, plausible)


@dataclass(frozen=True)
class Answers:
    """One method's answers of n rows; NaN without an answer.

    Attributes:
        method: its name.
        cost: (n,) total cost.
        plausibility: (n,) of the counterfactuals.
        support: (n,) of the counterfactuals.
        plausible: (n,) bool, whether it is at least the required plausibility.
    """

    method: str
    cost: Floats
    plausibility: Floats
    support: Floats
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
            "support": self.support,
            "confidence": confidence,
            "plausibility": self.plausibility,
            "plausible": self.plausible.astype(float),
            "alone": alone,
        }
        return {name: _mean(values[solved]) for name, values in measured.items()}


def differences(
    dear: Sequence[Answers],
    baselines: Sequence[Answers],
    families: Sequence[Sequence[Answers]] = (),
) -> Iterator[Row]:
    """DEAR's cost minus a baseline's, the median over rows with plausible answers of both.

    Args:
        dear: several configurations of DEAR.
        baselines: of the same rows, in the same order.
        families: configurations that differ in `min_support`, the lowest first; one of each is
            compared with each baseline, see `supported`.
    """
    for baseline in baselines:
        matched = (supported(family, baseline) for family in families if family)
        # The plain configuration may be the one that is matched.
        for line in {each.method: each for each in (*dear, *matched)}.values():
            both = line.plausible & baseline.plausible
            found = difference(line.cost, baseline.cost, both)
            yield {
                "DEAR": line.method,
                "baseline": baseline.method,
                "rows": found.rows,
                "support": _mean(line.support[both]),
                "baseline support": _mean(baseline.support[both]),
                "cost": found.cost,
                "baseline cost": found.other,
                "difference": str(found.difference),
                "cheaper": found.cheaper,
            }


def at_support(name: str, share: float) -> str:
    """The name of a configuration with a required support."""
    return f"{name}, min_support={share:g}"


def by_support(answers: Sequence[Answers], name: str, shares: Sequence[float]) -> list[Answers]:
    """The answers of a configuration without and with each required support that was measured."""
    known = {each.method: each for each in answers}
    names = (name, *(at_support(name, share) for share in shares))
    return [known[each] for each in names if each in known]


def supported(family: Sequence[Answers], baseline: Answers) -> Answers:
    """The first of a family with at least the baseline's mean support, the last if none has it.

    The means are over the rows with plausible answers of both.
    """
    for line in family:
        both = line.plausible & baseline.plausible
        if _mean(line.support[both]) >= _mean(baseline.support[both]):
            return line
    return family[-1]


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
