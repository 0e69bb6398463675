"""Advice: what the log says of training columns, by their values; marks identifiers.

Codes are values that are no amounts, such as -9, 999 or a missing 0. They are suggested, no more.
What it says of names is in `sensitive`.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds.remedies import as_numbers, line, parsed
from dear_plugin.data.sensitive import WORD

# A category is treated as an identifier if it has more than MANY_LEVELS levels, or more than
# SOME_LEVELS and fewer rows per level than ROWS_A_LEVEL.
MANY_LEVELS, SOME_LEVELS, ROWS_A_LEVEL = 100, 12, 5
# Integers are treated as row identifiers if a share ID_DISTINCT of at least ID_ROWS is distinct,
# and if random integers of the same range would have at least ID_TIES ties but only a share
# ID_TIE_SHARE of these is observed.
ID_ROWS, ID_DISTINCT, ID_TIES, ID_TIE_SHARE = 100, 0.95, 10.0, 0.1
# With one of these words in its name, a column is one if at least this share of so many rows is
# distinct.
NAMED_DISTINCT, NAMED_ROWS = 0.5, 20
ID_WORDS = {"id", "ids", "identifier", "uuid", "guid", "ssn"}
# Text is suspected to be numbers if this share of its distinct values can be parsed.
PARSED = 0.9
# The most codes of a column; the least rows of one of them; the least distinct amounts.
MOST_CODES, CODE_ROWS, FEWEST = 5, 5, 2
# Whatever it is, a value as many ranges of the others away from them is no amount.
BEYOND = 100.0
# A value with the form of a code lies at least FAR mean steps of the NEAR nearest amounts away,
FAR, NEAR = 3.0, 10
# and a zero besides this share of their median;
BELOW = 0.12
# or it has SPIKE times as many rows as any of the NEAR nearest amounts.
SPIKE = 6
# Negative whole numbers are no codes in a column with less than so many amounts for each.
AMOUNTS_A_CODE = 3
# Nines, sevens, eights, and 96 to 98 with leading nines: 7, 9, 88, 97, 998, 9999.
FORM = re.compile(r"9+[6-9]?|7+|8+")

logger = logging.getLogger(__name__)

Array = npt.NDArray[Any]


def inspect(
    frame: pd.DataFrame,
    features: Sequence[Feature],
    amounts: Container[str],
    declared: Container[str],
) -> list[Feature]:
    """Features with suspected identifiers marked as not actionable; logs suspicious columns.

    Args:
        frame: training rows.
        features: the inferred features of its columns.
        amounts: the names of numbers that are no identifiers.
        declared: the names of features whose special values the user named.
    """
    for feature in features:
        if feature.special and feature.name not in declared:
            _tell_of_not_known(feature)
    missing = {f.name: int(frame[f.name].isna().sum()) for f in features if f.missing}
    if missing:
        logger.warning(
            "missing values, treated as a separate level that no action enters or leaves: %s of %d"
            " rows",
            ", ".join(f"{name} {count}" for name, count in missing.items()),
            len(frame),
        )
    with np.errstate(over="ignore"):  # the schema rejects a range that overflows
        return [
            _number(frame[f.name], f, f.name in amounts)
            if f.holds_numbers
            else _category(frame[f.name], f)
            for f in features
        ]


def _number(column: pd.Series, feature: Feature, is_amount: bool) -> Feature:
    values = column.dropna().to_numpy(dtype=np.float64)
    values = values[~np.isin(values, feature.special)]
    codes = _suspected_codes(values)
    if codes:
        shown = [int(code) if code.is_integer() else code for code in codes]
        logger.warning(
            "column %r has %s, which look like codes and not like amounts: if they are codes,"
            " declare them with special={%r: %s}",
            feature.name,
            shown,
            feature.name,
            shown,
        )
    elif not is_amount and _may_be_codes(feature.observed):
        logger.warning(
            "column %r has only the values %s: no value in between is proposed; if they are codes"
            " and not amounts, declare categorical=[%r]",
            feature.name,
            [int(value) for value in feature.observed],
            feature.name,
        )
    if is_amount or not _is_identifier(values, feature.name):
        return feature
    logger.warning(
        "column %r has distinct whole numbers and looks like an identifier: DEAR does not act on"
        " it unless act_on names it, other methods do; immutable=[%r] (immutable_features in"
        " Alibi) keeps it fixed, numeric=[%r] says that it is an amount",
        *[feature.name] * 3,
    )
    return dataclasses.replace(feature, actionable=False)


def _tell_of_not_known(feature: Feature) -> None:
    """Say which levels of a category are not entered, and what changes that."""
    levels = list(feature.special)
    logger.warning(
        "column %r has the levels %s, which say that the value is not known: nothing changes to"
        " them; special={%r: %s} declares that, special={%r: []} makes them levels like others",
        *(feature.name, levels, feature.name, levels, feature.name),
    )


def _may_be_codes(observed: Sequence[float]) -> bool:
    """Whether the few values of a number are whole and not rounded, as amounts often are."""
    whole = bool(observed) and all(value.is_integer() for value in observed)
    return whole and math.gcd(*map(int, observed)) == 1


def _is_identifier(values: Array, name: str) -> bool:
    """Whether values, (n,), are probably row identifiers."""
    n = len(values)
    if n < NAMED_ROWS or not (values % 1 == 0).all():
        return False
    ties = n - len(np.unique(values))
    if ID_WORDS & {word.lower() for word in WORD.findall(name)}:
        return ties <= (1.0 - NAMED_DISTINCT) * n
    if n < ID_ROWS:
        return False
    expected = n * (n - 1) / 2.0 / (values.max() - values.min() + 1)
    by_chance = expected < ID_TIES or ties > ID_TIE_SHARE * expected
    return ties <= (1.0 - ID_DISTINCT) * n and not by_chance


def _category(column: pd.Series, feature: Feature) -> Feature:
    levels, rows = len(feature.choices), len(column)
    if _is_text_of_numbers(column, feature):
        logger.warning(
            "column %r holds numbers as text and is read as a category of %d levels: %s makes it a"
            " number, in DiCE continuous_features=[..., %r]",
            *(feature.name, levels, line(feature.name, as_numbers(column)), feature.name),
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
    """Whether most of the more than two levels of an object or string column are numbers."""
    text = column.dtype == object or pd.api.types.is_string_dtype(column.dtype)
    if not text or len(feature.categories) <= 2:
        return False
    return bool(parsed(pd.Series(feature.categories, dtype=object)).notna().mean() >= PARSED)


def _suspected_codes(values: Array) -> list[float]:
    """Values of a number, (n,), that are probably codes such as -9 or 999, ascending.

    Args:
        values: the values without missing ones.
    """
    distinct, counts = np.unique(values, return_counts=True)
    codes: list[float] = []
    while found := _at_an_end(distinct, counts) or _negative(distinct, counts):
        codes += found
        kept = ~np.isin(distinct, found)
        distinct, counts = distinct[kept], counts[kept]
    codes += _spikes(distinct, counts)
    return sorted(codes) if len(codes) <= MOST_CODES else []


def _at_an_end(distinct: Array, counts: Array) -> list[float]:
    """The fewest of distinct values, (m,) ascending, at one end that lie far from the rest."""
    most = min(MOST_CODES, len(distinct) - FEWEST)
    for cut in range(1, most + 1):
        for outer, rest, rows in (
            (distinct[:cut], distinct[cut:], counts[:cut]),
            (distinct[-cut:], distinct[:-cut], counts[-cut:]),
        ):
            if _is_remote(outer, rest, rows) or _is_apart(outer, rest, rows):
                return [float(value) for value in outer]
    return []


def _is_remote(outer: Array, rest: Array, rows: Array) -> bool:
    """Whether values lie farther from the rest than its range and their own.

    Nearer ones than `BEYOND` must be whole numbers and have several rows.
    """
    gap = max(outer[0] - rest[-1], rest[0] - outer[-1])
    size = max(rest[-1] - rest[0], outer[-1] - outer[0])
    several = len(outer) + len(rest) >= 2 * MOST_CODES and rows.min() >= CODE_ROWS
    whole = not (outer % 1).any()
    return bool(gap > BEYOND * size or (gap > size and several and whole))


def _is_apart(outer: Array, rest: Array, rows: Array) -> bool:
    """Whether values have the form of codes and lie far from the nearest of the rest."""
    if rows.max() < CODE_ROWS or not all(_has_form(v, outer[0] < rest[0]) for v in outer):
        return False
    near, gap = rest[-NEAR:], outer[0] - rest[-1]
    if outer[0] < rest[0]:
        near, gap = rest[:NEAR], rest[0] - outer[-1]
        if outer[-1] == 0 and (len(rest) < NEAR or gap < BELOW * np.median(rest)):
            return False
    return bool(gap >= FAR * (near[-1] - near[0]) / (len(near) - 1))


def _has_form(value: float, low: bool) -> bool:
    """Whether a value at the low or the high end looks like a code."""
    if value % 1 != 0:
        return False
    return value <= 0 if low else bool(FORM.fullmatch(f"{value:.0f}"))


def _negative(distinct: Array, counts: Array) -> list[float]:
    """The few negative whole numbers of a column, unless they are the tail of its amounts."""
    negative = distinct < 0
    codes, rows, amounts = distinct[negative], counts[negative], counts[~negative]
    if not 0 < len(codes) <= MOST_CODES or len(amounts) < AMOUNTS_A_CODE * len(codes):
        return []
    if (codes % 1 != 0).any() or rows.max() < CODE_ROWS:
        return []
    is_tail = len(codes) > 1 and rows.min() < amounts.mean() / 2
    return [] if is_tail else [float(code) for code in codes]


def _spikes(distinct: Array, counts: Array) -> list[float]:
    """Numbers such as 99 and 9999 with many more rows than any other near them."""
    out = []
    for i in np.flatnonzero((counts >= CODE_ROWS) & (distinct >= 77)).tolist():
        near = np.delete(counts[max(i - NEAR, 0) : i + NEAR + 1], min(i, NEAR))
        if _has_form(distinct[i], low=False) and len(near) and counts[i] >= SPIKE * near.max():
            out.append(float(distinct[i]))
    return out
