"""Unreadable: results of frames with rows that cannot be read; these are returned unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin.data.columns import overwrite
from dear_plugin.results.lazy_answers import MappedAnswers
from dear_plugin.results.proposal import identity_proposal
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
        identity_proposal(x, torch.zeros(n).bool()), reasons=[reasons.get(i, "") for i in range(n)]
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
        lazy_answers=MappedAnswers(
            result.lazy_answers,
            torch.full((n,), -1).index_copy(0, readable, torch.arange(len(readable))),
            partial(with_unreadable, frame=frame, reasons=reasons),
        ),
    )


def _outcome(
    known: pd.DataFrame, index: pd.Index, at: npt.NDArray[np.int64], reasons: Mapping[int, str]
) -> pd.DataFrame:
    """The outcome of all rows from that of readable ones, at positions `at`; others cost 0."""
    blank = {"success": False, "acted_on": "", "kind": ""}
    columns = {}
    for name, column in known.items():
        zero = 0.0 if str(name).endswith("cost") else np.nan
        values = column.to_numpy()
        cells = np.full(len(index), blank.get(str(name), zero), dtype=values.dtype)
        cells[at] = values
        columns[name] = cells
    columns["reason"][list(reasons)] = list(reasons.values())
    return pd.DataFrame(columns, index=index)
