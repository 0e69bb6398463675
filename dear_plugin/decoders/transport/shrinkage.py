"""Shrinkage: empirical Bayes estimates of the effects of bins of x_S.

In: an estimate per bin and its precision; out: shrunk estimates. Bins without an order, those of
categories, vary around their common mean; ordered bins, those of a numeric feature, follow a
random walk, so that each borrows strength from its neighbours. The variance of either is estimated
from the data: the smallest one that they do not reject, which is exactly zero where the bins may
be equal.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The variance of a step of the walk, from one bin to the next: a grid.
STEP_VARIANCES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
# A step variance is rejected where twice its log-likelihood is this much too low (p = .001).
MIN_GAIN = 10.8
# Bins without an order differ if their chi-square exceeds its mean by this many standard
# deviations (p = .001).
MIN_Z = 3.1
DIFFUSE = 1e6


def shrunk_means(means: Tensor, counts: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Means of bins without an order, (b, q), shrunk to the overall mean.

    Args:
        means: (b, q) the mean of each bin.
        counts: (b, q) or (b, 1) its number of rows.
        mean: (q,) the mean over all bins.
        variance: (q,) the variance of one row.
    """
    between = between_variance(means, counts, mean, variance)
    return shrunk(means, counts, mean, variance, between)


def between_variance(means: Tensor, counts: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """(q,) double, the variance between bins without an order; zero where it is insignificant."""
    variance, total = variance.clamp_min(1e-12), counts.sum(0)
    square = (counts * (means - mean).square()).sum(0)
    freedom = (counts > 0).sum(0).double() - 1.0
    effective = total - counts.square().sum(0) / total.clamp_min(1e-12)
    between = (square - freedom * variance) / effective.clamp_min(1e-12)
    significant = square / variance > chi_square_bound(freedom)
    return torch.where(significant, between.clamp_min(1e-12), 0.0)


def chi_square_bound(freedom: Tensor) -> Tensor:
    """The mean of chi-square plus `MIN_Z` standard deviations, by degrees of freedom."""
    return freedom + MIN_Z * (2.0 * freedom).clamp_min(0.0).sqrt()


def shrunk(
    means: Tensor, counts: Tensor, mean: Tensor, variance: Tensor, between: Tensor
) -> Tensor:
    """(b, q) means shrunk by a variance between bins, (q,); see `shrunk_means`."""
    noise = variance.clamp_min(1e-12) / between.clamp_min(1e-12)
    return mean + torch.where(between > 0.0, counts / (counts + noise), 0.0) * (means - mean)


def step_variance(effects: Tensor, weight: Tensor) -> Tensor:
    """(q,) the smallest variance of a step of a random walk that the data do not reject.

    Args:
        effects: (b, q) the estimated effect of each bin, in order.
        weight: (b, q) its precision, one over its variance.
    """
    variances = torch.tensor(STEP_VARIANCES, dtype=effects.dtype)
    gain, *_ = _kalman_filter(effects, weight, variances[:, None])
    enough = 2.0 * (gain.amax(0) - gain) <= MIN_GAIN
    return variances[enough.int().argmax(0)]


def smoothed_walk(effects: Tensor, weight: Tensor, step: Tensor) -> Tensor:
    """(b, q) the random walk with a variance of its steps, (q,); zero where that is zero."""
    _, means, variances = _kalman_filter(effects, weight, step)
    out = torch.empty_like(effects)
    out[-1] = now = means[-1]
    for i in range(len(effects) - 2, -1, -1):
        gain = variances[i] / (variances[i] + step)
        out[i] = now = means[i] + gain * (now - means[i])
    return torch.where(step > 0.0, out, 0.0)


def _kalman_filter(
    effects: Tensor, weight: Tensor, step: Tensor
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """The log-likelihood of random walks, and their mean and variance after each bin."""
    variance = torch.full_like(effects[0] + step, DIFFUSE)
    mean, gain = torch.zeros_like(variance), torch.zeros_like(variance)
    means, variances = [], []
    for value, w in zip(effects, weight, strict=True):
        variance = variance + step
        noise = 1.0 + w * variance
        error = value - mean
        deviance = noise.log() - w.clamp_min(1e-12).log() + error.square() * w / noise
        # The first value locates the start of the walk; it says nothing about its steps.
        first = (variance > DIFFUSE / 2) | (w <= 0.0)
        gain = gain - 0.5 * torch.where(first, 0.0, deviance)
        mean = mean + w * variance / noise * error
        variance = variance / noise
        means.append(mean)
        variances.append(variance)
    return gain, means, variances
