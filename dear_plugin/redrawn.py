"""Redrawn: where answers lead under redraws of the decoder."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.case import Case
from dear_plugin.moves import Moves


def redrawn(moves: Moves, case: Case, reached: Tensor, acted: Tensor) -> Tensor:
    """(m, r, p) where the same actions take the same people under each redraw, after A_d.

    Args:
        moves: what is known of the set.
        case: m people.
        reached: (m, p) their answers.
        acted: (p,) bool, the features of the set.
    """
    at = moves.place(tuple(acted.nonzero()[:, 0].tolist()))
    rows, sets = torch.arange(len(case)), torch.full((len(case),), 0 if at is None else at)
    with torch.inference_mode():
        redraws, question = moves.redraws, moves.question(case)
        values = reached.gather(1, moves.sets.positions[sets])
        moved = redraws.decode(case.x, values, sets, torch.arange(redraws.count))
        return question.admitted(rows, sets, moved)
