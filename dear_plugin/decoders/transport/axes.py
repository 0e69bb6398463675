"""Axes (step 3): bins of x_S that rows are counted in, and nodes that mix their distributions.

Conditional distributions are counted in *bins* and evaluated at *nodes*. Every heavy value (at
least 1 % of the rows, and a minimum of them), special level and category is a bin of its own; the
rest of a number is cut at quantiles. A node between two bins mixes their *distributions*: mixed
quantiles would give values that no row has.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.columns import (
    heavy_values,
    representatives,
    sorted_values,
    value_counts,
)
from dear_plugin.decoders.transport.shrinkage import interpolation

MIN_ROWS = 50
# A conditional mean of fewer rows is mostly noise: COMPAS loses .03 of fidelity with 100.
TARGET_ROWS = 300
MAX_BINS = 24
# Nodes of a number: representative values, and evenly spaced ones.
NODES, EVEN_NODES = 32, 24
MAX_LEAVES, MIN_LEAF = 48, 100


class Axis(Protocol):
    """The bins and nodes of one set.

    Attributes:
        ordered: whether neighbouring bins are similar.
        bins: (n,) int64, the bin of each training row.
        mix: (g, b) double, the weight of each bin at each node.
    """

    ordered: bool
    bins: Tensor
    mix: Tensor

    def node(self, values: Tensor) -> Tensor:
        """(q,) int64, the node nearest to values of x_S, (q, w)."""


def axis_of(sample: Sample, acted: Members) -> Axis:
    """The axis of a set: of a number, of a category, or of several features."""
    if len(acted) > 1:
        return TreeAxis(sample, acted)
    column, feature = sample.rows[:, acted[0]], sample.encoder.schema.features[acted[0]]
    number = feature.kind is Kind.NUMERIC
    return NumberAxis(column) if number else CategoryAxis(column, len(feature.categories))


class CategoryAxis:
    """Each category is a bin and a node.

    Args:
        column: (n,) category indices.
        count: the number of categories.
    """

    ordered = False

    def __init__(self, column: Tensor, count: int) -> None:
        self.bins, self.mix = column.long(), torch.eye(max(count, 1)).double()

    def node(self, values: Tensor) -> Tensor:
        """(q,) the categories, (q, 1)."""
        return values[:, 0].long().clamp(0, len(self.mix) - 1)


class TreeAxis:
    """The leaves of a regression tree from the columns of several features to all others.

    Args:
        sample: the training rows.
        acted: the features of the set.
    """

    ordered = False

    def __init__(self, sample: Sample, acted: Members) -> None:
        from sklearn.tree import DecisionTreeRegressor

        self._encoder, self._acted = sample.encoder, list(acted)
        self._columns = torch.isin(sample.encoder.feature_of, torch.tensor(acted))
        x, n = sample.encoder.expand(sample.rows), len(sample)
        target = x[:, ~self._columns] if not bool(self._columns.all()) else x
        # One row has no deviation.
        deviation = target.std(0, correction=min(1, n - 1)).clamp_min(1e-6)
        tree = DecisionTreeRegressor(
            min_samples_leaf=min(max(MIN_LEAF, n // 200), max(n // 2, 1)),
            max_leaf_nodes=MAX_LEAVES,
            random_state=0,
        )
        inside = x[:, self._columns].numpy()
        self._tree = tree.fit(inside, (target / deviation).numpy()).tree_
        leaf = torch.from_numpy(self._tree.children_left.copy()) < 0
        self._leaf = leaf.long().cumsum(0) - 1
        self.bins, self.mix = (
            self._leaf[self._tree.apply(inside)],
            torch.eye(int(leaf.sum())).double(),
        )

    def node(self, values: Tensor) -> Tensor:
        """(q,) the leaves of values, (q, w)."""
        rows = torch.zeros(len(values), self._encoder.p)
        rows[:, self._acted] = values.float()
        return self._leaf[self._tree.apply(self._encoder.expand(rows)[:, self._columns].numpy())]


class NumberAxis:
    """Heavy values and quantile bins of a number.

    Args:
        column: (n,) the training values.
    """

    ordered = True

    def __init__(self, column: Tensor) -> None:
        column, nodes = column.contiguous(), _nodes(column)
        self._middles = (nodes[1:] + nodes[:-1]) / 2.0
        min_rows = max(MIN_ROWS, min(TARGET_ROWS, len(column) // 16))
        self.bins, centres = cut(column, MAX_BINS, min_rows)
        self.mix = interpolation(nodes, centres).double()

    def node(self, values: Tensor) -> Tensor:
        """(q,) the nodes nearest to values, (q, 1)."""
        return torch.searchsorted(self._middles, values[:, 0].contiguous())


def cut(column: Tensor, max_bins: int, min_rows: int = MIN_ROWS) -> tuple[Tensor, Tensor]:
    """The bin of each row of a column, (n,) int64, and the sorted centres of the bins, (b,).

    Every heavy value of at least `min_rows` rows and every special level is a bin; the rest is cut
    into up to `max_bins` quantile bins of at least `min_rows` rows.
    """
    column = column.contiguous()
    special = column[is_special(column)]
    heavy = torch.cat([heavy_values(column, min_rows), special]).unique()
    own = torch.searchsorted(heavy, column)
    is_heavy = torch.cat([heavy, torch.tensor([torch.nan])])[own] == column
    rest = sorted_values(column[~is_heavy])
    count = min(max_bins, len(rest) // min_rows)
    edges = rest[[(i * len(rest)) // count for i in range(1, count)]].unique_consecutive()
    raw = torch.where(is_heavy, own, len(heavy) + torch.bucketize(column, edges, right=True))
    bins = raw.unique(return_inverse=True)[1]
    size = torch.bincount(bins)
    centres = torch.zeros(len(size)).index_add_(0, bins, column) / size
    order = centres.argsort()
    return order.argsort()[bins], centres[order]


def _nodes(column: Tensor) -> Tensor:
    """All values of a column, or representative ones, evenly spaced ones, and both ends."""
    values = value_counts(column)[0]
    if len(values) <= NODES + EVEN_NODES:
        return values
    ordinary = values[~is_special(values)]
    even = torch.linspace(float(ordinary[0]), float(ordinary[-1]), EVEN_NODES)
    near = ordinary[torch.searchsorted(ordinary, even).clamp_max(len(ordinary) - 1)]
    nodes: Tensor = torch.cat([representatives(column, NODES), near]).unique()
    return nodes
