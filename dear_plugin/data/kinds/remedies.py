"""Remedies: what a column holds that is neither numbers nor text, and what converts it."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd

# Cells of text that are looked at.
SAMPLE = 1000
# How dates are written as text: 2026-11-27, 27.11.2026, 11/27/26.
DATE = r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?([./])\d\d?\2\d{2,4}( .*)?"
POINTED = r"^\d\d?\."
# A number without a unit, and what is none of a number.
BARE, UNITS = r"^[+-]?[\d.,]+$", r"[^\d.,+-]"
DAYS = '(pd.to_datetime({0}, utc=True) - pd.Timestamp("2000-01-01", tz="UTC")).dt.days'
# By the type of its cells, what a column holds, and what makes numbers or text of it.
CONVERSIONS: dict[type, tuple[str, str]] = {
    datetime.date: ("dates", DAYS),
    datetime.timedelta: ("durations", "pd.to_timedelta({0}).dt.total_seconds() / 86400"),
    pd.Period: (
        "periods",
        '(pd.PeriodIndex({0}).to_timestamp() - pd.Timestamp("2000-01-01")).days',
    ),
    pd.Interval: ("intervals", "pd.IntervalIndex({0}).mid.astype(float)"),
    bytes: ("bytes", "{0}.map(bytes.decode, na_action='ignore')"),
    decimal.Decimal: ("decimals", "{0}.astype(float)"),
    complex: ("complex numbers, which have no order", "{0}.abs()"),
    str: ("", ""),
}
OTHERS = "values that are neither text nor numbers", "{0}.map(str)"


def complaint(name: str, column: pd.Series) -> str:
    """The error message on a column of no kind, (n,), with what makes it one; "" for others."""
    what, code = conversion(column)
    return what and f"column {name!r} holds {what} ({column.dtype}): {line(name, code)}"


def line(name: str, code: str) -> str:
    """The line that converts a column, by the code for `{0}`."""
    cells = f"frame[{name!r}]"
    return f"{cells} = {code.format(cells)}"


def conversion(column: pd.Series) -> tuple[str, str]:
    """What a column of no kind holds, and code that converts `{0}`; "" for numbers and text."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return "sparse cells", "{0}.sparse.to_dense()"
    if str(dtype).startswith("dictionary"):
        return "an Arrow dictionary", '{0}.astype(object).astype("category")'
    if isinstance(dtype, np.dtype) and dtype.kind in "iufb":  # much faster than a look at cells
        return "", ""
    cell = next(iter(column.dropna().head(1).tolist()), "")
    known = (found for kind, found in CONVERSIONS.items() if isinstance(cell, kind))
    plain = isinstance(cell, int | float | np.number | np.bool_)
    return next(known, ("", "") if plain else OTHERS)


def as_days(dates: pd.Series) -> str:
    """Code that makes days of the text `{0}` of dates, (n,); with points the day comes first."""
    pointed = bool(dates.str.contains(POINTED).any())
    return DAYS.replace("utc", "dayfirst=True, utc") if pointed else DAYS


def as_numbers(column: pd.Series) -> str:
    """Code that makes numbers of the text `{0}` of a column, (n,), and what becomes of others."""
    known, text = column.dropna().astype(str), "{0}"
    if not known.str.contains(BARE).any():
        known, text = (
            known.str.replace(UNITS, "", regex=True),
            f'{{0}}.str.replace(r"{UNITS}", "", regex=True)',
        )
    comma = _comma(known.head(SAMPLE))
    text += f'.str.replace(",", "{comma}")' * bool(known.str.contains(",").any())
    others = known.index[pd.to_numeric(known.str.replace(",", comma), errors="coerce").isna()]
    if not len(others):
        return f"pd.to_numeric({text})"
    where = f"in {len(others)} rows, first {others[:1].tolist()}"
    return f'pd.to_numeric({text}, errors="coerce")  # text that is no number {where}, gets lost'


def parsed(column: pd.Series) -> pd.Series:
    """The numbers of some text of a column, as `as_numbers` reads them, NaN for other text."""
    text = column.dropna().astype(str).head(SAMPLE)
    return pd.to_numeric(text.str.replace(",", _comma(text)), errors="coerce")


def are_dates(column: pd.Series) -> bool:
    """Whether all of some text of a column is dates."""
    text = column.dropna().astype(str).head(SAMPLE)
    return bool(len(text) and text.str.fullmatch(DATE).all())


def _comma(text: pd.Series) -> str:
    """What the commas of text become: nothing where all are between thousands, else a point."""
    commas = text[text.str.contains(",")]
    return "" if commas.str.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?").all() else "."
