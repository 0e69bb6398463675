"""Row by row: Alibi's explainers of single rows, which need TensorFlow, as a recourse method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from dear_alibi.table import Array, Explained, Table
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


# By the name of the explainer's class.
ASK: Mapping[str, Ask] = {
    "Counterfactual": counterfactual,
    "CounterfactualProto": prototype,
    "CEM": pertinent_negative,
}


class RowByRow:
    """An explainer of single rows, between label-encoded rows and its own.

    Args:
        explainer: a `Counterfactual`, `CounterfactualProto` or `CEM`, fitted where it has to be.
        kind: the name of its class, one of these.
        described: of its rows, the arguments of `wrap_alibi` that were given.

    Attributes:
        table: the columns.
        schema: the features.
        forward: from label-encoded rows (m, p) to the explainer's (m, e).
        inverse: back.

    Raises:
        ModelError: a `CEM` for pertinent positives.
        InputError: the description has no training rows or names, or its rows are not those of
            the explainer.
    """

    def __init__(self, explainer: Any, kind: str, described: Mapping[str, Any]) -> None:
        if kind == "CEM" and explainer.mode != "PN":
            raise errors.ModelError(
                f"CEM must have mode='PN', got {explainer.mode!r}: a pertinent positive is no"
                " counterfactual"
            )
        if not {"X", "feature_names"} <= set(described):
            raise errors.InputError(
                f"{type(explainer).__name__} does not describe its rows: wrap_alibi needs X="
                f" (label-encoded training rows) and feature_names=, got {list(described)}"
            )
        self.explainer, self.ask = explainer, ASK[kind]
        self.table = Table.of(described["feature_names"], described.get("category_map"))
        self.forward, self.inverse = _pair(described.get("preprocessor"))
        frame, fixed = self.table.frame(described["X"]), described.get("immutable_features", ())
        own, given = tuple(explainer.params["shape"]), self.explained(described["X"][:1]).shape
        if own != given:
            raise errors.InputError(
                f"{type(explainer).__name__} explains rows of shape {own}, but those of X have"
                f" shape {given}: preprocessor= must be the pair of functions from label-encoded"
                " rows to the explainer's and back"
            )
        self.schema = self.table.schema(frame, list(fixed))

    def explained(self, X: Array) -> Array:
        """Label-encoded rows (m, p) as the explainer's, (m, e)."""
        made = self.forward(X)
        dense = made.toarray() if hasattr(made, "toarray") else made
        array: Array = np.asarray(dense, dtype=np.float64)
        return array

    def predictor(self, X: Array) -> Any:
        """(m, c) the explainer's own predictions of label-encoded rows, (m, p)."""
        own = self.explainer
        predict = own.predict_fn if hasattr(own, "predict_fn") else own.predict
        # A Keras model is a function of tensors; its `predict` is one of arrays.
        return getattr(predict, "predict", predict)(self.explained(X))

    def explain(self, case: Case, X: Array) -> Explained:
        """Counterfactuals of the m rows of a case; a row's failure does not affect the others."""
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
