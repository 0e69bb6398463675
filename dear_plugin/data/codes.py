"""Codes: values that are probably no amounts or categories, such as -9, 999, a missing 0, "?"."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

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
# A number takes observed values only if these are at most so many, and if between two of them,
# with so many rows each, a value of their common grid has none: of amounts, some would have it.
# In a table of few rows this share of them suffices, if it is not too few.
MOST_OBSERVED, ROWS_AT_A_GAP, SHARE_AT_A_GAP, FEWEST_AT_A_GAP = 24, 20, 0.1, 5
# Far larger numbers are no whole number of steps.
WHOLE = 1e9
# Nines, sevens, eights, and 96 to 98 with leading nines: 7, 9, 88, 97, 998, 9999.
FORM = re.compile(r"9+[6-9]?|7+|8+")
# Categories, in lower case, that say that a value is not known.
NOT_KNOWN = {"", "?", "n/a", "nan", "null", "unknown", "not known", "missing", "not available"}

Array = npt.NDArray[Any]


def suspected_codes(values: Array) -> list[float]:
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


def few_with_gaps(values: Array, places: int | None) -> tuple[float, ...]:
    """The distinct values of a number, (n,), if it may take no others; () if it may.

    The grid is the greatest common step of the values: 12, 24, 36 and 48 have no gap.

    Args:
        values: the values without codes and missing ones.
        places: the decimals of the number; None if it has no precision.
    """
    distinct, counts = np.unique(values, return_counts=True)
    few = places is not None and 2 < len(distinct) <= MOST_OBSERVED
    if not few or abs(distinct).max() > WHOLE:
        return ()
    steps = np.diff(np.round(distinct * 10.0 ** (places or 0))).astype(np.int64)
    rows = np.minimum(counts[1:], counts[:-1])
    enough = np.clip(SHARE_AT_A_GAP * len(values), FEWEST_AT_A_GAP, ROWS_AT_A_GAP)
    has_gap = (steps > np.gcd.reduce(steps)) & (rows >= enough)
    return tuple(distinct.tolist()) if has_gap.any() else ()


def not_known(categories: Iterable[Hashable]) -> tuple[str, ...]:
    """The categories that say that a value is not known, such as "?" and "unknown"."""
    text = [c for c in categories if isinstance(c, str)]
    return tuple(c for c in text if c.strip().lower() in NOT_KNOWN)
