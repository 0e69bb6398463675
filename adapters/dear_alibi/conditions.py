"""Conditions: Alibi's ways to say what may change, as constraints of the engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

import dear_plugin
from dear_alibi.table import Array
from dear_plugin import Constraints, Feature, Kind, Schema

Ranges = Mapping[str, Sequence[float]]
Condition = Mapping[str, Sequence[Any]]

ConstraintError = dear_plugin.errors.ConstraintError

ANYTHING = (-math.inf, math.inf)


@dataclass(frozen=True)
class AlibiConstraints:
    """What may change in one call, in Alibi's words.

    Attributes:
        immutable: features that stay as they are.
        ranges: `{feature: (low, high)}`, changes in fractions of the training width.
        rows: no condition, one for all rows, or one per row: `{numeric feature: (low, high)}`,
            changes in the feature's own units, and `{categorical feature: [strings]}`.
    """

    immutable: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[float, float]] | None = None
    rows: Sequence[Condition] = ()

    @classmethod
    def of(
        cls,
        declared: Schema,
        immutable: Iterable[str] | None,
        ranges: Ranges | None,
        C: Sequence[Condition] | None = None,
    ) -> AlibiConstraints:
        """Read what a user gave.

        Args:
            declared: the features as the user named them.
            immutable: features that stay as they are.
            ranges: see `Conditions.ranges`; low in [-1, 0], high in [0, 1].
            C: see `Conditions.rows`.

        Raises:
            SchemaError: an unknown feature.
            ConstraintError: an interval without 0, a range of a categorical feature, an unknown
                category.
        """
        if isinstance(immutable, str) or isinstance(C, str | Mapping):
            raise ConstraintError("immutable_features must be a list, and C a list of dicts")
        names = tuple(immutable or ())
        declared.index(names)
        fractions = {f.name: _fraction(f, (ranges or {})[f.name]) for f in _of(declared, ranges)}
        rows = [{f.name: _condition(f, c[f.name]) for f in _of(declared, c)} for c in C or ()]
        return cls(names, fractions, rows)

    def within(self, other: AlibiConstraints) -> AlibiConstraints:
        """Both at once."""
        ranges = dict(self.ranges or {})
        for name, (low, high) in (other.ranges or {}).items():
            here = ranges.get(name, ANYTHING)
            ranges[name] = (max(low, here[0]), min(high, here[1]))
        immutable = tuple(dict.fromkeys([*self.immutable, *other.immutable]))
        return AlibiConstraints(immutable, ranges, other.rows or self.rows)

    def of_rows(self, n: int) -> Self:
        """The conditions, if they are as many as n rows need.

        Raises:
            ConstraintError: another number of conditions than rows.
        """
        if len(self.rows) not in (0, 1, n):
            raise ConstraintError(
                f"C must hold one condition or one per row, n = {n}; {len(self.rows)} came"
            )
        return self

    def select(self, rows: slice) -> AlibiConstraints:
        """The conditions of some rows."""
        some = self.rows if len(self.rows) <= 1 else self.rows[rows]
        return AlibiConstraints(self.immutable, self.ranges, some)

    def constraints(self, schema: Schema, frame: pd.DataFrame) -> Constraints:
        """The engine's constraints on a frame.

        Args:
            schema: the features as learned from the training rows.
            frame: the rows, in the conditions' order.
        """
        bounded = {*(self.ranges or {}), *(name for c in self.rows for name in c)}
        numbers = [f for f in schema if f.name in bounded and f.kind is Kind.NUMERIC]
        return Constraints(
            frozen=self.immutable,
            ranges={f.name: self._interval(f, frame[f.name].to_numpy(float)) for f in numbers},
            categories=self._categories(schema),
        )

    def _interval(self, feature: Feature, x: Array) -> tuple[Array, Array]:
        """The least and the greatest value of a number in each row, in the user's units."""
        low, high = (self.ranges or {}).get(feature.name, ANYTHING)
        asked = np.array([c.get(feature.name, ANYTHING) for c in self.rows or ({},)], dtype=float)
        least = np.maximum(asked[:, 0], low * feature.width)
        most = np.minimum(asked[:, 1], high * feature.width)
        return x + least, x + most

    def _categories(self, schema: Schema) -> Any:
        """The allowed categories: for all rows, per row, or None."""
        words = {f.name for f in schema if f.kind is not Kind.NUMERIC}
        kept = [{name: c[name] for name in c if name in words} or None for c in self.rows]
        if not any(kept):
            return None
        return kept[0] if len(kept) == 1 else kept


def _of(declared: Schema, given: Mapping[str, Any] | None) -> list[Feature]:
    """The features that something is said of."""
    if given is not None and not isinstance(given, Mapping):
        raise ConstraintError(f"a dict of features is expected, {type(given).__name__} came")
    return [declared.features[j] for j in declared.index(given or ())]


def _condition(feature: Feature, value: Any) -> Sequence[Any]:
    if feature.kind is Kind.NUMERIC:
        return _pair(feature, value, "C", math.inf)
    words = [value] if isinstance(value, str) else [str(v) for v in value]
    strange = [w for w in words if w not in feature.categories]
    if strange or not words:
        raise ConstraintError(
            f"C: {feature.name!r} may become {list(feature.categories)}; {strange or words} came"
        )
    return words


def _fraction(feature: Feature, value: Any) -> tuple[float, float]:
    if feature.kind is not Kind.NUMERIC:
        raise ConstraintError(
            f"ranges: {feature.name!r} has categories; use C or immutable_features"
        )
    return _pair(feature, value, "ranges", 1.0)


def _pair(feature: Feature, value: Any, where: str, most: float) -> tuple[float, float]:
    """A change that may be nothing: low <= 0 <= high, no farther than `most`."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (-most <= low <= 0.0 <= high <= most and math.isfinite(high - low)):
        ends = "[-1, 0] and [0, 1]" if math.isfinite(most) else "numbers <= 0 and >= 0"
        raise ConstraintError(
            f"{where}: {feature.name!r} needs a change [low, high] with ends in {ends};"
            f" {value!r} came"
        )
    return low, high
