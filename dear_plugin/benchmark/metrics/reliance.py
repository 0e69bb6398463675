"""Reliance: the share of the indirect change that an answer needs to succeed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark.metrics.decision import Accepts, Floats, solved, where
from dear_plugin.results.recourses import Recourses

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# The share from which a category has changed.
HALF = 0.5


def partly(recourses: Recourses, share: float) -> pd.DataFrame:
    """N rows with the whole action and a share of the indirect change, in user units.

    Numbers are interpolated and rounded to their column's precision; categories change at 1/2.

    Args:
        recourses: the answers.
        share: from 0, the action alone, to 1, the counterfactual.
    """
    encoder, x, reached = recourses.encoder, recourses.x, recourses.proposal.rows
    numbers = torch.tensor([not f.categories for f in encoder.schema])
    mixed = torch.where(numbers, x + share * (reached - x), reached if share >= HALF else x)
    rows = torch.where(recourses.proposal.direct, reached, mixed)
    return encoder.patch(recourses.factuals, x, rows)[0]


def alone(recourses: Recourses, accepts: Accepts) -> Floats:
    """(n,) 1 where the model accepts the row after the action alone, else 0.

    Its mean over answers is the share that needs no indirect change.

    Args:
        recourses: the answers.
        accepts: the model.
    """
    return where(solved(recourses), accepts(partly(recourses, 0.0)))


def reliance(recourses: Recourses, accepts: Accepts) -> Floats:
    """(n,) the least share of the indirect change from which on the answer succeeds.

    One of 0, 1/4, 1/2, 3/4, 1. 0: the action alone suffices, and the answer succeeds with every
    share; 1: it succeeds only with the whole indirect change.

    Args:
        recourses: the answers.
        accepts: the model.
    """
    accepted = np.stack([accepts(partly(recourses, share)) for share in SHARES[:-1]])
    # The number of consecutive shares below 1, in descending order, that are accepted.
    below = np.logical_and.accumulate(accepted[::-1]).sum(0)
    return where(solved(recourses), np.array(SHARES)[len(SHARES) - 1 - below])
