"""Forests: tree ensembles with default settings; frames in, probabilities out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd


def forest(kind: str, frame: pd.DataFrame, labels: pd.Series, seed: int) -> Any:
    """A fitted pipeline of category codes and a tree ensemble.

    Args:
        kind: a name of `FORESTS`.
        frame: n training rows, without labels.
        labels: (n,) 0 or 1.
        seed: of the ensemble.

    Raises:
        ModuleNotFoundError: its package is not installed.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    categorical = list(frame.select_dtypes(exclude="number").columns)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((codes, categorical), remainder="passthrough")
    # LightGBM requires the column names of the fit.
    columns.set_output(transform="pandas")
    return make_pipeline(columns, FORESTS[kind](seed, len(categorical))).fit(frame, labels)


def boosted_again(frame: pd.DataFrame, labels: pd.Series, seed: int, count: int) -> list[Any]:
    """As many boosted trees fitted on bootstrap samples; the other arguments are of `forest`."""
    states = range(1000 * (1 + seed), 1000 * (1 + seed) + count)
    samples = [frame.sample(len(frame), replace=True, random_state=state) for state in states]
    return [forest("HistGradientBoosting", x, labels.loc[x.index], seed) for x in samples]


def _random(seed: int, categorical: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed)


def _histogram(seed: int, categorical: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        categorical_features=list(range(categorical)), early_stopping=False, random_state=seed
    )


def _xgboost(seed: int, categorical: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=1)


def _lightgbm(seed: int, categorical: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)


# Each takes the seed and the number of leading categorical columns.
FORESTS: Mapping[str, Callable[[int, int], Any]] = {
    "RandomForest": _random,
    "HistGradientBoosting": _histogram,
    "XGBoost": _xgboost,
    "LightGBM": _lightgbm,
}
