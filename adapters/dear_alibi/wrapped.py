"""Alibi's `CounterfactualRLTabular` as a `RecourseMethod`, to compare it with DEAR."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dear_alibi.table import Array, LabelEncoded, Table
from dear_plugin import Case, Feature, Schema, Wrapped, errors, isolated

NEEDED = {"predictor", "feature_names", "category_map", "stats", "conditional_func"}
FLOAT = np.dtype(np.float64)
# Of a feature's range: what Alibi's float32 networks add to a value that they leave as it is.
NOISE = 1e-6
# CounterfactualRL repeats the conditions of n rows n times: its memory grows with the square.
BATCH_SIZE = 256


def wrap_alibi(explainer: Any, schema: Schema | None = None) -> WrappedAlibi:
    """A `CounterfactualRLTabular` of Alibi as a method that can be compared with DEAR.

    Constraints are kept, rows are rounded and scored again by the explainer's own model, and every
    row is in the result, a failure with its reason. Frames hold the category map's strings, or the
    numbers and booleans that they stand for; a target is a label of the predictor's `classes_`,
    where it has these. The explainer's own immutable features and ranges are part of its training;
    constraints of a call are passed to it as conditions.

    Args:
        explainer: a fitted `CounterfactualRLTabular`.
        schema: has the units of cost and the costs, as of the method that it is compared with; the
            explainer knows only the least and greatest value of numbers, whose range is the unit
            without a schema.

    Raises:
        ModelError: another explainer, or one that is not fitted.
        SchemaError: the schema lacks a feature of the explainer.
    """
    missing = NEEDED - set(getattr(explainer, "params", {}))
    if missing:
        raise errors.ModelError(
            f"wrap_alibi takes a fitted CounterfactualRLTabular; got a {type(explainer).__name__}"
            f" without {sorted(missing)}"
        )
    return WrappedAlibi(explainer, schema)


@final
class WrappedAlibi(Wrapped):
    """See `wrap_alibi`. The explainer's output to stdout and stderr is hidden."""

    package = "Alibi"

    def __init__(self, explainer: Any, schema: Schema | None = None) -> None:
        params = explainer.params
        self.explainer = explainer
        self.table = Table.of(params["feature_names"], params["category_map"])
        predictor = params["predictor"]
        model = LabelEncoded(predictor, self.table, FLOAT)
        own = _schema(params, self.table)
        super().__init__(model, own if schema is None else _with_costs(own, schema))

    def _explained(self, case: Case) -> tuple[Tensor, list[str]]:
        parts = torch.arange(len(case)).split(BATCH_SIZE)
        with isolated():  # conditions are drawn from global generators
            found = np.concatenate([self._asked(case.select(idx)) for idx in parts])
        moved = self.encoder.rows(self.table.frame(found), before=case.x)
        noise = NOISE * torch.tensor([feature.width for feature in self.schema])
        return case.x.where((moved - case.x).abs() <= noise, moved), [""] * len(case)

    def _asked(self, case: Case) -> Array:
        """(m, p) the explainer's label-encoded counterfactuals of m rows."""
        goal: Any = case.goal
        X = self.table.array(self.encoder.frame(case.x), FLOAT)
        arguments = X, goal.columns.numpy(), self._conditions(case, X)
        return np.asarray(self.explainer.explain(*arguments, batch_size=len(X)).data["cf"]["X"])

    def _conditions(self, case: Case, X: Array) -> list[dict[str, Any]] | None:
        """The constraints of a call as Alibi's conditions: [] where there are none."""
        if self.explainer.params["conditional_func"](X[:1]) is None:
            return None
        limits, (low, high) = case.feasible.limits, (self.encoder.low, self.encoder.high)
        free = (limits.low <= low) & (limits.high >= high) & ~limits.not_actionable
        if bool(free.all()) and limits.allowed is None:
            return []
        names = self.table.declared.names
        numbers = {n: X[:, names.index(n)] for n in self.table.declared.numbers}
        return [
            {
                # Of numbers a change, which must include 0: a row outside its range excludes it.
                name: [min(*values, x := numbers[name][i]) - x, max(*values, x) - x]
                if name in numbers
                else list(map(str, values))
                for name, values in own.items()
            }
            for i, own in enumerate(self._values(case))
        ]


def _schema(params: Mapping[str, Any], table: Table) -> Schema:
    """The features as CounterfactualRL has them."""
    encode, decode = params["encoder_preprocessor"], params["decoder_inv_preprocessor"]
    stats, fixed = params["stats"].values(), params["immutable_features"]
    ends = np.repeat(encode(np.zeros((1, len(table.declared)))), 2, axis=0)
    # By Alibi's convention the numeric columns come first.
    ends[:, : len(stats)] = [[pair[end] for pair in stats] for end in ("min", "max")]
    features = zip(table.declared, *decode(ends), strict=True)
    return Schema(tuple(_feature(f, f.name in fixed, *ends) for f, *ends in features))


def _with_costs(own: Schema, stated: Schema) -> Schema:
    """A schema with the units of cost and the costs of the features of another."""
    for j, name in zip(stated.index(own.names), own.names, strict=True):
        feature = stated.features[j]
        own = own.replace(name, scale=feature.unit_of_cost, cost=feature.cost)
    bare = dataclasses.replace(stated, relations=(), rules=(), tiers=(), causes=())
    return bare.with_columns(own.features)


def _feature(declared: Feature, fixed: bool, low: Any, high: Any) -> Feature:
    if not declared.has_order:
        return dataclasses.replace(declared, immutable=fixed or len(declared.choices) == 1)
    integer = isinstance(low, int)
    return dataclasses.replace(
        declared,
        bounds=(float(low), float(high)),
        precision=0 if integer else None,
        dtype="int64" if integer else "float64",
        immutable=fixed or bool(low == high),
    )
