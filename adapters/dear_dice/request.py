"""Request: the arguments of one call, and the query once it has been checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dear_dice.dialect import Dialect
from dear_dice.model import Scores
from dear_dice.wish import Wish


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
        scores: (n, c) the model's scores.
        wish: what the rows should become.
    """

    rows: pd.DataFrame
    read: pd.DataFrame
    dialect: Dialect
    scores: Scores
    wish: Wish
