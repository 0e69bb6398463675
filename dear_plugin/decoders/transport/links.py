"""Links (step 4): which counted features depend on x_S within cells.

A feature may move with x_S only if independence is rejected at some level of parts of x_S (see
`shrinkage`). Rows are expected from the distribution of their cell; deviations are summed over
cells before they are squared, so that many small cells have the power of a large one (Mantel and
Haenszel 1959).
"""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.decoders.transport.counts import Counts
from dear_plugin.decoders.transport.shrinkage import LEAST, shrunk

# The family-wise error rate over all features that are independent of x_S; the l-th level has
# 1 / 2^l of it.
ERROR = 0.001


def tails_of(counts: Counts, features: Tensor) -> Tensor:
    """(l, r, f) the probability of as much dependence of f features by chance, at each level."""
    if not len(features):
        return torch.ones(len(counts.levels), len(counts.rows), 0).double()
    pairs = [counts.grouped(j) for j in features.tolist()]
    cells, bins = (torch.stack(each, 2) for each in zip(*pairs, strict=True))
    expected = cells / counts.rows.sum(2)[:, None].clamp_min(LEAST) @ counts.rows
    return shrunk(bins, expected, counts.levels, drawn=counts.drawn).tail


def linked(tails: Tensor, tested: int) -> Tensor:
    """(r, f) bool, whether features depend on x_S, given how many share the error rate."""
    error = ERROR / tested / 2.0 ** torch.arange(1, len(tails) + 1).double()
    return (tails < error[:, None, None]).any(0)
