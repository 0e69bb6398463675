"""Relations between numbers: one is at most another, or nearly a function of one or two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds.numbers import ordinary_values

# The largest share of rows that violate an order. The least number of rows, and how many times the
# violations, that are expected to if the columns were independent.
EXCEPTIONS, BROKEN_ROWS, ODDS = 0.005, 10, 10
# Ordered values are near each other, in units of the upper one's central nine tenths, in this
# share of the rows at least.
NEAR, NEAR_ROWS = 0.1, 0.01
# The least share of a number's variance that the others explain, and that a second other must
# leave at most of what the first one leaves.
EXPLAINED, SECOND = 0.98, 0.1
# The distinct values of a number, and the share of rows, that a relation needs at least.
FEWEST_VALUES, FEWEST_ROWS = 12, 0.5
# The observed range of residuals leaves out this share of rows at either end, and is widened by a
# share of its width, and of the number's standard deviation for rounding.
ENDS, WIDER, ROUNDING = 0.001, 0.1, 1e-3
# The least share of rows with positive numbers and others at which they are no exception.
MIXED = 0.005
# Two others that are alike to this degree are one.
ALIKE = 0.999
# Numbers larger than this, or smaller than its inverse, are left out.
LARGEST = 1e100
SAMPLE = 10_000

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Relation:
    """A bound on the residual of a number given one or two others; `a <= b` bounds `b - a`.

    `low <= t(y) - constant - sum(weights * t(others)) <= high`, where t is the logarithm or the
    number itself.

    Attributes:
        name: the number y.
        others: one or two other numbers.
        constant: of the regression; 0 for an order.
        weights: one for each of the others.
        log: whether t is the logarithm; then the relation holds for positive numbers.
        low: the least residual.
        high: the greatest residual; infinite for an order.
        mixed: whether, with logarithms, some numbers of a row may be positive and others not.
    """

    name: str
    others: tuple[str, ...]
    constant: float = 0.0
    weights: tuple[float, ...] = (1.0,)
    log: bool = False
    low: float = 0.0
    high: float = math.inf
    mixed: bool = False

    @property
    def members(self) -> tuple[str, ...]:
        """The number and the others."""
        return (self.name, *self.others)

    @property
    def is_order(self) -> bool:
        """Whether it is the order of two numbers."""
        return self.high == math.inf

    @property
    def text(self) -> str:
        """What reasons call it."""
        others = " and ".join(self.others)
        called = f"the relation of {self.name} to {others}"
        return f"{others} <= {self.name}" if self.is_order else called

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Relation:
        """The inverse of `dataclasses.asdict`, from lists or tuples."""
        tuples = {k: tuple(values[k]) for k in ("others", "weights")}
        return cls(**{**values, **tuples})


def infer_relations(frame: pd.DataFrame, features: Sequence[Feature]) -> tuple[Relation, ...]:
    """The relations between numbers, the closest first, and then the orders.

    Args:
        frame: training rows.
        features: the features of its columns.
    """
    numbers = [f for f in features if f.holds_numbers and f.bounds[0] < f.bounds[1]]
    values = {f.name: ordinary_values(frame[f.name], f.special) for f in numbers}
    return (*_functions(values, len(frame)), *_orders(values))


def _orders(values: Mapping[str, Array]) -> Iterator[Relation]:
    """The orders a <= b of nearly all rows with both values.

    At most `EXCEPTIONS` of the rows may violate an order, where at least `BROKEN_ROWS`, and `ODDS`
    times as many, would if the columns were independent. A pair whose values never come near each
    other is no order. Equal columns are ordered both ways.

    Args:
        values: (n,) of each number, NaN where it has no ordinary value.
    """
    ascending = {name: np.sort(column[~np.isnan(column)]) for name, column in values.items()}
    for a, b in permutations(values, 2):
        if _is_ordered(values[a], values[b], ascending[a], ascending[b]):
            yield Relation(b, (a,))


def _is_ordered(a: Array, b: Array, lower: Array, upper: Array) -> bool:
    """Whether a <= b in nearly every row, (n,) each, given the sorted ordinary values of both."""
    if not len(lower) or not len(upper) or (a[:1000] > b[:1000]).sum() > 0.05 * len(a[:1000]):
        return False
    gap = b - a
    gap = gap[~np.isnan(gap)]
    broken = int((gap < 0.0).sum())
    above = len(lower) - np.searchsorted(lower, upper, side="right")
    expected = above.mean() / len(lower) * len(gap)
    if broken > EXCEPTIONS * len(gap) or expected < max(BROKEN_ROWS, ODDS * broken):
        return False
    low, high = np.quantile(upper, (0.05, 0.95))
    return bool((gap <= NEAR * (high - low)).mean() >= NEAR_ROWS)


def _functions(values: Mapping[str, Array], n: int) -> Iterator[Relation]:
    """The relations of numbers to one or two others, one for the same members."""
    some = pd.Series(range(n)).sample(min(n, SAMPLE), random_state=0).to_numpy()
    columns = {name: column[some] for name, column in values.items()}
    names = [name for name, column in columns.items() if _varies(column[~np.isnan(column)])]
    if len(names) < 2:
        return
    table = np.stack([columns[name] for name in names], 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        scales = table, np.log(np.where(table > 0.0, table, np.nan))
    closest: dict[frozenset[str], tuple[float, Relation]] = {}
    for scale, log in zip(scales, (False, True), strict=True):
        for y, first, pair in _candidates(_correlations(scale)):
            alone, two = (_fitted(scale, names, (y, *others), log) for others in (first, pair))
            share, relation = two if 1.0 - two[0] < SECOND * (1.0 - alone[0]) else alone
            key = frozenset(relation.members) if relation is not None else frozenset()
            if relation is not None and share > closest.get(key, (0.0,))[0]:
                closest[key] = share, relation
    for _, found in sorted(closest.values(), key=lambda each: -each[0]):
        yield found


def _varies(values: Array) -> bool:
    """Whether a number has enough distinct values, (n,), of which squares can be summed."""
    return len(np.unique(values)) >= FEWEST_VALUES and 1 / LARGEST < abs(values).max() < LARGEST


def _correlations(values: Array) -> Array:
    """(m, m) correlations of columns, (n, m), over the rows that have both; 0 for few rows."""
    n, known = len(values), ~np.isnan(values)
    count, filled = np.maximum(known.sum(0), 1), np.where(known, values, 0.0)
    centred = np.where(known, filled - filled.sum(0) / count, 0.0)
    spread = np.sqrt((centred**2).sum(0) / count)
    z = centred / np.where(spread > 0.0, spread, 1.0)
    w = known.astype(np.float64)
    both = np.maximum(w.T @ w, 1.0)
    mean, square = z.T @ w / both, (z * z).T @ w / both
    variance = np.maximum(square - mean**2, 1e-12)
    out: Array = (z.T @ z / both - mean * mean.T) / np.sqrt(variance * variance.T)
    return np.where(both >= FEWEST_ROWS * n, out.clip(-1.0, 1.0), 0.0)


def _candidates(r: Array) -> Iterator[tuple[int, tuple[int], tuple[int, int]]]:
    """Each number and the one and two others that explain most of it, by correlations, (m, m)."""
    apart, at = np.maximum(1.0 - r**2, 1e-12), np.arange(len(r))
    for y, own in enumerate(r):
        alone = np.where(at == y, 0.0, own**2)
        a, b = own[:, None], own[None]
        pair = (a**2 + b**2 - 2.0 * a * b * r) / apart
        pair[r**2 > ALIKE] = pair[y] = pair[:, y] = 0.0
        i, j = sorted(map(int, np.unravel_index(int(pair.argmax()), pair.shape)))
        yield y, (int(alone.argmax()),), (i, j)


def _fitted(
    values: Array, names: Sequence[str], idx: tuple[int, ...], log: bool
) -> tuple[float, Relation | None]:
    """The share of variance explained, and the relation of the first of columns to the others."""
    known = ~np.isnan(values[:, idx])
    rows, mixed = values[known.all(1)][:, idx], known.any(1) & ~known.all(1)
    y, x = rows[:, 0], np.column_stack([np.ones(len(rows)), rows[:, 1:]])
    if len(set(idx)) < len(idx) or len(rows) < FEWEST_ROWS * len(values) or y.std() == 0.0:
        return 0.0, None
    weights = np.linalg.lstsq(x, y, rcond=None)[0]
    residual = y - x @ weights
    share = float(1.0 - residual.var() / y.var())
    low, high = np.quantile(residual, (ENDS, 1.0 - ENDS))
    slack = max(WIDER * (high - low), ROUNDING * y.std())
    relation = Relation(
        names[idx[0]],
        tuple(names[j] for j in idx[1:]),
        float(weights[0]),
        tuple(weights[1:].tolist()),
        log,
        float(low - slack),
        float(high + slack),
        bool(log and mixed.mean() > MIXED),
    )
    return share, relation if share >= EXPLAINED else None
