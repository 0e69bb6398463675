"""Relevance: which features are associated with which action sets, given the covariates."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.association import associated
from dear_plugin.decoders.transport.bins import value_counts
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.locations import linear_fit
from dear_plugin.decoders.transport.supports import Supports

# The size of tables: groups of a feature's values, and bins of a numeric feature acted on.
GROUPS, BINS = 5, 8


def linked_features(sample: TrainingSample, supports: Supports) -> Tensor:
    """(s, p) bool, whether a feature is associated with any feature of a set, within cells.

    The features of a set are tested one by one: a tree fitted to the same rows would appear to be
    associated with everything.
    """
    groups, p = _groups(sample, supports), sample.rows.shape[1]
    members = sorted({j for some in sample.sets.members for j in some})
    tables = [_table(sample, j, groups) for j in members]
    features = int((supports.sizes > 0).sum() + supports.smooth.sum())
    by_feature = torch.zeros(p, p, dtype=torch.bool)
    by_feature[members] = associated(tables, max(features, 1))
    return torch.stack([by_feature[list(some)].any(0) for some in sample.sets.members])


def _groups(sample: TrainingSample, supports: Supports) -> Tensor:
    """(n, p) int64, the group of each value, about equally many rows each; 0 if given."""
    out = torch.zeros(sample.rows.shape, dtype=torch.int64)
    codes = supports.codes(sample.rows).long()
    for at, j in zip(codes, supports.counted.tolist(), strict=True):
        level = at - supports.starts[j]
        size = torch.bincount(level, minlength=int(supports.sizes[j])).double()
        # Categories without an order are grouped by frequency.
        order = size.argsort(descending=True, stable=True) if j in supports.blocks else None
        out[:, j] = _equal_groups(size, GROUPS, order)[level]
    smooth = supports.smooth.nonzero()[:, 0]
    if len(smooth):
        y = sample.rows[:, smooth].double()
        y -= linear_fit(y, sample.covariates)
        for j, column in zip(smooth.tolist(), y.T, strict=True):
            rank = column.argsort(stable=True).argsort(stable=True)
            out[:, j] = (rank * GROUPS).div_(len(y), rounding_mode="floor")
    return out


def _table(sample: TrainingSample, feature: int, groups: Tensor) -> Tensor:
    """(k, p, r, 5) the number of rows of each cell, bin of a feature and group of the others."""
    column, p, k = sample.rows[:, feature], groups.shape[1], len(sample.cells)
    if sample.encoder.schema.features[feature].kind is Kind.NUMERIC:
        values, counts = value_counts(column)
        bins = _equal_groups(counts.double(), BINS)
        bins = bins[torch.searchsorted(values, column.contiguous())]
    else:
        bins = column.long()
    r = int(bins.max()) + 1
    key = ((sample.own * r + bins) * GROUPS)[:, None] + groups
    key += torch.arange(p) * (k * r * GROUPS)
    counted = torch.bincount(key.flatten(), minlength=p * k * r * GROUPS)
    return counted.view(p, k, r, GROUPS).transpose(0, 1)


def _equal_groups(size: Tensor, count: int, order: Tensor | None = None) -> Tensor:
    """(c,) the group of each value, (c,) rows each: adjacent ones, in an order if given."""
    if order is None:
        order = torch.arange(len(size))
    middle = size[order].cumsum(0) - size[order] / 2.0
    group = (middle / size.sum().clamp_min(1e-12) * count).long().clamp_max(count - 1)
    return torch.empty_like(group).index_copy_(0, order, group)
