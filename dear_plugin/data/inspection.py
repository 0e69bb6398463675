"""Inspection: marks identifiers among inferred features; logs warnings on suspicious columns."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.codes import suspected_codes
from dear_plugin.data.feature import Feature
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
SAMPLE = 1000

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
    codes = suspected_codes(values)
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
            "column %r holds numbers as text and is read as a category of %d levels: frame[%r] ="
            " pd.to_numeric(frame[%r]) makes it a number, in DiCE continuous_features=[..., %r]",
            *(feature.name, levels, *[feature.name] * 3),
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
    levels = pd.Series([c for c in feature.categories[:SAMPLE] if c is not None], dtype=object)
    return bool(pd.to_numeric(levels, errors="coerce").notna().mean() >= PARSED)
