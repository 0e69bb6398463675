"""Alibi metrics: evaluates label-encoded counterfactuals of any method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dear_plugin.benchmark.cfrl import Rows
from dear_plugin.benchmark.experiment import Experiment
from dear_plugin.benchmark.matched import Answers, PlausibilityTest
from dear_plugin.benchmark.tables import Row
from dear_plugin.benchmark.wrappings import OnAlibi
from dear_plugin.data.schema import Kind
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.support import Support
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.target import Target

NOTHING = float("nan")


@dataclass(frozen=True)
class FeatureRules:
    """Constraints of a comparison.

    Attributes:
        immutable: immutable features.
        increasing: numeric features that may only increase.
    """

    immutable: tuple[str, ...]
    increasing: tuple[str, ...]

    def plus(self, other: FeatureRules) -> FeatureRules:
        """The constraints of both."""
        return FeatureRules(self.immutable + other.immutable, self.increasing + other.increasing)

    @property
    def ranges(self) -> dict[str, list[float]]:
        """The ranges in Alibi's format."""
        return {name: [0.0, 1.0] for name in self.increasing}


# The constraints of Alibi's example, and those that a later call adds.
RULES: Mapping[str, tuple[FeatureRules, FeatureRules]] = {
    "adult": (
        FeatureRules(("marital-status", "relationship", "race", "sex"), ("age",)),
        FeatureRules(("native-country",), ("hours-per-week",)),
    ),
    "loan": (FeatureRules(("gender",), ("age",)), FeatureRules(("education",), ("savings",))),
}


@dataclass(frozen=True)
class Line:
    """The table row and the answers of one method.

    Attributes:
        row: of the table.
        answers: of the rejected rows; None where they are not compared.
    """

    row: Row
    answers: Answers | None = None


@dataclass(frozen=True)
class AlibiMetrics:
    """Metrics of label-encoded counterfactuals.

    Attributes:
        experiment: the model and the rejected rows.
        predictor: the model as Alibi calls it.
    """

    experiment: Experiment
    predictor: OnAlibi

    @classmethod
    def of(cls, experiment: Experiment) -> AlibiMetrics:
        """The metrics of an experiment."""
        return cls(experiment, OnAlibi(experiment.model, experiment.schema))

    @cached_property
    def refused(self) -> Any:
        """(n, p) the rejected rows, label-encoded."""
        return self.predictor.array(self.experiment.refused)

    @property
    def description(self) -> dict[str, Any]:
        """The columns as arguments of Alibi's explainers."""
        names = list(self.experiment.schema.names)
        return {"feature_names": names, "category_map": self.predictor.category_map}

    def rows(self) -> Rows:
        """The training rows."""
        schema = self.experiment.schema
        whole = [f.name for f in schema if f.kind is Kind.NUMERIC and f.precision == 0]
        X = self.predictor.array(self.experiment.train)
        return Rows(X, list(schema.names), self.predictor.category_map, whole)

    def valid(self, X_cf: Any) -> Any:
        """(n,) bool, accepted by the predictor."""
        return self.predictor(X_cf).argmax(1) == 1

    def violations(self, X: Any, X_cf: Any, rules: FeatureRules) -> int:
        """The number of rows that violate a constraint."""
        schema = self.experiment.schema
        fixed, increasing = schema.index(rules.immutable), schema.index(rules.increasing)
        before, after = X.astype(float), X_cf.astype(float)
        broken = (after != before)[:, fixed].any(1) | (after < before)[:, increasing].any(1)
        return int(broken.sum())

    def cost(self, X: Any, X_cf: Any) -> Any:
        """(n,) l1 in scaled units, a changed category counting 1."""
        encoder = self.predictor.encoder
        moved = encoder.distance(self.predictor.rows(X_cf), self.predictor.rows(X))
        return moved.sum(1).numpy()

    def support(self, X_cf: Any) -> Any:
        """(n,) the share of accepted rows among the 5 nearest training rows."""
        encoder = self.predictor.encoder
        classifier = Classifier(self.experiment.model, encoder)
        goal = Target.of_class(1).resolve(len(X_cf), classifier.classes)
        support = Support(Neighbours(encoder.rows(self.experiment.train), encoder), classifier)
        return support.of(self.predictor.rows(X_cf), goal).double().numpy()

    @cached_property
    def _plausibility(self) -> PlausibilityTest:
        return PlausibilityTest(
            self.experiment.train, self.predictor.encoder, self.predictor.rows(self.refused)
        )

    def line(
        self, method: str, X_cf: Any, rules: FeatureRules, data: Mapping[str, Any] | None = None
    ) -> Line:
        """The answers of one method; costs and all further metrics are of valid rows.

        Args:
            method: its name in the table.
            X_cf: (n, p) its counterfactuals of the rejected rows.
            rules: its constraints.
            data: `data` of DEAR's explanation. Baselines have no indirect changes: confidence 1,
                reliance 0.
        """
        X, valid = self.refused, self.valid(X_cf)
        cost, n = self.cost(X, X_cf), len(X)
        support, rows = self.support(X_cf), self.predictor.rows(X_cf)
        answers = self._plausibility.answers(method, rows, cost, support, valid)
        row: dict[str, Any] = {
            "method": method,
            "rows": n,
            "validity": float(valid.mean()),
            "violations": self.violations(X, X_cf, rules),
            **_averages("cost", cost[valid]),
        }
        for part in ("direct", "indirect"):
            row |= _averages(
                part, [] if data is None else data["action"][f"{part}_cost"][valid, 0]
            )
        confidence, reliance = np.ones(n), np.zeros(n)
        if data is not None:
            confidence, reliance = data["confidence"][:, 0], data["reliance"][:, 0]
        return Line(row | answers.columns(confidence, reliance), answers)


def _averages(name: str, values: Any) -> dict[str, float]:
    """Median and mean, NaN without values."""
    if not len(values):
        return {f"{name}_median": NOTHING, f"{name}_mean": NOTHING}
    return {f"{name}_median": float(np.median(values)), f"{name}_mean": float(np.mean(values))}
