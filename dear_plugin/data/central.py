"""Central: where the central training values of a number lie, and what a change of it costs.

One extreme value must not make every other change nearly free, nor be advice: the unit of cost is
the range of the central values, and actions stay within it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds.number import ordinary_values

# A number of few, even values: its range has at most so many of their usual distances.
MOST_STEPS = 24

Array = npt.NDArray[np.float64]


def with_central(feature: Feature, column: pd.Series, share: float) -> Feature:
    """A feature with the central range of its training column, (n,), and its unit of cost.

    Args:
        feature: without them; one that holds no amounts is returned as it is.
        column: its training cells.
        share: the share of the values, without special ones, that are central.
    """
    values = ordinary_values(column, feature.special) if feature.holds_numbers else np.empty(0)
    values = values[~np.isnan(values)]
    if not len(values):
        return feature
    outer = round((1.0 - share) / 2.0, 9)
    low, high = np.quantile(values, (outer, 1.0 - outer), method="inverted_cdf").tolist()
    return dataclasses.replace(feature, central=(low, high), scale=_scale(values, low, high))


def _scale(values: Array, low: float, high: float) -> float:
    """The unit of cost of values, (n,): the central range, or all of few, even values."""
    distinct = np.unique(values)
    whole = float(distinct[-1] - distinct[0])
    if 1 < len(distinct) <= MOST_STEPS + 1 and whole <= MOST_STEPS * np.median(np.diff(distinct)):
        return whole
    return high - low or float(values.std())
