"""What the page offers to nobody: changes that leave a person worse off."""

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
    "no|none|not|never|false|without|illiterate|uneducated|preschool",
    "basic|primary|elem",
    "yes|true|hs|high|secondary|special|some|assoc|college",
    "bachelor|university|degree|graduat",
    "master|post|prof",
    "doctor|phd",
)


def better(feature: Feature) -> int:
    """1 where less of a feature leaves people worse off, -1 where more of it does, else 0.

    A direction that the schema states decides in the place of names.
    """
    name = words(f"{feature.name} {feature.label}")
    found = (way for way, pattern in WORSE.items() if re.search(pattern, name))
    return 0 if feature.direction else next(found, 0)


def not_worse(feature: Feature, way: int, own: Any, reach: Any = None) -> Any:
    """The part of a reach that leaves nobody worse off: two ends, or levels; None for all.

    Args:
        feature: of the schema.
        way: see `better`, 0 for all that there is.
        own: the value before.
        reach: None for all.
    """
    if not way or not (feature.is_amount(own) or own in feature.choices):
        return reach
    if "ranges" in feature.limited_by:
        nearest, ends = max if way > 0 else min, reach or (None, None)
        low, high = (e if e is None else nearest(e, own, key=feature.place) for e in ends)
        return (
            (own if low is None else low, high)
            if way > 0
            else (low, own if high is None else high)
        )
    now, answers = _step(feature, own), feature.answers
    kept = [level for level in answers if not way * (_step(feature, level) - now) < 0] or [own]
    return [level for level in kept if reach is None or level in reach] or kept


def _step(feature: Feature, level: Hashable) -> float:
    """How much a level is, by its number or first word; NaN where that is not known."""
    text = re.sub(r"[\W_]+", " ", feature.called_level(level) or str(level)).lower().strip()
    if number := re.match(r"\d+", text):
        return float(number[0])
    ranks = (100.0 * at - 101.0 for at, words in enumerate(STEPS) if re.match(words, text))
    return next(ranks, math.nan)
