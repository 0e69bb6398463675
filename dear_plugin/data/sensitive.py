"""Sensitive: features whose names say that nobody can act on them, as logger warnings.

Names are hints: nothing is decided by them. To switch the warnings off, set the level of
`logging.getLogger("dear_plugin.data.sensitive")`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from dear_plugin.data.feature import Feature

WORDS = {"age", "sex", "gender", "race", "ethnicity", "ethnic", "nationality", "religion"}
WORDS |= {"marital", "maritalstatus"}
# Words begin where capitals do, and end at anything that is no letter.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# The argument that keeps features as they are has another name there.
ELSEWHERE = "immutable_features in Alibi"

logger = logging.getLogger(__name__)


def is_sensitive(name: str) -> bool:
    """Whether a name has a whole word such as "age", in any case: not "mortgage"."""
    return any(word.lower() in WORDS for word in WORD.findall(name))


def unsaid(features: Iterable[Feature]) -> list[str]:
    """The names of sensitive features that may change, of which nobody said how far."""
    return [
        f.name
        for f in features
        if not f.immutable and not f.direction and f.limits is None and is_sensitive(f.name)
    ]


def warn_of_mutable(features: Iterable[Feature]) -> None:
    """Warn of sensitive features where nothing was said to be immutable."""
    names = unsaid(features)
    if names:
        logger.warning(
            "columns %s look like what nobody can change, and no feature is immutable: they may be"
            " acted on and may move along; immutable=%s keeps them as they are (%s)",
            names,
            names,
            ELSEWHERE,
        )


def warn_of_actions(features: Iterable[Feature]) -> None:
    """Warn of sensitive features that may be advised as actions, since nobody said what may."""
    names = unsaid(f for f in features if f.actionable)
    if names:
        logger.warning(
            "act_on is not given, and columns %s look like what nobody can act on: act_on=[...]"
            " names what people can act on, immutable=%s what never changes (%s)",
            names,
            names,
            ELSEWHERE,
        )
