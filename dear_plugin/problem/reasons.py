"""Reasons: what became of a row as a number, and the texts of it; `{}` is filled in per row."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Status(IntEnum):
    """What became of a row; from `UNREACHED` on it has no recourse."""

    # It has a recourse, or the method says in words why not.
    PROPOSED = 0
    ACCEPTED = 1
    # It has one, which is no answer of a search.
    NO_ADVICE = 2
    # It has none.
    UNREACHED = 3
    EXCLUDED = 4
    NO_MORE = 5


class Reason(StrEnum):
    """The texts of the column `reason`, those of other packages' errors excepted."""

    # Nothing is wanted.
    ACCEPTED = "already accepted"

    # No action was found.
    NOTHING_ADMISSIBLE = "nothing may be acted on"
    UNREACHED = "no change of {} was found that reaches the target"
    CLOSEST = "{}; acting on {} comes closest"
    EXCLUDED = "actions are left out that create values that never occur together"
    EXCLUDED_RULES = f"{EXCLUDED}, or break what holds between columns, such as: {{}}"
    NO_MORE = "no further recourse was found"
    REFUSED_ROUNDED = "the model refused the rounded row"
    ROUNDED_AWAY = "no action is left once the row is rounded"
    BREAKS_RULES = "the row would break what holds between columns: {}"
    OTHER_MISSES = "{}'s row misses the target once constraints are applied"

    # Of an action that the user gave.
    NOT_ACTED = "nothing is acted on"
    NOT_ACTIONABLE = "{} may not be acted on"
    NOT_THIS_VALUE = "{} may not become {}"
    NOT_OBSERVED = "{} may not become {}, only {}"
    NO_VALUE = "{} may not become {}: no value may be reached"
    OUTSIDE = "{} may not become {}, only {} to {}"
    NOT_ONE = "exactly one column of {} has to be 1"
    NOT_WANTED = "the decision is not the wanted one"

    # What an answer lacks.
    LACKING = "no credible action was found; the nearest has {}"
    UNCONFIRMED = (
        "{}, though in enough of those that the search saw; an alternative may be credible"
    )
    IN_THE_WAY = "{}; what cannot be acted on stands in the way: {}"
    LESS_MARGIN = "accepted, but by less than the required margin"
    LESS_FAR = "accepted, though less far past the boundary than the search aimed"
    NO_ADVICE = "the decoder's reconstruction of the row alone is accepted, which is no advice"

    @property
    def start(self) -> str:
        """The text up to the first field."""
        return self.partition("{}")[0]
