"""Unreadable: results of frames with rows that cannot be read; these are returned unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.columns import overwrite
from dear_plugin.results.lazy_answers import Credibility, LazyAnswers
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.spread import Spread


def with_unreadable(
    result: Recourses, frame: pd.DataFrame, reasons: Mapping[int, str]
) -> Recourses:
    """A result of m readable rows as one of all n rows.

    Args:
        result: of the readable rows, in order.
        frame: the n rows, a copy that may be kept.
        reasons: by position, why each of the other rows cannot be read.
    """
    readable = torch.tensor([i for i in range(len(frame)) if i not in reasons], dtype=torch.int64)
    at = readable.numpy()
    proposal = _proposal(
        result.proposal, readable, [reasons.get(i, "") for i in range(len(frame))]
    )
    # The cells of an unreadable row are used nowhere.
    x = result.x.new_zeros(len(frame), result.x.shape[1]).index_copy(0, readable, result.x)
    after = frame.copy()
    for j in np.flatnonzero(result.changed.any(0).numpy()).tolist():
        name, moved = result.encoder.schema.names[j], result.changed[:, j].numpy()
        cells = result.counterfactuals[name].iloc[np.flatnonzero(moved)]
        overwrite(after, name, at[moved], cells.to_numpy())
    outcome = _outcome(result.outcome, frame.index, at, reasons)
    return replace(
        result,
        factuals=frame,
        counterfactuals=after,
        outcome=outcome,
        x=x,
        proposal=proposal,
        lazy_answers=ReadableAnswers(result.lazy_answers, readable, frame, reasons),
    )


def _outcome(
    known: pd.DataFrame, index: pd.Index, at: npt.NDArray[np.int64], reasons: Mapping[int, str]
) -> pd.DataFrame:
    """The outcome of all rows from that of readable ones, at positions `at`; others cost 0."""
    blank = {"success": False, "acted_on": "", "kind": ""}
    columns = {}
    for name, column in known.items():
        zero = 0.0 if str(name).endswith("cost") else np.nan
        cells = np.full(len(index), blank.get(str(name), zero), dtype=column.dtype)
        cells[at] = column.to_numpy()
        columns[name] = cells
    columns["reason"][list(reasons)] = list(reasons.values())
    return pd.DataFrame(columns, index=index)


def _proposal(proposal: Proposal, readable: Tensor, reasons: Sequence[str]) -> Proposal:
    """The proposal of m readable rows among n."""
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


@dataclass(frozen=True)
class ReadableAnswers(LazyAnswers):
    """The answers of n rows, some of which cannot be read.

    Attributes:
        known: the answers of the m readable rows.
        readable: (m,) the positions of these, ascending.
        frame: the n rows.
        reasons: by position, why each of the other rows cannot be read.
    """

    known: LazyAnswers
    readable: Tensor
    frame: pd.DataFrame
    reasons: Mapping[int, str]

    @property
    def scores_are_probabilities(self) -> bool:
        """As of `LazyAnswers`."""
        return self.known.scores_are_probabilities

    @property
    def deviations(self) -> Tensor:
        """As of `LazyAnswers`."""
        return self.known.deviations

    def support(self, reached: Tensor, rows: Tensor) -> Tensor:
        """As of `LazyAnswers`; NaN for unreadable rows."""
        place, mask = _places(self.readable, rows)
        out = torch.full((len(rows),), torch.nan)
        out[mask] = self.known.support(reached[mask], place[mask])
        return out

    def alternatives(self, k: int) -> Iterable[Recourses]:
        """As of `LazyAnswers`."""
        for result in self.known.alternatives(k):
            yield with_unreadable(result, self.frame, self.reasons)

    def flip_probabilities(self, position: int) -> Mapping[str, tuple[float, float]]:
        """As of `LazyAnswers`; empty for an unreadable row."""
        place, mask = _places(self.readable, torch.tensor([position]))
        return self.known.flip_probabilities(int(place[0])) if bool(mask[0]) else {}

    def credibility(self, rows: Tensor) -> Credibility:
        """As of `LazyAnswers`; NaN and False for unreadable rows."""
        place, mask = _places(self.readable, rows)
        known = self.known.credibility(place[mask])
        out = {}
        for name, column in vars(known).items():
            blank = {"b": False, "O": ""}.get(column.dtype.kind, np.nan)
            out[name] = np.full(len(rows), blank, dtype=column.dtype)
            out[name][mask.numpy()] = column
        return Credibility(**out)

    def spread(self, rows: Tensor) -> Spread:
        """As of `LazyAnswers`; 0 for unreadable rows."""
        place, mask = _places(self.readable, rows)
        known = self.known.spread(place[mask])
        shape = len(rows), known.low.shape[1]
        zero = Spread(torch.zeros(shape), torch.zeros(shape), torch.zeros(shape).long(), 0)
        return zero.put(mask.nonzero()[:, 0], known)


def _places(readable: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """(m,) the places of rows among the readable ones, and (m,) bool, whether each is one."""
    if not len(readable):
        return torch.zeros_like(rows), torch.zeros_like(rows, dtype=torch.bool)
    place = torch.searchsorted(readable, rows).clamp_max(len(readable) - 1)
    return place, readable[place] == rows
