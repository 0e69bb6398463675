"""Trying: what a person tries, one action or all values of a feature in, its outcome out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dear_plugin._threads import one_thread
from dear_plugin.data.schema import Feature
from dear_plugin.errors import InputError
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.methods.what_if import Actions, named_values, outcome
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Label, Target
from dear_plugin.results.letter import LetterTemplate
from dear_plugin.results.recourses import LETTER, Recourses

if TYPE_CHECKING:
    from dear_plugin.page import Explorer

# The values of a number in a curve.
POINTS = 33


class Trying(RecourseMethod):
    """A method that tells what follows from any action."""

    @one_thread()
    def apply(
        self,
        frame: pd.DataFrame,
        actions: Actions,
        within: Constraints | None = None,
        *,
        target: Target | Label | None = None,
    ) -> Recourses:
        """The outcome of given actions: "what if I worked 45 hours?". Nothing is searched.

        `dear.apply(frame, dear.generate(frame).direct)` gives the same counterfactuals again. A
        decoder for a new set of features is fitted on first use, and kept. A row that may not act
        so (a feature that is frozen or not actionable in `within`, a range, a direction) stays as
        it is, with the reason; other rows are not affected. Numbers are rounded to the resolution
        of their columns. An action of size zero returns the factual, unless
        `reconstruct="paper"` counts the reconstruction as an indirect change.

        Args:
            frame: n rows with the schema's features; accepted ones may act too.
            actions: `{"hours-per-week": 45}` for all rows, or a frame like `recourses.direct`: the
                same index, the new values of the features acted on, missing elsewhere. A feature
                with the row's own value is fixed at it while the others act.
            within: constraints of this call only.
            target: the decision that counts as success; None as in `generate`.

        Raises:
            NotFittedError: `fit` was not called.
            ConstraintError: an action on an unknown or immutable feature.
            InputError: another index, or values that a feature cannot have.
        """
        wanted = named_values(actions, frame, self.encoder)
        question = self._question(frame, target, within, self._acts | ~wanted.isnan())
        at, accepted = question.readable, question.accepted
        part = outcome(question.case.select(at), wanted[at], accepted[at], self._optimizer)
        return Recourses.of(question, question.write(question.over_all(part), at))

    @one_thread()
    def curve(
        self,
        row: pd.DataFrame,
        feature: str,
        actions: Mapping[str, Any] | None = None,
        *,
        within: Constraints | None = None,
        target: Target | Label | None = None,
    ) -> pd.DataFrame:
        """The score of one row over the values of a feature that it may take.

        Args:
            row: a frame of one row.
            feature: what takes all of its values.
            actions: `{feature: value}` of other features acted on at the same time.
            within: as in `apply`.
            target: as in `apply`.

        Returns:
            A line per value: `value`, the score `with_what_follows`, and the score with
            `all_else_frozen`; missing where the row may not take the value.

        Raises:
            InputError: not one row.
            SchemaError: an unknown feature.
        """
        self.encoder.check_columns(row)
        if len(row) != 1:
            raise InputError(f"curve: expected a frame of one row, got {len(row)}")
        (j,) = self.schema.index([feature])
        own, values = row[feature].iloc[0], _values(self.schema.features[j])
        if not pd.isna(own) and own not in values:
            values = sorted([*values, own])
        frame = pd.concat([row] * len(values), ignore_index=True)
        table = pd.DataFrame({**(actions or {}), feature: values}, index=frame.index)
        still = [name for name in self.schema.names if name not in table]
        out = pd.DataFrame({"value": values})
        alone = replace(within or Constraints(), frozen=still)
        for name, limits in zip(CURVES, (within, alone), strict=True):
            result = self.apply(frame, table, limits, target=target)
            known = result.acts.numpy() | np.array([value == own for value in values])
            out[name] = result.outcome["score_after"].where(known)
        return out

    def explore(
        self,
        rows: pd.DataFrame,
        target: Target | Label | None = None,
        *,
        within: Constraints | None = None,
        template: LetterTemplate = LETTER,
    ) -> Explorer:
        """A page on which a person tries what could be changed; a notebook displays it.

        `dear.explore(rows).show()` serves it on this machine alone.

        Args:
            rows: the applicants, any frame with the schema's features.
            target: as in `generate`.
            within: constraints to start from, the same for all rows.
            template: the sentences of letters.

        Raises:
            ExtraError: Panel is not installed.
            InputError, ConstraintError: no rows, or constraints row by row.
        """
        from dear_plugin.page import Explorer

        self.encoder.check_columns(rows)
        return Explorer(self, rows, target, within, template)

    @property
    @abstractmethod
    def _optimizer(self) -> Optimizer:
        """The optimizer of the method's own sets."""


CURVES = ("with_what_follows", "all_else_frozen")


def _values(feature: Feature) -> list[Any]:
    """The values of a feature in a curve: all levels, or a grid over the range of a number."""
    if not feature.holds_numbers:
        return feature.answers
    if feature.observed:
        return list(feature.observed)
    (low, high), (first, last) = feature.bounds, feature.limits or feature.bounds
    grid = np.linspace(max(low, first), min(high, last), POINTS)
    places = feature.precision
    values: list[Any] = (grid if places is None else np.unique(grid.round(places))).tolist()
    return values
