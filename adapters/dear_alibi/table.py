"""Table: Alibi's label-encoded arrays as frames and schemas of the engine, and back."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin import Feature, Kind, Schema, errors

Array = npt.NDArray[Any]
# What `Schema.infer` takes of features, but what Alibi has other arguments for.
OF_FEATURES = {*inspect.signature(Schema.infer).parameters} - {
    *("frame", "target", "immutable", "increasing", "decreasing", "categorical", "numeric"),
    *("ranges", "ordered", "tiers", "cyclic"),
}
# Of these what the category map does not say.
MARKS = ("immutable", "special", "excluded", "actionable", "identifier", "label", "cost")
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
        unknown = [k for k in levels if k not in range(p)]
        if unknown:
            raise errors.InputError(
                f"category_map: {unknown} are no columns; there are 0 ... {p - 1}"
            )
        features = tuple(_declare(n, levels.get(j)) for j, n in enumerate(feature_names))
        declared = Schema(features)
        if isinstance(ordered, Mapping):
            raise errors.InputError("ordered: names, whose codes have the order; got a mapping")
        for j in declared.index(ordered):
            name = declared.names[j]
            if name in declared.numbers:
                raise errors.InputError(
                    f"ordered: {name!r} is not in category_map: it is a number"
                )
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
            seen.either(lambda _, seen: seen, _with_marks, own, seen) for own, seen in pairs
        )

    def array_of(self, X: Any) -> Array:
        """X as an array (n, p) of int, float or object; `InputError` if it is none."""
        array, p = np.asarray(X), len(self.declared)
        if array.ndim != 2 or array.shape[1] != p or not len(array):
            raise errors.InputError(
                f"X must have shape (n, {p}), with at least one row and a column per feature; got"
                f" {array.shape}"
            )
        if array.dtype.kind not in "iufO":
            raise errors.InputError(
                f"X must hold numbers, with codes for categories; got dtype {array.dtype}"
            )
        return array

    def frame(self, X: Any, passed: Collection[str] = ()) -> pd.DataFrame:
        """Label-encoded rows (n, p) as a frame with strings for categories.

        Raises `InputError` if numbers are not finite, or codes are not in the category map but in
        the columns that are `passed` to the predictor as they are.
        """
        array = self.array_of(X)
        columns = zip(self.declared, array.T, strict=True)
        numbers = [(f.name, values) for f, values in columns if f.name in self.declared.numbers]
        if complaints := [text for each in numbers if (text := _not_finite(*each))]:
            raise errors.InputError("; ".join(complaints))
        cells = (pd.Series(values).infer_objects() for values in array.T)
        each = zip(self.declared, cells, strict=True)
        return pd.DataFrame(
            {f.name: f.either(_as_is, _labels, c, f, f.name in passed) for f, c in each}
        )

    def array(self, frame: pd.DataFrame, dtype: np.dtype[Any]) -> Array:
        """The inverse, (n, p), in a wider dtype where a number requires it."""
        numbers = [frame[name].dtype for name in self.declared.numbers]
        out = np.empty((len(frame), len(self.declared)), np.result_type(dtype, *numbers))
        for j, f in enumerate(self.declared):
            out[:, j] = f.either(_as_is, _codes, frame[f.name], f)
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


def _not_finite(name: str, values: Array) -> str:
    """A message on the values, (n,), of a number that are not finite; "" if all are."""
    bad = ~np.isfinite(pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(dtype=float))
    at = np.flatnonzero(bad)[:3].tolist()
    if not at:
        return ""
    return (
        f"column {name!r} must hold finite numbers; got {values[at].tolist()} in rows"
        f" {at}: drop or impute them"
    )


def _as_is(column: pd.Series, *_: Any) -> pd.Series:
    """The column, (n,), of numbers."""
    return column


def _codes(column: pd.Series, feature: Feature) -> Array:
    """(n,) the codes of categories, and of those that `_labels` passed."""
    codes: Array = pd.Categorical(column, list(feature.categories)).codes.astype(np.int64)
    new = np.flatnonzero(codes < 0)
    codes[new] = [int(str(column.iloc[i]).removeprefix(CODE)) for i in new]
    return codes


def _labels(codes: pd.Series, feature: Feature, passed: bool) -> pd.Series:
    """The strings of codes, (n,); new ones as they are, if they are passed."""
    known = codes.isin(range(len(feature.categories)))
    whole = pd.to_numeric(codes[~known], errors="coerce") % 1 == 0
    if passed and not known.all() and whole.all():
        named = dict(enumerate(feature.categories))
        return codes.map(lambda code: named.get(code, f"{CODE}{code:.0f}")).astype(object)
    if not known.all():
        unknown = codes[~known].iloc[:3]
        raise errors.InputError(
            f"column {feature.name!r} must hold codes 0 ... {len(feature.categories) - 1} of its"
            f" categories; got {unknown.tolist()} in rows {unknown.index.tolist()}; of"
            " immutable_features new codes are passed to the predictor"
        )
    integers = codes.to_numpy(dtype=np.int64)
    levels = list(feature.categories)
    return pd.Series(pd.Categorical.from_codes(integers, levels, ordered=feature.ordered))
