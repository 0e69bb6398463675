"""Nodes: the grids of values a of all sets and cells, laid end to end in one array."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.bins import (
    Partition,
    category_partition,
    numeric_partition,
)
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.groups import Groups
from dear_plugin.decoders.transport.lookup import SortedSegments, pick


@dataclass
class Nodes:
    """The positions of values of x_S on the grid of their set and cell.

    Set i in cell k has grid number `k * s + i`, its *slot*; the first s slots are those of cell 0,
    which has all rows. A node is an index into the nodes of all slots.

    Attributes:
        positions: (s, w) the features of each set.
        grid: (g,) the sorted node values of each slot, slot after slot.
        sizes: (k * s,) the number of nodes of each slot.
        groups: the trees of sets with several features, whose nodes are leaves.
        encoder: encodes rows for the trees.
    """

    positions: Tensor
    grid: Tensor
    sizes: Tensor
    groups: Groups | None
    encoder: Encoder

    @classmethod
    def of(cls, sample: TrainingSample, max_nodes: int) -> tuple[Nodes, list[Partition]]:
        """Partition every slot, with at most `max_nodes` nodes."""
        groups = Groups.of(sample)
        parts = [partition(sample, groups, i, max_nodes) for i in range(len(sample.sets))]
        parts = [part.subset(rows) for rows in sample.cells for part in parts]
        grid = torch.cat([part.nodes for part in parts])
        sizes = torch.tensor([len(part.nodes) for part in parts])
        return cls(sample.sets.positions, grid, sizes, groups, sample.encoder), parts

    def of_rows(self, rows: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """The node left of every row's own x_S and the weight of the next one, (n, s) each.

        Args:
            rows: (n, p) rows.
            cells: (n,) the cells of the grids.
        """
        n, s = len(rows), len(self.positions)
        values = rows[:, self.positions].reshape(n * s, 1, -1)
        slots = cells[:, None] * s + torch.arange(s)
        left, weight = self.locate(values, slots.flatten())
        return left.view(n, s), weight.view(n, s)

    def locate(self, values: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        """The node left of each value, int32, and the weight of the next one, (m, c) each.

        Args:
            values: (m, c, w) values of the sets' features.
            slots: (m,) the slot of each row.
        """
        value = self._keys(values, slots).T
        left = self._segments.locate(value, slots, inclusive=True)
        weight = (value - pick(self.grid, left)).div_(pick(self._widths, left))
        return left.T, weight.clamp_(0.0, 1.0).T

    def expand(self, values: Tensor, slots: Tensor) -> Tensor:
        """(m, c, d) encoded rows with the values of x_S, (m, c, w), and zero elsewhere."""
        empty = torch.zeros(*values.shape[:2], self.encoder.p)
        positions = self.positions[slots % len(self.positions)]
        return self.encoder.expand(
            empty.scatter(2, positions[:, None].expand(values.shape), values)
        )

    def _keys(self, values: Tensor, slots: Tensor) -> Tensor:
        """(m, c) positions on the grid: the value of a singleton, or the leaf of a group."""
        if self.groups is None:
            return values[..., 0]
        keys = values[..., 0].clone()
        several = (self.groups.tree[slots] >= 0).nonzero()[:, 0]
        x = self.expand(values[several], slots[several])
        keys[several] = self.groups.leaves(x, slots[several]).float()
        return keys

    def shift(self, slots: Tensor) -> Tensor | None:
        """(m,) int32, the offset of slots' nodes from those of cell 0; None if grids differ.

        All cells have the same grids, except in saves of version 0.1.
        """
        return self._shifts[slots] if self._same_grids else None

    @lazy
    def _same_grids(self) -> bool:
        s = len(self.positions)
        sizes = self.sizes.view(-1, s)
        same = bool((sizes == sizes[0]).all())
        return same and bool((self.grid.view(len(sizes), -1) == self.grid[: sizes[0].sum()]).all())

    @lazy
    def _shifts(self) -> Tensor:
        """(k * s,) the start of each slot less that of the same set in cell 0."""
        s, starts = len(self.positions), self.sizes.cumsum(0) - self.sizes
        return (starts - starts[:s].repeat(len(starts) // s)).int()

    @lazy
    def _segments(self) -> SortedSegments:
        return SortedSegments.of(self.grid, self.sizes)

    @lazy
    def _widths(self) -> Tensor:
        """(g,) the distance to the next node, infinite at the end of a slot."""
        width = self.grid.new_full(self.grid.shape, torch.inf)
        width[:-1] = self.grid.diff()
        width[self.sizes.cumsum(0) - 1] = torch.inf
        return width


def nearest(left: Tensor, weight: Tensor) -> Tensor:
    """The nearer of two nodes, any shape."""
    return left + (weight > 0.5)


def partition(
    sample: TrainingSample,
    groups: Groups | None,
    i: int,
    max_nodes: int,
    grid: Tensor | None = None,
) -> Partition:
    """The bins and nodes of set i; the nodes of a numeric feature, (g,), may be known."""
    members = sample.sets.members[i]
    if groups is not None and len(members) > 1:
        slot = torch.full((len(sample.rows),), i)
        leaves = groups.leaves(sample.encoder.expand(sample.rows)[:, None], slot)[:, 0]
        count = int(leaves.max()) + 1 if grid is None else len(grid)
        return category_partition(leaves, count)
    feature, column = sample.encoder.schema.features[members[0]], sample.rows[:, members[0]]
    if feature.kind is Kind.NUMERIC:
        return numeric_partition(column, max_nodes, grid)
    return category_partition(column, len(feature.categories))
