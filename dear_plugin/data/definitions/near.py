"""Near-functions: numbers that one or two others nearly determine, such as areas of rough circles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

import numpy as np

from dear_plugin.data.definitions.numbers import Array, Numbers
from dear_plugin.data.relations import Relation

# The least share of a number's variance that the others explain, and that a second other must
# leave at most of what the first one leaves.
EXPLAINED, SECOND = 0.99, 0.1
# The distinct values of a number, and the share of rows, that a relation needs at least.
FEWEST_VALUES, FEWEST_ROWS = 12, 0.5
# The observed range of residuals leaves out this share of rows at either end, and is widened by a
# share of its width, and of the number's standard deviation for rounding.
ENDS, WIDER, ROUNDING = 0.001, 0.1, 1e-3
# The least share of rows with positive numbers and others at which they are no exception.
MIXED = 0.005
# Two others that are alike to this degree are one.
ALIKE = 0.999


def near_functions(numbers: Numbers, exact: Iterable[Relation]) -> Iterator[Relation]:
    """The relations to one or two others, the closest first, one for the same members.

    Those with two members of one exact relation are left out: it says more than they do.
    """
    wide = [_varies(v[~np.isnan(v)]) for v in numbers.values.T]
    table, names = numbers.values[:, wide], [*compress(numbers.names, wide)]
    if len(names) < 2:
        return
    scales = table, np.log(np.where(table > 0.0, table, np.nan))
    closest: dict[frozenset[str], tuple[float, Relation]] = {}
    for scale, log in zip(scales, (False, True), strict=True):
        for y, first, pair in _candidates(_correlations(scale)):
            alone, two = (_fitted(scale, names, (y, *others), log) for others in (first, pair))
            share, relation = two if 1.0 - two[0] < SECOND * (1.0 - alone[0]) else alone
            key = frozenset(relation.members) if relation is not None else frozenset()
            if relation is not None and share > closest.get(key, (0.0,))[0]:
                closest[key] = share, relation
    known = [{*each.members} for each in exact]
    for key, (_, found) in sorted(closest.items(), key=lambda each: -each[1][0]):
        if all(len(key & members) < 2 for members in known):
            yield found


def near_function(numbers: Numbers, y: int, others: list[int]) -> Relation | None:
    """The relation of a column to all of others, on the scale where it is closer."""
    table = numbers.values
    scales = table, np.log(np.where(table > 0.0, table, np.nan))
    idx = (y, *others)
    found = [_fitted(scale, numbers.names, idx, bool(i)) for i, scale in enumerate(scales)]
    return max(found, key=lambda each: each[0])[1]


def _varies(values: Array) -> bool:
    """Whether a number has enough distinct values, (n,)."""
    return len(np.unique(values)) >= FEWEST_VALUES


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
