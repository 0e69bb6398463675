"""Redrawn: where answers lead under redraws of the decoder."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.problem.case import Case


def redrawn(optimizer: Optimizer, case: Case, reached: Tensor, acted: Tensor) -> Tensor:
    """(m, r, p) where the same actions take the same people under each redraw, after A_d.

    Args:
        optimizer: what is known of the set.
        case: m people.
        reached: (m, p) their answers.
        acted: (p,) bool, the features of the set.
    """
    with torch.inference_mode():
        redraws, (problem, actions) = optimizer.redraws, optimizer.answered(case, reached, acted)
        every = torch.arange(redraws.count)
        moved = redraws.decode(case.x, actions.values, actions.sets, every)
        return problem.admitted(actions.rows, actions.sets, moved)
