"""Measures of the answers of compared methods, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.rivals.intervals import estimate

# Columns of answers by measure: shares of all rows, medians and means of the solved ones.
SHARES = {"solved": "success", "credible": "credible", "plausible": "plausible"}
SIZES = {"effort": "direct_cost", "cost": "cost"}
MEANS = {"support": "support", "alone": "alone"}


def estimates(answers: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """The measures of each method with their 95 % bootstrap intervals.

    Args:
        answers: as `Comparison.table`, a line for each method and row; rows that need no recourse
            are left out.
        seed: of the bootstrap.

    Returns:
        A line for each method and measure: `method, measure, value, low, high, rows`. The shares
        of all rows that are `solved`, have a `credible` and a `plausible` answer; of the solved
        rows the median `effort` and `cost`, the mean `support`, and the share in which the action
        is enough `alone`; and the CPU `seconds` a row, resampled by calls.
    """
    needed = answers[answers["needed"]]
    parts = needed.groupby("method", sort=False)
    return pd.DataFrame(
        {"method": name, **line} for name, own in parts for line in _lines(own, seed)
    )


def _lines(own: pd.DataFrame, seed: int) -> Iterator[dict[str, Any]]:
    """The measures of one method."""
    solved = own["success"]
    for measure, column in SHARES.items():
        yield line(measure, own[column], seed=seed)
    for measure, column in SIZES.items():
        yield line(measure, own[column].where(solved), median=True, seed=seed)
    for measure, column in MEANS.items():
        yield line(measure, own[column].where(solved), seed=seed)
    # All rows of a call have the same.
    yield line("seconds", own["seconds"].drop_duplicates(), seed=seed)


def line(
    measure: str, values: pd.Series, *, median: bool = False, seed: int = 0
) -> dict[str, Any]:
    """A mean or median with its interval, and the number of values that are known."""
    column = values.to_numpy(dtype=np.float64)
    value, low, high = estimate(column, median=median, seed=seed)
    known = int(np.isfinite(column).sum())
    return {"measure": measure, "value": value, "low": low, "high": high, "rows": known}
