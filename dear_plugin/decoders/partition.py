"""Partitions: cut x_S into bins of people, and lay a common grid of values a over them.

Conditional distributions are counted in *bins* and asked for at *nodes*. Every heavy value (at
least 1 % of the rows) and every category is a bin of its own, the rest of a number is cut at
quantiles. A node between two bins mixes their *distributions*: mixed quantiles would invent values
that nobody has.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

HEAVY = 0.01
MIN_ROWS = 50
MAX_BINS = 16
MAX_NODES = 64


@dataclass(frozen=True)
class Partition:
    """One set's bins and nodes.

    Attributes:
        bins: (n,) int64, the bin of each training row.
        nodes: (g,) sorted values of a.
        mix: (g, b) what each bin weighs at each node; rows add up to 1.
    """

    bins: Tensor
    nodes: Tensor
    mix: Tensor


def heavy_values(column: Tensor, share: float = HEAVY, least: int = 5) -> Tensor:
    """The values that at least `share` of the rows (and `least` rows) hold, sorted."""
    values, counts = column.unique(return_counts=True)
    kept: Tensor = values[counts >= max(share * len(column), least)]
    return kept


def levels(column: Tensor, count: int) -> Partition:
    """Each category is a bin and a node.

    A category with few rows borrows from everyone: its weight is n_b / (n_b + 10), so that an
    empty one answers with the marginal distribution.

    Args:
        column: (n,) category indices.
        count: how many categories there are.
    """
    bins = column.long()
    share = torch.bincount(bins, minlength=count).float()
    own = share / (share + 10.0)
    everyone = share / share.sum()
    mix = own[:, None] * torch.eye(count) + (1.0 - own)[:, None] * everyone
    return Partition(bins, torch.arange(count).float(), mix)


def numbers(column: Tensor) -> Partition:
    """Bins and nodes of a numeric feature.

    Args:
        column: (n,) scaled values.
    """
    heavy = heavy_values(column)
    edges = _edges(column, heavy)
    is_heavy = torch.isin(column, heavy)
    rest = torch.bucketize(column, edges, right=True)
    own = torch.searchsorted(heavy, column) if len(heavy) else torch.zeros_like(rest)
    bins = torch.where(is_heavy, own, len(heavy) + rest)
    found, bins = bins.unique(return_inverse=True)
    size = torch.bincount(bins, minlength=len(found))
    centre = torch.zeros(len(found)).index_add_(0, bins, column) / size
    order = centre.argsort()
    bins = order.argsort()[bins]
    nodes = _nodes(column, heavy)
    return Partition(bins, nodes, _mixing(nodes, centre[order]))


def _edges(column: Tensor, heavy: Tensor) -> Tensor:
    """Inner edges of quantile bins for the values that are not heavy."""
    rest = column[~torch.isin(column, heavy)]
    count = min(MAX_BINS, max(len(rest) // MIN_ROWS, 1))
    if not len(rest) or count == 1:
        return torch.empty(0)
    ordered = rest.sort().values
    cuts = (torch.arange(1, count) * len(rest)) // count
    return ordered[cuts].unique()


def _nodes(column: Tensor, heavy: Tensor) -> Tensor:
    """At most `MAX_NODES` values: all there are, or heavy, quantile and evenly spaced ones."""
    values = column.unique()
    if len(values) <= MAX_NODES:
        return values
    room = MAX_NODES - min(len(heavy), MAX_NODES // 2)
    ordered = column.sort().values
    at = torch.linspace(0, len(column) - 1, 2 * room // 3).long()
    even = torch.linspace(float(values[0]), float(values[-1]), MAX_NODES - 2 * room // 3)
    near = values[torch.searchsorted(values, even).clamp_max(len(values) - 1)]
    kept = torch.cat([heavy[: MAX_NODES // 2], ordered[at], near]).unique()
    if len(kept) > MAX_NODES:
        kept = kept[torch.linspace(0, len(kept) - 1, MAX_NODES).round().long()]
    return kept


def _mixing(nodes: Tensor, centres: Tensor) -> Tensor:
    """(g, b) weights (1 - w, w) on the two bins whose centres enclose each node."""
    right = torch.searchsorted(centres, nodes).clamp(0, len(centres) - 1)
    left = (right - 1).clamp_min(0)
    span = centres[right] - centres[left]
    weight = torch.where(span > 0, (nodes - centres[left]) / span.clamp_min(1e-12), 1.0)
    weight = weight.clamp(0.0, 1.0)
    mix = torch.zeros(len(nodes), len(centres))
    rows = torch.arange(len(nodes))
    mix[rows, left] += 1.0 - weight
    mix[rows, right] += weight
    return mix
