"""Excess: the difference of two samples beyond its expectation by chance, and that variance."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

RELABELLINGS = 20


def squared_means(difference: Tensor, bins: Tensor) -> Tensor:
    """(d,) mean over rows of the squared bin mean of a difference, less its variance.

    Args:
        difference: (n, d) by row.
        bins: (n,) the bin of each row.
    """
    count = torch.bincount(bins).double()[:, None]
    total = torch.zeros(len(count), difference.shape[1], dtype=torch.float64)
    mean = total.index_add(0, bins, difference.double()) / count
    square = total.index_add(0, bins, difference.double() ** 2) / count
    variance = (square - mean**2).clamp_min(0.0) / (count - 1.0).clamp_min(1.0)
    return (count * (mean**2 - variance)).sum(0) / len(difference)


def slope(after: Tensor, before: Tensor) -> Tensor:
    """(d,) the regression slope of values after a move on those before, (m, d) each."""
    after, before = after.double(), before.double() - before.double().mean(0)
    return (after * before).mean(0) / before.square().mean(0).clamp_min(1e-12)


def noise_of_means(difference: Tensor) -> Tensor:
    """(d, d) by pairs of columns, the chance variance of `squared_means` with two bins.

    With B bins it is B - 1 times as much: there are as many independent squared deviations of
    means, each of variance C / n, where C is the covariance of the differences.

    Args:
        difference: (n, d) by row.
    """
    n = len(difference)
    centred = difference - difference.mean(0)
    covariance = centred.T @ centred / max(n - 1, 1)
    return 2.0 * covariance**2 / n**2


def overlap_scale(first: Tensor, second: Tensor) -> float:
    """The standard deviation of the difference of two sample means, relative to disjoint samples.

    Rows in both samples cancel; a row that is in the second one several times counts once.

    Args:
        first: (n,) distinct row numbers.
        second: (m,) row numbers, with repetitions.
    """
    n, m = len(first), len(second)
    copies = torch.bincount(second, minlength=int(first.max()) + 1).double()
    shared = float(copies[first].sum()) / (n * m)
    separate = 1.0 / n + float(copies.square().sum()) / m**2
    return float(np.sqrt(max(separate - 2.0 * shared, 0.0) / (1.0 / n + 1.0 / m)))


def ks(
    a: Tensor, b: Tensor, rng: np.random.Generator, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """(d,) KS(a, b) less its mean over random relabellings, and (`RELABELLINGS`, d) all of these.

    Args:
        a: (n, d) one sample.
        b: (m, d) the other one, with which it is pooled and relabelled.
        rng: of the relabellings.
        scale: factor of the relabelled distances, see `overlap_scale`.
    """
    pooled, order = torch.cat([a, b]).sort(0)
    last = torch.ones(pooled.shape, dtype=torch.bool)
    last[:-1] = pooled[1:] > pooled[:-1]
    step = torch.cat([torch.full((len(a),), 1.0 / len(a)), torch.full((len(b),), -1.0 / len(b))])
    by_chance = torch.stack(
        [
            _distance(step[torch.from_numpy(rng.permutation(len(step)))], order, last)
            for _ in range(RELABELLINGS)
        ]
    )
    return _distance(step, order, last) - scale * by_chance.mean(0), scale * by_chance


def shares_of_variance(draws: Tensor, counted: Tensor) -> Tensor:
    """(d,) the contribution of each column to the variance of a sum of columns.

    Args:
        draws: (m, d) independent draws of the columns.
        counted: (d,) bool, the columns in the sum.
    """
    centred = draws - draws.mean(0)
    total = centred[:, counted].sum(1, keepdim=True)
    return (centred * total).sum(0) / (len(draws) - 1)


def _distance(step: Tensor, order: Tensor, last: Tensor) -> Tensor:
    """(d,) the largest difference of two distribution functions, from their steps, (n + m,)."""
    differences = step[order].cumsum(0).abs()
    return torch.where(last, differences, 0.0).amax(0)
