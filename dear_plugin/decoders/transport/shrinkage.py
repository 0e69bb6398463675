"""Shrinkage: how much of what bins of x_S seem to tell is there.

Empirical Bayes: the data themselves say how far bins differ beyond what chance makes of so few
rows, and each bin is believed as far as that goes. Bins without an order (people of each category)
vary around the mean of all; bins of a number vary little from one to the next, like a random walk,
so that each borrows from its neighbours. Of all that the data do not rule out, the least is
believed: where bins may well be alike, they are alike, exactly.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The variance of a step of the walk, from one bin to the next: a grid.
STRIDES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
# A walk is ruled out where twice the log-likelihood falls short by this: once in a thousand times.
LEAST_GAIN = 10.8
# By how many standard deviations bins without an order must differ more than by chance, likewise.
LEAST_SPREAD = 3.1
UNKNOWN = 1e6


def credible(seen: Tensor, came: Tensor, mean: Tensor, rng: Tensor) -> Tensor:
    """Means of bins without an order, (b, q), each believed as far as its rows allow.

    Args:
        seen: (b, q) the mean in each bin.
        came: (b, q) or (b, 1) how many rows it is of.
        mean: (q,) the mean over all bins.
        rng: (q,) the variance of one row.
    """
    return trusted(seen, came, mean, rng, spread(seen, came, mean, rng))


def spread(seen: Tensor, came: Tensor, mean: Tensor, rng: Tensor) -> Tensor:
    """(q,) double, the variance between bins without an order; zero where they may be alike."""
    rng, total = rng.clamp_min(1e-12), came.sum(0)
    apart = (came * (seen - mean).square()).sum(0)
    free = (came > 0).sum(0).double() - 1.0
    room = total - came.square().sum(0) / total.clamp_min(1e-12)
    between = (apart - free * rng) / room.clamp_min(1e-12)
    real = apart / rng > free + LEAST_SPREAD * (2.0 * free).clamp_min(0.0).sqrt()
    return torch.where(real, between.clamp_min(1e-12), 0.0)


def trusted(seen: Tensor, came: Tensor, mean: Tensor, rng: Tensor, between: Tensor) -> Tensor:
    """(b, q) means believed as far as a variance between bins, (q,), allows; see `credible`."""
    noise = rng.clamp_min(1e-12) / between.clamp_min(1e-12)
    return mean + torch.where(between > 0.0, came / (came + noise), 0.0) * (seen - mean)


def walked(seen: Tensor, weight: Tensor) -> Tensor:
    """(b, q) the shortest likely walk through bins in order; zero where there need be none.

    Args:
        seen: (b, q) what each bin seems to add.
        weight: (b, q) one over the variance that chance gives it.
    """
    return paced(seen, weight, pace(seen, weight))


def pace(seen: Tensor, weight: Tensor) -> Tensor:
    """(q,) the variance of a step of the shortest likely walk; arguments as in `walked`."""
    strides = torch.tensor(STRIDES, dtype=seen.dtype)
    gain, *_ = _filtered(seen, weight, strides[:, None])
    enough = 2.0 * (gain.amax(0) - gain) <= LEAST_GAIN
    return strides[enough.int().argmax(0)]


def paced(seen: Tensor, weight: Tensor, stride: Tensor) -> Tensor:
    """(b, q) the walk whose steps have a variance, (q,); zero where that is zero."""
    _, ahead, spread = _filtered(seen, weight, stride)
    out = torch.empty_like(seen)
    out[-1] = now = ahead[-1]
    for i in range(len(seen) - 2, -1, -1):
        pull = spread[i] / (spread[i] + stride)
        out[i] = now = ahead[i] + pull * (now - ahead[i])
    return torch.where(stride > 0.0, out, 0.0)


def _filtered(
    seen: Tensor, weight: Tensor, stride: Tensor
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Kalman's filter of random walks: log-likelihoods, means and variances after each bin."""
    spread = torch.full_like(seen[0] + stride, UNKNOWN)
    mean, gain = torch.zeros_like(spread), torch.zeros_like(spread)
    means, spreads = [], []
    for value, w in zip(seen, weight, strict=True):
        spread = spread + stride
        noise = 1.0 + w * spread
        off = value - mean
        told = noise.log() - w.clamp_min(1e-12).log() + off.square() * w / noise
        # The first value tells where the walk begins, not how it goes on.
        gain = gain - 0.5 * torch.where((spread > UNKNOWN / 2) | (w <= 0.0), 0.0, told)
        mean = mean + w * spread / noise * off
        spread = spread / noise
        means.append(mean)
        spreads.append(spread)
    return gain, means, spreads
