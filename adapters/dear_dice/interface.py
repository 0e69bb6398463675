"""Interface: DiCE's data interface as a frame, a schema and constraints, by names and levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException

from dear_plugin import Constraints, Kind, Schema

# Enough rows to show a wrong order of columns, or logits, when the explainer is built.
SAMPLE = 256


class Interface:
    """A public data interface of DiCE, read once and left as it is.

    Args:
        data_interface: DiCE's data interface.
        marks: the schema's marks, as in `Options.marks`.

    Attributes:
        data: the data interface.
        frame: its training rows: features alone, categories as text, numbers to the decimals
            that they had before DiCE made them float32.
        schema: their schema; what DiCE calls continuous is numeric.

    Raises:
        UserConfigValidationException: the interface holds no training rows (private data).
        SchemaError: a mark that names no feature, or a frame that has no schema.
    """

    def __init__(self, data_interface: Any, marks: Mapping[str, Any]) -> None:
        if not hasattr(data_interface, "data_df"):
            raise UserConfigValidationException(
                "Private data interface is not supported with the dear explainer since DEAR learns"
                " from the training rows what else moves with an action: use dice_ml.Data with"
                " dataframe=, continuous_features= and outcome_name="
            )
        self.data = data_interface
        self.frame = _frame(data_interface)
        self.schema = _schema(data_interface, self.frame, marks)
        self._spans, self._levels = _defaults(data_interface)

    @property
    def names(self) -> list[str]:
        """The features, in DiCE's order."""
        return list(self.schema.names)

    @property
    def sample(self) -> pd.DataFrame:
        """Some training rows, every level of every category among them."""
        every = [self.frame.drop_duplicates(name) for name in self._levels]
        return pd.concat([self.frame.head(SAMPLE), *every])

    @property
    def levels(self) -> dict[str, list[str]]:
        """The categories in the data, by feature."""
        return self._levels

    def ranges(self, permitted: Mapping[str, Any] | None) -> dict[str, Any]:
        """DiCE's range of every feature: the data's own, the interface's, then the call's."""
        return {**self._spans, **self._levels, **self.data.permitted_range, **(permitted or {})}

    def text(self, permitted: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """A call's `permitted_range` with levels as text, as DiCE keeps them; None stays None."""
        if permitted is None:
            return None
        return {n: list(map(str, r)) if n in self._levels else r for n, r in permitted.items()}

    def constraints(self, permitted: Mapping[str, Any] | None, vary: Sequence[str]) -> Constraints:
        """What one call leaves free.

        Args:
            permitted: the call's `permitted_range`; for a feature that it names it replaces the
                interface's.
            vary: the features that may change, directly or indirectly; the others are frozen.
        """
        asked = self.ranges(permitted)
        return Constraints(
            frozen=[name for name in self.names if name not in vary],
            ranges={
                name: tuple(asked[name])
                for name, span in self._spans.items()
                if list(asked[name]) != span
            },
            categories={
                name: list(map(str, asked[name]))
                for name, levels in self._levels.items()
                if set(map(str, asked[name])) != set(levels)
            },
        )


def _frame(data: Any) -> pd.DataFrame:
    words = set(data.categorical_feature_names)
    return pd.DataFrame(
        {
            name: data.data_df[name].astype(object)
            if name in words
            else _as_printed(data.data_df[name])
            for name in data.feature_names
        }
    )


def _as_printed(column: pd.Series) -> pd.Series:
    """A column whose float32 values are the doubles that print alike: 0.1, not 0.10000000149."""
    if column.dtype != np.float32:
        return column
    values, back = np.unique(column.to_numpy(), return_inverse=True)
    return pd.Series(values.astype(str).astype(np.float64)[back], index=column.index)


def _schema(data: Any, frame: pd.DataFrame, marks: Mapping[str, Any]) -> Schema:
    schema = Schema.infer(frame, **marks).complete()
    for name in data.continuous_feature_names:
        (at,) = schema.index([name])
        if schema.features[at].kind is not Kind.NUMERIC:  # two values, but DiCE says continuous
            ends = (float(frame[name].min()), float(frame[name].max()))
            places = int(data.get_decimal_precisions("dict")[name])
            schema = schema.replace(
                name, kind=Kind.NUMERIC, categories=(), bounds=ends, precision=places
            )
    for name, places in (data.continuous_features_precision or {}).items():
        schema = schema.replace(name, precision=int(places))
    return schema


def _defaults(data: Any) -> tuple[dict[str, list[Any]], dict[str, list[str]]]:
    """The spans and the levels of the training rows, as DiCE itself computes them."""
    ranges, _ = data.get_features_range()
    return (
        {name: ranges[name] for name in data.continuous_feature_names},
        {name: ranges[name] for name in data.categorical_feature_names},
    )
