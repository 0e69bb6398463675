"""Redrawn: where answers lead under redraws of the decoder."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.methods.optimizer import Moves
from dear_plugin.problem.case import Case


def redrawn(moves: Moves, case: Case, reached: Tensor, acted: Tensor) -> Tensor:
    """(m, r, p) where the same actions take the same people under each redraw, after A_d.

    Args:
        moves: what is known of the set.
        case: m people.
        reached: (m, p) their answers.
        acted: (p,) bool, the features of the set.
    """
    with torch.inference_mode():
        redraws, (question, actions) = moves.redraws, moves.answered(case, reached, acted)
        every = torch.arange(redraws.count)
        moved = redraws.decode(case.x, actions.values, actions.sets, every)
        return question.admitted(actions.rows, actions.sets, moved)
