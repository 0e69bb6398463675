"""Native: answers as the objects that DiCE's own methods return, one per row."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd

from dear_dice.answers import Results
from dear_dice.examples import Examples
from dear_dice.model import Decided, Host
from dear_dice.request import Query, Request

logger = logging.getLogger("dear_dice")


def native(
    query: Query, answers: Results, sparse: Results, request: Request, host: Host, data: Any
) -> list[Examples]:
    """One object per row of a query, with an empty frame where there is no counterfactual.

    Args:
        query: the query.
        answers: its counterfactuals.
        sparse: the same after post-hoc sparsity.
        request: the call.
        host: the model.
        data: DiCE's data interface.
    """
    before = _with_outcome(query.rows, query.decided, host, data)
    final = _with_outcome(answers.frame, answers.decided, host, data)
    thin = _with_outcome(sparse.frame, sparse.decided, host, data)
    examples = [
        Examples(
            _part(answers.actions, span),
            answers.origins[span],
            data_interface=data,
            final_cfs_df=_part(final, span),
            test_instance_df=_part(before, slice(row, row + 1)),
            final_cfs_df_sparse=_part(thin, span),
            posthoc_sparsity_param=request.posthoc_sparsity_param,
            desired_range=request.desired_range,
            desired_class=_desired(query, row, request, host),
            model_type=host.interface.model_type,
        )
        for row, span in enumerate(answers.spans(len(before)))
    ]
    if request.verbose:
        _log(query, examples)
    return examples


def _with_outcome(frame: pd.DataFrame, decided: Decided, host: Host, data: Any) -> pd.DataFrame:
    return frame.assign(**{data.outcome_name: host.labels(decided)})


def _part(frame: pd.DataFrame, span: slice) -> pd.DataFrame:
    return frame.iloc[span].reset_index(drop=True)


def _desired(query: Query, row: int, request: Request, host: Host) -> Any:
    """The wanted class as the model's own label, plain enough for DiCE's JSON."""
    if host.regression:
        return request.desired_class
    label = host.labels(query.wish.classes[row : row + 1])[0]
    plain = label.item() if isinstance(label, np.generic) else label
    return int(plain) if isinstance(plain, bool) else plain


def _log(query: Query, examples: list[Examples]) -> None:
    for index, example in zip(query.rows.index, examples, strict=True):
        words = example.describe() or ["no counterfactual found"]
        logger.info("query %s: %s", index, "; or ".join(words))
