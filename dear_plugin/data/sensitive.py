"""Sensitive: logger warnings on mutable features that probably cannot be acted on, by name.

They are sensitive, count time, record past events, or are marks of the decision maker.

Names only cause warnings; they change no result. To switch the warnings off, set the level of
`logging.getLogger("dear_plugin.data.sensitive")`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence

import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.data.kinds.numbers import ordinary_values

WORDS = {"age", "sex", "gender", "race", "ethnicity", "ethnic", "nationality", "religion"}
WORDS |= {"marital", "maritalstatus"}
# Words in camelCase, snake_case and the like.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Words that say how long ago or for how long; a term or duration is chosen, and is none of them.
CLOCKS = {"age", "tenure", "seniority", "since", "elapsed", "birthday", "dob"}
# The same in parts of names: "msinceoldesttradeopen", "yearsatcompany", "daysPastOpening".
PARTS = re.compile(r"since|(years?|months?|days?|yrs)_?(at|in|with|on)_|years?(at|in|with)[a-z]")
# Words of past events, and of marks that the decision maker gives.
EVENTS = {"delinq", "delinquency", "delinquencies", "delinquent", "late", "arrears", "overdue"}
EVENTS |= {"default", "defaults", "defaulted", "bankruptcy", "bankruptcies", "bankrupt", "derog"}
EVENTS |= {"derogatory", "foreclosure", "priors", "convictions", "arrests", "lawsuits"}
MARKS = {"grade", "subgrade", "score", "rating", "decision", "limit", "apr", "guideline"}
MARKS |= {"guidelines"}
# The same of two words each.
EVENT_PAIRS = re.compile(r"past_due|charged?_offs?|missed_payments?|pub_rec|public_records?")
MARK_PAIRS = re.compile(r"int(erest)?_rate|risk_class")
# The least rank correlation with a column named age of a number that grows with age alone.
ALIKE = 0.9

# The name of immutable= in the adapters.
ELSEWHERE = "immutable_features in Alibi"

logger = logging.getLogger(__name__)
# Users may switch the warnings on time, or on past events and marks, off alone.
clocks = logging.getLogger("dear_plugin.data.clocks")
records = logging.getLogger("dear_plugin.data.records")


def is_sensitive(name: str) -> bool:
    """Whether a name contains a whole word such as "age", in any case: not "mortgage"."""
    return bool(_words(name) & WORDS)


def unrestricted(features: Iterable[Feature]) -> list[str]:
    """The names of mutable sensitive features without a direction or limits."""
    return [
        f.name
        for f in features
        if not f.immutable and not f.direction and f.limits is None and is_sensitive(f.name)
    ]


def warn_of_mutable(features: Iterable[Feature]) -> None:
    """Warn of sensitive features in a schema without immutable features."""
    _warn(
        logger,
        "columns %s have names of attributes that cannot be changed, and no feature is immutable:"
        " they may change directly and indirectly; immutable=%s keeps them fixed",
        unrestricted(features),
    )


def warn_of_actions(features: Iterable[Feature]) -> None:
    """Warn of sensitive features among the actionable ones when `act_on` is not given."""
    _warn(
        logger,
        "act_on is not given, and columns %s have names of attributes that cannot be acted on:"
        " act_on=[...] lists the actionable features, immutable=%s those that never change",
        unrestricted(f for f in features if f.actionable),
    )


def warn_of_clocks(frame: pd.DataFrame, features: Sequence[Feature]) -> None:
    """Warn of mutable numbers that count time, by their names, or because they grow with age.

    Features with a direction are left out, and those of which `warn_of_mutable` warns.

    Args:
        frame: training rows.
        features: the features of its columns.
    """
    numbers = [f for f in features if f.holds_numbers]
    ages = [f for f in numbers if "age" in _words(f.name)]
    named = set() if any(f.immutable for f in features) else set(unrestricted(features))
    names = [
        f.name
        for f in numbers
        if not (f.immutable or f.direction or f.name in named)
        and (_counts(f.name) or _grows(frame, f, ages))
    ]
    _warn(
        clocks,
        "columns %s seem to count time, and no action makes time pass: immutable=%s keeps them"
        " fixed",
        names,
    )


def warn_of_records(features: Iterable[Feature]) -> None:
    """Warn of mutable features named like past events, or like marks of the decision maker.

    Features with a direction or limits are left out, and those of which `warn_of_clocks` warns.
    """
    free = [
        f.name
        for f in features
        if not (f.immutable or f.direction or f.limits) and f.actionable and not _counts(f.name)
    ]
    _warn(
        records,
        "columns %s have names of past events, which no action undoes: immutable=%s keeps them"
        " fixed",
        [name for name in free if _is_named(name, EVENTS, EVENT_PAIRS)],
    )
    _warn(
        records,
        "columns %s have names of marks that the decision maker gives, and a person cannot set:"
        " immutable=%s keeps them fixed",
        [name for name in free if _is_named(name, MARKS, MARK_PAIRS)],
    )


def _is_named(name: str, words: set[str], pairs: re.Pattern[str]) -> bool:
    """Whether a name has one of some words, or of some pairs of words."""
    found = [word.lower() for word in WORD.findall(name)]
    return bool(words & set(found)) or bool(pairs.search("_".join(found)))


def _warn(log: logging.Logger, message: str, names: list[str]) -> None:
    """Warn of columns, if there are any, with the advice to make them immutable."""
    if names:
        log.warning(f"{message} ({ELSEWHERE})", names, names)


def _words(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


def _counts(name: str) -> bool:
    """Whether a name says that a column counts time."""
    return bool(_words(name) & CLOCKS) or bool(PARTS.search(re.sub(r"[^a-z]+", "_", name.lower())))


def _grows(frame: pd.DataFrame, feature: Feature, ages: Iterable[Feature]) -> bool:
    """Whether a number never exceeds an age and has nearly its order."""
    return any(_follows(frame, feature, age) for age in ages if age is not feature)


def _follows(frame: pd.DataFrame, feature: Feature, age: Feature) -> bool:
    """Whether a number never exceeds another one and has nearly its order."""
    own, other = (ordinary_values(frame[f.name], f.special) for f in (feature, age))
    both = pd.DataFrame({"own": own, "age": other}).dropna()
    varies = bool((both.nunique() > 1).all()) and bool((both["own"] <= both["age"]).all())
    return varies and bool(both.rank().corr().loc["own", "age"] >= ALIKE)
