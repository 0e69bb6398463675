"""Association: tests of whether a feature is associated with x_S, from tables of counts.

In: one contingency table per stratum; out: whether independence is rejected. Two tests are
combined, and neither needs many rows in each cell: Pearson's statistic, whose mean and variance
over all tables with the same margins are known exactly (Haldane 1940, Dawson and Highleyman 1974),
detects any dependence; a rank correlation detects a monotone one with fewer rows. Deviations are
summed over strata before they are squared (Mantel and Haenszel 1959), so many small strata have
the power of a large one.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

# The family-wise error rate over all features that are independent of x_S.
ERROR = 0.001


def associated(tables: list[Tensor], features: int) -> Tensor:
    """(m, f) bool, whether each table of counts, (k, f, r, c), shows an association.

    Args:
        tables: m tables, in k strata.
        features: how many features are tested together (Bonferroni).
    """
    from scipy.stats import gamma, norm

    statistic, mean, variance = (
        each.numpy() for each in torch.stack([_pearson(t.double()) for t in tables]).unbind(-1)
    )
    valid = (mean > 0.0) & (variance > 0.0)
    mean, variance = np.where(valid, mean, 1.0), np.where(valid, variance, 1.0)
    tail = gamma.sf(statistic, mean**2 / variance, scale=variance / mean)
    p_any = np.where(valid, tail, 1.0)
    z = torch.stack([_correlation(t.double()) for t in tables]).numpy()
    p_monotone = 2.0 * norm.sf(np.abs(z))
    return torch.from_numpy(np.minimum(p_any, p_monotone) * 2 * features < ERROR)


def _pearson(counts: Tensor) -> Tensor:
    """Pearson's statistic of tables, (k, f, r, c), its mean and variance: (f, 3)."""
    n = counts.sum((-2, -1))[..., None, None].clamp_min(1e-12)
    row, column = counts.sum(-1, keepdim=True), counts.sum(-2, keepdim=True)
    expected = row * column / n
    variance = expected * (n - row) * (n - column) / (n * (n - 1.0).clamp_min(1.0))
    pooled = expected.sum(0).clamp_min(1e-12)
    statistic = (counts - expected).sum(0).square() / pooled
    mean = (variance.sum(0) / pooled).sum((-2, -1))
    single = _moments(row.sum(0)[..., 0], column.sum(0)[..., 0, :], n.sum(0)[..., 0, 0])
    scale = (mean / single[0].clamp_min(1e-12)).square()
    return torch.stack([statistic.sum((-2, -1)), mean, single[1] * scale], -1)


def _moments(row: Tensor, column: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and variance of Pearson's statistic given the margins, (f, r) and (f, c)."""
    r, v1, w1 = _margin(row, n)
    c, v2, w2 = _margin(column, n)
    mean = n * (r - 1.0) * (c - 1.0) / (n - 1.0).clamp_min(1.0)
    variance = 2.0 * n / (n - 3.0).clamp_min(1.0) * (v1 - w1) * (v2 - w2)
    variance += n * n / (n - 1.0).clamp_min(1.0) * w1 * w2
    return mean, torch.where((r > 1) & (c > 1) & (n > 5), variance, 0.0)


def _margin(size: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The number of nonempty rows or columns, (f, w), and two terms of the variance."""
    nonempty = size > 0
    k = nonempty.sum(-1).double()
    v = (k - 1.0) * (n - k) / (n - 1.0).clamp_min(1.0)
    inverse = torch.where(nonempty, 1.0 / size.clamp_min(1e-12), 0.0).sum(-1)
    return k, v, (n * inverse - k * k) / (n - 2.0).clamp_min(1.0)


def _correlation(counts: Tensor) -> Tensor:
    """(f,) z-scores of the rank correlation in tables, (k, f, r, c), of ordered categories."""
    n = counts.sum((-2, -1))
    row, column = counts.sum(-1), counts.sum(-2)
    a, b = (size.cumsum(-1) - size / 2.0 - n[..., None] / 2.0 for size in (row, column))
    covariance = torch.einsum("...r,...rc,...c->...", a, counts, b).sum(0)
    spread = (a.square() * row).sum(-1) * (b.square() * column).sum(-1)
    return covariance / (spread / (n - 1.0).clamp_min(1.0)).sum(0).sqrt().clamp_min(1e-9)
