"""What if: actions that somebody names, and what follows from them; nothing is searched."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.columns import read
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Feature, Kind
from dear_plugin.errors import ConstraintError, InputError, unknown
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Label, Target
from dear_plugin.results.describe import number
from dear_plugin.results.proposal import ACCEPTED, Proposal, identity_proposal
from dear_plugin.results.recourses import Recourses

ROWS_AT_ONCE = 1024
NO_ACTION = "nothing is acted on"

Actions: TypeAlias = Mapping[str, Any] | pd.DataFrame


class WhatIf(RecourseMethod):
    """A method that can be asked what follows from a given action."""

    def apply(
        self,
        frame: pd.DataFrame,
        actions: Actions,
        within: Constraints | None = None,
        *,
        target: Target | Label | None = None,
    ) -> Recourses:
        """What follows from given actions: "what if I worked 45 hours?". Nothing is searched.

        `dear.apply(frame, dear.generate(frame).direct)` gives the same counterfactuals again. A
        set of features that was not fitted is learned when it is first needed, and kept. A row
        that may not act so (what is frozen or barred in `within`, a range, a direction) stays as
        it is, with the reason, and holds up nobody else. Numbers are rounded to what their columns
        hold. An action of size zero gives the factual back, unless `reconstruct="paper"` counts
        the reconstruction as an indirect change.

        Args:
            frame: n rows with the schema's features; accepted ones may act too.
            actions: `{"hours-per-week": 45}` for all rows, or a frame like `recourses.direct`: the
                same index, the new values of what is acted on, missing elsewhere. A feature with
                the value that the row has is held there while the others act.
            within: what holds for this call only.
            target: what the model should say, which decides `success`; None as in `generate`.

        Raises:
            NotFittedError: `fit` was not called.
            ConstraintError: an action on an unknown or immutable feature.
            InputError: another index, or values that a feature cannot have.
        """
        named = named_values(actions, frame, self.encoder)

        def _outcome(case: Case, part: pd.DataFrame, before: Tensor, at: Tensor) -> Recourses:
            values = named[at]
            proposal = outcome(case, values, self.encoder, self._optimizer_of)
            accepted = case.goal.succeeds(before, lambda: self.classifier.decisions(part))
            proposal = decide(proposal, ~values.isnan().all(1), accepted)
            return self._result_of(case, part, proposal, before)

        return self._over_readable(_outcome, frame, target, within, "report")

    @abstractmethod
    def _optimizer_of(self, members: tuple[int, ...]) -> Optimizer:
        """The moves that know a set, by the ascending positions of its features."""


def named_values(actions: Actions, frame: pd.DataFrame, encoder: Encoder) -> Tensor:
    """The new values of what is acted on, (n, p) row values, NaN where nothing is done.

    Args:
        actions: `{feature: value}` for all rows, or a frame with the same index, missing where a
            feature is not acted on.
        frame: the n factual people.
        encoder: the gate.

    Raises:
        ConstraintError: an unknown or immutable feature.
        InputError: another index, or values that the features cannot have.
    """
    table = _table(actions, frame)
    acted = table.notna()
    names = [name for name in table if bool(acted[name].any())]
    schema = encoder.schema
    strange = [name for name in names if name not in schema.names]
    if strange:
        raise ConstraintError(f"actions: {unknown('features', strange, schema.names)}")
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


def outcome(
    case: Case,
    values: Tensor,
    encoder: Encoder,
    moves_of: Callable[[tuple[int, ...]], Optimizer],
) -> Proposal:
    """What follows from given actions; who may not act so stays, with the reason.

    Args:
        case: the n people.
        values: (n, p) what `named_values` read.
        encoder: the gate.
        moves_of: the moves that know a set of features.
    """
    acted = ~values.isnan()
    nobody = torch.zeros(len(case), dtype=torch.bool)
    proposal = replace(identity_proposal(case.x, nobody), reasons=_refusals(case, values, encoder))
    acts = acted & ~proposal.failed[:, None]
    for pattern in acts.unique(dim=0):
        if not bool(pattern.any()):
            continue
        members = tuple(pattern.nonzero()[:, 0].tolist())
        optimizer = moves_of(members)
        at = optimizer.place(members)
        if at is None:
            raise ConstraintError(f"nothing is known of an action on {members}")
        for rows in (acts == pattern).all(1).nonzero()[:, 0].split(ROWS_AT_ONCE):
            proposal = proposal.merged(
                optimizer.applied(case.select(rows), at, values[rows]), rows
            )
    return proposal


def decide(proposal: Proposal, acted: Tensor, accepted: Tensor) -> Proposal:
    """A plan that says of those who do nothing whether they were accepted as they are.

    Args:
        proposal: what follows, for n people.
        acted: (n,) bool, who does something.
        accepted: (n,) bool, whom the model accepts as they are.
    """
    told = zip(proposal.reasons, acted.tolist(), accepted.tolist(), strict=True)
    reasons = [r if a else ACCEPTED if done else NO_ACTION for r, a, done in told]
    return replace(proposal, reasons=reasons, searched=False)


def _table(actions: Actions, frame: pd.DataFrame) -> pd.DataFrame:
    """Actions as a frame with the index of the factual one."""
    if isinstance(actions, pd.DataFrame):
        if not actions.columns.is_unique:
            twice = actions.columns[actions.columns.duplicated()]
            raise InputError(f"actions: duplicate columns: {list(map(str, twice))}")
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
    """Cells with the dtype that they have without the missing ones."""
    return cells.infer_objects() if cells.dtype == object else cells


def _refusals(case: Case, values: Tensor, encoder: Encoder) -> list[str]:
    """(n,) why a row may not act as it is told to; "" where it may."""
    reasons: list[list[str]] = [[] for _ in range(len(case))]
    feasible = case.feasible
    for j in (~values.isnan()).any(0).nonzero()[:, 0].tolist():
        rows = (~values[:, j].isnan()).nonzero()[:, 0]
        feature, column = encoder.schema.features[j], torch.full((len(rows),), j)
        wanted, not_actionable = values[rows, j], feasible.not_actionable[rows, j]
        far = ~feasible.admits(wanted[:, None], column, rows)[:, 0] & (wanted != case.x[rows, j])
        for i in (not_actionable | far).nonzero()[:, 0].tolist():
            at = int(rows[i])
            reasons[at].append(
                f"{feature.name} may not be acted on"
                if bool(not_actionable[i])
                else _out_of_reach(case, feature, at, j, float(wanted[i]))
            )
    return [", ".join(parts) for parts in reasons]


def _out_of_reach(case: Case, feature: Feature, row: int, j: int, wanted: float) -> str:
    """Why a value is none that a row may take."""
    if feature.kind is not Kind.NUMERIC:
        return f"{feature.name} may not become {feature.categories[int(wanted)]}"
    places = feature.precision
    low, width = feature.bounds[0], feature.width
    feasible = case.feasible
    ends = [
        number(low + float(end[row, j]) * width, places) for end in (feasible.low, feasible.high)
    ]
    told = number(low + wanted * width, places)
    if feasible.low[row, j] > feasible.high[row, j]:
        return f"{feature.name} may not become {told}: no value may be reached"
    return f"{feature.name} may not become {told}, only {ends[0]} to {ends[1]}"
