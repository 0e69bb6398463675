"""Guesses from the values of single columns: few values, codes, dates, ordered levels."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.feature import DAYS, with_digits
from dear_plugin.data.numbers import WHOLE, Array, decimals

# A number takes only observed values if it has at most MOST_OBSERVED of them, and a value of their
# grid is missing between two with ROWS_AT_A_GAP rows each. Amounts would take it.
MOST_OBSERVED, ROWS_AT_A_GAP = 24, 10
# Numbers of more than FINE decimals were computed. They take only observed values if they have at
# most MOST_FINE of them, with ROWS_A_VALUE rows each on average, the most frequent one apart.
FINE, FINEST, MOST_FINE, ROWS_A_VALUE = 2, 9, 250, 3
# A step is common if ON_STEP of STEP_ROWS rows or more are multiples of it, and TAKEN of the steps
# between the 5 and 95 % quantiles occur. It binds numbers of at most so many values, and steps.
ON_STEP, STEP_ROWS, TAKEN, MOST_ON_STEPS, MOST_STEPS = 0.99, 50, 0.02, 60, 10_000
ROUND = [10.0**k * a for k in range(7) for a in (1.0, 2.0, 2.5, 5.0) if 10.0**k * a % 1.0 == 0.0]
# The largest number of codes of a column, and the smallest number of rows of one of them.
MOST_CODES, CODE_ROWS = 5, 5
# A code has the form of one, and lies FAR mean steps of its NEAR_CODES nearest amounts away,
FAR, NEAR_CODES = 3.0, 10
# or it has SPIKE times as many rows as any of these amounts.
SPIKE = 6
# The form of codes: sevens, eights, nines, and nines before 6 to 8: 7, 88, 97, 998, 9999.
FORM = re.compile(r"9+[6-9]?|7+|8+")
# Dates and times as whole numbers: their forms, the pattern of each part, and its digits.
FORMS = ["Ymd", "Ym", "mY", "Yj", "YW", "YQ", "dmY", "mdY", "ymd", "dmy", "mdy", "YmdHMS", "YmdHM"]
FORMS += ["YmdH", "md", "dm", "HM", "HMS"]
PART = {"Y": r"(19|20)\d\d", "y": r"\d\d", "m": "(0[1-9]|1[0-2])", "d": r"(0[1-9]|[12]\d|3[01])"}
PART |= {"j": r"([0-2]\d\d|3[0-6]\d)", "W": r"([0-4]\d|5[0-3])", "Q": "[1-4]"}
PART |= {"H": r"([01]\d|2[0-4])", "M": r"[0-5]\d", "S": r"[0-5]\d"}
DIGITS = {"Y": 4, "j": 3, "Q": 1}
# The number of values that are tested, the largest probability that they are dates by chance, and
# the number of dates that one other value counts against.
LOOKED_AT, CHANCE, A_MISS = 200, 1e-4, 10


def few_values(values: Array, places: int | None) -> tuple[float, ...]:
    """The values that a number, (n,), is limited to: with gaps, or on a step; () for no limit."""
    large = np.abs(values).max(initial=0.0) / WHOLE
    if large > 1.0 and places is not None:  # 3.3e12 and 6.6e12 have gaps as 33 and 66 have
        unit = 10.0 ** math.ceil(math.log10(large))
        few = () if (values % unit).any() else few_values(values / unit, places)
        return tuple(value * unit for value in few)
    found = on_steps(values) if len(np.unique(values)) <= MOST_ON_STEPS else values[:0]
    kept = values[np.isin(values, found)] if len(found) else values
    return few_with_gaps(kept, places) or tuple(found.tolist())


def few_with_gaps(values: Array, places: int | None) -> tuple[float, ...]:
    """The distinct values of a number, (n,), if their grid has gaps; () if it has none.

    The grid is the greatest common step of the values: 12, 24, 36 and 48 have no gap. Scaled
    counts, and their logarithms, have no common step; computed in two ways, they may differ in the
    last bits (the sines of 45 and 135 degrees), and are one value.

    Args:
        values: the values without codes and missing ones.
        places: the decimals of the number; None if it has no precision.
    """
    distinct, counts = np.unique(values, return_counts=True)
    size = np.abs(values).max(initial=0.0) or 1.0
    whole = np.round(distinct / size * 10.0**FINEST if places is None else distinct * 10.0**places)
    first = np.flatnonzero(np.diff(whole, prepend=-np.inf))
    distinct, counts = distinct[first], np.add.reduceat(counts, first)
    is_fine = places is None or places > FINE
    is_fine &= len(values) - counts.max(initial=0) >= ROWS_A_VALUE * (len(distinct) - 1)
    most = MOST_FINE if is_fine else MOST_OBSERVED * (places is not None)
    if not 2 < len(distinct) <= most:
        return ()
    steps = np.diff(whole[first]).astype(np.int64)
    rows = np.minimum(counts[1:], counts[:-1])
    has_gap = (steps > (1 if is_fine else np.gcd.reduce(steps))) & (rows >= ROWS_AT_A_GAP)
    return tuple(distinct.tolist()) if has_gap.any() else ()


def on_steps(values: Array) -> Array:
    """(q,) all values on the common step of a number, (n,), ascending; none without a step.

    The step is the largest one of which nearly all rows are multiples, counted from the most
    frequent value. It is larger than the last decimal. Candidates are the greatest common step of
    frequent values, and round numbers.
    """
    distinct, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    frequent = order[: int(np.searchsorted(np.cumsum(counts[order]), ON_STEP * len(values))) + 1]
    n = len(values)
    many = len(frequent) > 2 and n >= STEP_ROWS and np.abs(distinct).max() <= WHOLE
    places = decimals(distinct[frequent]) if many else None
    if places is None:
        return distinct[:0]
    start, unit, least = distinct[frequent[0]], 10.0**-places, ON_STEP * len(values)
    whole, some = (np.round((v - start) / unit) for v in (distinct, values[:: n // STEP_ROWS]))
    step = float(np.gcd.reduce(whole[frequent].astype(np.int64)))
    for size in ROUND:  # in few rows first, which is faster
        if size > step and (some % size == 0).mean() > 0.5:
            step = size if counts[whole % size == 0].sum() >= least else step
    low, high = np.quantile(values, (0.05, 0.95))
    taken, size = int(((distinct >= low) & (distinct <= high)).sum()), step * unit
    is_decimal = step <= 1.0 or (size < 1.0 and math.log10(step) % 1.0 == 0.0)
    first, last = math.ceil(whole[0] / step), math.floor(whole[-1] / step)
    few = taken < max(2.0, TAKEN * (high - low) / size)
    if is_decimal or few or last - first >= MOST_STEPS:
        return distinct[:0]
    return np.asarray(np.round(start + size * np.arange(first, last + 1), places))


def suspected_codes(values: Array) -> list[float]:
    """The values of a number, (n,), that are probably codes such as -9 or 999, ascending.

    They have the form of codes, and lie far from the nearest amounts or have many more rows; or
    they are the only negative values, and few.

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
    """The smallest set of values at one end of (m,) ascending ones that lies far from the rest."""
    for cut in range(1, min(MOST_CODES, len(distinct) - 2) + 1):
        for outer, rest, near, rows in (
            (distinct[:cut], distinct[cut:], distinct[cut : cut + NEAR_CODES], counts[:cut]),
            (distinct[-cut:], distinct[:-cut], distinct[:-cut][-NEAR_CODES:], counts[-cut:]),
        ):
            gap = max(outer[0] - rest[-1], rest[0] - outer[-1])
            is_far = gap >= FAR * (near[-1] - near[0]) / (len(near) - 1)
            is_low = outer[0] < rest[0]
            if is_far and rows.max() >= CODE_ROWS and all(_has_form(v, is_low) for v in outer):
                return [float(value) for value in outer]
    return []


def _has_form(value: float, is_low: bool) -> bool:
    """Whether a value at the low or the high end has the form of a code; zero is an amount."""
    return value % 1 == 0 and (value < 0 if is_low else bool(FORM.fullmatch(f"{value:.0f}")))


def _negative(distinct: Array, counts: Array) -> list[float]:
    """The negative values of a column if they are few and whole, and no tail of its amounts."""
    negative = distinct < 0
    codes, rows, amounts = distinct[negative], counts[negative], counts[~negative]
    if not 0 < len(codes) <= MOST_CODES or len(amounts) <= 2 * len(codes):
        return []
    if (codes % 1 != 0).any() or rows.max() < CODE_ROWS:
        return []
    is_tail = len(codes) > 1 and rows.min() < amounts.mean() / 2
    return [] if is_tail else [float(code) for code in codes]


def _spikes(distinct: Array, counts: Array) -> list[float]:
    """The values such as 99 and 9999 with many more rows than all values near them."""
    out = []
    for i in np.flatnonzero((counts >= CODE_ROWS) & (distinct >= 77)).tolist():
        near = np.delete(counts[max(i - NEAR_CODES, 0) : i + NEAR_CODES + 1], min(i, NEAR_CODES))
        if _has_form(distinct[i], False) and len(near) and counts[i] >= SPIKE * near.max():
            out.append(float(distinct[i]))
    return out


def form_of_dates(values: Array) -> str:
    """The form of dates or times that numbers, (n,), have, such as %Y%m%d; "" for none.

    They are amounts if most whole numbers between them have this form, too.
    """
    whole = np.unique(values[values > 0.0])
    if len(whole) < 3 or (whole % 1.0).any() or not 1e3 < whole[-1] < 1e15:
        return ""
    known = whole.astype(np.int64)
    step = np.gcd.reduce(known - known[0])
    count = np.linspace(0, (known[-1] - known[0]) // step, LOOKED_AT - 1).astype(np.int64)
    even = count * step + known[0]
    some = [each[:: 1 + len(each) // LOOKED_AT].tolist() for each in (known, even)]
    for form in FORMS:
        digits, pattern = sum(DIGITS.get(c, 2) for c in form), "".join(PART[c] for c in form)
        several = some[0][:: len(some[0]) // 3] if digits <= len(str(known[-1])) + 1 else []
        if not any(re.fullmatch(pattern, f"{v:0{digits}}") for v in several):
            continue  # of most columns, much faster
        fits, chance = ([bool(re.fullmatch(pattern, f"{v:0{digits}}")) for v in s] for s in some)
        dates = sum(fits) - A_MISS * fits.count(False)
        if dates > 0 and (sum(chance) / len(chance)) ** dates <= CHANCE:
            return "".join(f"%{c}" for c in form)
    return ""


# Scales of words: ";" separates scales, "|" the places of one, "," the words of a place.
WORDS = (
    "very low|low|below average|medium,moderate|average|above average|high|very high;"
    "very poor|poor|fair|below average|average,typical|above average|good|very good|premium|"
    "excellent|ideal,outstanding;bad|fair|good|better|very good|best;rarely,seldom|"
    "occasionally,occas|sometimes,some|regularly,regul|most of time|often,frequently,freq|"
    "usually|heavy|always;part,parttime,part time|full,fulltime,full time;trivial|minor,"
    "minimal,mild|moderate|major,severe|total;small|medium|large,big|extra large;slightly|"
    "somewhat,moderately|very|extremely;strongly disagree|disagree|neutral|agree|"
    "strongly agree;uneducated,primary,elementary|less than high,lt hs,below college|"
    "high school,hs,highsc,high,secondary|some college,somcol|associate,junior college|"
    "college|bachelor,bach|graduate,grad,gradwk|master,masters,post graduate|phd,md,doctor,"
    "doctorate,advanced;hauptschule|realschule|gymnasium;blue,basic,bronze|silver|gold|"
    "platinum;travel rarely|travel frequently;month to month|one year|two year"
)
SCALES = [
    {word: place for place, words in enumerate(each.split("|")) for word in words.split(",")}
    for each in WORDS.split(";")
]
# A level before all others, and the words that may stand in a range.
NOTHING = re.compile(r"(none|no|non|never|not|zero|nothing|do not)( .*)?$")
NUMBER = r"\$?(\d[\d,]*(?:\.\d+)?)((?:[kKmM](?![a-zA-Z]))?)"
SIGNED = f"[-−+]?{NUMBER}"
SAID = re.compile(
    r"less|than|under|over|above|below|to|and|or|more|up|[lg][te]|years?|yrs?|months?|weeks?"
    r"|days?|hours?|k[mg]|h|t|inf"
)
BELOW, ABOVE = r"<|\bl[te]\b|\blt|under|less|below", r">|\+|\bg[et]\b|over|above|more"
MOST_IN_ORDER = 60

Key = Callable[[str], Any]


def order_of_ranges(column: pd.Series) -> tuple[str, ...] | None:
    """The levels of a column, (n,), in ascending order if they are ranges; else None."""
    dtype = column.dtype
    is_category = isinstance(dtype, pd.CategoricalDtype)
    if not (is_category or pd.api.types.is_string_dtype(dtype)) or (is_category and dtype.ordered):
        return None
    levels = list(dtype.categories if is_category else column.dropna().unique())
    return ranges_in_order(levels) or None


def ranges_in_order(levels: Sequence[Hashable]) -> tuple[str, ...]:
    """The levels in order if all are numbers or ranges, and at least one is a range; else ()."""
    if all(isinstance(level, str) and re.fullmatch(SIGNED, level.strip()) for level in levels):
        return ()
    return _in_order(levels, _range_of)


def words_in_order(levels: Sequence[Hashable]) -> tuple[str, ...]:
    """The levels in order if they are words of one scale, or grades such as "B+"; else ()."""
    keys: list[Key] = [_grade_of, *(partial(_place, scale=scale) for scale in SCALES)]
    return next(filter(None, (_in_order(levels, key) for key in keys)), ())


def _in_order(text: Sequence[Hashable], key: Key) -> tuple[str, ...]:
    """Three or more levels sorted by a key that all but a "none" level have; else ()."""
    levels = [level for level in text if isinstance(level, str)]
    if not 3 <= len(levels) <= MOST_IN_ORDER or len(levels) < len(text):
        return ()
    none = [level for level in levels if NOTHING.match(_plain(level))]
    keys = {level: key(level) for level in levels if level not in none}
    different = len(set(keys.values())) == len(keys) and None not in keys.values()
    if not (different and len(none) < 2 <= len(keys)):
        return ()
    return (*none, *sorted(keys, key=lambda level: keys[level]))


def _plain(level: str) -> str:
    """A level in lower case, with blanks between words, without a number before them."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"^\d+[._] ?(?=\D)", "", level))
    return re.sub(r"[\W_]+", " ", words.replace("<", "lt ")).lower().strip()


def _place(level: str, scale: dict[str, int]) -> int | None:
    """The place of a level in a scale: that of the longest word that it starts with."""
    words = _plain(level)
    starts = [each for each in scale if words == each or words.startswith(f"{each} ")]
    return scale[max(starts, key=len)] if starts else None


def _grade_of(level: str) -> tuple[str, int, str] | None:
    """The key that sorts grades such as A, A- and B2; None for other levels."""
    if not re.fullmatch(r"[A-H][+-]?\d?", level):
        return None
    return level[0], {"+": -1, "-": 1}.get(level[1:2], 0), level[1:]


def _range_of(level: str) -> tuple[float, int] | None:
    """The first number of a range, and -1, 0 or 1 if the range is below, at or above it."""
    found, rest = re.findall(NUMBER, level), re.sub(NUMBER, " ", level).lower().replace("_", " ")
    most = 2 if rest.strip(" '’") else 1  # 1'234 is one number
    if not 1 <= len(found) <= most or not all(map(SAID.fullmatch, re.findall(r"[a-z]+", rest))):
        return None
    unit = {"k": 1e3, "m": 1e6}.get((found[0][1] or found[-1][1]).lower(), 1.0)
    above = len(found) == 2 or bool(re.search(ABOVE, rest))
    unit *= -1.0 if re.match(r"\D*(?<!\w)[-−]\$?\d", level) else 1.0  # (-1.2, 0.5], not under-18
    return float(found[0][0].replace(",", "")) * unit, (
        -1 if re.search(BELOW, rest) else int(above)
    )


# Labels of unknown values, in lower case.
NOT_KNOWN = {"", "?", "n/a", "nan", "null", "unknown", "not known", "missing", "not available"} | {
    *("no answer", "not stated", "k.a.", "k. a.", "keine angabe", "unbekannt"),
}


def not_known(categories: Iterable[Hashable]) -> tuple[str, ...]:
    """The categories that mark unknown values, such as "?" and "unknown"."""
    text = [c for c in categories if isinstance(c, str)]
    return tuple(c for c in text if c.strip().lower() in NOT_KNOWN)


def spellings(levels: Iterable[Hashable]) -> list[list[str]]:
    """The groups of levels that differ only in case or spaces, and are most likely one level."""
    found: dict[str, list[str]] = {}
    for level in (each for each in levels if each is not None):
        found.setdefault("".join(str(level).casefold().split()), []).append(str(level))
    return [own for own in found.values() if len(own) > 1]


# The forms of dates as text, and of times after them.
DAY = [
    f"{o[0]}{s}{o[1]}{s}{o[2]}" for s in "/-. " for o in ("dmY", "dmy", "mdY", "mdy", "Ymd", "ymd")
]
DAY += ["dmY", "mdY", "Ymd", "d b Y", "b d, Y", "d B Y", "B d, Y", "d-b-Y", "d-b-y", "B Y", "b Y"]
DAY += ["b-Y", "b-y", "Y-m", "Y/m", "m/Y", "m-Y", "Ym"]
TIMES = ["H:M", "H:M:S", "H:M:S.f", "HMS", "H:M:Sz", "H:M:S.fz", "I:M p", "I:M:S p"]
TIME_FORMS = ["", *(f"{s}{t}" for s in " T" for t in TIMES)]
DATE_FORMS = [re.sub("([a-zA-SU-Z])", r"%\1", day + time) for day in DAY for time in TIME_FORMS]


def as_days(column: pd.Series) -> str:
    """The code that turns the text `{0}` of a column, (n,), into days; "" if it holds no dates.

    Among several forms that fit all cells, the one with the shortest span of time is taken.
    """
    text, coerce, lost = with_digits(column)
    spans: dict[str, pd.Timedelta] = {}
    marks = {*re.sub(r"[\w+]", "", text.iloc[0])} if len(text) else {""}
    for form in DATE_FORMS:
        if {*re.sub(r"[\w%]", "", form)} - {":"} != marks - {":"}:
            continue  # much faster
        with suppress(ValueError):
            datetime.datetime.strptime(text.iloc[0], form)
            spans[form] = np.ptp(pd.to_datetime(text.unique(), format=form, utc=True))
    form = min(spans, key=lambda each: spans[each], default="")
    return form and DAYS.replace("utc", f'format="{form}"{coerce}, utc') + lost
