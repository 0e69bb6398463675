"""Identifiers: columns that say which row it is; columns in, what makes them identifiers out.

By values: nearly all are distinct, far more than amounts of the same range would be. By its name
alone it is not certain, and the log asks.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

# Words of names, and endings: "customerId", "zip", "flight_no", "job_code".
NAMED = re.compile(
    r"(?<![a-z])(ids?|identifier|uuid|guid|ssn|zip|zipcode|postcode|case|flight|tailnum|barcode)"
    r"(?![a-z])|fips$|.(num|number|code|_no|_nr)$"
    r"|(school|child|person|stud\w*|dist|sch|county|p|user|cust\w*|firm)id$"
)
# The least rows; with a name, the least distinct values, or half the rows.
FEWEST, DISTINCT = 20, 30
# By values, in so many rows: text with this share of distinct values; whole numbers with this
# share of ties, and this one of the ties that chance would give.
ROWS, TEXT, TIES, BY_CHANCE = 50, 0.4, 0.03, 0.1
# Sparse numbers, where chance gives no ties: all of so many digits, and few of them round.
DIGITS, ROUND = 6, 0.25

Evidence = Literal["", "name", "values"]


def evidence(column: pd.Series, name: str, of_numbers: bool) -> Evidence:
    """What makes a column, (n,), an identifier: its values, its name alone, or "" for nothing."""
    known = column.dropna()
    n, distinct = len(known), known.nunique()
    if n < FEWEST:
        return ""
    by_values = n >= ROWS and distinct >= TEXT * n
    if of_numbers:
        values = known.to_numpy(dtype=np.float64)
        if (values % 1 != 0).any():
            return ""
        by_values = n >= ROWS and n - distinct <= TIES * n and _is_no_amount(values, n - distinct)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    by_name = bool(NAMED.search(words)) and distinct >= min(DISTINCT, n / 2)
    return "values" if by_values else "name" if by_name else ""


def _is_no_amount(values: npt.NDArray[Any], ties: int) -> bool:
    """Whether whole numbers, (n,), have fewer ties than amounts would have, or are sparse."""
    n, low, high = len(values), values.min(), values.max()
    expected = n * (n - 1) / 2.0 / (high - low + 1.0)
    digits = {len(f"{abs(end):.0f}") for end in (low, high)}
    is_sparse = len(digits) == 1 and min(digits) >= DIGITS and (values % 10 == 0).mean() < ROUND
    return bool(expected * BY_CHANCE >= max(ties, 1.0) or is_sparse)
