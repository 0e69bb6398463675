"""Reliance: how much of what is expected to follow has to happen for the decision to be right."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark.rulers.decision import Accepts, Floats, solved, where
from dear_plugin.results.recourses import Recourses

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# From here on a category has changed.
HALF = 0.5


def partly(recourses: Recourses, share: float) -> pd.DataFrame:
    """Factuals with the whole action and a share of the indirect change, n rows in user units.

    Numbers go so far and are rounded as their column has them; a category changes from 1/2 on.

    Args:
        recourses: the answers.
        share: from 0, the action alone, to 1, the counterfactual.
    """
    encoder, x, reached = recourses.encoder, recourses.x, recourses.proposal.rows
    numbers = torch.tensor([not f.categories for f in encoder.schema])
    way = torch.where(numbers, x + share * (reached - x), reached if share >= HALF else x)
    rows = torch.where(recourses.proposal.direct, reached, way)
    return encoder.patch(recourses.factuals, x, rows)[0]


def alone(recourses: Recourses, accepts: Accepts) -> Floats:
    """(n,) 1 where the action alone suffices: only it happens, and the model accepts; else 0.

    Source: `notes/credible.md`, section 3. Its mean over answers is the share that needs nothing
    to follow.

    Args:
        recourses: the answers.
        accepts: the model.
    """
    return where(solved(recourses), accepts(partly(recourses, 0.0)))


def reliance(recourses: Recourses, accepts: Accepts) -> Floats:
    """(n,) the least share of the indirect change with which the answer holds, and all above it.

    One of 0, 1/4, 1/2, 3/4, 1 (DESIGN, section 8). 0: the action alone suffices, and what is
    expected to follow does not undo it; 1: nothing less than all of it will do.

    Args:
        recourses: the answers.
        accepts: the model.
    """
    fine = np.stack([accepts(partly(recourses, share)) for share in SHARES[:-1]])
    # From the top down: how many shares in a row, besides the whole, are accepted.
    held = np.logical_and.accumulate(fine[::-1]).sum(0)
    return where(solved(recourses), np.array(SHARES)[len(SHARES) - 1 - held])
