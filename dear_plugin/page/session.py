"""Session: what one person has chosen on the page, and the answers to it; no widgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.errors import ConstraintError, InputError, shown
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Target
from dear_plugin.results.recourses import Recourses

# The ways that are shown.
MOST_WAYS = 4


class Session:
    """The choices of one person, who sees nobody else's.

    Args:
        dear: a fitted DEAR.
        rows: the applicants.
        target: the wanted decision.
        within: constraints to start from, the same for all rows.
        template: the sentences of letters.

    Attributes:
        at: the position of the chosen applicant.
        frozen: the features that keep their value.
        reach: the least and greatest value of numbers, and the levels of categories.
        ways: the answers, the cheapest first; the first may have failed.
        chosen: the position of the way that the letter is of.
        hand: the values that are tried by hand.
        error: the last error, in the words of the engine.

    Raises:
        InputError, ConstraintError: no rows, or constraints row by row.
    """

    def __init__(self, dear: Any, rows: Any, target: Any, within: Any, template: Any) -> None:
        if not len(rows):
            raise InputError("explore: got no rows, expected at least one applicant")
        within = within or Constraints()
        self.dear, self.rows = dear, dear.schema.labelled(rows)
        self.target, self.template = target, template
        self.frozen = set(_for_all(within.frozen, Sequence))
        levels = dict(_for_all(within.categories or {}, Mapping))
        self.reach: dict[str, Any] = {**_for_all(within.ranges or {}, Mapping), **levels}
        self.only, self.at, self.chosen, self.error = within.act_on, 0, 0, ""
        acts = {name for names in dear.sets.names for name in names}
        self.acts = acts.intersection(acts if self.only is None else _for_all(self.only, Sequence))
        self.ways: list[Recourses] = []
        self.hand: dict[str, Any] = {}
        if isinstance(target, Target):
            self.target = target.for_rows(rows.index)
        self.chance = not (isinstance(target, Target) and target.is_range)

    @property
    def row(self) -> pd.DataFrame:
        """The chosen applicant, a frame of one row."""
        return self.rows.iloc[[self.at]]

    @property
    def features(self) -> list[Feature]:
        """The features that may change, those that may be acted on first."""
        mutable = [feature for feature in self.dear.schema if not feature.immutable]
        return sorted(mutable, key=lambda feature: feature.name not in self.acts)

    @property
    def asked(self) -> dict[str, Any]:
        """The constraints and the target of the chosen applicant."""
        numbers = {feature.name for feature in self.dear.schema if feature.holds_numbers}
        open_ones = {n: each for n, each in self.reach.items() if n not in self.frozen}
        ranges = {n: each for n, each in open_ones.items() if n in numbers}
        levels = {n: each for n, each in open_ones.items() if n not in ranges}
        target = self.target.at(self.at) if isinstance(self.target, Target) else self.target
        within = Constraints(sorted(self.frozen), self.only, ranges, levels)
        return {"within": within, "target": target}

    def ask(self) -> None:
        """Find the ways of the chosen applicant."""
        self.chosen, self.error, self.ways = 0, "", []
        try:
            first, *others = self.dear.ways(self.row, k=MOST_WAYS, **self.asked)
            self.ways = [first, *(way for way in others if found(way))]
            for way in self.ways:
                _ = way.actions
        except Exception as problem:  # also of the user's model
            self.error = str(problem)


def found(way: Recourses) -> bool:
    """Whether a result of one row has an answer that changes something."""
    return bool(way.outcome["success"].all() and way.acts.all())


def _for_all(given: Any, kind: Any) -> Any:
    """Constraints that are the same for all rows."""
    if not isinstance(given, kind) or not all(isinstance(each, str) for each in given):
        raise ConstraintError(
            f"explore takes constraints for all rows, not by row: got {shown(given)}"
        )
    return given
