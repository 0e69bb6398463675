"""Codes: values of a number that are probably no amounts; values in, those or their rows out.

Codes are values such as -9 or 999. Gross ones lie beyond all others by far, such as a
typing error; a few rows have them.
"""

from __future__ import annotations

import re

import numpy as np

from dear_plugin.data.kinds.cells import Array

# The most codes of a column, and the least rows of one of them.
MOST_CODES, CODE_ROWS = 5, 5
# A value with the form of a code lies at least FAR mean steps of the NEAR nearest amounts away,
FAR, NEAR = 3.0, 10
# or it has SPIKE times as many rows as any of the NEAR nearest amounts.
SPIKE = 6
# Nines, sevens, eights, and 96 to 98 with leading nines: 7, 9, 88, 97, 998, 9999.
FORM = re.compile(r"9+[6-9]?|7+|8+")
# Gross values lie so many ranges of the central nine tenths outside of it, and are at most this
# share of the rows. Numbers of a long tail are at most so many times the largest of the others.
RANGES, MOST_GROSS, TIMES = 5.0, 0.02, 100.0


def gross(values: Array) -> Array:
    """(n,) bool, whether values, (n,), lie beyond all others by far.

    Amounts of money have long tails: large ones lie beyond the range of logarithms, too. Where
    amounts are positive, a negative one may be nearer.
    """
    if len(values) * MOST_GROSS < 1.0:
        return np.zeros(len(values), dtype=bool)
    ordered = np.sort(values)
    bottom, middle, top = _quantiles(ordered)
    low, high = bottom - RANGES * (top - bottom), top + RANGES * (top - bottom)
    low = max(low, 0.0) if bottom > 0.0 else low
    if ordered[-1] > 0.0:
        least, _, most = _quantiles(ordered[np.searchsorted(ordered, 0.0, "right") :])
        others = float(ordered[-1 - int(MOST_GROSS * len(values))])
        high = max(high, min(most * (most / least) ** 2, TIMES * max(others, 0.0)))
    beyond, distance = (values < low) | (values > high), np.abs(values - middle)
    few = top > bottom and 0 < beyond.sum() <= MOST_GROSS * len(values)
    is_far = few and distance[beyond].min() >= 2.0 * distance[~beyond].max()
    return beyond if is_far else np.zeros_like(beyond)


def _quantiles(ordered: Array) -> list[float]:
    """The 5, 50 and 95 % quantiles of ascending values, (n,)."""
    return [float(ordered[round(share * (len(ordered) - 1))]) for share in (0.05, 0.5, 0.95)]


def suspected_codes(values: Array) -> list[float]:
    """Values of a number, (n,), that are probably codes such as -9 or 999, ascending.

    They have the form of codes, and lie far from the nearest amounts or have many more rows; or
    they are the only few negative ones.

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
    for cut in range(1, min(MOST_CODES, len(distinct) - 2) + 1):
        for outer, rest, near, rows in (
            (distinct[:cut], distinct[cut:], distinct[cut : cut + NEAR], counts[:cut]),
            (distinct[-cut:], distinct[:-cut], distinct[:-cut][-NEAR:], counts[-cut:]),
        ):
            gap = max(outer[0] - rest[-1], rest[0] - outer[-1])
            is_far = gap >= FAR * (near[-1] - near[0]) / (len(near) - 1)
            is_low = outer[0] < rest[0]
            if is_far and rows.max() >= CODE_ROWS and all(_has_form(v, is_low) for v in outer):
                return [float(value) for value in outer]
    return []


def _has_form(value: float, is_low: bool) -> bool:
    """Whether a value at the low or the high end looks like a code; a zero is an amount."""
    return value % 1 == 0 and (value < 0 if is_low else bool(FORM.fullmatch(f"{value:.0f}")))


def _negative(distinct: Array, counts: Array) -> list[float]:
    """The few negative whole numbers of a column, unless they are the tail of its amounts."""
    negative = distinct < 0
    codes, rows, amounts = distinct[negative], counts[negative], counts[~negative]
    if not 0 < len(codes) <= MOST_CODES or len(amounts) <= 2 * len(codes):
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
        if _has_form(distinct[i], False) and len(near) and counts[i] >= SPIKE * near.max():
            out.append(float(distinct[i]))
    return out
