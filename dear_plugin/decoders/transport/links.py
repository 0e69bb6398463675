"""Links (step 4): which counted features depend on x_S within cells.

A feature may move with x_S only if independence is rejected at some level of parts of x_S (see
`shrinkage`). Rows are expected from the distribution of their cell; deviations are summed over
cells before they are squared, so that many small cells have the power of a large one (Mantel and
Haenszel 1959).
"""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.decoders.transport.shrinkage import LEAST, Level, strength_of

# The family-wise error rate over all features that are independent of x_S; the l-th level has
# 1 / 2^l of it.
ERROR = 0.001


def linked(
    rows: Tensor, cells: Tensor, counts: Tensor, levels: list[Level], *, tested: int, drawn: bool
) -> Tensor:
    """(r, f) bool, whether f features depend on x_S in r samples.

    Args:
        rows: (r, k, b) the rows of each cell and bin.
        cells: (r, f, k, g) the rows of each cell and group of values.
        counts: (r, f, b, g) the rows of each bin and group of values.
        levels: the divisions of the bins.
        tested: how many features share the error rate.
        drawn: whether these are bootstrap samples.
    """
    share = cells / rows.sum(2)[:, None, :, None].clamp_min(LEAST)
    expected = torch.einsum("rkb,rfkg->rfbg", rows, share)
    tail = strength_of(counts, expected, levels, drawn=drawn).tail
    error = ERROR / tested / 2.0 ** torch.arange(1, len(levels) + 1).double()
    return (tail < error[:, None, None]).any(0)
