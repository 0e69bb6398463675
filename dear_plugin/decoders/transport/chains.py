"""Chains: smooth features that follow counted ones, by their place in the order of causes.

What a counted cause does next is not sure of one row, nor is then what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dear_plugin.data.tiers import ranks
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.columns import Columns
from dear_plugin.decoders.transport.least_squares import LeastSquares


def chains_of(
    sample: Sample,
    columns: Callable[..., Columns],
    counted: Tensor,
    smooth: Tensor,
    *,
    tested: int,
) -> list[LeastSquares]:
    """The smooth features that follow counted ones, of one place in the order of causes each.

    A counted feature with the same place is taken for a cause where x_S has no effect beside it.

    Args:
        sample: the training rows.
        columns: what x_S and the held features enter as, given `earlier` causes.
        counted: (f,) the counted features that move.
        smooth: (f,) the smooth ones; those with special levels are not: a counted cause moves
            which rows are special.
        tested: the number of features that may follow.
    """
    place, chains = (
        torch.tensor(ranks(sample.encoder.schema.tiers, sample.encoder.schema.names)),
        [],
    )
    for own in place[smooth].unique().tolist() if len(counted) else ():
        before = place[counted] < own
        earlier = counted[before if bool(before.any()) else place[counted] == own]
        may_move = torch.zeros(len(place), dtype=torch.bool)
        may_move[smooth[place[smooth] == own]] = True
        while bool(may_move.any()) and len(earlier):
            fit = LeastSquares(
                sample, columns(earlier=tuple(earlier.tolist())), may_move, tested=tested
            )
            direct = fit.point.features[(fit.point.slope[0] != 0.0).any(0)]
            if bool(before.any()) or not len(direct):
                chains.append(fit)
                break
            may_move[direct] = False
    return chains
