"""Links: which features have anything to do with which sets, as far as the rows can tell."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport import association
from dear_plugin.decoders.transport.bins import tally
from dear_plugin.decoders.transport.conditioning import Crowd
from dear_plugin.decoders.transport.locations import explained
from dear_plugin.decoders.transport.supports import Supports

# Into so many groups of rows values are put, and those of a number that is acted on.
GROUPS, BINS = 5, 8


def links(crowd: Crowd, supports: Supports) -> Tensor:
    """(s, p) bool, whether a feature has to do with any feature of a set, among people alike.

    What is acted on together is looked at one by one: a tree that was grown on the rows would seem
    to have to do with everything.
    """
    groups, p = _groups(crowd, supports), crowd.rows.shape[1]
    members = sorted({j for some in crowd.sets.members for j in some})
    tables = [_table(crowd, j, groups) for j in members]
    features = int((supports.sizes > 0).sum() + supports.smooth.sum())
    found = association.associated(tables, max(features, 1))
    by_feature = torch.zeros(p, p, dtype=torch.bool)
    by_feature[members] = found
    return torch.stack([by_feature[list(some)].any(0) for some in crowd.sets.members])


def _groups(crowd: Crowd, supports: Supports) -> Tensor:
    """(n, p) int64, in which group of about equally many rows each value lies; 0 of the given."""
    out = torch.zeros(crowd.rows.shape, dtype=torch.int64)
    codes = supports.codes(crowd.rows).long()
    for at, j in zip(codes, supports.counted.tolist(), strict=True):
        place = at - supports.starts[j]
        size = torch.bincount(place, minlength=int(supports.sizes[j])).double()
        # The largest categories of those without an order are told apart.
        order = size.argsort(descending=True, stable=True) if j in supports.blocks else None
        out[:, j] = _even(size, GROUPS, order)[place]
    smooth = supports.smooth.nonzero()[:, 0]
    if len(smooth):
        y = crowd.rows[:, smooth].double()
        y -= explained(y, crowd.beside)
        for j, column in zip(smooth.tolist(), y.T, strict=True):
            rank = column.argsort(stable=True).argsort(stable=True)
            out[:, j] = (rank * GROUPS).div_(len(y), rounding_mode="floor")
    return out


def _table(crowd: Crowd, feature: int, groups: Tensor) -> Tensor:
    """(k, p, r, 5) how many rows of each cell and of each bin of a feature lie in each group."""
    column, p, k = crowd.rows[:, feature], groups.shape[1], len(crowd.cells)
    if crowd.encoder.schema.features[feature].kind is Kind.NUMERIC:
        values, counts = tally(column)
        bins = _even(counts.double(), BINS)[torch.searchsorted(values, column.contiguous())]
    else:
        bins = column.long()
    r = int(bins.max()) + 1
    key = ((crowd.own * r + bins) * GROUPS)[:, None] + groups
    key += torch.arange(p) * (k * r * GROUPS)
    counted = torch.bincount(key.flatten(), minlength=p * k * r * GROUPS)
    return counted.view(p, k, r, GROUPS).transpose(0, 1)


def _even(size: Tensor, most: int, order: Tensor | None = None) -> Tensor:
    """(c,) about equally large groups of neighbours, of so many rows each, in an order."""
    if order is None:
        order = torch.arange(len(size))
    middle = size[order].cumsum(0) - size[order] / 2.0
    group = (middle / size.sum().clamp_min(1e-12) * most).long().clamp_max(most - 1)
    return torch.empty_like(group).index_copy_(0, order, group)
