"""Numbers: the columns of some training rows in which definitions are looked for."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.data.groups import is_flag, ones_of
from dear_plugin.data.kinds.numbers import ordinary_values

# The rows that are looked at, and the least known values of a column. The largest number, and the
# inverse of the smallest, of which squares can be summed.
ROWS, FEWEST, LARGEST = 4000, 20, 1e100
# Errors lie so many central ranges (nine tenths of the values) outside the central one, and so
# many of the logarithms; they are so many times as far from the middle as all other values, at
# most so many of these.
OUTSIDE, OUTSIDE_LOGS, APART, MOST_ERRORS = 5.0, 2.0, 2.0, 0.02

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Numbers:
    """m numbers, flags among them, in some training rows in random order.

    Attributes:
        names: (m,) their names.
        values: (n, m) NaN where a number is missing, special, or an error.
        units: (m,) one unit of the last decimal; 0 where there is none.
    """

    names: tuple[str, ...]
    values: Array
    units: Array

    @classmethod
    def of(cls, frame: pd.DataFrame, features: Iterable[Feature]) -> Numbers:
        """The numbers of a frame but identifiers; the log tells of errors."""
        at = np.random.default_rng(0).permutation(len(frame))[:ROWS]
        found, units = {}, []
        for f in features:
            if is_flag(f) or (f.holds_numbers and f.actionable and f.bounds[0] < f.bounds[1]):
                values = _values(frame[f.name], f)[at]
                known = values[~np.isnan(values)]
                wide = len(known) >= FEWEST and known.min() < known.max()
                if wide and 1 / LARGEST < np.abs(known).max() < LARGEST:
                    found[f.name] = values
                    places = 0 if is_flag(f) else f.precision
                    units.append(0.0 if places is None else 10.0**-places)
        table = np.array([*found.values()]).reshape(len(found), len(at)).T
        return cls((*found,), table, np.array(units))

    def only(self, some: list[int]) -> Numbers:
        """Those at some positions."""
        names = tuple(self.names[j] for j in some)
        return Numbers(names, self.values[:, some], self.units[some])


def _values(column: pd.Series, feature: Feature) -> Array:
    """(n,) the numbers of a column, 0 and 1 of a flag, NaN for errors."""
    if not feature.holds_numbers:
        return ones_of(column, feature).astype(np.float64)
    values = ordinary_values(column, feature.special)
    errors = errors_of(values)
    if errors.any():
        rows = column.index[errors].tolist()
        logger.info(
            "column %r has %d values far beyond all others, which are taken for errors: they are"
            " %s or beyond, first in rows %s; correct them or leave these rows out",
            feature.name,
            len(rows),
            f"{np.abs(values[errors]).min():,.10g}",
            rows[:5],
        )
    return np.where(errors, np.nan, values)


def errors_of(values: Array) -> Rows:
    """(n,) bool, the values that lie so far from all others that they must be errors."""
    known = values[~np.isnan(values)]
    if len(known) < 2.5 * FEWEST:
        return np.zeros(len(values), dtype=bool)
    bottom, middle, top = np.quantile(known, (0.05, 0.5, 0.95))
    low, high = bottom - OUTSIDE * (top - bottom), top + OUTSIDE * (top - bottom)
    positive = known[known > 0.0]
    if len(positive) > FEWEST:  # money has long tails
        a, b = np.quantile(positive, (0.05, 0.95))
        high = max(high, b * (b / a) ** OUTSIDE_LOGS)
    beyond = (values < low) | (values > high)
    distance = np.abs(values - middle)
    if top == bottom or not 0 < beyond.mean() <= MOST_ERRORS:
        return np.zeros(len(values), dtype=bool)
    gap = distance[beyond].min() >= APART * np.nanmax(distance[~beyond])
    out: Rows = beyond & bool(gap)
    return out
