"""Ruler: measures label-encoded counterfactuals, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dear_plugin.benchmark.cfrl import Rows
from dear_plugin.benchmark.hosts import Scene
from dear_plugin.benchmark.matched import Answers, Oddness
from dear_plugin.benchmark.tables import Row
from dear_plugin.benchmark.wrappings import OnAlibi
from dear_plugin.data.schema import Kind
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.support import Support
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.target import Target

NOTHING = float("nan")


@dataclass(frozen=True)
class Rules:
    """What may change.

    Attributes:
        immutable: features that stay as they are.
        growing: numeric features that may only grow.
    """

    immutable: tuple[str, ...]
    growing: tuple[str, ...]

    def plus(self, other: Rules) -> Rules:
        """Both."""
        return Rules(self.immutable + other.immutable, self.growing + other.growing)

    @property
    def ranges(self) -> dict[str, list[float]]:
        """In Alibi's words."""
        return {name: [0.0, 1.0] for name in self.growing}


# Alibi's example holds four features and lets age grow; then somebody asks for more than that.
RULES: Mapping[str, tuple[Rules, Rules]] = {
    "adult": (
        Rules(("marital-status", "relationship", "race", "sex"), ("age",)),
        Rules(("native-country",), ("hours-per-week",)),
    ),
    "loan": (Rules(("gender",), ("age",)), Rules(("education",), ("savings",))),
}


@dataclass(frozen=True)
class Line:
    """One method's line of the table, and its answers one by one.

    Attributes:
        row: the line.
        answers: to each refused row; None where they are not compared.
    """

    row: Row
    answers: Answers | None = None


@dataclass(frozen=True)
class Ruler:
    """Measures counterfactuals, whoever made them.

    Attributes:
        scene: the model and the refused rows.
        predictor: the model as Alibi has it.
    """

    scene: Scene
    predictor: OnAlibi

    @classmethod
    def of(cls, scene: Scene) -> Ruler:
        """The ruler of a scene."""
        return cls(scene, OnAlibi(scene.model, scene.schema))

    @cached_property
    def refused(self) -> Any:
        """(n, p) the refused rows, label-encoded."""
        return self.predictor.array(self.scene.refused)

    @property
    def description(self) -> dict[str, Any]:
        """The columns in Alibi's words."""
        names = list(self.scene.schema.names)
        return {"feature_names": names, "category_map": self.predictor.category_map}

    def rows(self) -> Rows:
        """The training rows."""
        whole = [f.name for f in self.scene.schema if f.kind is Kind.NUMERIC and f.precision == 0]
        X = self.predictor.array(self.scene.train)
        return Rows(X, list(self.scene.schema.names), self.predictor.category_map, whole)

    def valid(self, X_cf: Any) -> Any:
        """(n,) whether the predictor now says yes."""
        return self.predictor(X_cf).argmax(1) == 1

    def violations(self, X: Any, X_cf: Any, rules: Rules) -> int:
        """How many rows break a rule."""
        schema = self.scene.schema
        fixed, growing = schema.index(rules.immutable), schema.index(rules.growing)
        before, after = X.astype(float), X_cf.astype(float)
        broken = (after != before)[:, fixed].any(1) | (after < before)[:, growing].any(1)
        return int(broken.sum())

    def cost(self, X: Any, X_cf: Any) -> Any:
        """(n,) l1 in scaled units, a changed category counting 1."""
        encoder = self.predictor.encoder
        moved = encoder.distance(self.predictor.rows(X_cf), self.predictor.rows(X))
        return moved.sum(1).numpy()

    def support(self, X_cf: Any) -> float:
        """The mean share of accepted people among the 5 nearest training rows."""
        encoder = self.predictor.encoder
        classifier = Classifier(self.scene.model, encoder)
        goal = Target.of_class(1).resolve(len(X_cf), classifier.classes)
        support = Support(Neighbours(encoder.rows(self.scene.train), encoder), classifier)
        return float(support.of(self.predictor.rows(X_cf), goal).mean())

    @cached_property
    def _oddness(self) -> Oddness:
        return Oddness(self.scene.train, self.predictor.encoder, self.predictor.rows(self.refused))

    def line(
        self, method: str, X_cf: Any, rules: Rules, told: Mapping[str, Any] | None = None
    ) -> Line:
        """One method's answers; costs, support and what they are worth are those of valid rows.

        Args:
            method: its name in the table.
            X_cf: (n, p) its answers to the refused rows.
            rules: what it had to keep.
            told: DEAR's account of its costs and of what its answers are worth. Of a rival's
                nothing is expected to follow: confidence 1, reliance 0.
        """
        X, valid = self.refused, self.valid(X_cf)
        cost, n = self.cost(X, X_cf), len(X)
        answers = self._oddness.answers(method, self.predictor.rows(X_cf), cost, valid)
        row: dict[str, Any] = {
            "method": method,
            "rows": n,
            "validity": float(valid.mean()),
            "violations": self.violations(X, X_cf, rules),
            **_middle("cost", cost[valid]),
        }
        for part in ("direct", "indirect"):
            row |= _middle(part, [] if told is None else told["action"][f"{part}_cost"][valid, 0])
        row["support"] = self.support(X_cf[valid]) if valid.any() else NOTHING
        worth = (np.ones(n), np.zeros(n))
        if told is not None:
            worth = told["confidence"][:, 0], told["reliance"][:, 0]
        return Line(row | answers.columns(*worth), answers)


def _middle(name: str, values: Any) -> dict[str, float]:
    """Median and mean, NaN of nothing."""
    if not len(values):
        return {f"{name}_median": NOTHING, f"{name}_mean": NOTHING}
    return {f"{name}_median": float(np.median(values)), f"{name}_mean": float(np.mean(values))}
