"""Wrapped: Alibi's `CounterfactualRLTabular` as a `RecourseMethod`, to be compared with DEAR."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dear_alibi.predictor import LabelEncoded
from dear_alibi.table import Array, Table
from dear_plugin import Case, Feature, Kind, Proposal, RecourseMethod, Schema, errors

# CounterfactualRL repeats the conditions of n rows n times: its memory grows with the square.
BATCH_SIZE = 256


def wrap_alibi(explainer: Any) -> WrappedAlibi:
    """A fitted `CounterfactualRLTabular` as a method that can be compared with DEAR.

    Constraints are kept, rows are rounded and scored again by the user's model, and every row is
    in the result, a failure with its reason. Its own immutable features and ranges are part of
    its training; constraints of a call are passed to it as conditions. Frames hold the strings of
    its category map.

    Args:
        explainer: a `CounterfactualRLTabular` that has been fitted.

    Raises:
        ModelError: another explainer, or one that is not fitted.
    """
    params = getattr(explainer, "params", {})
    needed = {"predictor", "feature_names", "category_map", "stats", "conditional_func"}
    if not needed <= set(params):
        raise errors.ModelError(
            "wrap_alibi takes a fitted CounterfactualRLTabular; got"
            f" {type(explainer).__name__} without {sorted(needed - set(params))}"
        )
    return WrappedAlibi(explainer)


@final
class WrappedAlibi(RecourseMethod):
    """See `wrap_alibi`. CounterfactualRL writes its progress bar to stderr."""

    def __init__(self, explainer: Any) -> None:
        params = explainer.params
        self.explainer = explainer
        self._table = Table.of(params["feature_names"], params["category_map"])
        model = LabelEncoded(params["predictor"], self._table, np.dtype(np.float64))
        super().__init__(model, _schema(params, self._table))

    def _learn(self, rows: Tensor) -> None:
        """The explainer is already fitted."""

    def _propose(self, case: Case) -> Proposal:
        every = torch.arange(len(case))
        moved = torch.cat([self._explained(case.select(rows)) for rows in every.split(BATCH_SIZE)])
        rows = case.feasible.project(case.x, moved[:, None], every)[:, 0]
        accepted = case.goal.accepts(self.classifier.scores(rows))
        missed = "CounterfactualRL's row misses the target once constraints are applied"
        reasons = ["" if each else missed for each in accepted.tolist()]
        return Proposal(rows, rows != case.x, torch.zeros(len(case)), reasons)

    def _explained(self, case: Case) -> Tensor:
        """(m, p) CounterfactualRL's counterfactuals of m rows."""
        X = self._array(case.x)
        goal: Any = case.goal
        with _isolated():
            found = self.explainer.explain(
                X, goal.columns.numpy(), self._conditions(case, X), batch_size=len(X)
            )
        return self.encoder.rows(self._table.frame(found.data["cf"]["X"])).to(case.x.dtype)

    def _conditions(self, case: Case, X: Array) -> list[dict[str, Any]] | None:
        """The constraints of a call as Alibi's conditions: [] where there are none."""
        if self.explainer.params["conditional_func"](X[:1]) is None:
            return None
        feasible = case.feasible
        free = (feasible.low <= 0) & ((feasible.high >= 1) | self.encoder.blocks)
        limited = feasible.allowed is not None or bool(feasible.not_actionable.any())
        if bool(free.all()) and not limited:
            return []
        low, high = self._array(feasible.floor) - X, self._array(feasible.ceiling) - X
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
        own, fixed = int(case.x[i, j]), case.feasible.floor[i, j] == case.feasible.ceiling[i, j]
        codes = torch.arange(len(levels), dtype=case.x.dtype)[None]
        valid = case.feasible.admits(codes, torch.tensor([j]), torch.tensor([i]))[0] & ~fixed
        return [str(level) for c, level in enumerate(levels) if c == own or bool(valid[c])]

    def _array(self, rows: Tensor) -> Array:
        return self._table.array(self.encoder.frame(rows), np.dtype(np.float64))


def _schema(params: dict[str, Any], table: Table) -> Schema:
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


@contextmanager
def _isolated() -> Iterator[None]:
    """Hide the progress bar and restore the global generators, which draw conditions."""
    state = np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]), redirect_stderr(io.StringIO()):
            yield
    finally:
        np.random.set_state(state)
