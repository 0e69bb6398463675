"""Host: an explainer of Alibi as the parts that a recourse method needs; label-encoded rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dear_alibi.table import Array, Table
from dear_plugin import Case, Schema

# (m, p) label-encoded counterfactuals, and per row the reason of a failure, else "".
Explained: TypeAlias = tuple[Array, list[str]]


@dataclass(frozen=True)
class Host:
    """What a wrapped explainer is made of.

    Attributes:
        table: the columns.
        schema: the features.
        predictor: the function of label-encoded rows (m, p) -> (m, c) that the explainer explains.
        explain: counterfactuals of the m rows of a case, which it also gets label-encoded, (m, p).
    """

    table: Table
    schema: Schema
    predictor: Any
    explain: Callable[[Case, Array], Explained]


@dataclass(frozen=True)
class Description:
    """What an explainer does not have about its rows, as given to `wrap_alibi`.

    Attributes:
        X: (n, p) label-encoded training rows.
        feature_names: the names of the columns.
        category_map: the strings of the codes, by column.
        preprocessor: from label-encoded rows to those of the explainer, and back.
        immutable_features: features that never change.
    """

    X: Any = None
    feature_names: Sequence[str] | None = None
    category_map: Any = None
    preprocessor: Any = None
    immutable_features: Sequence[str] | None = None

    @property
    def given(self) -> list[str]:
        """The names of what was given."""
        return [name for name, value in vars(self).items() if value is not None]
