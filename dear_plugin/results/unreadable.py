"""Unreadable: results of frames with rows that cannot be read; these are returned unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin.data.columns import overwrite
from dear_plugin.results.proposal import identity_proposal

if TYPE_CHECKING:
    from dear_plugin.results.recourses import Recourses


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
    at, n = readable.numpy(), len(frame)
    # The cells of an unreadable row are used nowhere.
    x = result.x.new_zeros(n, result.x.shape[1])
    blank = replace(
        identity_proposal(x, torch.zeros(n).bool()),
        reasons=[reasons.get(i, "") for i in range(n)],
        searched=result.proposal.searched,
    )
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
        x=x.index_copy(0, readable, result.x),
        proposal=blank.merged(result.proposal, readable),
        places=torch.full((n,), -1).index_copy(0, readable, result.places),
    )


def for_rows_of(result: Recourses, every: Recourses) -> Recourses:
    """The answers of another rank, over every row of `lazy_answers`, for the rows of a result."""
    if torch.equal(result.places, every.places):
        return every
    part = every.select(result.places[result.readable])
    bad = (result.places < 0).nonzero()[:, 0].tolist()
    reasons = {i: result.outcome["reason"].iloc[i] for i in bad}
    return with_unreadable(part, result.factuals, reasons) if bad else part


def _outcome(
    known: pd.DataFrame, index: pd.Index, at: npt.NDArray[np.int64], reasons: Mapping[int, str]
) -> pd.DataFrame:
    """The outcome of all rows from that of readable ones, at positions `at`; others cost 0."""
    cells: dict[Any, Any] = {name: 0.0 if str(name).endswith("cost") else np.nan for name in known}
    cells |= {"success": False, "acted_on": "", "kind": ""}
    blank = pd.DataFrame({name: cells[name] for name in known}, index=list(reasons))
    blank["reason"] = list(reasons.values())
    return pd.concat([known.set_axis(at), blank.astype(known.dtypes)]).sort_index().set_axis(index)
