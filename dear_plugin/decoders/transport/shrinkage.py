"""Shrinkage (step 5): how far ratios of observed to expected rows vary along x_S, as rows show.

The range of x_S is divided into halves, quarters, ... and single bins. In every part the ratios
are shrunk towards those of the level above, interpolated. How far is decided by Pearson's
statistic: its excess over the mean that equal distributions would give is the variance between
the parts, as the concentration A of a Dirichlet distribution; where it is not significant, parts
are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.decoders.transport.axes import Level
from dear_plugin.decoders.transport.trends import LEAST

# Fewer expected rows are left out of a statistic.
LEAST_EXPECTED = 5.0
# Parts are equal unless the statistic rejects it at this error rate.
LEVEL_ERROR = 0.01


class Shrunk(NamedTuple):
    """Ratios of observed to expected rows, and how much they vary at each of l levels.

    Attributes:
        ratio: (g, ..., b) of the bins.
        tail: (l, ...) the probability of as large a statistic if the parts were equal.
        concentration: (l, ...) A; infinite where they may be equal.
    """

    ratio: Tensor
    tail: Tensor
    concentration: Tensor


def shrunk(
    observed: Tensor,
    expected: Tensor,
    levels: list[Level],
    *,
    drawn: bool,
    concentration: Tensor | None = None,
) -> Shrunk:
    """The ratios of g groups along the bins, from the whole range down to single bins.

    Args:
        observed: (g, ..., b) rows.
        expected: (g, ..., b) rows if the distributions were equal.
        levels: the divisions of the bins.
        drawn: whether these are bootstrap samples of half the rows, each counted twice: their
            noise adds twice the mean of the statistic.
        concentration: (l, ...) where it is known.
    """
    ratio, taken = torch.ones_like(observed[..., :1]), torch.zeros(())
    tails, concentrations = [], []
    for i, level in enumerate(levels):
        seen, if_equal = observed @ level.parts.T, expected @ level.parts.T
        n = seen.sum(0)
        # As many rows are expected in each part as there are.
        ratio = (ratio @ level.above.T).clamp_min(LEAST)
        ratio = ratio * (n / (if_equal * ratio).sum(0).clamp_min(LEAST))
        if concentration is None:
            tail, strength = _tested(seen, if_equal * ratio, taken, drawn)
            tails.append(tail)
        else:
            strength = concentration[i]
        concentrations.append(strength)
        weight = n / (n + strength[..., None]).clamp_min(LEAST)
        raw = torch.where(if_equal > LEAST, seen / if_equal.clamp_min(LEAST), ratio)
        ratio = ratio + weight * (raw - ratio)
        taken = (weight * n).sum(-1) / n.sum(-1).clamp_min(LEAST)
    return Shrunk(ratio, torch.stack(tails or concentrations), torch.stack(concentrations))


def pearson(seen: Tensor, if_equal: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pearson's statistic of equal distributions in the parts, and its moments, (...) each.

    Args:
        seen: (g, ..., q) rows of groups in parts.
        if_equal: (g, ..., q) rows if the distributions were equal.

    Returns:
        The statistic; its mean then; what small expectations add to its variance, twice the mean;
        and by how much it grows with the variance between the parts, 1 / (1 + A).
    """
    n = seen.sum(0)
    total = n.sum(-1, keepdim=True).clamp_min(LEAST)
    share = if_equal.sum(-1, keepdim=True) / total
    enough = if_equal >= LEAST_EXPECTED
    unit = torch.where(enough, (1.0 - n / total) * (1.0 - share), 0.0)
    inverse = torch.where(enough, 1.0 / if_equal.clamp_min(LEAST), 0.0)
    statistic = ((seen - if_equal).square() * inverse).sum((0, -1))
    growth = (n * unit).sum((0, -1)).clamp_min(LEAST)
    return statistic, unit.sum((0, -1)), inverse.sum((0, -1)), growth


def _tested(seen: Tensor, if_equal: Tensor, taken: Tensor, drawn: bool) -> tuple[Tensor, Tensor]:
    """The tail probability and the concentration of one level, (...) each.

    Args:
        seen: (g, ..., q) rows of the parts.
        if_equal: (g, ..., q) rows by the level above.
        taken: how far the level above follows its parts: it has half of their variation then.
        drawn: see `shrunk`.
    """
    statistic, freedom, spread, growth = pearson(seen, if_equal)
    freedom = freedom * (1.0 - 0.5 * taken)
    statistic = statistic - 2.0 * freedom if drawn else statistic
    tail = _tail(statistic, freedom, 2.0 * freedom + spread)
    excess = (statistic - freedom) / growth
    excess = torch.where(tail < LEVEL_ERROR, excess.clamp_min(LEAST), 0.0)
    return tail, (1.0 / excess - 1.0).clamp_min(0.0)


def _tail(statistic: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """The probability of a larger statistic, by the gamma distribution of equal moments."""
    from scipy.special import gammaincc

    mean, variance = mean.clamp_min(1e-9), variance.clamp_min(1e-9)
    shape, scale = mean.square() / variance, variance / mean
    tail = gammaincc(shape.numpy(), (statistic.clamp_min(0.0) / scale).numpy())
    return torch.where(mean > 1e-6, torch.as_tensor(tail), 1.0)
