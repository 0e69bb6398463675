"""Wrapped: Alibi's counterfactual explainers as `RecourseMethod`s, to be compared with DEAR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from torch import Tensor

from dear_alibi.predictor import LabelEncoded
from dear_alibi.reinforced import Reinforced
from dear_alibi.row_by_row import ASK, RowByRow
from dear_plugin import Case, Proposal, RecourseMethod, errors, isolated

REINFORCED = "CounterfactualRLTabular"
MISSED = "Alibi's row misses the target once constraints are applied"


def wrap_alibi(
    explainer: Any,
    *,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
    category_map: Mapping[int, Sequence[str]] | None = None,
    preprocessor: Any = None,
    immutable_features: Sequence[str] | None = None,
) -> WrappedAlibi:
    """A counterfactual explainer of Alibi as a method that can be compared with DEAR.

    Constraints are kept, rows are rounded and scored again by the explainer's own model, and every
    row is in the result, a failure with its reason. Frames hold the strings of the category map.

    A `CounterfactualRLTabular` describes its rows itself; its own immutable features and ranges
    are part of its training, and constraints of a call are passed to it as conditions.

    `Counterfactual`, `CounterfactualProto` and `CEM` (pertinent negatives) need TensorFlow, and
    `tf.compat.v1.disable_v2_behavior()` before they are made. They explain one row at a time and
    know neither names nor constraints, which are applied to their answers. The other arguments
    are for them. Answers of a `CounterfactualProto` depend on its earlier calls (in Alibi 0.9.6),
    so that the same row may have another answer the next time.

    Args:
        explainer: a fitted `CounterfactualRLTabular`, or a `Counterfactual`, `CounterfactualProto`
            or `CEM`.
        X: (n, p) label-encoded training rows.
        feature_names: the names of the columns of X.
        category_map: the strings of the codes in columns of categories, `{column: strings}`.
        preprocessor: the functions from label-encoded rows to those of the explainer and back, as
            a pair (`get_he_preprocessor` returns one) or a fitted transformer; None where both
            are the same.
        immutable_features: features that never change.

    Raises:
        ModelError: another explainer, or a `CounterfactualRLTabular` that is not fitted.
        InputError: the description of the rows is incomplete or does not fit the explainer.
    """
    told = {
        "X": X,
        "feature_names": feature_names,
        "category_map": category_map,
        "preprocessor": preprocessor,
        "immutable_features": immutable_features,
    }
    described = {name: value for name, value in told.items() if value is not None}
    kinds = [kind.__name__ for kind in type(explainer).__mro__]
    known = [kind for kind in kinds if kind in (REINFORCED, *ASK)]
    if not known:
        raise errors.ModelError(
            f"wrap_alibi takes a fitted {REINFORCED}, or a {', '.join(ASK)}; got {kinds[0]}"
        )
    if known[0] == REINFORCED:
        return WrappedAlibi(explainer, Reinforced(explainer, described))
    return WrappedAlibi(explainer, RowByRow(explainer, known[0], described))


@final
class WrappedAlibi(RecourseMethod):
    """See `wrap_alibi`. The explainers' output to stdout and stderr is hidden."""

    def __init__(self, explainer: Any, host: Reinforced | RowByRow) -> None:
        self.explainer = explainer
        self.host = host
        model = LabelEncoded(host.predictor, host.table, np.dtype(np.float64))
        super().__init__(model, host.schema)

    def _learn(self, rows: Tensor) -> None:
        """The explainer is already fitted."""

    def _propose(self, case: Case) -> Proposal:
        X = self.host.table.array(self.encoder.frame(case.x), np.dtype(np.float64))
        with isolated():  # conditions are drawn from global generators
            found, reasons = self.host.explain(case, X)
        moved = self.encoder.rows(self.host.table.frame(found)).to(case.x.dtype)
        return Proposal.of_others(case, self.classifier, moved, reasons=reasons, missed=MISSED)
