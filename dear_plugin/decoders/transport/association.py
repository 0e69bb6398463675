"""Association: whether a feature has anything to do with x_S, as far as the rows can tell.

Two tests of tables of counts, one for each stratum of people, neither of which needs many rows in
each cell. Pearson's statistic, whose mean and variance over all tables with the same margins are
known exactly (Haldane 1940, Dawson and Highleyman 1974), finds any dependence; a correlation of
ranks finds one that goes one way with fewer rows. What strata show is added up before it is
squared (Mantel and Haenszel 1959): many small ones tell as much together as a large one.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

# The chance that of all features that have nothing to do with x_S one seems to.
ERROR = 0.001


def associated(tables: list[Tensor], features: int) -> Tensor:
    """(m, f) bool, whether tables of counts, (k, f, r, c) each, tell of anything.

    Args:
        tables: m of them, in k strata.
        features: of how many features one may seem to by chance.
    """
    from scipy.stats import gamma, norm

    statistic, mean, variance = (
        each.numpy() for each in torch.stack([_pearson(t.double()) for t in tables]).unbind(-1)
    )
    told = (mean > 0.0) & (variance > 0.0)
    mean, variance = np.where(told, mean, 1.0), np.where(told, variance, 1.0)
    any_way = np.where(told, gamma.sf(statistic, mean**2 / variance, scale=variance / mean), 1.0)
    z = torch.stack([_correlation(t.double()) for t in tables]).numpy()
    one_way = 2.0 * norm.sf(np.abs(z))
    return torch.from_numpy(np.minimum(any_way, one_way) * 2 * features < ERROR)


def _pearson(counts: Tensor) -> Tensor:
    """Pearson's statistic of tables, (k, f, r, c), its mean and variance: (f, 3)."""
    n = counts.sum((-2, -1))[..., None, None].clamp_min(1e-12)
    row, column = counts.sum(-1, keepdim=True), counts.sum(-2, keepdim=True)
    expected = row * column / n
    by_chance = expected * (n - row) * (n - column) / (n * (n - 1.0).clamp_min(1.0))
    whole = expected.sum(0).clamp_min(1e-12)
    off = (counts - expected).sum(0).square() / whole
    mean = (by_chance.sum(0) / whole).sum((-2, -1))
    at_once = _moments(row.sum(0)[..., 0], column.sum(0)[..., 0, :], n.sum(0)[..., 0, 0])
    scale = (mean / at_once[0].clamp_min(1e-12)).square()
    return torch.stack([off.sum((-2, -1)), mean, at_once[1] * scale], -1)


def _moments(row: Tensor, column: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and variance of Pearson's statistic given the margins, (f, r) and (f, c)."""
    r, v1, w1 = _margin(row, n)
    c, v2, w2 = _margin(column, n)
    mean = n * (r - 1.0) * (c - 1.0) / (n - 1.0).clamp_min(1.0)
    variance = 2.0 * n / (n - 3.0).clamp_min(1.0) * (v1 - w1) * (v2 - w2)
    variance += n * n / (n - 1.0).clamp_min(1.0) * w1 * w2
    return mean, torch.where((r > 1) & (c > 1) & (n > 5), variance, 0.0)


def _margin(size: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How many rows or columns, (f, w), hold anything; what they add to the variance."""
    held = size > 0
    k = held.sum(-1).double()
    v = (k - 1.0) * (n - k) / (n - 1.0).clamp_min(1.0)
    inverse = torch.where(held, 1.0 / size.clamp_min(1e-12), 0.0).sum(-1)
    return k, v, (n * inverse - k * k) / (n - 2.0).clamp_min(1.0)


def _correlation(counts: Tensor) -> Tensor:
    """(f,) normal scores of the correlation of ranks in tables, (k, f, r, c), all in order."""
    n = counts.sum((-2, -1))
    row, column = counts.sum(-1), counts.sum(-2)
    a, b = (size.cumsum(-1) - size / 2.0 - n[..., None] / 2.0 for size in (row, column))
    both = torch.einsum("...r,...rc,...c->...", a, counts, b).sum(0)
    spread = (a.square() * row).sum(-1) * (b.square() * column).sum(-1)
    return both / (spread / (n - 1.0).clamp_min(1.0)).sum(0).sqrt().clamp_min(1e-9)
