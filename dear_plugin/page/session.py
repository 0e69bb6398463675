"""The answer to all choices of one applicant, without widgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from dear_plugin._threads import one_thread
from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.errors import ConstraintError, InputError, shown
from dear_plugin.methods.dear import DEAR, outcomes
from dear_plugin.page.choices import ACT, EVERYONE, FOLLOWS, STAYS, Choices, read
from dear_plugin.page.harm import better, not_worse
from dear_plugin.problem.constraints import Constraints, admissible
from dear_plugin.problem.feasible import Limits
from dear_plugin.problem.goals import Target, each
from dear_plugin.results.changes import is_stated
from dear_plugin.results.recourses import Recourses
from dear_plugin.tell.letter import LetterTemplate, in_the_way

# The ways that are shown.
MOST_WAYS = 4
# The values of a number in a curve, and the questions whose answers are kept.
POINTS, KEPT = 33, 16


@dataclass(frozen=True)
class Way:
    """A way, or a failure; why it is no advice, "" where it is; the sentences of its letter."""

    result: Recourses
    why: str
    template: LetterTemplate

    @property
    def letter(self) -> str:
        """The letter of its applicant."""
        label = self.result.factuals.index[0]
        return self.result.letter(label, template=self.template, case=label)


@dataclass(frozen=True)
class Answer:
    """All that the page shows of some choices.

    Attributes:
        choices: the question.
        ways: those that are advice first; the first may have failed.
        curve: of `feature`, see `curve`.
        feature: of the curve.
        tried: the outcome of the values by hand; None where none are tried.
        advice: to all applicants, if that is shown, see `Recourses.advice`.
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
    def letter(self) -> str:
        """That of the chosen way, if it is advice; where none is, the letter says so."""
        way = min(self.choices.way, len(self.ways) - 1)
        return "" if not self.ways or (way and self.ways[way].why) else self.ways[way].letter


class Session:
    """The questions of one session, which sees no other one's.

    Args:
        dear: a fitted DEAR.
        rows: the applicants.
        target: the wanted decision.
        within: constraints to start from, the same for all rows.
        template: the sentences of letters.

    Attributes:
        labels: the positions of the applicants by their names.
        features: those that may change by their names, those that may be acted on first.
        states: what may become of each of them.
        ranges: the reach to start from, of numbers and levels with an order.
        levels: of other categories.
        better: in which direction a feature may change, as the other leaves applicants worse off.
        costs: of the constraints.
        answer: the last one.

    Raises:
        InputError, ConstraintError: no rows; constraints row by row, or that do not fit.
    """

    def __init__(self, dear: Any, rows: Any, target: Any, within: Any, template: Any) -> None:
        if not len(rows):
            raise InputError("explore: got no rows, expected at least one applicant")
        self.dear, self.rows = dear, dear.schema.labelled(rows)
        written = isinstance(template, LetterTemplate)
        self.template = template if written else LetterTemplate.of(template)
        self.target = target.for_rows(rows.index) if isinstance(target, Target) else target
        self.chance = not (isinstance(target, Target) and target.is_range)
        self.labels: dict[str, int] = {}
        for at, label in enumerate(map(str, rows.index)):
            again = label in (*self.labels, EVERYONE)
            self.labels[f"{label} (row {at + 1})" if again else label] = at
        within = within or Constraints()
        self.ranges, self.levels = _start(within, dear.schema, len(rows))
        self.costs = within.costs
        self.limits(rows.head(1), within)  # so that its errors are raised here
        acts = {name for names in dear.sets.names for name in names}
        acts &= acts if within.act_on is None else {*within.act_on}
        mutable = {f.name: f for f in dear.schema if not f.immutable}
        self.features = {n: mutable[n] for n in sorted(mutable, key=lambda n: n not in acts)}
        self.better = {name: better(feature) for name, feature in self.features.items()}
        self.states = {n: [*[ACT] * (n in acts), FOLLOWS, STAYS] for n in self.features}
        states = {n: STAYS if n in within.frozen else s[0] for n, s in self.states.items()}
        self.answer = Answer(Choices(next(iter(self.labels)), states))
        self._excluding: tuple[Any, Any] = ((), dear)
        self._known: dict[str, Any] = {}

    def row(self, choices: Choices) -> pd.DataFrame:
        """The chosen applicant, a frame of one row, or all of them."""
        if choices.applicant == EVERYONE:
            return self.rows
        return self.rows.iloc[[self.labels[choices.applicant]]]

    def reach(self, choices: Choices, name: str) -> Any:
        """The reach of a feature as it is chosen, or as it was at the start; None for none."""
        return choices.reach.get(name, self.ranges.get(name, self.levels.get(name)))

    def limits(self, row: pd.DataFrame, within: Constraints | None = None) -> Limits:
        """What an action may set in rows of a frame."""
        encoder = self.dear.encoder
        x = encoder.readable_rows(row)[0].nan_to_num()
        return admissible(within, x, encoder, encoder.held(row)).limits

    def opened(self, case: str) -> Choices:
        """The choices of a case as JSON.

        Raises:
            InputError: it is not of these applicants and features, or a part is not as expected.
        """
        return read(case, list(self.labels), self.states, self.features)

    def answered(self, choices: Choices) -> Answer:
        """The answer to choices, as far as it is shown; what is known of the question is kept."""
        if self.answer.ways and replace(self.answer.choices, way=choices.way) == choices:
            return replace(self.answer, choices=choices)
        out, target, every = Answer(choices), self.target, choices.applicant == EVERYONE
        row, within, question = self.row(choices), self._within(choices), choices.question
        if isinstance(target, Target) and not every:
            target = target.at(self.labels[choices.applicant])
        given: dict[str, Any] = {"within": within, "target": target}
        try:
            if question not in self._known:
                dear = self._without(choices.excluded)
                found = dear.generate(row, k=1 if every else MOST_WAYS, **given)
                known = found.advice() if every else self._ways(found)
                self._known = dict([*self._known.items()][1 - KEPT :]) | {question: known}
            if every:
                return replace(out, advice=self._known[question])
            out = replace(out, ways=self._known[question])
            feature = choices.feature or self._first(out)
            found = curve(self.dear, row, feature, choices.hand, **given)
            out = replace(out, feature=feature, curve=found)
            if choices.hand:
                out = replace(out, tried=self.dear.apply(row, choices.hand, **given))
        except Exception as problem:  # also of the user's model
            out = replace(out, error=str(problem))
        return out

    def _ways(self, found: Recourses) -> Sequence[Way]:
        """Those that are advice first; of several only those that change something."""
        first, *others = (found.select(torch.tensor([rank])) for rank in range(len(found)))
        ways = (_way(way, self.template) for way in (first, *filter(_found, others)))
        return sorted(ways, key=lambda way: bool(way.why))

    def _first(self, answer: Answer) -> str:
        """The feature that the first way acts on."""
        lines = [line for way in answer.found[:1] for line in way.result.lines[0]]
        acted = (line.feature for line in lines if line.kind == "direct")
        return next(acted, next(iter(self.features)))

    def _within(self, choices: Choices) -> Constraints:
        """The constraints of the applicant, or of all of them."""
        states, known = choices.states.items(), self.features
        acts, frozen = ([name for name, own in states if own == each] for each in (ACT, STAYS))
        reach = {name: self.reach(choices, name) for name in acts}
        ranges, levels = [], []
        for row in self.row(choices).to_dict("records"):
            own = {n: not_worse(known[n], self.better[n], row[n], reach[n]) for n in acts}
            some = {n: each for n, each in own.items() if each is not None}
            ranked = {n: some[n] for n in some if "ranges" in known[n].limited_by}
            ranges.append(self.ranges | ranked)
            levels.append(self.levels | {n: some[n] for n in some if n not in ranked})
        # Those of one row hold for all copies of it.
        by_row: list[Any] = [each if len(each) > 1 else each[0] for each in (ranges, levels)]
        return Constraints(frozen, acts, by_row[0], by_row[1], self.costs)

    def _without(self, excluded: Sequence[Sequence[Any]]) -> Any:
        """The DEAR without some kinds of advice, which is kept until others are excluded."""
        if list(excluded) != list(self._excluding[0]):
            kinds = pd.DataFrame(excluded, columns=["feature", "change", "new"], dtype=object)
            dear = self.dear.with_schema(self.dear.schema.excluding(kinds))
            self._excluding = excluded, dear if len(excluded) else self.dear
        return self._excluding[1]


def _way(result: Recourses, template: LetterTemplate) -> Way:
    """A way, and why it is no advice: the only place that decides what is."""
    done, acted = result.actions[["success", "acted_on"]].iloc[0]
    if (done and not acted) or is_stated(result.lines[0]):
        return Way(result, "", template)
    unread = result.question.unreadable[0]
    why = result.describe_row(0) if unread else in_the_way(result.hindrances[0], template)
    return Way(result, why, template)


def _found(way: Recourses) -> bool:
    """Whether a result of one row has an answer that changes something."""
    return bool(way.actions["success"].all() and way.actions["acted_on"].ne("").all())


def _start(within: Any, schema: Schema, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ranges of numbers and of levels with an order, and the levels of other categories.

    Raises:
        ConstraintError: constraints that are not the same for all n rows.
    """
    for name, given in vars(within).items():
        one = str if name in ("frozen", "act_on") else Mapping
        if any(rows != slice(None) for rows, _ in each(given, n, name, one)):
            raise ConstraintError(
                f"explore takes constraints for all rows, not by row: got {shown(given)}"
            )
    ranges, levels = dict(within.ranges or {}), dict(within.categories or {})
    for feature in schema:
        if feature.name in levels and "ranges" in feature.limited_by:
            ranked = sorted(levels.pop(feature.name), key=feature.place)
            ranges[feature.name] = (ranked[0], ranked[-1])
    return ranges, levels


@one_thread()
def curve(
    dear: DEAR,
    row: pd.DataFrame,
    feature: str,
    actions: Mapping[str, Any],
    *,
    within: Constraints,
    target: Any,
) -> pd.DataFrame:
    """The score of one row over the values of a feature that it may take.

    Args:
        dear: a fitted DEAR.
        row: a frame of one row.
        feature: what takes all of its values.
        actions: `{feature: value}` of other features acted on at the same time.
        within: as in `DEAR.apply`.
        target: as in `DEAR.apply`.

    Returns:
        A line per value: `value`, the score `with_what_follows`, and the score with
        `all_else_frozen`; missing where the row may not take the value.
    """
    (j,), schema = dear.schema.index([feature]), dear.schema
    own, values = schema.labelled(row)[feature].iloc[0], curve_values(schema.features[j])
    if not pd.isna(own) and own not in values:
        values = sorted([*values, own])
    n, every = len(values), [*values, *values]
    frame = row.iloc[np.zeros(len(every), dtype=int)].reset_index(drop=True)
    table = pd.DataFrame({**actions, feature: every}, index=frame.index)
    still = [name for name in schema.names if name not in table]
    # One call of the model for both lines.
    both = replace(within, frozen=[[*within.frozen]] * n + [still] * n)
    question, found = outcomes(dear, frame, table, both, target)
    known = found.acts(question.case.x).numpy() | np.array([value == own for value in every])
    follows, alone = np.where(known, question.score(found.scores), np.nan).reshape(2, n)
    return pd.DataFrame({"value": values, "with_what_follows": follows, "all_else_frozen": alone})


def curve_values(feature: Feature) -> list[Any]:
    """The values of a feature in a curve: all levels, or a grid over the range of a number."""
    if feature.few:
        return feature.few
    (low, high), (first, last) = feature.bounds, feature.limits or feature.bounds
    grid = np.linspace(max(low, first), min(high, last), POINTS)
    places = feature.precision
    values = grid if places is None else np.unique(grid.round(places))
    return [value for value in values.tolist() if value not in feature.codes]
