"""Nodes: the grids of values a, laid end to end, for all sets in one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.bins import Partition, levels, numbers
from dear_plugin.decoders.transport.conditioning import Crowd
from dear_plugin.decoders.transport.groups import Groups
from dear_plugin.decoders.transport.lookup import Ruler, pick


@dataclass
class Nodes:
    """Where x_S lies on the grid of its set and cell.

    Set i in cell k has grid number `k * s + i`, its *slot*; the first s slots are everyone's. A
    node is named by its place among the nodes of all slots.

    Attributes:
        positions: (s, w) the features of each set.
        grid: (g,) the sorted node values of each slot, slot after slot.
        sizes: (k * s,) how many nodes each slot has.
        groups: the trees of sets with several features, whose nodes are leaves.
        encoder: the gate, which encodes rows for the trees.
    """

    positions: Tensor
    grid: Tensor
    sizes: Tensor
    groups: Groups | None
    encoder: Encoder

    @classmethod
    def of(cls, crowd: Crowd, most: int) -> tuple[Nodes, list[Partition]]:
        """Cut every slot into bins and at most so many nodes."""
        groups = Groups.of(crowd)
        parts = [partition(crowd, groups, which, most) for which in range(len(crowd.sets))]
        parts = [part.of(people) for people in crowd.cells for part in parts]
        grid = torch.cat([part.nodes for part in parts])
        sizes = torch.tensor([len(part.nodes) for part in parts])
        return cls(crowd.sets.positions, grid, sizes, groups, crowd.encoder), parts

    def of_rows(self, rows: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """The node left of every row's own x_S and the weight of the next one, (n, s) each.

        Args:
            rows: (n, p) rows.
            cells: (n,) in whose grids to look.
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
            slots: (m,) on which grids.
        """
        value = self._keys(values, slots).T
        left = self._ruler.below(value, slots, reached=True)
        weight = (value - pick(self.grid, left)).div_(pick(self._widths, left))
        return left.T, weight.clamp_(0.0, 1.0).T

    def wide(self, values: Tensor, slots: Tensor) -> Tensor:
        """(m, c, d) encoded rows that hold only the values of x_S, zero elsewhere."""
        empty = torch.zeros(*values.shape[:2], self.encoder.p)
        positions = self.positions[slots % len(self.positions)]
        return self.encoder.expand(
            empty.scatter(2, positions[:, None].expand(values.shape), values)
        )

    def _keys(self, values: Tensor, slots: Tensor) -> Tensor:
        """(m, c) what is looked up on the grid: a singleton's value, or a group's leaf."""
        if self.groups is None:
            return values[..., 0]
        keys = values[..., 0].clone()
        several = (self.groups.tree[slots] >= 0).nonzero()[:, 0]
        wide = self.wide(values[several], slots[several])
        keys[several] = self.groups.leaves(wide, slots[several]).float()
        return keys

    def shift(self, slots: Tensor) -> Tensor | None:
        """(m,) int32, how far the nodes of slots are behind those of everyone; None if unlike.

        Cells have the grids of everyone, but in saves of version 0.1.
        """
        return self._shifts[slots] if self._alike else None

    @lazy
    def _alike(self) -> bool:
        s = len(self.positions)
        once = self.sizes.view(-1, s)
        same = bool((once == once[0]).all())
        return same and bool((self.grid.view(len(once), -1) == self.grid[: once[0].sum()]).all())

    @lazy
    def _shifts(self) -> Tensor:
        """(k * s,) where each slot begins less where everyone's does."""
        s, starts = len(self.positions), self.sizes.cumsum(0) - self.sizes
        return (starts - starts[:s].repeat(len(starts) // s)).int()

    @lazy
    def _ruler(self) -> Ruler:
        return Ruler.of(self.grid, self.sizes)

    @lazy
    def _widths(self) -> Tensor:
        """(g,) how far the next node is, infinite at the end of a slot."""
        width = self.grid.new_full(self.grid.shape, torch.inf)
        width[:-1] = self.grid.diff()
        width[self.sizes.cumsum(0) - 1] = torch.inf
        return width


def nearest(left: Tensor, weight: Tensor) -> Tensor:
    """The nearer of two nodes, any shape."""
    return left + (weight > 0.5)


def partition(
    crowd: Crowd, groups: Groups | None, which: int, most: int, grid: Tensor | None = None
) -> Partition:
    """Bins and nodes of one set; the nodes of a number, (g,), may be known already."""
    members = crowd.sets.members[which]
    if groups is not None and len(members) > 1:
        slot = torch.full((len(crowd.rows),), which)
        leaves = groups.leaves(crowd.encoder.expand(crowd.rows)[:, None], slot)[:, 0]
        return levels(leaves, int(leaves.max()) + 1 if grid is None else len(grid))
    feature, column = crowd.encoder.schema.features[members[0]], crowd.rows[:, members[0]]
    if feature.kind is Kind.NUMERIC:
        return numbers(column, most, grid)
    return levels(column, len(feature.categories))
