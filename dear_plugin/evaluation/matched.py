"""Matched: costs of two methods in, their difference on rows with plausible answers of both out.

An answer outside the data may have a low cost. So costs are compared on rows for which both
answers have the default plausibility: that of one training row in twenty, or of the factual.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dear_plugin.evaluation.intervals import Estimate, Floats, estimate

Truths: TypeAlias = npt.NDArray[np.bool_]

LEAST = 0.05
# Rounding error of a share.
TOLERANCE = 1e-6


class Difference(NamedTuple):
    """The costs of two methods on the rows that are compared; NaN without any.

    Attributes:
        rows: their number.
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
        plausibility: (n,) of the answers; NaN without one.
        own: (n,) of the factuals.
    """
    plausible: Truths = plausibility >= np.minimum(LEAST, own) - TOLERANCE
    return plausible


def difference(cost: Floats, other: Floats, both: Truths, *, seed: int = 0) -> Difference:
    """Two methods' costs of the same rows, compared where both have a plausible answer.

    Args:
        cost: (n,) of the first method.
        other: (n,) of the second, in the same order.
        both: (n,) bool, the rows to compare.
        seed: of the bootstrap.
    """
    step, rows = cost[both] - other[both], int(both.sum())
    return Difference(
        rows,
        _median(cost[both]),
        _median(other[both]),
        estimate(step, np.zeros(rows), median=True, seed=seed),
        float((step < 0.0).mean()) if rows else float("nan"),
    )


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")
