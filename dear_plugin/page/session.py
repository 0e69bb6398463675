"""Session: what one person has chosen on the page in, the answer to all of it out; no widgets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.exclusion import DOWN, UP
from dear_plugin.data.feature import Feature
from dear_plugin.errors import ConstraintError, InputError, shown
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Target
from dear_plugin.results.changes import is_amount
from dear_plugin.results.letter import LetterTemplate, in_the_way
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.told import advisable

# The ways that are shown.
MOST_WAYS = 4
# What may become of a feature.
ACT, FOLLOWS, STAYS = "I may act on it", "it may follow", "it stays"


@dataclass(frozen=True)
class Choices:
    """What a person has chosen; a saved case is this as JSON.

    Attributes:
        applicant: one of `Session.labels`.
        states: `ACT`, `FOLLOWS` or `STAYS` by the feature.
        reach: the least and the greatest value of numbers and of levels with an order, None where
            an end is that of the schema; the levels of other categories.
        excluded: kinds of advice that nobody is told: subject, change, new level.
        feature: that of the curve; "" for the one that the first way acts on.
        hand: the values that are tried by hand.
        way: the position of the way that the letter is of.
        everyone: whether the advice to all applicants is asked for.
    """

    applicant: str
    states: Mapping[str, str]
    reach: Mapping[str, Any] = field(default_factory=dict)
    excluded: Sequence[Sequence[Any]] = ()
    feature: str = ""
    hand: Mapping[str, Any] = field(default_factory=dict)
    way: int = 0
    everyone: bool = False

    def to_json(self) -> str:
        """A saved case."""
        return json.dumps(asdict(self), indent=1, default=lambda value: value.item())

    def asks_as(self, other: Choices) -> bool:
        """Whether the ways are those of other choices."""
        mine = replace(self, feature="", hand={}, way=0, everyone=False)
        return mine == replace(other, feature="", hand={}, way=0, everyone=False)


@dataclass(frozen=True)
class Way:
    """A way, or a failure; its letter; and why it is no advice, "" where it can be told."""

    result: Recourses
    letter: str
    why: str


@dataclass(frozen=True)
class Answer:
    """All that the page shows of some choices.

    Attributes:
        choices: the question.
        ways: those that can be told first; the first may have failed.
        curve: of `feature`, see `DEAR.curve`.
        feature: of the curve.
        tried: the outcome of the values by hand; None where none are tried.
        advice: to all applicants, if that is asked for, see `Recourses.advice`.
        error: in the words of the engine.
    """

    choices: Choices
    ways: Sequence[Way] = ()
    curve: Any = None
    feature: str = ""
    tried: Recourses | None = None
    advice: Any = None
    error: str = ""

    @property
    def found(self) -> list[Way]:
        """The ways that change something."""
        return [way for way in self.ways if _found(way.result)]

    @property
    def summary(self) -> str:
        """How many ways there are, or kinds of advice."""
        one = self.advice is None
        n = len(self.found if one else self.advice)
        return (
            f"{n or 'no'} {'way' if one else 'kind'}{'s' * (n != 1)}{'' if one else ' of advice'}"
        )

    @property
    def letter(self) -> str:
        """That of the chosen way."""
        return self.ways[min(self.choices.way, len(self.ways) - 1)].letter if self.ways else ""


class Session:
    """The choices of one person, who sees nobody else's.

    Args:
        dear: a fitted DEAR.
        rows: the applicants.
        target: the wanted decision.
        within: constraints to start from, the same for all rows.
        template: the sentences of letters.

    Attributes:
        labels: the positions of the applicants by their names.
        known: the features by their names.
        acts: the names of those that may be acted on.
        base: the reach to start from.
        choices: what is chosen.
        answer: to these choices, or to former ones while it is computed.

    Raises:
        InputError, ConstraintError: no rows, or constraints row by row.
    """

    def __init__(self, dear: Any, rows: Any, target: Any, within: Any, template: Any) -> None:
        if not len(rows):
            raise InputError("explore: got no rows, expected at least one applicant")
        within = within or Constraints()
        self.dear, self.rows = dear, dear.schema.labelled(rows)
        written = isinstance(template, LetterTemplate)
        self.template = template if written else LetterTemplate.of(template)
        self.target = target.for_rows(rows.index) if isinstance(target, Target) else target
        self.chance = not (isinstance(target, Target) and target.is_range)
        self.known: dict[str, Feature] = {feature.name: feature for feature in dear.schema}
        acts = {name for names in dear.sets.names for name in names}
        only = acts if within.act_on is None else {*_for_all(within.act_on, Sequence)}
        self.acts = acts & only
        frozen = {*_for_all(within.frozen, Sequence)}
        self.base = {**_for_all(within.ranges or {}, Mapping)}
        for name, levels in _for_all(within.categories or {}, Mapping).items():
            ranked = sorted(levels, key=self.known[name].place)
            self.base[name] = (ranked[0], ranked[-1]) if self.known[name].is_number else levels
        self.labels: dict[str, int] = {}
        for at, label in enumerate(map(str, rows.index)):
            self.labels[f"{label} (row {at + 1})" if label in self.labels else label] = at
        states = {f.name: STAYS if f.name in frozen else self.states(f)[0] for f in self.features}
        self.choices = Choices(next(iter(self.labels)), states)
        self.answer = Answer(self.choices)

    @property
    def row(self) -> pd.DataFrame:
        """The chosen applicant, a frame of one row."""
        return self.rows.iloc[[self.labels[self.choices.applicant]]]

    @property
    def features(self) -> list[Feature]:
        """The features that may change, those that may be acted on first."""
        mutable = [feature for feature in self.dear.schema if not feature.immutable]
        return sorted(mutable, key=lambda feature: feature.name not in self.acts)

    def states(self, feature: Feature) -> list[str]:
        """What may become of a feature."""
        return [*([ACT] if feature.name in self.acts else []), FOLLOWS, STAYS]

    def reach(self, name: str) -> Any:
        """The reach of a feature as it is chosen, or as it was at the start; None for none."""
        return self.choices.reach.get(name, self.base.get(name))

    def opened(self, text: str) -> Choices:
        """The choices of a saved case.

        Raises:
            InputError: it is not of these applicants and features.
        """
        try:
            found = Choices(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise InputError(f"expected a case that this page saved: {error}") from error
        if found.applicant not in self.labels or {*found.states} != {*self.choices.states}:
            raise InputError(f"{found.applicant}: a case of other applicants or features")
        return found

    def answered(self, choices: Choices) -> Answer:
        """The answer to choices; of the last one what is the same."""
        out, last = Answer(choices), self.answer
        at = self.labels[choices.applicant]
        row, target = self.rows.iloc[[at]], self.target
        own = target.at(at) if isinstance(target, Target) else target
        try:
            asked = {"within": self._within(choices, row), "target": own}
            same = bool(last.ways) and choices.asks_as(last.choices)
            out = replace(out, ways=last.ways if same else self._ways(row, asked))
            feature = choices.feature or self._first(out)
            curve = self.dear.curve(row, feature, choices.hand, **asked)
            out = replace(out, feature=feature, curve=curve)
            if choices.hand:
                out = replace(out, tried=self.dear.apply(row, choices.hand, **asked))
            if choices.everyone:
                within = self._within(choices, self.rows)
                every = self.dear.generate(self.rows, target, within=within)
                out = replace(out, advice=every.advice())
        except Exception as problem:  # also of the user's model
            out = replace(out, error=str(problem))
        return out

    def _ways(self, row: pd.DataFrame, asked: Mapping[str, Any]) -> list[Way]:
        """Those that can be told first; of several only those that change something."""
        first, *others = self.dear.ways(row, k=MOST_WAYS, **asked)
        ways = [_way(way, self.template) for way in (first, *filter(_found, others))]
        ways.sort(key=lambda way: bool(way.why))
        # Where none can be told, the letter says so.
        if ways[0].why:
            ways[0] = replace(ways[0], letter=_letter(ways[0].result, self.template))
        return ways

    def _first(self, answer: Answer) -> str:
        """The feature that the first way acts on."""
        lines = [line for way in answer.found[:1] for line in way.result.lines[0]]
        acted = (line.feature for line in lines if line.kind == "direct")
        return next(acted, self.features[0].name)

    def _within(self, choices: Choices, rows: pd.DataFrame) -> Constraints:
        """The constraints of rows."""
        names = [name for name, state in choices.states.items() if state == ACT]
        frozen = [name for name, state in choices.states.items() if state == STAYS]
        reach = {**self.base, **{n: r for n, r in choices.reach.items() if n in names}}
        reach = {name: each for name, each in reach.items() if name not in frozen}
        for kind in choices.excluded:
            self._exclude(*kind, rows=rows, reach=reach, names=names)
        number = {name: self.known[name].is_number for name in reach}
        ranges = {name: each for name, each in reach.items() if number[name]}
        levels = {name: each for name, each in reach.items() if not number[name]}
        return Constraints(frozen, names, ranges, levels)

    def _exclude(
        self, name: str, change: str, new: Any, *, rows: Any, reach: dict[str, Any], names: Any
    ) -> None:
        """Exclude a kind of advice: from the reach, or where that is not possible by the name."""
        feature = self.known[name]
        low, high = reach.get(name) or (None, None) if feature.is_number else (None, None)
        if change in (UP, DOWN) and feature.is_number:
            ends = (_number(feature, low, -np.inf), _number(feature, high, np.inf))
            out = np.inf if change == UP else -np.inf
            # A single row has numbers: `curve` repeats it.
            own = np.array([_number(feature, value, out) for value in rows[name]]).squeeze()
            high = np.minimum(ends[1], own) if change == UP else np.maximum(ends[1], own)
            low = np.minimum(ends[0], own) if change == UP else np.maximum(ends[0], own)
            reach[name] = (low, high)
        elif left := [each for each in reach.get(name, feature.answers) if each != new]:
            reach[name] = left
        elif name in names:
            names.remove(name)


def _way(result: Recourses, template: LetterTemplate) -> Way:
    """A way with its letter, or why there is none: the only place that asks what may be told."""
    accepted = bool(result.outcome["success"].all()) and not bool(result.acts.any())
    if accepted or advisable(result, 0):
        return Way(result, _letter(result, template), "")
    if result.question.unreadable[0]:
        return Way(result, "", result.describe().iloc[0])
    return Way(result, "", in_the_way(result, 0, template))


def _letter(result: Recourses, template: LetterTemplate) -> str:
    label = result.factuals.index[0]
    return result.letter(label, template=template, case=label)


def _number(feature: Feature, value: Any, otherwise: float) -> float:
    """A value as a number; another one where it is no amount."""
    known = value is not None and (is_amount(feature, value) or value in feature.levels)
    return float(feature.place(value)) if known else otherwise


def _found(way: Recourses) -> bool:
    """Whether a result of one row has an answer that changes something."""
    return bool(way.outcome["success"].all() and way.acts.all())


def _for_all(given: Any, kind: Any) -> Any:
    """Constraints that are the same for all rows."""
    if not isinstance(given, kind) or not all(isinstance(each, str) for each in given):
        raise ConstraintError(
            f"explore takes constraints for all rows, not by row: got {shown(given)}"
        )
    return given
