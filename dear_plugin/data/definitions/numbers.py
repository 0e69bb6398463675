"""Numbers: the columns of some training rows in which definitions are looked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin._lazy import lazy
from dear_plugin.data.codes import gross
from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds.cells import Array, Mask
from dear_plugin.data.kinds.number import ordinary_values

# The rows that are looked at, and the least known values of a column. The largest number, and the
# inverse of the smallest, of which squares can be summed.
ROWS, FEWEST, LARGEST = 4000, 20, 1e100

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Numbers:
    """m numbers, flags among them, in some training rows in random order.

    Attributes:
        names: (m,) their names.
        values: (n, m) NaN where a number is missing, special, or gross.
        units: (m,) one unit of the last decimal; 0 where there is none.
    """

    names: tuple[str, ...]
    values: Array
    units: Array

    @classmethod
    def of(cls, frame: pd.DataFrame, features: Iterable[Feature]) -> Numbers:
        """The numbers of a frame but identifiers."""
        at = np.random.default_rng(0).permutation(len(frame))[:ROWS]
        found, units = {}, []
        for f in features:
            if f.is_flag or (not f.choices and f.actionable and f.bounds[0] < f.bounds[1]):
                values = _values(frame[f.name], f)[at]
                known = values[~np.isnan(values)]
                wide = len(known) >= FEWEST and known.min() < known.max()
                if wide and 1 / LARGEST < np.abs(known).max() < LARGEST:
                    found[f.name] = values
                    places = 0 if f.is_flag else f.precision
                    units.append(0.0 if places is None else 10.0**-places)
        table = np.array([*found.values()]).reshape(len(found), len(at)).T
        return cls((*found,), table, np.array(units))

    @lazy
    def flags(self) -> Mask:
        """(m,) bool, those that are 0 or 1."""
        return np.array([{*np.unique(v[~np.isnan(v)])} == {0.0, 1.0} for v in self.values.T], bool)


def _values(column: pd.Series, feature: Feature) -> Array:
    """(n,) the numbers of a column, 0 and 1 of a flag, NaN for gross ones."""
    if feature.choices:
        return feature.is_one(column).astype(np.float64)
    values = ordinary_values(column, feature.special)
    known = np.flatnonzero(~np.isnan(values))
    values[known[gross(values[known])]] = np.nan
    return values
