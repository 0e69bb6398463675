"""What the page does not offer: changes that leave the applicant worse off."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

from dear_plugin.data.feature import Feature
from dear_plugin.data.names import words

# Words of names in lower case with "_" around each: neither is worse, more is, or less is. The
# first that a name has decide.
WORSE = {
    0: r"_(loans?|fees?|costs?|expens\w*|purpose|distance)_",
    -1: r"_(gaps?|holes?|missed|late|unemploy\w*|jobless\w*|debts?|dti|arrears|loss(es)?|delinq\w*"
    r"|overdue|default(s|ed)?|bankrupt\w*|failures?|failed|absen\w*|convictions?|arrests?|complaints?)_",
    1: r"_(educ\w*|school\w*|degrees?|qualif\w*|diplomas?|certif\w*|skills?|training|experience"
    r"|incomes?|salary|salaries|wages?|earnings?|savings?|assets?|wealth)_",
}
# How levels begin, the least first: answers, and degrees; "1st" and "12" are before the third.
STEPS = (
    "(no|none|not|never|false|without|illiterate|uneducated|preschool)|(basic|primary|elem)"
    "|(yes|true|hs|high|secondary|special|some|assoc|college)|(bachelor|university|degree|graduat)"
    "|(master|post|prof)|(doctor|phd)"
)


def better(feature: Feature) -> int:
    """1 where less of a feature leaves an applicant worse off, -1 where more does, else 0.

    A direction that the schema states decides in the place of names.
    """
    name = words(f"{feature.name} {feature.label}")
    found = (way for way, pattern in WORSE.items() if re.search(pattern, name))
    return 0 if feature.direction else next(found, 0)


def not_worse(feature: Feature, way: int, own: Any, reach: Any = None) -> Any:
    """The part of a reach that leaves the applicant no worse off.

    Args:
        feature: of the schema.
        way: see `better`, 0 for all that there is.
        own: the value before; where it is missing or new, all is left.
        reach: two ends, None for an open one, or levels; None for all.

    Returns:
        The reach where nothing is worse; else two ends as row values, infinite where they are
        open, or levels.
    """
    if not way or not (feature.is_amount(own) or own in feature.choices):
        return reach
    if "ranges" in feature.limited_by:
        ends = zip(reach or (None, None), (-math.inf, math.inf), strict=True)
        places = (none if end is None else feature.place(end) for end, none in ends)
        return tuple((max if way > 0 else min)(each, feature.place(own)) for each in places)
    now, answers = _step(feature, own), feature.answers
    kept = [level for level in answers if not way * (_step(feature, level) - now) < 0] or [own]
    return [level for level in kept if reach is None or level in reach] or kept


def _step(feature: Feature, level: Hashable) -> float:
    """How much a level is, by its number or first word; NaN where that is not known."""
    text = re.sub(r"[\W_]+", " ", feature.called_level(level) or str(level)).lower().strip()
    number, word = re.match(r"\d+", text), re.match(STEPS, text)
    return float(number[0]) if number else 100.0 * ((word and word.lastindex) or math.nan) - 201.0
