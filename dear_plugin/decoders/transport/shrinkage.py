"""Shrinkage: how much distributions vary along x_S, and estimates that are no more varied.

The range of x_S is divided into halves, quarters, ... and single bins. In every part the ratios
of observed to expected rows are shrunk towards those of the level above, interpolated. How far is
decided by Pearson's statistic: its excess over the mean that equal distributions would give is the
variance between the parts, as the concentration A of a Dirichlet distribution; where it is not
significant, parts are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

# Fewer expected rows are left out of a statistic.
LEAST_EXPECTED = 5.0
# Parts are equal unless the statistic rejects it at this error rate.
LEVEL_ERROR = 0.01
LEAST = 1e-12


class Level(NamedTuple):
    """A division of the bins into parts.

    Attributes:
        parts: (q, b) 1 where a bin belongs to a part.
        above: (q, q') the weights of the parts of the level above at each part.
    """

    parts: Tensor
    above: Tensor


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


def levels_of(bins: int, ordered: bool) -> list[Level]:
    """The levels of b bins: halves, quarters, ... of ordered ones; otherwise only the bins."""
    if not ordered or bins == 1:
        return [Level(torch.eye(bins).double(), torch.ones(bins, 1).double())]
    levels, centres, count = [], torch.tensor([(bins - 1) / 2.0]), 1
    while count < bins:
        count = min(2 * count, bins)
        parts = torch.nn.functional.one_hot(torch.arange(bins) * count // bins, count).T.double()
        own = (parts @ torch.arange(bins).double() / parts.sum(1)).float()
        levels.append(Level(parts, interpolation(own, centres, beyond=0.5).double()))
        centres = own
    return levels


def interpolation(at: Tensor, knots: Tensor, beyond: float = 0.0) -> Tensor:
    """(g, b) weights (1 - w, w) of the two knots, (b,), that enclose each place, (g,).

    Args:
        at: (g,) places.
        knots: (b,) sorted; those of infinity are unused.
        beyond: how many intervals beyond either end the line goes on; it is flat from there.
    """
    right = torch.searchsorted(knots, at).clamp(min(1, len(knots) - 1), len(knots) - 1)
    left = (right - 1).clamp_min(0)
    span = knots[right] - knots[left]
    weight = torch.where(span > 0, (at - knots[left]) / span.clamp_min(LEAST), 1.0)
    weight = weight.clamp(-beyond, 1.0 + beyond)
    mix, rows = torch.zeros(len(at), len(knots)), torch.arange(len(at))
    mix[rows, left] += 1.0 - weight
    mix[rows, right] += weight
    return mix


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
        seen, hoped = observed @ level.parts.T, expected @ level.parts.T
        n = seen.sum(0)
        # As many rows are expected in each part as there are.
        ratio = (ratio @ level.above.T).clamp_min(LEAST)
        ratio = ratio * (n / (hoped * ratio).sum(0).clamp_min(LEAST))
        if concentration is None:
            tail, strength = _tested(seen, hoped * ratio, taken, drawn)
            tails.append(tail)
        else:
            strength = concentration[i]
        concentrations.append(strength)
        weight = n / (n + strength[..., None]).clamp_min(LEAST)
        raw = torch.where(hoped > LEAST, seen / hoped.clamp_min(LEAST), ratio)
        ratio = ratio + weight * (raw - ratio)
        taken = (weight * n).sum(-1) / n.sum(-1).clamp_min(LEAST)
    return Shrunk(ratio, torch.stack(tails or concentrations), torch.stack(concentrations))


def _tested(seen: Tensor, hoped: Tensor, taken: Tensor, drawn: bool) -> tuple[Tensor, Tensor]:
    """The tail probability and the concentration of one level, (...) each.

    Args:
        seen: (g, ..., q) rows of the parts.
        hoped: (g, ..., q) rows by the level above.
        taken: how far the level above follows its parts: it has half of their variation then.
        drawn: see `shrunk`.
    """
    n = seen.sum(0)
    total = n.sum(-1, keepdim=True).clamp_min(LEAST)
    share = hoped.sum(-1, keepdim=True) / total
    enough = hoped >= LEAST_EXPECTED
    unit = torch.where(enough, (1.0 - n / total) * (1.0 - share), 0.0)
    inverse = torch.where(enough, 1.0 / hoped.clamp_min(LEAST), 0.0)
    freedom = unit.sum((0, -1)) * (1.0 - 0.5 * taken)
    statistic = ((seen - hoped).square() * inverse).sum((0, -1))
    statistic = statistic - 2.0 * freedom if drawn else statistic
    tail = _tail(statistic, freedom, 2.0 * freedom + inverse.sum((0, -1)))
    excess = (statistic - freedom) / (n * unit).sum((0, -1)).clamp_min(LEAST)
    excess = torch.where(tail < LEVEL_ERROR, excess.clamp_min(LEAST), 0.0)
    return tail, (1.0 / excess - 1.0).clamp_min(0.0)


def _tail(statistic: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """The probability of a larger statistic, by the gamma distribution of equal moments."""
    from scipy.special import gammaincc

    mean, variance = mean.clamp_min(1e-9), variance.clamp_min(1e-9)
    shape, scale = mean.square() / variance, variance / mean
    tail = gammaincc(shape.numpy(), (statistic.clamp_min(0.0) / scale).numpy())
    return torch.where(mean > 1e-6, torch.as_tensor(tail), 1.0)
