"""Columns of numbers: amounts with their decimals, bounds, codes and missing values.

A value is the double that its decimals print as: 0.1 + 0.2 becomes 0.3.

A number may be missing, or hold a code that is no amount (-9 for "no such account"). Each is a
*special level* of its feature. The i-th one has the row value `(i + 1) * SPECIAL`, which is exact,
and below all numbers, so that sorted tables separate them. Only `known`, `or_nan`, `level_of` and
`row_value` compare with it. Gross values lie beyond all others by far, such as a typing error; a
few rows have them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

Array = npt.NDArray[Any]
MAX_DECIMALS = 6
# Far larger numbers are no whole number of steps.
WHOLE = 1e9


def ordinary_values(column: pd.Series, special: Sequence[float]) -> Array:
    """A column of numbers as (n,) double, NaN where a number is missing or special."""
    values: Array = column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    values[np.isin(values, special)] = np.nan
    return values


def decimals(values: Array) -> int | None:
    """The decimals that represent every value, or None when more than six are needed.

    Args:
        values: (n,) floats.
    """
    sample = np.unique(values)
    # Relative, so that values of size 1e-18 are not mistaken for rounding errors.
    tolerance = ERROR * np.finfo(values.dtype).eps * float(np.abs(sample).max())
    for places in range(MAX_DECIMALS + 1):
        near, is_sharp = np.round(sample, places), tolerance < SHARP * 10.0**-places
        if np.abs(near - sample).max() <= tolerance and (is_sharp or (near == sample).all()):
            return places
    return None


# Gross values lie so many ranges of the central nine tenths outside of it, and are at most this
# share of the rows. Numbers of a long tail are at most so many times the largest of the others.
RANGES, MOST_GROSS, TIMES = 5.0, 0.02, 100.0


def gross(values: Array) -> Array:
    """(n,) bool, whether values, (n,), lie beyond all others by far.

    Amounts of money have long tails: large ones lie beyond the range of logarithms, too. Where
    amounts are positive, a negative one may be nearer.
    """
    if len(values) * MOST_GROSS < 1.0:
        return np.zeros(len(values), dtype=bool)
    ordered = np.sort(values)
    bottom, middle, top = _quantiles(ordered)
    low, high = bottom - RANGES * (top - bottom), top + RANGES * (top - bottom)
    low = max(low, 0.0) if bottom > 0.0 else low
    if ordered[-1] > 0.0:
        least, _, most = _quantiles(ordered[np.searchsorted(ordered, 0.0, "right") :])
        others = float(ordered[-1 - int(MOST_GROSS * len(values))])
        high = max(high, min(most * (most / least) ** 2, TIMES * max(others, 0.0)))
    beyond, distance = (values < low) | (values > high), np.abs(values - middle)
    few = top > bottom and 0 < beyond.sum() <= MOST_GROSS * len(values)
    is_far = few and distance[beyond].min() >= 2.0 * distance[~beyond].max()
    return beyond if is_far else np.zeros_like(beyond)


def _quantiles(ordered: Array) -> list[float]:
    """The 5, 50 and 95 % quantiles of ascending values, (n,)."""
    return [float(ordered[round(share * (len(ordered) - 1))]) for share in (0.05, 0.5, 0.95)]


# The rounding error of a bound that was computed, in units of the last decimal.
NEAR = 1e-6
# The rounding error of a number with few decimals, in units of the relative step of its dtype.
# Where it is more than a share of a decimal, as in float32, any number would have that decimal.
ERROR, SHARP = 4.0, 0.05


@dataclass(eq=False)
class Grid:
    """The decimals of p features.

    Attributes:
        up: (p,) double, 10 to the power of the decimals; 1 for tens, hundreds, and so on; NaN for
            numbers that are not rounded.
        down: (p,) double, 1; 10 for tens, 100 for hundreds; NaN likewise.
        codes: (p, c) double, numbers that are no amounts, or NaN.
        beside: (p,) double, how far from a code the next amount is.
        step: (p,) one unit of the last decimal; 0 for numbers that are not rounded.
    """

    up: Array
    down: Array
    codes: Array
    beside: Array

    def __post_init__(self) -> None:
        self.step = np.nan_to_num(self.down / self.up)
        self._is_coarse = bool((self.down > 1.0).any())
        self._is_partial = bool(np.isnan(self.up).any())

    @classmethod
    def of(
        cls,
        places: Iterable[int | None],
        codes: Iterable[Sequence[float]] = (),
        steps: Iterable[float] = (),
    ) -> Grid:
        """The grid of p features.

        Args:
            places: their decimals; None for numbers that are not rounded, 0 for categories.
            codes: the numbers among their amounts that are codes; nothing for none at all.
            steps: of which amounts beside codes are multiples; 0 for their last decimal.
        """
        known = [
            (math.nan, math.nan) if k is None else (10.0 ** max(k, 0), 10.0 ** max(-k, 0))
            for k in places
        ]
        up, down = np.array(known, dtype=np.float64).reshape(-1, 2).T
        own, last = np.array([*steps], dtype=np.float64), np.nan_to_num(down / up)
        return cls(up, down, padded(codes), np.where(own > 0.0, own, last) if len(own) else last)

    @np.errstate(all="ignore")
    def round(self, values: Array, at: Any = slice(None), side: Array | float = 1.0) -> Array:
        """Values on the grid, in a new array; one that is a code takes the amount beside it.

        Args:
            values: (..., p), or a shape that fits that of `at`.
            at: the features, as an index of (p,).
            side: 1 for the amount above the code, -1 for that below it.
        """
        up, down = self.up[at], self.down[at]
        for turn in range(1 + self.codes.shape[1]):
            if turn:
                is_code = (values[..., None] == self.codes[at]).any(-1)
                values = np.where(is_code, values + side * self.beside[at], values)
            # Products and quotients of whole numbers and exact powers are rounded correctly.
            whole = values * up
            whole = (np.round(whole / down) * down if self._is_coarse else np.round(whole)) / up
            values = np.where(np.isnan(whole), values, whole) if self._is_partial else whole
        return values

    def inward(self, low: Array, high: Array, at: Any = slice(None)) -> tuple[Array, Array]:
        """The least and greatest values of the grid between bounds.

        A bound that is a rounding error off the grid, such as 0.1 + 0.2, is on it; one that is a
        code is not.

        Args:
            low: (..., p), or a shape that fits that of `at`.
            high: likewise.
            at: the features, as an index of (p,).
        """
        return self.inside(low, 1.0, at), self.inside(high, -1.0, at)

    @np.errstate(all="ignore")
    def inside(self, end: Array, side: Array | float, at: Any = slice(None)) -> Array:
        """(...) one of them: the least value of the grid from a bound on; the last one if -1."""
        step, near = self.step[at], self.round(end, at, side)
        short = side * (end - near) > NEAR * step
        return np.where(short, self.round(near + side * step, at, side), near)


def padded(parts: Iterable[Sequence[float]], end: float = math.nan) -> Array:
    """(g, c) numbers of g parts, of which the shorter ones end in others; c may be 0."""
    each = [list(part) for part in parts] or [[]]
    return np.array([*zip_longest(*each, fillvalue=end)], dtype=float).T.reshape(len(each), -1)


def on_grid(values: Array, places: int | None) -> Array:
    """Numbers, (n,), of which those that are a rounding error off some decimals have these.

    So equal numbers have equal bits, whether they were computed, read or held as a float32.
    """
    numbers = values.astype(np.float64, copy=False)
    if places is None or values.dtype.kind != "f":
        return numbers
    error = ERROR * float(np.finfo(values.dtype).eps)
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite and very large numbers
        near = np.round(numbers, places)
        return np.where(np.abs(near - numbers) <= error * np.abs(numbers), near, numbers)


@np.errstate(all="ignore")
def in_steps(values: Array, step: Array, *, up: bool | None = None) -> Array:
    """The nearest multiples of steps, of the shape of values; where a step is 0, the values.

    Args:
        values: numbers.
        step: (...) of a shape that fits theirs.
        up: True for the next multiple at or above, False at or below, apart from rounding errors.
    """
    per, error = 1.0 / step, {None: 0.0, True: -NEAR, False: NEAR}[up]
    count = values / step + error
    count = np.round(count) if up is None else np.ceil(count) if up else np.floor(count)
    # The quotient of whole numbers is rounded once: 3 / 10, not 3 * 0.1.
    whole = np.abs(per - np.round(per)) < NEAR
    out = np.where(whole & (per >= 1.0), count / np.round(per), count * step)
    return np.where(step > 0.0, out, values)


def times(one: Array, other: Array) -> Array:
    """The product of matrices, in one thread as torch's others: numpy's has threads of its own."""
    return (torch.from_numpy(one) @ torch.from_numpy(other)).numpy()


def nearest(values: Array, known: Array) -> Array:
    """The nearest of known values, (l,) ascending, to values of any shape."""
    return np.asarray(known[np.searchsorted((known[1:] + known[:-1]) / 2.0, values)])


def among(known: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds, (...) double each, moved inwards to known values, (l,) ascending.

    Without a value between them the lower one is infinite, and the upper one minus infinite.
    """
    first, count = np.searchsorted(known, low), np.searchsorted(known, high, "right")
    return np.append(known, np.inf)[first], np.append(-np.inf, known)[count]


Rows = TypeVar("Rows", Tensor, Array)
# The row value of a feature's first special level. Numbers as low (-1.07e301) are unreadable; sums
# of many special levels, and their products with decimals, are finite.
SPECIAL = -(2.0**1000)


def level_of(rows: Any) -> Any:
    """The level index of special row values, any shape; undefined for ordinary values."""
    return (rows / SPECIAL).round() - 1


def row_value(level: Any) -> Any:
    """The row value of a feature's i-th special level, or of a tensor of levels."""
    return (level + 1) * SPECIAL


def known(rows: Rows) -> Rows:
    """Whether row values, an array or tensor of any shape, are neither missing nor coded."""
    return ~(rows <= SPECIAL)


def or_nan(values: Array) -> Array:
    """Values of any shape, NaN where a number is missing or coded."""
    return np.where(values <= SPECIAL, np.nan, values)


def amounts_of(column: Tensor) -> Tensor:
    """The known row values of a column, (n,); a single zero if there are none."""
    kept = column[known(column)]
    return kept if len(kept) else column.new_zeros(1)
