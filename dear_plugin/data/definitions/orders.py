"""Orders: numbers of which one is at most another in every row, up to errors.

A definition has a sharp edge: the rows that break it are few of those near it, where habits and
unlike units have from 5 to 100 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from dear_plugin.data.definitions.numbers import Numbers
from dear_plugin.data.kinds.cells import Array
from dear_plugin.data.relations import Relation

# Rows that break an order by more than the usual distance are errors, at most this share.
ERRORS = 0.025
# Values are near if they differ by this share of the smaller central range; the least share of
# near rows, and if the names share a word. Values are close if they differ by this share of the
# upper one; the least share of close rows.
NEAR, NEAR_ROWS, NEAR_AKIN, CLOSE, CLOSE_ROWS = 0.1, 0.02, 0.004, 0.2, 0.005
# The most rows that break an order, as a share of the near ones; how many times as many would if
# the columns were independent, and the least share of them.
BROKEN, ODDS, EXPECTED = 0.02, 10.0, 0.02
# Of orders whose values are never near: the least usual ratio, the rows that may break it, and
# the share and number that would.
ALIKE, FAR_BROKEN, FAR_EXPECTED, FAR_ROWS = 0.5, 0.0005, 0.0015, 5.0
# Of two flags: the rows that would break it, and the share that may.
FLAGS_EXPECTED, FLAGS_BROKEN = 20.0, 0.005
FEWEST, HEAD = 30, 500


def orders(numbers: Numbers, skipped: Iterable[str]) -> list[Relation]:
    """The orders of numbers but those skipped, such as logarithms of others."""
    table, names = numbers.values, numbers.names
    known, low = ~np.isnan(table), np.nanmin(table, 0) if table.size else np.zeros(0)
    some = np.nanquantile(table, np.linspace(0, 1, 50), 0).T if table.size else table.T
    unit = np.subtract(*np.nanquantile(table, (0.95, 0.05), 0)) if table.size else low
    words, skipped, found = [_words(name) for name in names], {*skipped}, []
    flag = numbers.flags
    for i in [j for j, name in enumerate(names) if name not in skipped]:
        a, head = table[:, i], table[:HEAD]
        both = known[:HEAD] & known[:HEAD, [i]]
        likely = ((head < head[:, [i]]) & both).sum(0) <= 0.04 * both.sum(0)
        likely &= (some[i, :, None] > some[:, None]).mean((1, 2)) >= 0.001  # the ranges overlap
        likely[i] = False
        kept = known[:, i] & (a > low[i]) & (a != _mode(a[known[:, i]], low[i]))
        for j in np.flatnonzero(likely & (flag == flag[i])).tolist():
            here, b = kept & known[:, j], table[:, j]
            if names[j] in skipped or here.sum() < FEWEST:
                continue
            if flag[i]:
                is_order = _implies(b[here], float((b[known[:, j]] == 0.0).mean()))
            else:
                akin = bool(words[i] & words[j])
                is_order = _is_order(a[here], b[here], min(unit[i], unit[j]), akin)
            found += [Relation(names[j], (names[i],))] * is_order
    return found


def implied(sums: Iterable[Relation], numbers: Numbers) -> list[Relation]:
    """Each part is at most the total, if no part is negative."""
    low = dict(zip(numbers.names, np.nanmin(numbers.values, 0), strict=True)) if sums else {}
    return [
        Relation(total, (part,))
        for total, parts in map(_total, sums)
        if len(parts) > 1 and all(w > 0 and low[part] >= 0 for part, w in parts.items())
        for part, weight in parts.items()
        if weight >= 1.0
    ]


def _total(relation: Relation) -> tuple[str, dict[str, float]]:
    """What a sum is the total of, by weight: none with a constant or a logarithm."""
    weights = dict(zip(relation.others, relation.weights, strict=True))
    added = [name for name, weight in weights.items() if weight > 0]
    if relation.log or relation.constant != 0.0:
        return relation.name, {}
    if len(added) == 1 < len(weights) and weights[added[0]] == 1.0:
        (total,) = added  # the number is what is left of it
        rest = {name: -w for name, w in weights.items() if name != total}
        return total, {relation.name: 1.0, **rest}
    return relation.name, weights


def _is_order(a: Array, b: Array, unit: float, akin: bool) -> bool:
    """Whether a <= b, (n,) each, is no coincidence."""
    gap = b - a
    kept = gap >= -max(float(np.median(np.abs(gap))), unit)
    if kept.mean() < 1.0 - ERRORS:
        return False
    gap, a, b, n = gap[kept], a[kept], b[kept], int(kept.sum())
    broken, near = (gap < 0).sum(), ((gap >= 0) & (gap <= NEAR * unit)).sum()
    expected = np.searchsorted(np.sort(b), a).sum() / n
    close = ((gap >= 0) & (gap <= CLOSE * np.abs(b))).sum()
    enough = near >= (max(5, NEAR_AKIN * n) if akin else max(10, NEAR_ROWS * n))
    sharp = broken <= BROKEN * near and expected >= max(10, ODDS * broken, EXPECTED * n)
    if enough and close >= max(3, CLOSE_ROWS * n) and sharp:
        return True
    alike = a.min() > 0 and np.median(a / np.where(b > 0, b, np.inf)) >= ALIKE
    rare = broken <= FAR_BROKEN * n and expected >= max(FAR_ROWS, FAR_EXPECTED * n)
    return bool(alike and rare)


def _implies(b: Array, zeros: float) -> bool:
    """Whether a flag, (n,), is 1 where another one is; given its share of zeros."""
    broken = int((b == 0.0).sum())
    return bool(len(b) * zeros >= FLAGS_EXPECTED and broken <= FLAGS_BROKEN * len(b))


def _mode(values: Array, least: float) -> float:
    """A value near the least that a fifth of the rows near it have; else the least one."""
    distinct, counts = np.unique(values, return_counts=True)
    at = int(counts.argmax())
    often = counts[:at].sum() < 0.1 * counts.sum() <= 0.5 * counts[at]
    return float(distinct[at]) if often else least


def _words(name: str) -> set[str]:
    return {w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name) if len(w) > 2}
