"""Inspection: what a training frame probably does not mean as it says, as logger warnings."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature, Kind
from dear_plugin.data.sensitive import WORD

# A category with so many levels, or so few rows a level, is an identifier rather than a group.
MANY_LEVELS, SOME_LEVELS, ROWS_A_LEVEL = 100, 12, 5
# Whole numbers number the rows where nearly all are distinct, and that is no chance: numbers drawn
# from their range at random would meet so often, and meet far less often than that.
ID_ROWS, ID_DISTINCT, ID_MEETINGS, ID_SHARE = 100, 0.95, 10.0, 0.1
# Nearly distinct whole numbers with one of these words in their name are identifiers anyhow.
ID_WORDS = {"id", "ids", "identifier", "uuid", "guid", "ssn"}
# Codes are few, repeated, and lie farther from the values than these span; or they are the few
# negative numbers of a column that has none otherwise.
MOST_CODES, CODE_ROWS, MOSTLY = 5, 5, 0.9
# Text is taken for numbers when so many of its distinct values are some.
PARSED = 0.9
SAMPLE = 1000

logger = logging.getLogger(__name__)

Array = npt.NDArray[Any]


def inspected(frame: pd.DataFrame, features: Sequence[Feature]) -> list[Feature]:
    """Features with identifiers marked as not actionable; says in the log what looks odd.

    Args:
        frame: training rows.
        features: what its columns were taken for.
    """
    missing = {f.name: int(frame[f.name].isna().sum()) for f in features if f.missing}
    if missing:
        logger.warning(
            "missing values, each a level of its own that no action enters or leaves: %s of %d"
            " rows",
            ", ".join(f"{name} {count}" for name, count in missing.items()),
            len(frame),
        )
    return [
        _number(frame[f.name], f) if f.kind is Kind.NUMERIC else _category(frame[f.name], f)
        for f in features
    ]


def _number(column: pd.Series, feature: Feature) -> Feature:
    values = column.dropna().to_numpy(dtype=np.float64)
    values = values[~np.isin(values, feature.special)]
    codes = suspected_codes(values)
    if codes:
        shown = [int(code) if code.is_integer() else code for code in codes]
        logger.warning(
            "column %r has %s far from its other values: codes are declared as special={%r: %s}",
            feature.name,
            shown,
            feature.name,
            shown,
        )
    if not _numbers_rows(values, feature.name):
        return feature
    logger.warning(
        "column %r has another whole number in nearly every row and looks like an identifier: it"
        " is not acted on unless act_on names it; drop it from the frame if it is one",
        feature.name,
    )
    return dataclasses.replace(feature, actionable=False)


def suspected_codes(values: Array) -> list[float]:
    """Values of a number, (n,), that are probably codes such as -9 or 999, ascending.

    Args:
        values: without missing ones.
    """
    found, counts = np.unique(values, return_counts=True)
    if len(found) < 2 * MOST_CODES:
        return []
    codes: list[float] = []
    below = found < 0
    few = 0 < below.sum() <= MOST_CODES and counts[below].min() >= CODE_ROWS
    if few and (found[below] % 1 == 0).all() and counts[~below].sum() > MOSTLY * len(values):
        codes += found[below].tolist()
    for places in (range(1, MOST_CODES + 1), range(-1, -MOST_CODES - 1, -1)):
        codes += _apart(found, counts, places)
    return sorted(set(codes))


def _apart(found: Array, counts: Array, places: range) -> list[float]:
    """The outermost values of sorted ones, counted from an end, beyond a gap wider than the rest.

    Args:
        found: distinct values, ascending.
        counts: how many rows hold each.
        places: how many values to cut off the low end (positive) or the high end (negative).
    """
    for place in places:
        low, high = (found[:place], found[place:])
        outer, rest = (low, high) if place > 0 else (high, low)
        held = counts[:place] if place > 0 else counts[place:]
        if high[0] - low[-1] > rest[-1] - rest[0] and held.min() >= CODE_ROWS:
            return [float(value) for value in outer]
    return []


def _numbers_rows(values: Array, name: str) -> bool:
    """Whether values, (n,), number the rows."""
    n = len(values)
    if n < ID_ROWS or not (values % 1 == 0).all():
        return False
    met = n - len(np.unique(values))
    if met > (1.0 - ID_DISTINCT) * n:
        return False
    expected = n * (n - 1) / 2.0 / (values.max() - values.min() + 1)
    rng = expected < ID_MEETINGS or met > ID_SHARE * expected
    return not rng or bool(ID_WORDS & {word.lower() for word in WORD.findall(name)})


def _category(column: pd.Series, feature: Feature) -> Feature:
    levels, rows = len(feature.categories), len(column)
    if _is_text_of_numbers(column, feature):
        logger.warning(
            "column %r holds numbers as text and is taken as a category of %d levels: frame[%r] ="
            " pd.to_numeric(frame[%r]) makes it a number",
            feature.name,
            levels,
            feature.name,
            feature.name,
        )
    if levels <= MANY_LEVELS and (levels <= SOME_LEVELS or rows >= ROWS_A_LEVEL * levels):
        return feature
    logger.warning(
        "column %r has %d levels in %d rows: it is not acted on unless act_on names it; merge its"
        " rare levels, or drop it if it is an identifier",
        feature.name,
        levels,
        rows,
    )
    return dataclasses.replace(feature, actionable=False)


def _is_text_of_numbers(column: pd.Series, feature: Feature) -> bool:
    """Whether the levels of an object or string column are numbers, most of them and several."""
    text = column.dtype == object or pd.api.types.is_string_dtype(column.dtype)
    if not text or len(feature.categories) <= 2:
        return False
    levels = pd.Series([c for c in feature.categories[:SAMPLE] if c is not None], dtype=object)
    return bool(pd.to_numeric(levels, errors="coerce").notna().mean() >= PARSED)
