"""Sensitive: logger warnings on mutable features whose names suggest sensitive attributes.

Names only cause warnings; they change no result. To switch the warnings off, set the level of
`logging.getLogger("dear_plugin.data.sensitive")`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from dear_plugin.data.feature import Feature

WORDS = {"age", "sex", "gender", "race", "ethnicity", "ethnic", "nationality", "religion"}
WORDS |= {"marital", "maritalstatus"}
# Words in camelCase, snake_case and the like.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# The name of immutable= in the adapters.
ELSEWHERE = "immutable_features in Alibi"

logger = logging.getLogger(__name__)


def is_sensitive(name: str) -> bool:
    """Whether a name contains a whole word such as "age", in any case: not "mortgage"."""
    return any(word.lower() in WORDS for word in WORD.findall(name))


def unrestricted(features: Iterable[Feature]) -> list[str]:
    """The names of mutable sensitive features without a direction or limits."""
    return [
        f.name
        for f in features
        if not f.immutable and not f.direction and f.limits is None and is_sensitive(f.name)
    ]


def warn_of_mutable(features: Iterable[Feature]) -> None:
    """Warn of sensitive features in a schema without immutable features."""
    names = unrestricted(features)
    if names:
        logger.warning(
            "columns %s have names of attributes that cannot be changed, and no feature is"
            " immutable: they may change directly and indirectly; immutable=%s keeps them fixed"
            " (%s)",
            names,
            names,
            ELSEWHERE,
        )


def warn_of_actions(features: Iterable[Feature]) -> None:
    """Warn of sensitive features among the actionable ones when `act_on` is not given."""
    names = unrestricted(f for f in features if f.actionable)
    if names:
        logger.warning(
            "act_on is not given, and columns %s have names of attributes that cannot be acted on:"
            " act_on=[...] lists the actionable features, immutable=%s those that never change"
            " (%s)",
            names,
            names,
            ELSEWHERE,
        )
