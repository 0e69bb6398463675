"""Row by row: Alibi's explainers of single rows, which need TensorFlow, as a `Host`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from dear_alibi.host import Description, Explained, Host
from dear_alibi.table import Array, Table
from dear_plugin import Case, Kind, errors

# An explainer, a row (1, e) and the wanted class -> the counterfactual (1, e), None without one.
Ask: TypeAlias = Callable[[Any, Array, int], Array | None]


def counterfactual(explainer: Any, row: Array, wanted: int) -> Array | None:
    """The answer of a `Counterfactual`, whose class is an argument of its constructor."""
    found = explainer.explain(row).data.get("cf")
    return found["X"] if found else None


def prototype(explainer: Any, row: Array, wanted: int) -> Array | None:
    """The answer of a `CounterfactualProto`."""
    found = explainer.explain(row, target_class=[wanted]).data.get("cf")
    return found["X"] if found else None


def pertinent_negative(explainer: Any, row: Array, wanted: int) -> Array | None:
    """The answer of a `CEM`: a row of any other class."""
    found: Array | None = explainer.explain(row).data.get("PN")
    return found


def contrastive(explainer: Any, description: Description) -> Host:
    """The host of a `CEM`.

    Raises:
        ModelError: it is for pertinent positives.
    """
    if explainer.mode != "PN":
        raise errors.ModelError(
            f"CEM must have mode='PN', got {explainer.mode!r}: a pertinent positive is no"
            " counterfactual"
        )
    return row_by_row(explainer, description, pertinent_negative)


def row_by_row(explainer: Any, description: Description, ask: Ask) -> Host:
    """The host of an explainer of single rows.

    Args:
        explainer: a `Counterfactual`, `CounterfactualProto` or `CEM`, fitted where it has to be.
        description: of its rows.
        ask: one of the functions above.

    Raises:
        InputError: the description has no training rows or names, or its rows are not those of
            the explainer.
    """
    if description.X is None or description.feature_names is None:
        raise errors.InputError(
            f"{type(explainer).__name__} does not describe its rows: wrap_alibi needs X= (label-"
            f"encoded training rows) and feature_names=, got {description.given}"
        )
    table = Table.of(description.feature_names, description.category_map)
    rows = RowByRow(explainer, table, ask, *_pair(description.preprocessor))
    frame = table.frame(description.X)
    shape, given = tuple(explainer.params["shape"]), rows.explained(description.X[:1]).shape
    if shape != given:
        raise errors.InputError(
            f"{type(explainer).__name__} explains rows of shape {shape}, but those of X have shape"
            f" {given}: preprocessor= must be the pair of functions from label-encoded rows to the"
            " explainer's and back"
        )
    schema = table.schema(frame, list(description.immutable_features or ()))
    return Host(table, schema, rows.predict, rows.explain)


@dataclass(frozen=True)
class RowByRow:
    """An explainer of single rows, between label-encoded rows and its own.

    Attributes:
        explainer: the explainer.
        table: the columns.
        ask: how to get its answer.
        forward: from label-encoded rows (m, p) to the explainer's (m, e).
        inverse: back.
    """

    explainer: Any
    table: Table
    ask: Ask
    forward: Callable[[Array], Any]
    inverse: Callable[[Array], Any]

    def explained(self, X: Array) -> Array:
        """Label-encoded rows (m, p) as the explainer's, (m, e)."""
        made = self.forward(X)
        dense = made.toarray() if hasattr(made, "toarray") else made
        array: Array = np.asarray(dense, dtype=np.float64)
        return array

    def predict(self, X: Array) -> Any:
        """(m, c) the explainer's own predictions of label-encoded rows, (m, p)."""
        own = self.explainer
        predict = own.predict_fn if hasattr(own, "predict_fn") else own.predict
        # A Keras model is a function of tensors; its `predict` is one of arrays.
        return getattr(predict, "predict", predict)(self.explained(X))

    def explain(self, case: Case, X: Array) -> Explained:
        """As of `Host`; a row's failure does not affect the others."""
        goal: Any = case.goal
        moved, reasons = X.astype(np.float64), [""] * len(X)
        for i, wanted in enumerate(goal.columns.tolist()):
            try:
                moved[i] = self._answer(X[i : i + 1], wanted)
            except Exception as error:
                reasons[i] = f"{type(error).__name__}: {error}"
        return moved, reasons

    def _answer(self, row: Array, wanted: int) -> Array:
        """(p,) the label-encoded counterfactual of a label-encoded row, (1, p)."""
        found = self.ask(self.explainer, self.explained(row), wanted)
        if found is None:
            raise LookupError(f"{type(self.explainer).__name__} finds no counterfactual")
        back = np.asarray(self.inverse(found), dtype=np.float64)[0]
        if not np.isfinite(back).all():
            raise ValueError(f"{type(self.explainer).__name__} returns {back.tolist()}")
        for j, feature in enumerate(self.table.declared):
            if feature.kind is not Kind.NUMERIC:
                back[j] = np.clip(np.rint(back[j]), 0, len(feature.categories) - 1)
        return cast(Array, back)


def _pair(preprocessor: Any) -> tuple[Callable[[Array], Any], Callable[[Array], Any]]:
    """Both directions of a preprocessor; without one, the rows stay as they are."""
    if preprocessor is None:
        return _same, _same
    if isinstance(preprocessor, tuple | list) and len(preprocessor) == 2:
        forward, inverse = preprocessor
        return forward, inverse
    try:
        return preprocessor.transform, preprocessor.inverse_transform
    except AttributeError:
        raise errors.InputError(
            "preprocessor must be a pair of functions, as get_he_preprocessor returns, or a"
            " transformer with transform and inverse_transform; got"
            f" {type(preprocessor).__name__}"
        ) from None


def _same(X: Array) -> Array:
    return X
