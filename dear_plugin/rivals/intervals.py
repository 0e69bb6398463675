"""Estimates from few rows with an interval: alone, in pairs, on matched rows, by method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

LEAST = 0.05
# Rounding error of a share.
TOLERANCE = 1e-6

Floats: TypeAlias = npt.NDArray[np.float64]

RESAMPLES = 1000
LEVEL = 0.95


class Estimate(NamedTuple):
    """An estimate and its 95 % percentile interval under resampling of rows.

    Attributes:
        value: the estimate from all rows.
        low: the lower end.
        high: the upper end.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """`.423 [.380, .467]`, empty without a measured row."""
        if np.isnan(self.value):
            return ""
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: npt.ArrayLike, *, median: bool = False, seed: int = 0) -> Estimate:
    """The mean or median of values, NaN left out, with its bootstrap interval.

    Args:
        values: (n,) one per row.
        median: the median instead of the mean.
        seed: of the resampling; columns and methods with the same number of rows are resampled
            alike.
    """
    column = np.asarray(values, dtype=np.float64)
    middle: Callable[..., Floats] = np.nanmedian if median else np.nanmean
    if not np.isfinite(column).any():
        return Estimate(np.nan, np.nan, np.nan)
    rng = np.random.default_rng(seed)
    drawn = column[rng.integers(0, len(column), (RESAMPLES, len(column)))]
    drawn = drawn[np.isfinite(drawn).any(1)]
    ends = np.quantile(middle(drawn, axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(middle(column)), float(ends[0]), float(ends[1]))


def paired(first: npt.ArrayLike, second: npt.ArrayLike, seed: int = 0) -> Estimate:
    """The mean difference of two measurements of the same rows, NaN in either left out.

    Args:
        first: (n,) one per row.
        second: (n,) one per row, in the same order.
        seed: the seed of the resampling.
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return estimate(difference, seed=seed)


Truths: TypeAlias = npt.NDArray[np.bool_]


class Difference(NamedTuple):
    """The costs of two methods on the rows that are compared; NaN without any.

    Attributes:
        rows: the number of these rows.
        cost: the first method's median.
        other: the second method's median.
        difference: the median of the first method's cost minus the second's, with its interval.
        cheaper: the share of rows in which the first method's cost is the lower one.
    """

    rows: int
    cost: float
    other: float
    difference: Estimate
    cheaper: float


def is_plausible(plausibility: Floats, own: Floats) -> Truths:
    """(n,) bool, whether answers have the default plausibility, or at least the factual's own.

    Args:
        plausibility: (n,) the plausibility of the answers; NaN without one.
        own: (n,) the plausibility of the factuals.
    """
    plausible: Truths = plausibility >= np.minimum(LEAST, own) - TOLERANCE
    return plausible


def difference(cost: Floats, other: Floats, both: Truths, *, seed: int = 0) -> Difference:
    """The difference of two methods' costs, over rows for which both have a plausible answer.

    Args:
        cost: (n,) the costs of the first method.
        other: (n,) the costs of the second method, in the same order.
        both: (n,) bool, the rows to compare.
        seed: the seed of the bootstrap.
    """
    step, rows = cost[both] - other[both], int(both.sum())
    return Difference(
        rows,
        _median(cost[both]),
        _median(other[both]),
        estimate(step, median=True, seed=seed),
        float((step < 0.0).mean()) if rows else float("nan"),
    )


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")


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
