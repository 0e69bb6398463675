"""Agreement: what the members of an ensemble say together, as far as it is no sampling noise."""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 1e-12


def agreed(made: Tensor, feature_of: Tensor) -> Tensor:
    """What e members make of people, (m, 1 + c, e, d) -> (m, 1 + c, d): where they start first.

    The mean change of a feature is shrunk by `1 - variance / mean^2`, at least 0, where the
    variance is that between members. They were trained on bootstrap samples, so it estimates the
    sampling variance of a change (positive-part empirical Bayes, as James and Stein have it): a
    change that is no more than noise is none. The columns of a category are shrunk together, and
    remain shares.

    Args:
        made: (m, 1 + c, e, d) encoded, at x_S and at c other values.
        feature_of: (d,) int64, the feature of each column.
    """
    if made.shape[2] == 1:
        return made[:, :, 0]
    start = made[:, :1].mean(2)
    change = made[:, 1:] - made[:, :1]
    mean = change.mean(2)
    size, noise = (_by_feature(t, feature_of) for t in (mean.square(), change.var(2)))
    kept = (1.0 - noise / size.clamp_min(LEAST)).clamp_min(0.0)
    return torch.cat([start, start + mean * kept], 1)


def _by_feature(t: Tensor, feature_of: Tensor) -> Tensor:
    """Sums over the columns of each feature, at each of these, (..., d)."""
    count = int(feature_of.max()) + 1
    total = t.new_zeros(*t.shape[:-1], count).index_add(-1, feature_of, t)
    return total[..., feature_of]
