"""Links (step 4): which counted features depend on x_S within cells.

A feature may move with x_S only if independence is rejected at some level of parts of x_S (see
`ratios`). Rows are expected from the distribution of their cell; deviations are summed over
cells before they are squared, so that many small cells have the power of a large one (Mantel and
Haenszel 1959).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.ratios import WHOLE, Counts, Ratios, fit_bases
from dear_plugin.decoders.transport.shrinkage import shrunk
from dear_plugin.decoders.transport.trends import LEAST
from dear_plugin.decoders.transport.values import GROUPS, counted_features, normal_places

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
    return _found(tails, tested)


def _all_tails(sample: Sample, i: int, held: Members) -> Tensor:
    """(l, 1, p) the tail probabilities of all counted features in the sample itself; others 1."""
    counted = sample.shared(counted_features).clone()
    counted[[i, *held]] = False
    some = counted.nonzero()[:, 0]
    tails = _tails(Counts(sample, (i,), held, WHOLE), some)
    return tails.new_ones(len(tails), 1, len(counted)).index_copy(2, some, tails)


def _tails(counts: Counts, features: Tensor) -> Tensor:
    """(l, r, f) the probability of as much dependence of f features by chance, at each level."""
    if not len(features):
        return torch.ones(len(counts.axis.levels) + 1, len(counts.rows), 0).double()
    seen, within = (
        _grouped(counts, features.tolist(), of) for of in (counts.of_bins, counts.of_cells)
    )
    expected = within / counts.rows.sum(2)[:, None].clamp_min(LEAST) @ counts.rows
    return _tails_of(counts, seen, expected, within)


def _tails_of(counts: Counts, seen: Tensor, expected: Tensor, within: Tensor) -> Tensor:
    """(l, r, f) those of a trend and of all levels, given rows by bin, and `within` cells."""
    found = shrunk(seen, expected, counts.axis.levels, drawn=counts.drawn).tail
    return torch.cat([_trend(counts, seen - expected, within)[None], found])


def _trend(counts: Counts, beyond: Tensor, within: Tensor) -> Tensor:
    """(r, f) the probability of such a linear association within cells (Mantel 1963).

    Args:
        counts: of the rows.
        beyond: (g, r, f, b) observed rows of g groups of values in bins, without those expected.
        within: (g, r, f, k) rows of the groups in cells.
    """
    from scipy.special import chdtrc

    def _spread(rows: Tensor, score: Tensor) -> Tensor:
        """(..., k) the squares of a score in each cell, of rows, (..., k, b), about its mean."""
        n = rows.sum(-1).clamp_min(LEAST)
        mean = (rows * score).sum(-1) / n
        return (rows * score.square()).sum(-1) - n * mean.square()

    x = counts.axis.place
    y = normal_places(within.sum(3).movedim(0, -1))
    score = (beyond * y.movedim(-1, 0)[..., None] * x).sum((0, 3))
    spread = _spread(within.movedim(0, -1), y[:, :, None])
    n = counts.rows.sum(2)[:, None]
    variance = (_spread(counts.rows, x)[:, None] * spread / (n - 1.0).clamp_min(1.0)).sum(2)
    statistic = score.square() / variance.clamp_min(LEAST) - 2.0 * counts.drawn
    tail = torch.from_numpy(chdtrc(1.0, statistic.clamp_min(0.0).numpy()))
    return torch.where(variance > LEAST, tail, 1.0)


def differing(counts: Counts, fits: Mapping[int, Ratios], tested: int) -> Tensor:
    """(f,) bool, of which features any sample rejects ratios that were estimated in other rows.

    Args:
        counts: of rows by group, each with its own distribution in every cell.
        fits: the ratios of each, in one sample.
        tested: how many share the error rate.
    """
    features = [*fits]
    ratio = [each.bins.expand(len(counts.rows), -1, -1) for each in fits.values()]
    bases = fit_bases(counts, features, ratio)
    if_equal = {
        j: (counts.rows / (base @ own.mT).clamp_min(LEAST)).mT @ base * own
        for j, base, own in zip(features, bases, ratio, strict=True)
    }
    rows = counts.of_bins, if_equal.__getitem__, counts.of_cells
    seen = (_grouped(counts, features, of) for of in rows)
    return _found(_tails_of(counts, *seen), tested * len(counts.rows)).any(0)


def _grouped(counts: Counts, features: list[int], of: Callable[[int], Tensor]) -> Tensor:
    """(g, r, f, q) the rows of each group of values, given those of values, (r, q, t)."""
    members = [one_hot(counts.values(j).groups, GROUPS).double() for j in features]
    rows = [of(j) @ member for j, member in zip(features, members, strict=True)]
    return torch.stack(rows, 1).movedim(3, 0)


def _found(tails: Tensor, tested: int) -> Tensor:
    """(r, f) bool, whether any of l levels rejects, given (l, r, f)."""
    error = ERROR / tested / 2.0 ** torch.arange(1, len(tails) + 1).double()
    return (tails < error[:, None, None]).any(0)
