"""Partitions: bins of the training rows by x_S, and a grid of values a (nodes) over them.

In: the column of a feature; out: the bin of each row, the nodes, and the weight of each bin at
each node. Conditional distributions are counted in *bins* and evaluated at *nodes*. Every heavy
value (at least 1 % of the rows, and a minimum of them) and every category is a bin of its own; the
rest of a numeric feature is cut at quantiles. A node between two bins mixes their *distributions*:
mixed quantiles would give values that no row has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special, without_special

HEAVY = 0.01
MIN_ROWS = 50
# A conditional mean of fewer rows is mostly noise: COMPAS loses .03 of fidelity with 100.
TARGET_ROWS = 300
MAX_BINS = 24
MAX_NODES = 64


@dataclass(frozen=True)
class Partition:
    """The bins and nodes of one set.

    Attributes:
        bins: (n,) int64, the bin of each training row.
        nodes: (g,) sorted values of a.
        mix: (g, b) the weight of each bin at each node; rows add up to 1.
    """

    bins: Tensor
    nodes: Tensor
    mix: Tensor

    def subset(self, rows: Tensor) -> Partition:
        """The same partition, of the rows with these indices, (m,)."""
        return Partition(self.bins[rows], self.nodes, self.mix)


def sorted_values(x: Tensor) -> Tensor:
    """Values sorted along the last dimension, (..., n)."""
    # torch.sort also computes the indices: numpy takes a tenth of its time.
    return torch.from_numpy(np.sort(x.numpy()))


def value_counts(column: Tensor) -> tuple[Tensor, Tensor]:
    """The sorted distinct values of a column, (n,), and the number of rows with each."""
    values, counts = sorted_values(column).unique_consecutive(return_counts=True)
    return values, counts


def heavy_values(column: Tensor, share: float = HEAVY, min_rows: int = 5) -> Tensor:
    """The sorted values that at least `share` of the rows, and `min_rows` rows, have."""
    values, counts = value_counts(column)
    return values[counts >= max(share * len(column), min_rows)]


def category_partition(column: Tensor, count: int) -> Partition:
    """A partition in which each category is a bin and a node.

    Args:
        column: (n,) category indices.
        count: the number of categories.
    """
    return Partition(column.long(), torch.arange(count).float(), torch.eye(count))


def numeric_partition(
    column: Tensor, max_nodes: int = MAX_NODES, grid: Tensor | None = None
) -> Partition:
    """The bins and nodes of a numeric feature.

    Args:
        column: (n,) scaled values.
        max_nodes: the maximum number of nodes.
        grid: (g,) the nodes, if they are known.
    """
    min_rows = max(MIN_ROWS, min(TARGET_ROWS, len(column) // 16))
    bins, centres = cut(column, MAX_BINS, min_rows, tails=True)
    nodes = _nodes(column, heavy_values(column), max_nodes) if grid is None else grid
    return Partition(bins, nodes, node_weights(nodes, centres))


def cut(
    column: Tensor, max_bins: int, min_rows: int = MIN_ROWS, tails: bool = False
) -> tuple[Tensor, Tensor]:
    """The bin of each row of a column, (n,) int64, and the sorted centres of the bins, (b,).

    Every heavy value of at least `min_rows` rows is a bin; the rest is cut into up to `max_bins`
    quantile bins of at least `min_rows` rows.

    Args:
        column: (n,) values.
        max_bins: about how many bins there may be besides those of heavy values.
        min_rows: the minimum number of rows of a bin.
        tails: halve the outer bins repeatedly, as long as `MIN_ROWS` rows are left in each.
    """
    column = column.contiguous()
    heavy = heavy_values(column, min_rows=min_rows)
    if bool(is_special(column).any()):
        # A special level is a bin of its own, however few rows have it.
        heavy = value_counts(torch.cat([heavy, column[is_special(column)]]))[0]
    own = torch.searchsorted(heavy, column)
    is_heavy = torch.cat([heavy, torch.tensor([torch.nan])])[own] == column
    edges = _edges(column[~is_heavy], max_bins, min_rows, tails)
    rest = torch.bucketize(column, edges, right=True)
    raw = torch.where(is_heavy, own, len(heavy) + rest)
    nonempty = torch.bincount(raw) > 0
    bins = (nonempty.cumsum(0) - 1)[raw]
    size = torch.bincount(bins)
    centres = torch.zeros(len(size)).index_add_(0, bins, column) / size
    order = centres.argsort()
    return order.argsort()[bins], centres[order]


def node_weights(nodes: Tensor, centres: Tensor) -> Tensor:
    """(g, b) weights (1 - w, w) of the two bins whose centres enclose each node."""
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


def _edges(rest: Tensor, max_bins: int, min_rows: int, tails: bool) -> Tensor:
    """Inner edges of quantile bins for the values that are not heavy."""
    n, count = len(rest), min(max_bins, len(rest) // min_rows)
    cuts = [(i * n) // count for i in range(1, count)]
    if tails and n >= 2 * MIN_ROWS:
        outer = [n // max(count, 1) // 2]
        while outer[-1] >= 2 * MIN_ROWS:
            outer.append(outer[-1] // 2)
        cuts = sorted({*cuts, *outer, *(n - size for size in outer)})
    if not cuts:
        return torch.empty(0)
    return torch.as_tensor(sorted_values(rest)[torch.tensor(cuts)].unique_consecutive())


def _nodes(column: Tensor, heavy: Tensor, max_nodes: int) -> Tensor:
    """At most `max_nodes` values: all of them, or heavy, quantile and evenly spaced ones."""
    values = value_counts(column)[0]
    if len(values) <= max_nodes:
        return values
    special = is_special(column)
    if bool(special.any()):
        levels, rest = value_counts(column[special])[0], without_special(column)
        nodes = _nodes(rest, heavy[~is_special(heavy)], max_nodes - len(levels))
        return torch.cat([levels, nodes])
    room = max_nodes - min(len(heavy), max_nodes // 2)
    # Heavy values are nodes already: quantiles are of the rows with other values.
    rest = sorted_values(column[~torch.isin(column, heavy)])
    at = torch.linspace(0, max(len(rest) - 1, 0), 2 * room // 3).long()[: len(rest)]
    even = torch.linspace(float(values[0]), float(values[-1]), max_nodes - 2 * room // 3)
    near = values[torch.searchsorted(values, even).clamp_max(len(values) - 1)]
    kept = value_counts(torch.cat([heavy[: max_nodes // 2], rest[at], near]))[0]
    if len(kept) > max_nodes:
        kept = kept[torch.linspace(0, len(kept) - 1, max_nodes).round().long()]
    return kept
