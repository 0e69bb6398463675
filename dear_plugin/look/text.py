"""What single columns of text are: levels with an order, levels that say nothing, dates."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.feature import DAYS, with_digits

# One scale a line, its places separated by "|", the words of a place by ",".
WORDS = """very low|low|below average|medium,moderate|average|above average|high|very high
very poor|poor|fair|below average|average,typical|above average|good|very good|premium|\
excellent|ideal,outstanding
bad|fair|good|better|very good|best
rarely,seldom|occasionally,occas|sometimes,some|regularly,regul|most of time|often,frequently,\
freq|usually|heavy|always
part,parttime,part time|full,fulltime,full time
trivial|minor,minimal,mild|moderate|major,severe|total
small|medium|large,big|extra large
slightly|somewhat,moderately|very|extremely
strongly disagree|disagree|neutral|agree|strongly agree
uneducated,primary,elementary|less than high,lt hs,below college|high school,hs,highsc,high,\
secondary|some college,somcol|associate,junior college|college|bachelor,bach|graduate,grad,\
gradwk|master,masters,post graduate|phd,md,doctor,doctorate,advanced
hauptschule|realschule|gymnasium
blue,basic,bronze|silver|gold|platinum
travel rarely|travel frequently
month to month|one year|two year"""
SCALES = [
    {word: place for place, words in enumerate(line.split("|")) for word in words.split(",")}
    for line in WORDS.splitlines()
]
# A level before all others, and the words that may stand in a range.
NONE = re.compile(r"(none|no|non|never|not|zero|nothing|do not)( .*)?$")
NUMBER = r"\$?(\d[\d,]*(?:\.\d+)?)((?:[kKmM](?![a-zA-Z]))?)"
SAID = re.compile(
    r"less|than|under|over|above|below|to|and|or|more|up|[lg][te]|years|months|days|hours|k[mg]|h|t"
)
BELOW, ABOVE = r"<|\bl[te]\b|\blt|under|less|below", r">|\+|\bg[et]\b|over|above|more"
MOST = 60

Key = Callable[[str], Any]


def order_of_ranges(column: pd.Series) -> tuple[str, ...] | None:
    """The levels of a column, (n,), from the least to the greatest, if they are ranges."""
    dtype = column.dtype
    is_category = isinstance(dtype, pd.CategoricalDtype)
    is_text = pd.api.types.is_string_dtype(column.dropna())
    if not (is_text or is_category) or (is_category and dtype.ordered):
        return None
    levels = list(dtype.categories if is_category else column.dropna().unique())
    return ranges_in_order(levels) or None


def ranges_in_order(levels: Sequence[Hashable]) -> tuple[str, ...]:
    """Levels of which all are numbers or ranges, and one at least is no plain number; else ()."""
    if all(isinstance(level, str) and re.fullmatch(NUMBER, level.strip()) for level in levels):
        return ()
    return _in_order(levels, _range_of)


def words_in_order(levels: Sequence[Hashable]) -> tuple[str, ...]:
    """Levels that are words of one scale, or grades such as "B+"; else ()."""
    keys: list[Key] = [_grade_of, *(partial(_place, scale=scale) for scale in SCALES)]
    return next(filter(None, (_in_order(levels, key) for key in keys)), ())


def _in_order(text: Sequence[Hashable], key: Key) -> tuple[str, ...]:
    """Three or more levels by a key that each of them has, but one that says none; else ()."""
    levels = [level for level in text if isinstance(level, str)]
    if not 3 <= len(levels) <= MOST or len(levels) < len(text):
        return ()
    none = [level for level in levels if NONE.match(_plain(level))]
    keys = {level: key(level) for level in levels if level not in none}
    different = len(set(keys.values())) == len(keys) and None not in keys.values()
    if not (different and len(none) < 2 <= len(keys)):
        return ()
    return (*none, *sorted(keys, key=lambda level: keys[level]))


def _plain(level: str) -> str:
    """A level in lower case, its words separated by blanks, without a number before it."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"^\d+[._] ?(?=\D)", "", level))
    return re.sub(r"[\W_]+", " ", words.replace("<", "lt ")).lower().strip()


def _place(level: str, scale: dict[str, int]) -> int | None:
    """The place of a level in a scale: that of the longest of its words that it begins with."""
    words = _plain(level)
    starts = [each for each in scale if words == each or words.startswith(f"{each} ")]
    return scale[max(starts, key=len)] if starts else None


def _grade_of(level: str) -> tuple[str, int, str] | None:
    """The place of a grade: A, A-, B2."""
    if not re.fullmatch(r"[A-H][+-]?\d?", level):
        return None
    return level[0], {"+": -1, "-": 1}.get(level[1:2], 0), level[1:]


def _range_of(level: str) -> tuple[float, int] | None:
    """The first number of a range, and whether it is below, at or above it."""
    found, rest = re.findall(NUMBER, level), re.sub(NUMBER, " ", level).lower().replace("_", " ")
    if not 1 <= len(found) <= 2 or not all(map(SAID.fullmatch, re.findall(r"[a-z]+", rest))):
        return None
    unit = {"k": 1e3, "m": 1e6}.get((found[0][1] or found[-1][1]).lower(), 1.0)
    above = len(found) == 2 or bool(re.search(ABOVE, rest))
    return float(found[0][0].replace(",", "")) * unit, (
        -1 if re.search(BELOW, rest) else int(above)
    )


# Labels, in lower case, that say that a value is not known.
NOT_KNOWN = {"", "?", "n/a", "nan", "null", "unknown", "not known", "missing", "not available"} | {
    *("no answer", "not stated", "k.a.", "k. a.", "keine angabe", "unbekannt"),
}


def not_known(categories: Iterable[Hashable]) -> tuple[str, ...]:
    """The categories that say that a value is not known, such as "?" and "unknown"."""
    text = [c for c in categories if isinstance(c, str)]
    return tuple(c for c in text if c.strip().lower() in NOT_KNOWN)


def spellings(levels: Iterable[Hashable]) -> list[list[str]]:
    """The levels that are most likely one, which an action must not change to another."""
    found: dict[str, list[str]] = {}
    for level in (each for each in levels if each is not None):
        found.setdefault("".join(str(level).casefold().split()), []).append(str(level))
    return [own for own in found.values() if len(own) > 1]


# How dates, and the times after them, are written as text.
DAY = [
    f"{o[0]}{s}{o[1]}{s}{o[2]}" for s in "/-. " for o in ("dmY", "dmy", "mdY", "mdy", "Ymd", "ymd")
]
DAY += ["dmY", "mdY", "Ymd", "d b Y", "b d, Y", "d B Y", "B d, Y", "d-b-Y", "d-b-y", "B Y", "b Y"]
DAY += ["b-Y", "b-y", "Y-m", "Y/m", "m/Y", "m-Y", "Ym"]
TIME_FORMS = ["", *(f"{s}{t}" for s in " T" for t in ("H:M", "H:M:S", "H:M:S.f", "HMS", "H:M:Sz"))]
DATE_FORMS = [re.sub("([a-zA-SU-Z])", r"%\1", day + time) for day in DAY for time in TIME_FORMS]


def as_days(column: pd.Series) -> str:
    """Code that makes days of the text `{0}` of a column, (n,), as `as_numbers` makes numbers.

    Of forms that all of it has, it is that of the shortest time between the first and the last.
    """
    text, coerce, lost = with_digits(column)
    spans: dict[str, pd.Timedelta] = {}
    marks = {*re.sub(r"[\w+]", "", text.iloc[0])} if len(text) else {""}
    for form in DATE_FORMS:
        if {*re.sub(r"[\w%]", "", form)} - {":"} != marks - {":"}:
            continue  # much faster
        try:
            datetime.datetime.strptime(text.iloc[0], form)
            spans[form] = np.ptp(pd.to_datetime(text.unique(), format=form, utc=True))
        except ValueError:
            continue
    form = min(spans, key=lambda each: spans[each], default="")
    return form and DAYS.replace("utc", f'format="{form}"{coerce}, utc') + lost
