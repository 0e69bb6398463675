"""What if: given actions in; their outcome, or why rows may not act so, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.inference import misfit
from dear_plugin.data.schema import Feature
from dear_plugin.errors import ConstraintError, InputError
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods.proposals import decoded
from dear_plugin.problem.action_sets import ActionSets, why_fixed
from dear_plugin.problem.case import Case
from dear_plugin.problem.limits import Limits
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.proposal import Proposal, identity_proposal
from dear_plugin.results.words import join, number, one
from dear_plugin.search import SearchProblem

Actions: TypeAlias = Mapping[str, Any] | pd.DataFrame
ROWS_AT_ONCE = 1024
# The values of a number in a curve.
POINTS = 33
# What an action sets that leaves none, or several, of the columns of a feature at 1.
NONE = -1.0


def named_values(actions: Actions, frame: pd.DataFrame, encoder: Encoder) -> Tensor:
    """(n, p) the new values of the features acted on, in user units; NaN elsewhere.

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
    acted, schema = table.notna(), encoder.schema
    names = [name for name in table if bool(acted[name].any())]
    features = [schema.features[j] for j in schema.index(names, "actions", ConstraintError)]
    if fixed := [f for f in features if f.immutable]:
        raise ConstraintError(
            f"actions: {[f.name for f in fixed]} cannot be acted on: {why_fixed(fixed)}; leave"
            " missing what is not acted on"
        )
    columns = {each.name: each for each in (*schema.columns, *schema)}
    read = {name: np.full(len(frame), np.nan) for name in names}
    complaints = []
    for name, values in read.items():
        where = acted[name].to_numpy()
        # The dtype of an object column is inferred once missing cells are left out.
        reading = columns[name].read(table[name][where].infer_objects())
        if reading.complaint:
            complaints.append(reading.complaint)
        else:
            values[where] = reading.values
    if complaints:
        raise InputError(f"actions: {'; '.join(complaints)}")
    out, labelled = np.full((len(frame), encoder.p), np.nan), schema.labelled(frame)
    for j in dict.fromkeys(schema.index(names)):
        feature = schema.features[j]
        out[:, j] = read.get(feature.name, np.nan)
        if {*read} & {each.name for each in feature.dummies}:
            own = pd.Index(feature.categories).get_indexer(labelled[feature.name])
            flags = np.stack([read.get(c.name, out[:, 0] * np.nan) for c in feature.dummies], 1)
            out[:, j] = np.where(np.isnan(out[:, j]), _level(flags, own), out[:, j])
    return torch.from_numpy(out)


def _level(flags: npt.NDArray[np.float64], own: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """(n,) the categories that new values of columns, (n, m), NaN for the same, make of own ones.

    `NONE` where not exactly one column is 1 then; NaN where none has a new value.
    """
    before = np.arange(flags.shape[1]) == own[:, None]
    enters = (flags == 1.0).any(1, keepdims=True)
    after = np.where(np.isnan(flags), before & ~enters, flags) == 1.0
    level = np.where(after.sum(1) == 1, after.argmax(1), NONE)
    return np.where(np.isnan(flags).all(1), np.nan, level)


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
    if hasattr(actions, "to_pandas"):
        raise InputError(f"actions: {misfit(actions)}")
    if not isinstance(actions, Mapping):
        raise ConstraintError(
            "actions must be {feature: value}, or a frame like `recourses.direct`;"
            f" got {type(actions).__name__}"
        )
    if many := [name for name, value in actions.items() if np.ndim(value) > 0]:
        raise ConstraintError(
            f"actions: one value for all rows is expected, got several for {many}; values row by"
            " row are given as a frame with the same index"
        )
    return pd.DataFrame({k: [v] * len(frame) for k, v in actions.items()}, index=frame.index)


def outcome(case: Case, values: Tensor, accepted: Tensor, *, trained: Trained) -> Proposal:
    """The outcome of given actions; rows that may not act so stay, with the reason.

    Args:
        case: the n rows.
        values: (n, p) the new values of the features acted on, NaN elsewhere.
        accepted: (n,) bool, rows that the model accepts as they are.
        trained: the training rows, with decoders and the model.
    """
    acted, encoder = ~values.isnan(), trained.classifier.encoder
    proposal = identity_proposal(case.x, accepted & ~acted.any(1))
    reasons = _refusals(case, values, proposal.accepted, encoder)
    proposal = replace(proposal, reasons=reasons, searched=False)
    acting = (~proposal.failed & acted.any(1)).nonzero()[:, 0]
    for rows in acting.split(ROWS_AT_ONCE) if len(acting) else ():
        sets, which = ActionSets.acted_on(acted[rows], encoder.schema)
        problem = SearchProblem.of(case.select(rows), sets, trained)
        wanted = values[rows].gather(1, sets.positions[which])
        with torch.inference_mode():
            wanted = _on_grid(problem, which, wanted)
            part = decoded(problem, torch.arange(len(rows)), which, wanted).clone()
        proposal = proposal.merged(part, rows)
    return proposal


def _on_grid(problem: SearchProblem, sets: Tensor, wanted: Tensor) -> Tensor:
    """Given values, (m, w), with the decimals of their columns, as the search has them."""
    rows, where = torch.arange(len(wanted)), problem.sets.positions[sets]
    own = problem.x.gather(1, where)
    unchanged = wanted == own
    admits = problem.feasible.limits.admits
    inside = [admits(own[:, [i]], where[:, i], rows) for i in range(where.shape[1])]
    # A row without a change keeps its values, as does a feature whose own value no action reaches.
    kept = unchanged & (unchanged.all(1, keepdim=True) | ~torch.cat(inside, 1))
    return torch.where(kept, own, problem.snapped(rows, sets, wanted[:, None])[:, 0])


def _refusals(case: Case, values: Tensor, accepted: Tensor, encoder: Encoder) -> list[str]:
    """(n,) why a row may not take its action, or has none; "" where it may, or is accepted."""
    reasons: list[list[str]] = [
        [Reason.NOT_ACTED] * nothing for nothing in (values.isnan().all(1) & ~accepted).tolist()
    ]
    limits, acted = case.feasible.limits, ~values.isnan()
    for j in acted.any(0).nonzero()[:, 0].tolist():
        rows, feature = acted[:, j].nonzero()[:, 0], encoder.schema.features[j]
        wanted = values[rows, j]
        refused = ~limits.admits(wanted[:, None], torch.full((len(rows),), j), rows)[:, 0]
        refused = (refused & (wanted != case.x[rows, j])) | limits.not_actionable[rows, j]
        refused |= (wanted == NONE) & bool(feature.dummies)
        for row, value in zip(rows[refused].tolist(), wanted[refused].tolist(), strict=True):
            reasons[row].append(_refusal(limits, feature, row, j, value))
    return [", ".join(parts) for parts in reasons]


def _refusal(limits: Limits, feature: Feature, row: int, j: int, wanted: float) -> str:
    """Why a row may not take a value of the feature at position j."""
    if feature.dummies and wanted == NONE:
        return Reason.NOT_ONE.format(feature.called)
    if bool(limits.not_actionable[row, j]):
        return Reason.NOT_ACTIONABLE.format(feature.called)
    (cell,) = feature.cells(np.array([wanted]))
    if not feature.is_amount(cell):
        return Reason.NOT_THIS_VALUE.format(feature.called, one(feature, cell))
    ends = float(limits.low[row, j]), float(limits.high[row, j])
    low, high, value = (number(end, feature.precision) for end in (*ends, wanted))
    if ends[0] > ends[1]:
        return Reason.NO_VALUE.format(feature.called, value)
    known = [v for v in sorted(feature.observed) if float(low) <= v <= float(high)]
    if known and float(low) <= float(value) <= float(high):
        names = join([number(v, feature.precision) for v in known], " or ")
        return Reason.NOT_OBSERVED.format(feature.called, value, names)
    return Reason.OUTSIDE.format(feature.called, value, low, high)


def curve_values(feature: Feature) -> list[Any]:
    """The values of a feature in a curve: all levels, or a grid over the range of a number."""
    if feature.few:
        return feature.few
    (low, high), (first, last) = feature.bounds, feature.limits or feature.bounds
    grid = np.linspace(max(low, first), min(high, last), POINTS)
    places = feature.precision
    values = grid if places is None else np.unique(grid.round(places))
    return [value for value in values.tolist() if value not in feature.codes]
