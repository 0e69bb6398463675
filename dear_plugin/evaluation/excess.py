"""Excess: what two samples differ by beyond chance, and how much chance alone makes of it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

RELABELLINGS = 20


def squared_means(gap: Tensor, bins: Tensor) -> Tensor:
    """(d,) the squared mean gap of a bin, (n, d) by row, less its variance; mean over rows."""
    count = torch.bincount(bins).double()[:, None]
    total = torch.zeros(len(count), gap.shape[1], dtype=torch.float64)
    mean = total.index_add(0, bins, gap.double()) / count
    square = total.index_add(0, bins, gap.double() ** 2) / count
    variance = (square - mean**2).clamp_min(0.0) / (count - 1.0).clamp_min(1.0)
    return (count * (mean**2 - variance)).sum(0) / len(gap)


def slope(after: Tensor, before: Tensor) -> Tensor:
    """(d,) how far people who differed by 1 differ after a move, of (m, d) each; 1 if unmoved."""
    after, before = after.double(), before.double() - before.double().mean(0)
    return (after * before).mean(0) / before.square().mean(0).clamp_min(1e-12)


def noise_of_means(gap: Tensor) -> Tensor:
    """(d, d) by pairs of columns, the variance that chance alone gives `squared_means` of 2 bins.

    With B bins it is B - 1 times as much: there are so many independent squared deviations of
    means, each of variance C / n, where C is the covariance of the gaps.

    Args:
        gap: (n, d) by row.
    """
    n = len(gap)
    centred = gap - gap.mean(0)
    covariance = centred.T @ centred / max(n - 1, 1)
    return 2.0 * covariance**2 / n**2


def sharing(rows: Tensor, people: Tensor) -> float:
    """How far two samples of one law differ by, as a share of two that have nobody in common.

    Of the deviation of a difference of means, where who is in both agrees with themselves, and who
    is in the second several times counts once.

    Args:
        rows: (n,) who is in the first sample, each once.
        people: (m,) who is in the second one.
    """
    n, m = len(rows), len(people)
    copies = torch.bincount(people, minlength=int(rows.max()) + 1).double()
    both = float(copies[rows].sum()) / (n * m)
    own = 1.0 / n + float(copies.square().sum()) / m**2
    return float(np.sqrt(max(own - 2.0 * both, 0.0) / (1.0 / n + 1.0 / m)))


def ks(
    a: Tensor, b: Tensor, rng: np.random.Generator, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """(d,) KS(a, b) less its mean over random relabellings, and (`RELABELLINGS`, d) all of these.

    Args:
        a: (n, d) one sample.
        b: (m, d) the other one, with which it is pooled and relabelled.
        rng: of the relabellings.
        scale: of what chance makes; see `sharing`.
    """
    pooled, order = torch.cat([a, b]).sort(0)
    last = torch.ones(pooled.shape, dtype=torch.bool)
    last[:-1] = pooled[1:] > pooled[:-1]
    step = torch.cat([torch.full((len(a),), 1.0 / len(a)), torch.full((len(b),), -1.0 / len(b))])
    by_chance = torch.stack(
        [
            _gap(step[torch.from_numpy(rng.permutation(len(step)))], order, last)
            for _ in range(RELABELLINGS)
        ]
    )
    return _gap(step, order, last) - scale * by_chance.mean(0), scale * by_chance


def shares_of_variance(draws: Tensor, counted: Tensor) -> Tensor:
    """(d,) what each column adds to the variance of a sum of columns.

    Args:
        draws: (m, d) independent draws of the columns.
        counted: (d,) bool, the columns in the sum.
    """
    centred = draws - draws.mean(0)
    total = centred[:, counted].sum(1, keepdim=True)
    return (centred * total).sum(0) / (len(draws) - 1)


def _gap(step: Tensor, order: Tensor, last: Tensor) -> Tensor:
    """(d,) the largest gap between two empirical distributions, ties taken whole."""
    gaps = step[order].cumsum(0).abs()
    return torch.where(last, gaps, 0.0).amax(0)
