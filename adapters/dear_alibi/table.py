"""Alibi's label-encoded arrays as frames, their schema, and a predictor of them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import nn

from dear_plugin import Feature, Kind, Schema, errors

Array = npt.NDArray[Any]
Output = Literal["logits", "probabilities"]
# What `Schema.infer` takes of features, but what Alibi has other arguments for.
OF_FEATURES = {*inspect.signature(Schema.infer).parameters} - {
    *("frame", "target", "immutable", "increasing", "decreasing", "categorical", "numeric"),
    "ranges",
}
# Of these what the category map does not say.
MARKS = [
    each.name
    for each in dataclasses.fields(Feature)
    if (stated := each.metadata.get("stated")) and not any(a.says_what for a in stated)
]
# What a code is called that is not in the category map.
CODE = "code "


@dataclass(frozen=True)
class Table:
    """The columns of an array.

    Attributes:
        declared: the features as the user described them: a column of the category map has all
            its categories, seen in training or not; every other column is numeric;
            with the tiers or causes, and what else is stated.
    """

    declared: Schema

    @classmethod
    def of(
        cls,
        feature_names: Sequence[str],
        category_map: Mapping[int, Sequence[str]] | None,
        ordered: Sequence[str] = (),
    ) -> Table:
        """The table of Alibi's feature names and category map, `{column: strings of codes}`.

        Args:
            feature_names: of the columns.
            category_map: of the columns that are no numbers.
            ordered: names of columns of the category map whose codes have an order.
        """
        levels, p = dict(category_map or {}), len(feature_names)
        if unknown := [k for k in levels if k not in range(p)]:
            raise errors.InputError(f"category_map: {unknown} are no columns of 0 ... {p - 1}")
        declared = Schema(tuple(_declare(n, levels.get(j)) for j, n in enumerate(feature_names)))
        if isinstance(ordered, Mapping):
            raise errors.InputError("ordered: names, whose codes have the order; got a mapping")
        if numbers := [name for name in ordered if name in declared.numbers]:
            raise errors.InputError(f"ordered: {numbers[0]!r} is not in category_map")
        for name in ordered:
            declared = declared.replace(name, ordered=True)
        return cls(declared)

    @property
    def category_map(self) -> dict[int, list[str]]:
        """The category map, as plain values."""
        levels = {j: list(map(str, f.choices)) for j, f in enumerate(self.declared)}
        return {j: own for j, own in levels.items() if own}

    def schema(
        self, frame: pd.DataFrame, ranges: Mapping[str, tuple[float, float]], **marks: Any
    ) -> Schema:
        """The schema of training rows, from `frame`; ranges of one sign are directions.

        `marks` are what `Schema.infer` takes of features.
        """
        inferred = Schema.infer(
            frame,
            increasing=[name for name, (low, high) in ranges.items() if low == 0.0 < high],
            decreasing=[name for name, (low, high) in ranges.items() if low < 0.0 == high],
            # A number with two values stays one.
            numeric=[name for name in self.declared.numbers if frame[name].nunique() == 2],
            **marks,
        )
        # A category without training rows is in the category map.
        pairs = zip(self.declared, inferred.columns, strict=True)
        return inferred.with_columns(
            seen if seen.has_order else _with_marks(own, seen) for own, seen in pairs
        )

    def array_of(self, X: Any) -> Array:
        """X as an array (n, p) of int, float or object; `InputError` if it is none.

        The columns of a frame that has the features' names are taken by these.
        """
        names = list(self.declared.names)
        if isinstance(X, pd.DataFrame) and {*X.columns} == {*names}:
            X = X[names]  # which may be in another order
        array, p = np.asarray(X), len(names)
        if array.ndim != 2 or array.shape[1] != p or not len(array):
            raise errors.InputError(f"X needs shape (n, {p}), at least one row; got {array.shape}")
        if array.dtype.kind not in "iufO":
            raise errors.InputError(f"X must be numbers, codes for categories; got {array.dtype}")
        return array

    def frame(self, X: Any, passed: Collection[str] = ()) -> pd.DataFrame:
        """Label-encoded rows (n, p) as a frame with strings for categories.

        Raises `InputError` if numbers are not finite, or codes are not in the category map but in
        the columns that are `passed` to the predictor as they are.
        """
        columns = [*zip(self.declared, self.array_of(X).T, strict=True)]
        complaints = [_complaint(values, f, f.name in passed) for f, values in columns]
        if any(complaints):
            raise errors.InputError("; ".join(filter(None, complaints)))
        cells = {f.name: pd.Series(v).infer_objects() for f, v in columns}
        labelled = [f for f in self.declared if f.name not in self.declared.numbers]
        return pd.DataFrame(cells | {f.name: _labels(cells[f.name], f) for f in labelled})

    def array(self, frame: pd.DataFrame, dtype: np.dtype[Any]) -> Array:
        """The inverse, (n, p), in a wider dtype where a number requires it."""
        numbers = [frame[name].dtype for name in self.declared.numbers]
        out = np.empty((len(frame), len(self.declared)), np.result_type(dtype, *numbers))
        for j, f in enumerate(self.declared):
            cells = frame[f.name]
            out[:, j] = cells if f.name in self.declared.numbers else _codes(cells, f)
        return out


def _declare(name: str, labels: Sequence[str] | None) -> Feature:
    if labels is None:
        return Feature(str(name), Kind.NUMERIC)
    categories = tuple(str(label) for label in labels)
    if not categories or len(set(categories)) < len(categories):
        raise errors.InputError(
            f"category_map: {name!r} needs distinct categories, got {list(categories)}"
        )
    kind = Kind.BINARY if len(categories) <= 2 else Kind.CATEGORICAL
    return Feature(str(name), kind, categories=categories, dtype="category")


def _with_marks(declared: Feature, seen: Feature) -> Feature:
    """A feature of the category map with what is known from training rows."""
    # The dtype "category" has no place for a new code, which an immutable feature may have.
    dtype = "object" if seen.immutable else declared.dtype
    known: dict[str, Any] = {name: getattr(seen, name) for name in MARKS}
    if seen.level_labels:
        known["level_labels"] = tuple(map(seen.called_level, declared.categories))
    return dataclasses.replace(declared, dtype=dtype, **known)


def _complaint(values: Array, feature: Feature, passed: bool) -> str:
    """A message on what the values, (n,), of a column may not be; "" for nothing.

    Codes that are not in the category map may be those of a column that is `passed`.
    """
    numbers = pd.to_numeric(pd.Series(values), errors="coerce").astype(float)
    if feature.has_order:
        valid, expected, hint = np.isfinite(numbers), "finite numbers", ": drop or impute them"
    else:
        count = len(feature.choices)
        valid = numbers % 1 == 0 if passed else numbers.isin(range(count))
        expected = f"codes 0 ... {count - 1} of its categories"
        hint = "; of immutable_features new codes are passed to the predictor"
    at = np.flatnonzero(~valid)[:3].tolist()
    got = f"got {values[at].tolist()} in rows {at}{hint}"
    return f"column {feature.name!r} must hold {expected}; {got}" if at else ""


def _codes(column: pd.Series, feature: Feature) -> Array:
    """(n,) the codes of categories, and of those that `_labels` passed."""
    codes: Array = pd.Categorical(column, list(feature.categories)).codes.astype(np.int64)
    new = np.flatnonzero(codes < 0)
    codes[new] = [int(str(column.iloc[i]).removeprefix(CODE)) for i in new]
    return codes


def _labels(codes: pd.Series, feature: Feature) -> pd.Series:
    """The strings of codes, (n,); new ones as they are, in a column of objects."""
    levels = list(feature.categories)
    if not codes.isin(range(len(levels))).all():
        named = dict(enumerate(levels))
        return codes.map(lambda code: named.get(code, f"{CODE}{code:.0f}")).astype(object)
    integers = codes.to_numpy(dtype=np.int64)
    return pd.Series(pd.Categorical.from_codes(integers, levels, ordered=feature.ordered))


@dataclass(frozen=True)
class LabelEncoded:
    """A predictor of label-encoded rows, as a model of frames; it has what the predictor has.

    Attributes:
        predictor: a function of label-encoded rows (m, p) -> (m, c), or an object that has one as
            `predict_proba`, and perhaps `predict`, its own decision, and `classes_`.
        table: the columns.
        dtype: of the rows that it was trained on.
    """

    predictor: Any
    table: Table
    dtype: np.dtype[Any]

    def __call__(self, frame: pd.DataFrame) -> Any:
        """The output of a function, (m, c), on a frame."""
        return self.predictor(self.table.array(frame, self.dtype))

    def __getattr__(self, name: str) -> Any:
        """The classes, or a method of label-encoded rows as one of frames."""
        if name not in ("classes_", "predict", "predict_proba"):
            raise AttributeError(name)
        own = getattr(self.predictor, name)
        return own if name == "classes_" else LabelEncoded(own, self.table, self.dtype)


def checked(predictor: Any) -> Any:
    """The predictor; `ModelError` if it cannot be called."""
    if not callable(getattr(predictor, "predict_proba", predictor)):
        raise errors.ModelError(
            "predictor must be a torch module or a function of label-encoded rows; got"
            f" {type(predictor).__name__}"
        )
    return predictor


def model_of(predictor: Any, table: Table, dtype: np.dtype[Any]) -> Any:
    """A predictor as a model of the engine; a torch module is one."""
    return predictor if isinstance(predictor, nn.Module) else LabelEncoded(predictor, table, dtype)
