"""Reinforced: a fitted `CounterfactualRLTabular` as the parts of a recourse method."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from dear_alibi.table import Array, Explained, Table
from dear_plugin import Case, Encoder, Feature, Kind, Schema, errors

# CounterfactualRL repeats the conditions of n rows n times: its memory grows with the square.
BATCH_SIZE = 256


class Reinforced:
    """A `CounterfactualRLTabular`, which describes its rows itself, and gets constraints.

    Args:
        explainer: the explainer, fitted.
        described: what `wrap_alibi` was told about its rows, by argument: nothing.

    Attributes:
        table: the columns.
        schema: the features.
        predictor: the function of label-encoded rows (m, p) -> (m, c) that it explains.

    Raises:
        ModelError: it is not fitted.
        InputError: a description was given.
    """

    def __init__(self, explainer: Any, described: Mapping[str, Any]) -> None:
        params = getattr(explainer, "params", {})
        needed = {"predictor", "feature_names", "category_map", "stats", "conditional_func"}
        if not needed <= set(params):
            raise errors.ModelError(
                "wrap_alibi takes a fitted CounterfactualRLTabular; got one without"
                f" {sorted(needed - set(params))}"
            )
        if described:
            raise errors.InputError(
                f"{list(described)} are known to a CounterfactualRLTabular: leave them out"
            )
        self.explainer = explainer
        self.table = Table.of(params["feature_names"], params["category_map"])
        self.schema = _schema(params, self.table)
        self.predictor = params["predictor"]
        self.encoder = Encoder(self.schema)

    def explain(self, case: Case, X: Array) -> Explained:
        """Counterfactuals of the m rows of a case, which are label-encoded, (m, p), in X."""
        parts = torch.arange(len(case)).split(BATCH_SIZE)
        found = [self._batch(case.select(rows), X[rows.numpy()]) for rows in parts]
        return np.concatenate(found), [""] * len(case)

    def _batch(self, case: Case, X: Array) -> Array:
        """(m, p) CounterfactualRL's counterfactuals of m rows."""
        goal: Any = case.goal
        found = self.explainer.explain(
            X, goal.columns.numpy(), self._conditions(case, X), batch_size=len(X)
        )
        array: Array = found.data["cf"]["X"]
        return array

    def _conditions(self, case: Case, X: Array) -> list[dict[str, Any]] | None:
        """The constraints of a call as Alibi's conditions: [] where there are none."""
        if self.explainer.params["conditional_func"](X[:1]) is None:
            return None
        feasible = case.feasible
        free = (feasible.low <= 0) & ((feasible.high >= 1) | self.encoder.blocks)
        limited = feasible.allowed is not None or bool(feasible.not_actionable.any())
        if bool(free.all()) and not limited:
            return []
        fixed = [
            case.x.where(feasible.not_actionable, e) for e in (feasible.floor, feasible.ceiling)
        ]
        ends = map(self.encoder.frame, fixed)
        low, high = (self.table.array(frame, np.dtype(np.float64)) - X for frame in ends)
        return [
            {
                # A condition must include 0; a row outside of its range would exclude it.
                f.name: [min(low[i, j], 0.0), max(high[i, j], 0.0)]
                if f.kind is Kind.NUMERIC
                else self._levels(case, i, j)
                for j, f in enumerate(self.schema)
            }
            for i in range(len(X))
        ]

    def _levels(self, case: Case, i: int, j: int) -> list[str]:
        """The categories that row i may have in feature j."""
        levels = self.schema.features[j].categories
        feasible, own = case.feasible, int(case.x[i, j])
        fixed = feasible.not_actionable[i, j] | (feasible.floor[i, j] == feasible.ceiling[i, j])
        codes = torch.arange(len(levels), dtype=case.x.dtype)[None]
        valid = feasible.admits(codes, torch.tensor([j]), torch.tensor([i]))[0] & ~fixed
        return [str(level) for c, level in enumerate(levels) if c == own or bool(valid[c])]


def _schema(params: Mapping[str, Any], table: Table) -> Schema:
    """The features as CounterfactualRL has them."""
    encode, decode = params["encoder_preprocessor"], params["decoder_inv_preprocessor"]
    stats, fixed = params["stats"].values(), params["immutable_features"]
    ends = np.repeat(encode(np.zeros((1, len(table.declared)))), 2, axis=0)
    # By Alibi's convention the numeric columns come first.
    ends[:, : len(stats)] = [[pair[end] for pair in stats] for end in ("min", "max")]
    features = zip(table.declared, *decode(ends), strict=True)
    return Schema(tuple(_feature(f, low, high, f.name in fixed) for f, low, high in features))


def _feature(declared: Feature, low: Any, high: Any, fixed: bool) -> Feature:
    if declared.kind is not Kind.NUMERIC:
        return dataclasses.replace(declared, immutable=fixed or len(declared.categories) == 1)
    integer = isinstance(low, int)
    return dataclasses.replace(
        declared,
        bounds=(float(low), float(high)),
        precision=0 if integer else None,
        dtype="int64" if integer else "float64",
        immutable=fixed or bool(low == high),
    )
