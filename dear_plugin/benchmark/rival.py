"""Boosted trees that predict a feature from the features acted on and held: an S-learner.

Its columns are x_S, the held features, and the expectation of x_S given these. It is the first
choice of a user with a known order of causes. The expectation is not cross-fitted: it would differ
by fold if x_S does not depend on held features, and mislead the trees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from dear_plugin.benchmark.systems import Values


def rival(
    train: pd.DataFrame,
    before: pd.DataFrame,
    after: pd.DataFrame,
    held: Sequence[str],
    acted: Sequence[str],
    follow: Sequence[str],
) -> pd.DataFrame:
    """The rows after an action: numbers change by the difference of two predictions.

    Args:
        train: the training rows.
        before: the factual rows.
        after: the rows with the new values of the features acted on.
        held: the features that are conditioned on.
        acted: the features acted on.
        follow: the features that may follow; categories keep their factual values.
    """
    given, wanted, there = (
        _columns(*each) for each in ((train, held), (train, acted), (before, held))
    )
    for column in wanted.T if held else ():
        score = _trees().fit(given[:, : len(held)], column)
        given, there = (
            np.column_stack([each, score.predict(each[:, : len(held)])]) for each in (given, there)
        )
    columns = np.column_stack([wanted, given])
    out = before.copy()
    for name in follow:
        target = train[name]
        if not pd.api.types.is_numeric_dtype(target):
            continue
        known = target.notna().to_numpy()
        trees = _trees().fit(columns[known], target[known])
        start, end = (
            trees.predict(np.column_stack([_columns(frame, acted), there]))
            for frame in (before, after)
        )
        out[name] = before[name] + end - start
    return out


def _trees() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=40, random_state=0)


def _columns(frame: pd.DataFrame, names: Sequence[str]) -> Values:
    """(n, q) the numbers of a frame, and the codes of its categories."""
    codes = frame[list(names)].apply(
        lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype("category").cat.codes
    )
    return np.asarray(codes, dtype=np.float64).reshape(len(frame), -1)
