"""Story: some rows with different actions, chosen from the answers of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import pandas as pd

from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.constraints import Constraints
from dear_plugin.results.descriptions import head
from dear_plugin.results.recourses import Recourses

LENGTH = 5
# The rows among which a credible action on a single given feature is looked for.
LOOKED_AT = 25


@dataclass(frozen=True)
class Episode:
    """One row of a story.

    Attributes:
        answer: of this row only.
        only: the feature that the action was restricted to; "" without a restriction.
    """

    answer: Recourses
    only: str = ""

    @property
    def head(self) -> str:
        """The row, its restriction, and its score before and after."""
        text = head(self.answer, 0)
        name, _, score = text.partition(": ")
        return f"{name}, if it acts on {self.only} only: {score}" if self.only else text


def story(
    dear: DEAR, recourses: Recourses, features: Sequence[str], *, within: Constraints
) -> list[Episode]:
    """Up to `LENGTH` rows with credible answers, with different actions as far as possible.

    First one row for each set of features that the answers act on; then rows restricted to a
    feature that no answer acts on alone; then further answers.

    Args:
        dear: fitted.
        recourses: its answers.
        features: the actionable ones.
        within: the constraints of the answers.
    """
    credible = _credible(recourses)
    first = credible.drop_duplicates("acted_on")
    unused = [name for name in features if name not in set(first["acted_on"])]
    rest = recourses.factuals.drop(first.index)
    episodes = chain(
        (Episode(recourses[label]) for label in first.index),
        _restricted(dear, rest, unused, within),
        (Episode(recourses[label]) for label in credible.index.drop(first.index)),
    )
    return list(islice(_distinct(episodes), LENGTH))


def _credible(recourses: Recourses) -> pd.DataFrame:
    """The actions of the rows with a credible answer that changes something."""
    actions = recourses.actions
    return actions[actions["credible"] & (actions["acted_on"] != "")]


def _restricted(
    dear: DEAR, rows: pd.DataFrame, features: Sequence[str], within: Constraints
) -> Iterator[Episode]:
    """For each feature the first row with a credible action on it alone, each row once."""
    for name in features:
        answers = dear.generate(rows.iloc[:LOOKED_AT], within=replace(within, act_on=[name]))
        found = _credible(answers).index
        if len(found):
            rows = rows.drop(found[0])
            yield Episode(answers[found[0]], name)


def _distinct(episodes: Iterator[Episode]) -> Iterator[Episode]:
    """The episodes without further ones of the same row."""
    seen = set()
    for episode in episodes:
        label = episode.answer.factuals.index[0]
        if label not in seen:
            seen.add(label)
            yield episode
