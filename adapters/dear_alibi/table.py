"""Table: label-encoded arrays, as Alibi has them, and the frames that the engine reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import dear_plugin
from dear_plugin import Feature, Kind, Schema

Array = npt.NDArray[Any]
InputError = dear_plugin.errors.InputError


@dataclass(frozen=True)
class Table:
    """What the columns of an array mean.

    Attributes:
        declared: the features as the user named them: a column of the category map has all the
            categories of the map, seen in training or not; every other column is a number.
    """

    declared: Schema

    @classmethod
    def of(
        cls, feature_names: Sequence[str], category_map: Mapping[int, Sequence[str]] | None
    ) -> Table:
        """The table of Alibi's two descriptions.

        Args:
            feature_names: the name of every column, in order.
            category_map: per categorical column, the string that each code stands for.

        Raises:
            InputError: a column that is not there, no categories, or one named twice.
            SchemaError: features named twice.
        """
        labels, p = dict(category_map or {}), len(feature_names)
        strange = [k for k in labels if k not in range(p)]
        if strange:
            raise InputError(f"category_map: {strange} are no columns; there are 0 ... {p - 1}")
        return cls(Schema(tuple(_declare(n, labels.get(j)) for j, n in enumerate(feature_names))))

    @property
    def category_map(self) -> dict[int, list[str]]:
        """The category map, in plain values."""
        features = enumerate(self.declared)
        return {j: list(map(str, f.categories)) for j, f in features if f.kind is not Kind.NUMERIC}

    def schema(self, frame: pd.DataFrame, immutable: Sequence[str]) -> Schema:
        """The schema of training rows.

        Args:
            frame: the training rows, from `frame`.
            immutable: features that never change.
        """
        learned = Schema.infer(frame, immutable=immutable).complete()
        features = tuple(map(_learned, self.declared, learned))
        return dataclasses.replace(learned, features=features)

    def frame(self, X: Any) -> pd.DataFrame:
        """Label-encoded rows (n, p) as a frame with words where there are categories.

        Raises:
            InputError: no (n, p) array of finite numbers, or codes that the category map does not
                have.
        """
        array = self.array_of(X)
        numbers = [(f, array[:, j]) for j, f in enumerate(self.declared) if f.kind is Kind.NUMERIC]
        complaints = [text for f, values in numbers if (text := _not_finite(f, values))]
        if complaints:
            raise InputError("; ".join(complaints))
        columns = {f.name: _column(f, array[:, j]) for j, f in enumerate(self.declared)}
        return pd.DataFrame(columns)

    def array_of(self, X: Any) -> Array:
        """X as an array (n, p) of int, float or object.

        Raises:
            InputError: it is something else.
        """
        array, p = np.asarray(X), len(self.declared)
        if array.ndim != 2 or array.shape[1] != p or not len(array):
            raise InputError(
                f"X must have shape (n, {p}), at least one row, a column per feature;"
                f" {array.shape} came"
            )
        if array.dtype.kind not in "iufO":
            raise InputError(
                f"X must hold numbers, with codes for categories; dtype {array.dtype} came"
            )
        return array

    def array(self, frame: pd.DataFrame, dtype: np.dtype[Any]) -> Array:
        """A frame as label-encoded rows, (n, p), wider than `dtype` where a number needs it."""
        numbers = [frame[f.name].dtype for f in self.declared if f.kind is Kind.NUMERIC]
        out = np.empty((len(frame), len(self.declared)), np.result_type(dtype, *numbers))
        for j, feature in enumerate(self.declared):
            column = frame[feature.name]
            out[:, j] = column if feature.kind is Kind.NUMERIC else _codes(feature, column)
        return out


def _declare(name: str, labels: Sequence[str] | None) -> Feature:
    if labels is None:
        return Feature(str(name), Kind.NUMERIC)
    words = tuple(str(label) for label in labels)
    if not words or len(set(words)) < len(words):
        raise InputError(f"category_map: {name!r} needs distinct categories, {list(words)} came")
    kind = Kind.BINARY if len(words) <= 2 else Kind.CATEGORICAL
    return Feature(str(name), kind, categories=words, dtype="category")


def _learned(declared: Feature, learned: Feature) -> Feature:
    """What training rows say of a feature, as far as the user has not said it."""
    if declared.kind is not Kind.NUMERIC:
        return dataclasses.replace(
            declared, immutable=learned.immutable, actionable=learned.actionable
        )
    return learned if learned.kind is Kind.NUMERIC else _number(learned)


def _number(learned: Feature) -> Feature:
    """A feature whose training rows have two values of it, as the number that it is."""
    values = [float(str(c)) for c in learned.categories]
    # Whole numbers beside the two values make it a number and add no decimals.
    column = pd.Series([*values, 0, 1, 2], dtype=learned.dtype, name="number")
    (wider,) = Schema.infer(column.to_frame())
    bounds = (min(values), max(values))
    return dataclasses.replace(
        wider, name=learned.name, bounds=bounds, immutable=learned.immutable
    )


def _not_finite(feature: Feature, values: Array) -> str:
    """What is wrong with the values, (n,), of a number; "" if nothing is."""
    bad = ~np.isfinite(pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(dtype=float))
    at = np.flatnonzero(bad)[:3].tolist()
    if not at:
        return ""
    return (
        f"column {feature.name!r} must hold finite numbers; got {values[at].tolist()} in rows"
        f" {at}: drop or impute them"
    )


def _column(feature: Feature, values: Array) -> pd.Series:
    column = pd.Series(values).infer_objects()
    return column if feature.kind is Kind.NUMERIC else _words(feature, column)


def _codes(feature: Feature, words: pd.Series) -> Array:
    return np.asarray(pd.Categorical(words, categories=list(feature.categories)).codes)


def _words(feature: Feature, codes: pd.Series) -> pd.Series:
    known = codes.isin(range(len(feature.categories)))
    if not known.all():
        strange = codes[~known]
        raise InputError(
            f"column {feature.name!r} must hold codes 0 ... {len(feature.categories) - 1} of its"
            f" categories; {strange.iloc[:3].tolist()} came in rows {strange.index[:3].tolist()}"
        )
    whole = codes.to_numpy(dtype=np.int64)
    return pd.Series(pd.Categorical.from_codes(whole, list(feature.categories)))
