"""Lookups: columns that are functions of a category, or of a number of few values."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.definitions.numbers import ROWS
from dear_plugin.data.feature import Feature
from dear_plugin.data.relations import Lookup, Relation

# Of neighbours with one level, those that differ are at most this share of those that would by
# chance, and these are so many.
DIFFER, FEWEST = 0.01, 30
# The most levels of a number, and the least rows of each; its levels have no wide gaps. The least
# rows of a level of a category.
MOST_LEVELS, ROWS_A_LEVEL, GAPS, ROWS_A_CATEGORY = 60, 20, 3, 5

logger = logging.getLogger(__name__)


def lookups(
    frame: pd.DataFrame, features: Sequence[Feature], exact: Sequence[Relation]
) -> list[Lookup]:
    """The columns that others determine; the log tells of those that identifiers determine.

    Args:
        frame: training rows.
        features: the features of its columns.
        exact: exact relations, whose members determine each other otherwise.
    """
    at = np.random.default_rng(0).permutation(len(frame))[:ROWS]
    some = frame[[f.name for f in features]].iloc[at]
    table = np.array([pd.factorize(some[name])[0] for name in some]).T
    pairs: dict[tuple[str, str], bool] = {}
    # Of two that determine each other a number is the base: it has an order.
    for x in sorted(range(len(features)), key=lambda j: bool(features[j].categories)):
        base, levels = features[x], int(table[:, x].max()) + 1
        sure = _decides(some[base.name], base, levels)
        likely = sure or (levels > 1 and not base.actionable and 2 * levels <= len(some))
        found = [features[j] for j in _determined(table, x)] if likely else []
        pairs |= {
            (y.name, base.name): sure
            for y in found
            if (base.name, y.name) not in pairs and not y.immutable
        }
    for each in exact:
        apart = len(each.others) > 1 and all((o, each.name) in pairs for o in each.others)
        if not apart:
            pairs = {pair: sure for pair, sure in pairs.items() if not {*pair} <= {*each.members}}
    for name, base_name in (pair for pair, sure in pairs.items() if not sure):
        logger.info(
            "column %r is a function of %r, an identifier: if by definition and not by what one"
            " person or group is, declare it with definitions={%r: [%r]}",
            *(name, base_name, name, base_name),
        )
    return [tabulated(frame, *pair) for pair, sure in pairs.items() if sure]


def tabulated(frame: pd.DataFrame, name: str, other: str) -> Lookup:
    """The commonest value of a column for each level of another one."""
    pairs = frame[[other, name]].dropna().astype(object)
    counted = pairs.value_counts(sort=True).index.to_frame(index=False)
    table = counted.drop_duplicates(other).to_numpy(dtype=object).tolist()
    return Lookup(name, other, tuple((_plain(x), _plain(y)) for x, y in table))


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def _determined(table: npt.NDArray[np.int64], x: int) -> list[int]:
    """The columns of codes, (n, m), that column x determines; -1 is no value."""
    rows = table[table[:, x] >= 0]
    chance = ((rows[1:] != rows[:-1]) & (rows[1:] >= 0) & (rows[:-1] >= 0)).mean(0)
    rows = rows[np.argsort(rows[:, x], kind="stable")]
    same = rows[1:, x] == rows[:-1, x]
    a, b = rows[1:][same], rows[:-1][same]
    known = (a >= 0) & (b >= 0)
    differ, expected = ((a != b) & known).sum(0), chance * known.sum(0)
    sure = (expected >= FEWEST) & (differ <= DIFFER * expected)
    return [int(j) for j in np.flatnonzero(sure) if j != x]


def _decides(column: pd.Series, feature: Feature, levels: int) -> bool:
    """Whether a column may determine others."""
    if feature.choices:
        return levels > 1 and ROWS_A_CATEGORY * levels <= len(column)
    values = column[~column.isin(feature.special)].dropna().to_numpy(dtype=np.float64)
    few = 1 < levels <= MOST_LEVELS and ROWS_A_LEVEL * levels <= len(values)
    if not few or not feature.actionable or (values % 1.0).any():
        return False
    steps = np.diff(np.unique(values)).astype(np.int64)
    return bool(np.ptp(values) < GAPS * levels * np.gcd.reduce(steps))
