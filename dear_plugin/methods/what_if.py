"""What if: given actions in, their outcome out; nothing is searched."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.columns import read
from dear_plugin.data.encoder import Encoder
from dear_plugin.errors import ConstraintError, InputError, unknown
from dear_plugin.methods.applied import decide, outcome
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Label, Target
from dear_plugin.results.recourses import Recourses

Actions: TypeAlias = Mapping[str, Any] | pd.DataFrame


class WhatIf(RecourseMethod):
    """A method that predicts the outcome of given actions."""

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

        def _outcome(case: Case, part: pd.DataFrame, before: Tensor, at: Tensor) -> Recourses:
            values = wanted[at]
            proposal = outcome(case, values, self.encoder, self._optimizer_of)
            accepted = case.goal.succeeds(before, lambda: self.classifier.decisions(part))
            proposal = decide(proposal, ~values.isnan().all(1), accepted)
            return self._result_of(case, part, proposal, before)

        return self._over_readable(_outcome, frame, target, within, "report")

    @abstractmethod
    def _optimizer_of(self, members: tuple[int, ...]) -> Optimizer:
        """The optimizer of a set, by the ascending positions of its features."""


def named_values(actions: Actions, frame: pd.DataFrame, encoder: Encoder) -> Tensor:
    """(n, p) the new values of the features acted on, in row units; NaN elsewhere.

    Args:
        actions: `{feature: value}` for all rows, or a frame with the same index, missing where a
            feature is not acted on.
        frame: the n factual rows.
        encoder: of the schema.

    Raises:
        ConstraintError: an unknown or immutable feature.
        InputError: another index, or values that the features cannot have.
    """
    table = _table(actions, frame)
    acted = table.notna()
    names = [name for name in table if bool(acted[name].any())]
    schema = encoder.schema
    others = [name for name in names if name not in schema.names]
    if others:
        raise ConstraintError(f"actions: {unknown('features', others, schema.names)}")
    fixed = [f.name for f in schema if f.immutable and f.name in names]
    if fixed:
        raise ConstraintError(
            f"actions: {fixed} cannot be acted on: immutable (or constant in the data); leave"
            " missing what is not acted on"
        )
    out = np.full((len(frame), encoder.p), np.nan, dtype=np.float32)
    complaints = []
    for name in names:
        (j,), where = schema.index([name]), acted[name].to_numpy()
        reading = read(schema.features[j], _inferred(table[name][where]))
        if reading.complaint:
            complaints.append(reading.complaint)
        else:
            out[where, j] = reading.values
    if complaints:
        raise InputError(f"actions: {'; '.join(complaints)}")
    return torch.from_numpy(out)


def _table(actions: Actions, frame: pd.DataFrame) -> pd.DataFrame:
    """Actions as a frame with the index of the factual one."""
    if isinstance(actions, pd.DataFrame):
        if not actions.columns.is_unique:
            repeated = actions.columns[actions.columns.duplicated()]
            raise InputError(f"actions: duplicate columns: {list(map(str, repeated))}")
        if not actions.index.equals(frame.index):
            raise InputError(
                "actions: a frame needs the same index as the rows, in the same order:"
                f" {len(actions)} rows for {len(frame)}; actions.loc[frame.index] may help"
            )
        return actions
    if not isinstance(actions, Mapping):
        raise ConstraintError(
            "actions must be {feature: value}, or a frame like `recourses.direct`;"
            f" got {type(actions).__name__}"
        )
    many = [name for name, value in actions.items() if np.ndim(value) > 0]
    if many:
        raise ConstraintError(
            f"actions: one value for all rows is expected, got several for {many}; values row by"
            " row are given as a frame with the same index"
        )
    columns = {
        name: pd.Series([value] * len(frame), frame.index) for name, value in actions.items()
    }
    return pd.DataFrame(columns, index=frame.index)


def _inferred(cells: pd.Series) -> pd.Series:
    """Cells with the dtype inferred from them alone, once missing cells are left out."""
    return cells.infer_objects() if cells.dtype == object else cells
