"""Nodes: the grids of values a, laid end to end, for all sets in one batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.decoders.given import Crowd
from dear_plugin.decoders.groups import Groups
from dear_plugin.decoders.partition import Partition, levels, numbers
from dear_plugin.encoding import Encoder
from dear_plugin.schema import Kind


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
        parts = [
            _partition(crowd, groups, cell, which, most)
            for cell in range(len(crowd.cells))
            for which in range(len(crowd.sets))
        ]
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
        ruler, slot = self._ruler, slots[:, None]
        value = self._keys(values, slots).double()
        inside = torch.minimum(torch.maximum(value, ruler.low[slot]), ruler.high[slot])
        keys = inside + ruler.shift[slot]
        found = torch.searchsorted(ruler.keys, keys, right=True, out_int32=True) - 1
        left = torch.minimum(found, ruler.last[slot])
        weight = (inside - ruler.start[left]) / ruler.width[left]
        return left, weight.clamp_(0.0, 1.0).float()

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

    @cached_property
    def _ruler(self) -> _Ruler:
        end = self.sizes.cumsum(0)
        begin = end - self.sizes
        start = self.grid.double()
        low, high = start[begin], start[end - 1]
        shift = (high - low + 1.0).cumsum(0) - (high + 0.5)
        next_ = torch.arange(1, len(start) + 1)
        next_[end - 1] -= 1
        width = (self.grid[next_] - self.grid).clamp_min(1e-12).double()
        keys = start + shift.repeat_interleave(self.sizes)
        last = torch.maximum(end - 2, begin).int()
        return _Ruler(low, high, shift, last, keys, start, width)


class _Ruler(NamedTuple):
    """One search serves all slots: the nodes of each are shifted to a stretch of their own.

    Attributes:
        low: (k * s,) the first node value of each slot.
        high: (k * s,) the last one.
        shift: (k * s,) where its stretch lies.
        last: (k * s,) the last node that has another on its right.
        keys: (g,) the shifted nodes.
        start: (g,) the nodes.
        width: (g,) how far the next one is.
    """

    low: Tensor
    high: Tensor
    shift: Tensor
    last: Tensor
    keys: Tensor
    start: Tensor
    width: Tensor


def nearest(left: Tensor, weight: Tensor) -> Tensor:
    """The nearer of two nodes, any shape."""
    return left + (weight > 0.5)


def _partition(crowd: Crowd, groups: Groups | None, cell: int, which: int, most: int) -> Partition:
    """Bins and nodes of one set in one cell."""
    members, people = crowd.sets.members[which], crowd.cells[cell]
    if groups is not None and len(members) > 1:
        slot = torch.full((len(people),), cell * len(crowd.sets) + which)
        wide = crowd.encoder.expand(crowd.rows[people])[:, None]
        leaves = groups.leaves(wide, slot)[:, 0]
        return levels(leaves, int(leaves.max()) + 1)
    feature, column = crowd.encoder.schema.features[members[0]], crowd.rows[people, members[0]]
    if feature.kind is Kind.NUMERIC:
        return numbers(column, most)
    return levels(column, len(feature.categories))
