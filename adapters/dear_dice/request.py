"""Request: the arguments of one call, and the query that came with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from raiutils.exceptions import UserConfigValidationException

from dear_dice.dialect import QueryFormat
from dear_dice.interface import Interface
from dear_dice.model import Decided
from dear_dice.wish import DesiredOutcome


@dataclass(frozen=True)
class Request:
    """The arguments of `DiceDEAR.generate_counterfactuals`, the query aside."""

    total_CFs: int
    desired_class: Any = "opposite"
    desired_range: Any = None
    permitted_range: Any = None
    features_to_vary: Any = "all"
    stopping_threshold: float = 0.5
    posthoc_sparsity_param: float | None = 0.1
    posthoc_sparsity_algorithm: str | None = "linear"
    verbose: bool = False
    random_seed: int | None = None


@dataclass(frozen=True)
class Query:
    """n checked rows.

    Attributes:
        rows: their features, in their own values and dtypes.
        read: the same as the data interface writes them.
        dialect: what lies between the two.
        decided: (n,) their outcomes.
        wish: what the rows should become.
    """

    rows: pd.DataFrame
    read: pd.DataFrame
    dialect: QueryFormat
    decided: Decided
    wish: DesiredOutcome


def as_frame(query: Any, data: Any) -> pd.DataFrame:
    """What DiCE admits as a query, as one frame: frames, lists of frames, dicts, lists of dicts.

    Args:
        query: what came.
        data: DiCE's data interface.
    """
    rows = query if isinstance(query, pd.DataFrame | dict) else list(query)
    if isinstance(rows, list) and rows and isinstance(rows[0], pd.DataFrame):
        return pd.concat(rows)
    frame: pd.DataFrame = data.query_instance_to_df(rows)
    return frame


def check_columns(frame: pd.DataFrame, interface: Interface) -> None:
    """Refuse a query whose columns are not the features, where DiCE does in DiCE's words.

    Args:
        frame: the query.
        interface: the data.

    Raises:
        ValueError: the outcome, or a column that the training data does not have.
        UserConfigValidationException: a feature that is missing or there twice.
    """
    for name in frame.columns:
        if name == interface.data.outcome_name:
            raise ValueError("Target", name, "present in query instance")
        if name not in interface.names:
            raise ValueError("Feature", name, "not present in training data!")
    absent = [name for name in interface.names if name not in frame.columns]
    if absent or not frame.columns.is_unique:
        raise UserConfigValidationException(
            "The query instance(s) should have every feature once. Missing features:"
            f" {absent}; the columns are {list(frame.columns)}"
        )
