"""Wrapped: Alibi's `CounterfactualRLTabular` as a `RecourseMethod`, so that tables hold both."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

import dear_plugin
from dear_alibi.predictor import LabelEncoded
from dear_alibi.table import Array, Table
from dear_plugin import Case, Feature, Kind, Proposal, RecourseMethod, Schema

# CounterfactualRL repeats the conditions of n rows n times: its memory grows with the square.
ROWS_A_CALL = 256
REFUSED = "the model refuses what CounterfactualRL found, held to the constraints"


def wrap_alibi(explainer: Any) -> WrappedAlibi:
    """A fitted `CounterfactualRLTabular` as a method that stands beside DEAR on equal terms.

    What holds for every method holds for it: constraints are kept, rows are rounded and scored
    again through the user's model, and every row comes back, a failure with its reason. Its own
    immutable features and ranges are in what it learned; constraints of a call go to it as
    conditions. Frames hold the strings of its category map.

    Args:
        explainer: a `CounterfactualRLTabular` that has been fitted.

    Raises:
        ModelError: another explainer, or one that is not fitted.
    """
    params = getattr(explainer, "params", {})
    needed = {"predictor", "feature_names", "category_map", "stats", "conditional_func"}
    if not needed <= set(params):
        raise dear_plugin.errors.ModelError(
            "wrap_alibi takes a fitted CounterfactualRLTabular;"
            f" {type(explainer).__name__} without {sorted(needed - set(params))} came"
        )
    return WrappedAlibi(explainer)


@final
class WrappedAlibi(RecourseMethod):
    """See `wrap_alibi`. CounterfactualRL draws its progress bar on the process's stderr."""

    def __init__(self, explainer: Any) -> None:
        params = explainer.params
        self.explainer = explainer
        self._table = Table.of(params["feature_names"], params["category_map"])
        model = LabelEncoded(params["predictor"], self._table, np.dtype(np.float64))
        super().__init__(model, _schema(params, self._table))

    def _learn(self, rows: Tensor) -> None:
        """The explainer has learned before it came here."""

    def _propose(self, case: Case) -> Proposal:
        parts = [
            self._ask(case.select(rows)) for rows in torch.arange(len(case)).split(ROWS_A_CALL)
        ]
        rows = case.feasible.project(case.x, torch.cat(parts)[:, None], torch.arange(len(case)))[
            :, 0
        ]
        accepted = case.goal.accepts(self.classifier.scores(rows))
        late = "the model refuses what CounterfactualRL found, held to the constraints"
        reasons = ["" if a else late for a in accepted.tolist()]
        return Proposal(rows, rows != case.x, torch.zeros(len(case)), reasons)

    def _ask(self, case: Case) -> Tensor:
        """Where CounterfactualRL takes some rows, (m, p)."""
        X = self._array(case.x)
        wanted: Any = case.goal
        with _quiet():
            found = self.explainer.explain(
                X, wanted.columns.numpy(), self._conditions(case, X), batch_size=len(X)
            )
        return self.encoder.rows(self._table.frame(found.data["cf"]["X"])).to(case.x.dtype)

    def _conditions(self, case: Case, X: Array) -> list[dict[str, Any]] | None:
        """The limits of a call in Alibi's words: [] where there are none."""
        if self.explainer.params["conditional_func"](X[:1]) is None:
            return None
        limits = case.feasible
        whole = (limits.low <= 0).all() & (limits.high >= 1).logical_or(self.encoder.blocks).all()
        if bool(whole) and limits.allowed is None and not bool(limits.not_actionable.any()):
            return []
        ends = self._array(limits.floor) - X, self._array(limits.ceiling) - X
        return [self._condition(case, i, ends[0][i], ends[1][i]) for i in range(len(X))]

    def _condition(self, case: Case, i: int, low: Array, high: Array) -> dict[str, Any]:
        """What one row may become: changes of its numbers, strings of its categories."""
        return {
            f.name: _change(low[j], high[j])
            if f.kind is Kind.NUMERIC
            else self._levels(case, i, j)
            for j, f in enumerate(self.schema)
        }

    def _levels(self, case: Case, i: int, j: int) -> list[str]:
        words = self.schema.features[j].categories
        own, fixed = int(case.x[i, j]), case.feasible.floor[i, j] == case.feasible.ceiling[i, j]
        codes = torch.arange(len(words), dtype=case.x.dtype)[None]
        fine = case.feasible.admits(codes, torch.tensor([j]), torch.tensor([i]))[0] & ~fixed
        return [str(w) for c, w in enumerate(words) if c == own or bool(fine[c])]

    def _array(self, rows: Tensor) -> Array:
        return self._table.array(self.encoder.frame(rows), np.dtype(np.float64))


def _change(low: float, high: float) -> list[float]:
    # Alibi's conditions include no change at all; a row outside its ranges would exclude it.
    return [min(low, 0.0), max(high, 0.0)]


def _schema(params: dict[str, Any], table: Table) -> Schema:
    """The features as CounterfactualRL knows them."""
    forth, back = params["encoder_preprocessor"], params["decoder_inv_preprocessor"]
    stats, fixed = params["stats"].values(), params["immutable_features"]
    ends = np.repeat(forth(np.zeros((1, len(table.declared)))), 2, axis=0)
    # By Alibi's convention the numbers come first.
    ends[:, : len(stats)] = [[pair[end] for pair in stats] for end in ("min", "max")]
    features = zip(table.declared, *back(ends), strict=True)
    return Schema(tuple(_feature(f, low, high, f.name in fixed) for f, low, high in features))


def _feature(declared: Feature, low: Any, high: Any, fixed: bool) -> Feature:
    if declared.kind is not Kind.NUMERIC:
        return dataclasses.replace(declared, immutable=fixed or len(declared.categories) == 1)
    whole = isinstance(low, int)
    return dataclasses.replace(
        declared,
        bounds=(float(low), float(high)),
        precision=0 if whole else None,
        dtype="int64" if whole else "float64",
        immutable=fixed or bool(low == high),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bar, and the global generators as they were: conditions are drawn from them."""
    drawn = np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]), redirect_stderr(io.StringIO()):
            yield
    finally:
        np.random.set_state(drawn)
