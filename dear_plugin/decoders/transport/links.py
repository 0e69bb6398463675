"""Links (step 4): which counted features depend on x_S within cells.

A feature may move with x_S only if independence is rejected at some level of parts of x_S (see
`ratios`). Rows are expected from the distribution of their cell; deviations are summed over
cells before they are squared, so that many small cells have the power of a large one (Mantel and
Haenszel 1959).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.ratios import LEAST, WHOLE, Counts, shrunk
from dear_plugin.decoders.transport.values import GROUPS, smooth_features

# The family-wise error rate over all features that are independent of x_S; the l-th level has
# 1 / 2^l of it.
ERROR = 0.001


def linked(
    sample: Sample, i: int, *, held: Members, weights: Tensor, features: Tensor, tested: int
) -> Tensor:
    """(r, f) bool, which of f features depend on feature i in r samples.

    Args:
        sample: the training rows.
        i: the position of a feature of S.
        held: the features that are conditioned on.
        weights: (r, q) of blocks of rows in the samples, see `Counts`.
        features: (f,) the features to test.
        tested: how many share the error rate.
    """
    if len(weights) == 1:  # the sample itself
        tails = sample.shared(_all_tails, i, held)[..., features]
    else:
        tails = _tails(Counts(sample, (i,), held, weights), features)
    error = ERROR / tested / 2.0 ** torch.arange(1, len(tails) + 1).double()
    return (tails < error[:, None, None]).any(0)


def _all_tails(sample: Sample, i: int, held: Members) -> Tensor:
    """(l, 1, p) the tail probabilities of all counted features in the sample itself; others 1."""
    counted = ~sample.shared(smooth_features)
    counted[[i, *held]] = False
    some = counted.nonzero()[:, 0]
    tails = _tails(Counts(sample, (i,), held, WHOLE), some)
    return tails.new_ones(len(tails), 1, len(counted)).index_copy(2, some, tails)


def _tails(counts: Counts, features: Tensor) -> Tensor:
    """(l, r, f) the probability of as much dependence of f features by chance, at each level."""
    if not len(features):
        return torch.ones(len(counts.axis.levels), len(counts.rows), 0).double()
    cells, bins = [], []
    for j in features.tolist():
        member = one_hot(counts.values(j).groups, GROUPS).double()
        cells.append(counts.of_cells(j) @ member)
        bins.append(counts.of_bins(j) @ member)
    seen, within = (torch.stack(each, 1).movedim(3, 0) for each in (bins, cells))
    expected = within / counts.rows.sum(2)[:, None].clamp_min(LEAST) @ counts.rows
    return shrunk(seen, expected, counts.axis.levels, drawn=counts.drawn).tail
