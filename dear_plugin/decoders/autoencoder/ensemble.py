"""Ensemble: the outputs of e members in, their mean change without its sampling noise out."""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-12


def shrunk_mean(outputs: Tensor, feature_of: Tensor) -> Tensor:
    """The mean output of e members, (m, 1 + c, e, d) -> (m, 1 + c, d), its changes shrunk.

    The mean change of a feature is shrunk by `1 - variance / mean^2`, at least 0, where the
    variance is that between members. They were trained on bootstrap samples, so it estimates the
    sampling variance of a change (positive-part empirical Bayes, James and Stein): a change no
    larger than its noise becomes zero. The columns of a category are shrunk together, and still
    add up to 1.

    Args:
        outputs: (m, 1 + c, e, d) encoded, at x_S and at c other values.
        feature_of: (d,) int64, the feature of each column.
    """
    if outputs.shape[2] == 1:
        return outputs[:, :, 0]
    start = outputs[:, :1].mean(2)
    change = outputs[:, 1:] - outputs[:, :1]
    mean = change.mean(2)
    size, noise = (_sum_by_feature(t, feature_of) for t in (mean.square(), change.var(2)))
    kept = (1.0 - noise / size.clamp_min(EPSILON)).clamp_min(0.0)
    return torch.cat([start, start + mean * kept], 1)


def _sum_by_feature(t: Tensor, feature_of: Tensor) -> Tensor:
    """Sums over the columns of each feature, repeated at each of these columns, (..., d)."""
    count = int(feature_of.max()) + 1
    total = t.new_zeros(*t.shape[:-1], count).index_add(-1, feature_of, t)
    return total[..., feature_of]
