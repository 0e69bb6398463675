"""Orders of numbers, columns that a category determines, and groups of flags.

A definition has a sharp edge: few of the rows near it break it. Of a habit, or of columns in
unlike units, 5 to 100 % of the near rows do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from dear_plugin.data.cells import is_one
from dear_plugin.data.dummies import shared
from dear_plugin.data.feature import Feature, Mask
from dear_plugin.data.forms import MOST_LEVELS, ROWS, Numbers, determined
from dear_plugin.data.numbers import Array, ordinary_values
from dear_plugin.data.relations import Relation

Pair = tuple[str, str]
# Rows that break an order by more than the usual distance are errors; their largest share.
ORDER_ERRORS = 0.025
# Values are near if they differ by at most NEAR of the smaller central range. NEAR_ROWS is the
# smallest share of near rows, NEAR_AKIN that of columns whose names share a word. Values are close
# if they differ by at most CLOSE of the upper one; CLOSE_ROWS is the smallest share of close rows.
NEAR, NEAR_ROWS, NEAR_AKIN, CLOSE, CLOSE_ROWS = 0.1, 0.02, 0.004, 0.2, 0.005
# The largest share of near rows that break an order. If the columns were independent, at least
# ODDS times as many rows would break it, and at least the share EXPECTED.
BROKEN, ODDS, EXPECTED = 0.02, 10.0, 0.02
# For columns without near values: the smallest median ratio, the largest share of rows that break
# the order, and the smallest expected share and number under independence.
ALIKE, FAR_BROKEN, FAR_EXPECTED, FAR_ROWS = 0.5, 0.0005, 0.0015, 5.0
# For two flags: the smallest expected number of rows that break it, and the largest share.
FLAGS_EXPECTED, FLAGS_BROKEN = 20.0, 0.005
ORDER_ROWS, HEAD = 30, 500


def orders(numbers: Numbers, found: Sequence[Relation]) -> list[Pair]:
    """The orders of numbers. Logarithms, squares and roots are left out, as theirs follow."""
    exact = [each for each in found if each.is_definition]
    powers = [each for each in exact if each.log and len(each.others) == 1]
    own = [p.name for p in powers if p.shift is not None or p.weights[0] not in (1.0, -1.0)]
    sums = [each for each in exact if each.weights and not each.log]
    return [*dict.fromkeys(chain(sharp(numbers, own), implied(sums, numbers)))]


def sharp(numbers: Numbers, skipped: Iterable[str]) -> list[Pair]:
    """The orders of numbers, without those of the skipped columns."""
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
            if names[j] in skipped or here.sum() < ORDER_ROWS:
                continue
            if flag[i]:
                is_order = _implies(b[here], float((b[known[:, j]] == 0.0).mean()))
            else:
                akin = bool(words[i] & words[j])
                is_order = _is_order(a[here], b[here], min(unit[i], unit[j]), akin)
            found += [(names[i], names[j])] * is_order
    return found


def implied(sums: Iterable[Relation], numbers: Numbers) -> list[Pair]:
    """The orders that sums imply: each part is at most the total, if no part is negative."""
    low, found = np.nanmin(numbers.values, 0, initial=np.inf), list[Pair]()
    least = dict(zip(numbers.names, low, strict=True))
    for each in sums:
        terms = dict(zip(each.members, (-1.0, *each.weights), strict=True))
        for total, own in terms.items() if each.constant == 0.0 else ():
            parts = {name: -k / own for name, k in terms.items() if name != total}
            if len(parts) > 1 and all(k > 0 and least[name] >= 0 for name, k in parts.items()):
                found += [(name, total) for name, k in parts.items() if k >= 1.0]
    return found


def _is_order(a: Array, b: Array, unit: float, akin: bool) -> bool:
    """Whether a <= b, (n,) each, holds by more than chance."""
    gap = b - a
    kept = gap >= -max(float(np.median(np.abs(gap))), unit)
    if kept.mean() < 1.0 - ORDER_ERRORS:
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
    """Whether a flag is 1 wherever another one is; b, (n,), are its values there."""
    broken = int((b == 0.0).sum())
    return bool(len(b) * zeros >= FLAGS_EXPECTED and broken <= FLAGS_BROKEN * len(b))


def _mode(values: Array, least: float) -> float:
    """A frequent value near the smallest one, or else the smallest one."""
    distinct, counts = np.unique(values, return_counts=True)
    at = int(counts.argmax())
    often = counts[:at].sum() < 0.1 * counts.sum() <= 0.5 * counts[at]
    return float(distinct[at]) if often else least


def _words(name: str) -> set[str]:
    return {w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name) if len(w) > 2}


# The smallest number of rows per level of a number, the widest gap between its levels in steps,
# and the smallest number of rows per level of a category.
ROWS_A_LEVEL, GAPS, ROWS_A_CATEGORY = 20, 3, 5


def lookups(
    frame: pd.DataFrame, features: Sequence[Feature], exact: Sequence[Relation]
) -> list[Pair]:
    """The pairs (column, other) in which the other column determines the column.

    Args:
        frame: training rows.
        features: the features of its columns.
        exact: definitions; their members are not paired.
    """
    at = np.random.default_rng(0).permutation(len(frame))[:ROWS]
    some = frame[[f.name for f in features]].iloc[at]
    table = np.array([pd.factorize(some[name])[0] for name in some]).T
    pairs: dict[Pair, None] = {}
    # If two columns determine each other, the number is the base, since it has an order.
    for x in sorted(range(len(features)), key=lambda j: bool(features[j].categories)):
        base = features[x]
        decides = _decides(some[base.name], base, int(table[:, x].max()) + 1)
        found = [features[j] for j in determined(table, x)] if decides else []
        pairs |= {
            (y.name, base.name): None
            for y in found
            if (base.name, y.name) not in pairs and not y.immutable
        }
    for each in exact:
        apart = len(each.others) > 1 and all((o, each.name) in pairs for o in each.others)
        if not apart:
            pairs = {pair: None for pair in pairs if not {*pair} <= {*each.members}}
    return [*pairs]


def _decides(column: pd.Series, feature: Feature, levels: int) -> bool:
    """Whether a column has enough rows per level to determine others."""
    if feature.choices:
        return levels > 1 and ROWS_A_CATEGORY * levels <= len(column)
    values = ordinary_values(column, feature.special)
    values = values[~np.isnan(values)]
    few = 1 < levels <= MOST_LEVELS and ROWS_A_LEVEL * levels <= len(values)
    if not few or not feature.actionable or (values % 1.0).any():
        return False
    steps = np.diff(np.unique(values)).astype(np.int64)
    return bool(np.ptp(values) < GAPS * levels * np.gcd.reduce(steps))


# The smallest number of rows that is evidence of a group.
FEWEST_ROWS = 20


def groups(frame: pd.DataFrame, features: Iterable[Feature]) -> list[tuple[str, ...]]:
    """The groups of columns of which exactly one is 1 in every row; none for few rows.

    A group starts with one column. Columns that are 1 where all others of the group are 0 are
    added until every row has a 1; among several, the one with the most similar name is first.

    Args:
        frame: training rows.
        features: the features of its columns.
    """
    own = [feature for feature in features if feature.is_flag]
    names = [feature.name for feature in own]
    if len(names) < 2 or len(frame) < FEWEST_ROWS:
        return []
    flags = np.stack([is_one(each, frame[each.name]) for each in own], 1)
    counts = flags.astype(np.float32)
    apart, left, out = counts.T @ counts == 0, set(range(len(names))), list[tuple[str, ...]]()
    for first in range(len(names)):
        found = _group(first, names, flags, apart, left) if first in left else ()
        if found:
            left -= set(found)
            out.append(tuple(names[j] for j in sorted(found)))
    return out


def _group(
    first: int, names: Sequence[str], flags: Mask, apart: Mask, left: Iterable[int]
) -> tuple[int, ...]:
    """The group of the column `first`, given (n, q) bool flags; () if some row has no 1."""
    found, covered, free = [first], flags[:, first].copy(), set(left) - {first}
    while not covered.all():
        free = {j for j in free if apart[found[-1], j]}
        some = [j for j in free if flags[int(covered.argmin()), j]]
        if not some:
            return ()
        alike = {j: len(shared([names[first], names[j]])) for j in some}
        found.append(min(some, key=lambda j: (-alike[j], abs(j - first))))
        covered |= flags[:, found[-1]]
    return tuple(found)
