"""Clocks: logger warnings on mutable columns that count time, which no action moves."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence

import pandas as pd

from dear_plugin.data.feature import Feature, Kind
from dear_plugin.data.inference import ordinary_values
from dear_plugin.data.sensitive import WORD, unrestricted

# Words that say how long ago or for how long; a term or duration is chosen, and is none of them.
WORDS = {"age", "tenure", "seniority", "since", "elapsed", "birthday", "dob"}
# The same in parts of names: "msinceoldesttradeopen", "yearsatcompany", "daysPastOpening".
PARTS = re.compile(r"since|(years?|months?|days?|yrs)_?(at|in|with|on)_|years?(at|in|with)[a-z]")
# The least rank correlation with a column named age of a number that grows with age alone.
ALIKE = 0.9
# Rows that are compared first.
SAMPLE = 1000

logger = logging.getLogger(__name__)


def warn_of_clocks(frame: pd.DataFrame, features: Sequence[Feature]) -> None:
    """Warn of mutable numbers that count time, by their names, or because they grow with age.

    Features with a direction are left out, and those of which `warn_of_mutable` warns.

    Args:
        frame: training rows.
        features: the features of its columns.
    """
    numbers = [f for f in features if f.kind is Kind.NUMERIC]
    ages = [f for f in numbers if "age" in _words(f.name)]
    named = set() if any(f.immutable for f in features) else set(unrestricted(features))
    names = [
        f.name
        for f in numbers
        if not (f.immutable or f.direction or f.name in named)
        and (_words(f.name) & WORDS or _counts(f.name) or _grows(frame, f, ages))
    ]
    if names:
        logger.warning(
            "columns %s seem to count time, and no action makes time pass: immutable=%s keeps them"
            " fixed (immutable_features in Alibi)",
            names,
            names,
        )


def _words(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


def _counts(name: str) -> bool:
    """Whether a name says that a column counts time."""
    return bool(PARTS.search(re.sub(r"[^a-z]+", "_", name.lower())))


def _grows(frame: pd.DataFrame, feature: Feature, ages: Iterable[Feature]) -> bool:
    """Whether a number never exceeds an age and has nearly its order."""
    return any(_follows(frame, feature, age) for age in ages if age is not feature)


def _follows(frame: pd.DataFrame, feature: Feature, age: Feature) -> bool:
    """Whether a number never exceeds another one and has nearly its order."""
    head = frame.head(SAMPLE)
    if bool((head[feature.name] > head[age.name]).any()):
        return False
    own, other = (ordinary_values(frame[f.name], f.special) for f in (feature, age))
    both = pd.DataFrame({"own": own, "age": other}).dropna()
    varies = bool((both.nunique() > 1).all()) and bool((both["own"] <= both["age"]).all())
    return varies and bool(both.rank().corr().loc["own", "age"] >= ALIKE)
