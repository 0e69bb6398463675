"""Unreadable: results of frames in which some rows cannot be read; these come back as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.columns import overwrite
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.recourses import Hooks, Recourses, Worth
from dear_plugin.results.spread import Spread


def with_unreadable(
    result: Recourses, frame: pd.DataFrame, reasons: Mapping[int, str]
) -> Recourses:
    """A result of m readable rows as one of all n rows.

    Args:
        result: of the readable rows, in order.
        frame: the n rows; a copy of one's own.
        reasons: by position, why each of the other rows cannot be read.
    """
    readable = torch.tensor([i for i in range(len(frame)) if i not in reasons], dtype=torch.int64)
    at = readable.numpy()
    proposal = _plan(result.proposal, readable, [reasons.get(i, "") for i in range(len(frame))])
    # What a row holds that cannot be read is nowhere looked at.
    x = result.x.new_zeros(len(frame), result.x.shape[1]).index_copy(0, readable, result.x)
    after = frame.copy()
    for j in np.flatnonzero(result.changed.any(0).numpy()).tolist():
        name, moved = result.encoder.schema.names[j], result.changed[:, j].numpy()
        cells = result.counterfactuals[name].iloc[np.flatnonzero(moved)]
        overwrite(after, name, at[moved], cells.to_numpy())
    outcome = _outcome(result.outcome, frame.index, at, reasons)
    hooks = _hooks(result.hooks, frame, reasons, readable)
    return replace(
        result,
        factuals=frame,
        counterfactuals=after,
        outcome=outcome,
        x=x,
        proposal=proposal,
        hooks=hooks,
    )


def _outcome(
    known: pd.DataFrame, index: pd.Index, at: npt.NDArray[np.int64], reasons: Mapping[int, str]
) -> pd.DataFrame:
    """The outcome of readable rows, at some positions, among those of all: others cost nothing."""
    clone_unfitted = {"success": False, "acted_on": "", "kind": ""}
    columns = {}
    for name, column in known.items():
        zero = 0.0 if str(name).endswith("cost") else np.nan
        cells = np.full(len(index), clone_unfitted.get(str(name), zero), dtype=column.dtype)
        cells[at] = column.to_numpy()
        columns[name] = cells
    columns["reason"][list(reasons)] = list(reasons.values())
    return pd.DataFrame(columns, index=index)


def _plan(proposal: Proposal, readable: Tensor, reasons: Sequence[str]) -> Proposal:
    """The plan of m readable rows among n."""
    n, at = len(reasons), readable.tolist()
    every = list(reasons)
    notes, kinds = [""] * n if proposal.notes else [], [""] * n if proposal.kinds else []
    for i, place in enumerate(at):
        every[place] = proposal.reasons[i]
        if notes:
            notes[place] = proposal.notes[i]
        if kinds:
            kinds[place] = proposal.kinds[i]
    p = proposal.rows.shape[1]
    return Proposal(
        proposal.rows.new_zeros(n, p).index_copy(0, readable, proposal.rows),
        proposal.direct.new_zeros(n, p).index_copy(0, readable, proposal.direct),
        proposal.suppressed.new_zeros(n).index_copy(0, readable, proposal.suppressed),
        every,
        notes,
        kinds,
    )


def _hooks(
    hooks: Hooks, frame: pd.DataFrame, reasons: Mapping[int, str], readable: Tensor
) -> Hooks:
    return Hooks(
        _SupportOf(hooks, readable),
        _AlternativesOf(hooks, frame, reasons),
        _SharesOf(hooks, readable),
        _WorthOf(hooks, readable),
        _RangesOf(hooks, readable),
    )


@dataclass(frozen=True)
class _SupportOf:
    """The support of rows, NaN of those that cannot be read."""

    hooks: Hooks
    readable: Tensor

    def __call__(self, reached: Tensor, rows: Tensor) -> Tensor:
        place, known = _places(self.readable, rows)
        out = torch.full((len(rows),), torch.nan)
        out[known] = self.hooks.support(reached[known], place[known])
        return out


@dataclass(frozen=True)
class _AlternativesOf:
    """The alternatives of all rows."""

    hooks: Hooks
    frame: pd.DataFrame
    reasons: Mapping[int, str]

    def __call__(self, k: int) -> Sequence[Recourses]:
        return [
            with_unreadable(result, self.frame, self.reasons)
            for result in self.hooks.alternatives(k)
        ]


@dataclass(frozen=True)
class _SharesOf:
    """The expected probabilities beside a row, none of one that cannot be read."""

    hooks: Hooks
    readable: Tensor

    def __call__(self, position: int) -> Mapping[str, tuple[float, float]]:
        place, known = _places(self.readable, torch.tensor([position]))
        return self.hooks.shares(int(place[0])) if bool(known[0]) else {}


@dataclass(frozen=True)
class _WorthOf:
    """What answers are worth, NaN of rows that cannot be read."""

    hooks: Hooks
    readable: Tensor

    def __call__(self, rows: Tensor) -> Worth:
        place, known = _places(self.readable, rows)
        worth, at = self.hooks.worth(place[known]), known.numpy()
        out = {}
        for name, column in vars(worth).items():
            clone_unfitted = False if column.dtype == bool else np.nan
            out[name] = np.full(len(rows), clone_unfitted, dtype=column.dtype)
            out[name][at] = column
        return Worth(**out)


@dataclass(frozen=True)
class _RangesOf:
    """How far redraws agree on rows; those that cannot be read do not move."""

    hooks: Hooks
    readable: Tensor

    def __call__(self, rows: Tensor) -> Spread:
        place, known = _places(self.readable, rows)
        spread, at = self.hooks.ranges(place[known]), known.nonzero()[:, 0]
        shape = len(rows), spread.low.shape[1]
        still = Spread(torch.zeros(shape), torch.zeros(shape), torch.zeros(shape).long(), 0)
        return still.put(at, spread)


def _places(readable: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """(m,) the places of rows among the readable ones, and (m,) bool, whether they are there."""
    if not len(readable):
        return torch.zeros_like(rows), torch.zeros_like(rows, dtype=torch.bool)
    place = torch.searchsorted(readable, rows).clamp_max(len(readable) - 1)
    return place, readable[place] == rows
