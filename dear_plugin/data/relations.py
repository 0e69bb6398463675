"""Relations: numbers that are nearly a function of one or two others, such as area and radius."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature, ordinary_values

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
    """A bound on the residual of a number given one or two others.

    `low <= t(y) - constant - sum(weights * t(others)) <= high`, where t is the logarithm or the
    number itself.

    Attributes:
        name: the number y.
        others: one or two other numbers.
        constant: of the regression.
        weights: one for each of the others.
        log: whether t is the logarithm; then the relation holds for positive numbers.
        low: the least residual.
        high: the greatest residual.
        mixed: whether, with logarithms, some numbers of a row may be positive and others not.
    """

    name: str
    others: tuple[str, ...]
    constant: float
    weights: tuple[float, ...]
    log: bool
    low: float
    high: float
    mixed: bool = False

    @property
    def members(self) -> tuple[str, ...]:
        """The number and the others."""
        return (self.name, *self.others)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Relation:
        """The inverse of `dataclasses.asdict`, from lists or tuples."""
        tuples = {k: tuple(values[k]) for k in ("others", "weights")}
        return cls(**{**values, **tuples})


def infer_relations(frame: pd.DataFrame, features: Sequence[Feature]) -> tuple[Relation, ...]:
    """The relations between numbers, the closest first; one for the same members.

    Args:
        frame: training rows.
        features: the features of its columns.
    """
    some = frame.sample(min(len(frame), SAMPLE), random_state=0)
    numbers = [f for f in features if f.holds_numbers and f.bounds[0] < f.bounds[1]]
    columns = {f.name: ordinary_values(some[f.name], f.special) for f in numbers}
    names = [name for name, column in columns.items() if _varies(column[~np.isnan(column)])]
    if len(names) < 2:
        return ()
    values = np.stack([columns[name] for name in names], 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        scales = values, np.log(np.where(values > 0.0, values, np.nan))
    closest: dict[frozenset[str], tuple[float, Relation]] = {}
    for table, log in zip(scales, (False, True), strict=True):
        for y, first, pair in _candidates(_correlations(table)):
            alone, two = (_fitted(table, names, (y, *others), log) for others in (first, pair))
            share, relation = two if 1.0 - two[0] < SECOND * (1.0 - alone[0]) else alone
            key = frozenset(relation.members) if relation is not None else frozenset()
            if relation is not None and share > closest.get(key, (0.0,))[0]:
                closest[key] = share, relation
    return tuple(r for _, r in sorted(closest.values(), key=lambda each: -each[0]))


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
