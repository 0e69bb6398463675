"""Nodes: the common grid of values a, for all sets in one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.decoders.groups import Groups
from dear_plugin.decoders.partition import Partition, levels, numbers
from dear_plugin.encoding import Encoder
from dear_plugin.schema import Kind


@dataclass
class Bins:
    """Where training rows are counted.

    Attributes:
        of_row: (n, s) the bin of every training row.
        mix: (s, g, b) what each bin weighs at each node.
    """

    of_row: Tensor
    mix: Tensor


@dataclass
class Nodes:
    """Where x_S lies on every set's grid.

    Attributes:
        positions: (s, w) the features of each set.
        grid: (s, g) sorted node values; shorter grids repeat their last value.
        sizes: (s,) how many nodes each set has.
        discrete: (s,) bool, sets whose nodes are categories.
        groups: the trees of sets with several features, whose nodes are leaves.
        encoder: the gate, which encodes rows for the trees.
    """

    positions: Tensor
    grid: Tensor
    sizes: Tensor
    discrete: Tensor
    groups: Groups | None
    encoder: Encoder

    @classmethod
    def of(
        cls, rows: Tensor, encoder: Encoder, sets: ActionSets, smooth: Tensor
    ) -> tuple[Nodes, Bins]:
        """Cut every set of training rows, (n, p), of which `smooth`, (f,), are atom-free."""
        groups = Groups.of(rows, encoder, sets, smooth)
        wide = encoder.expand(rows)[:, None]
        parts, discrete = [], []
        for i, members in enumerate(sets.members):
            if groups is not None and len(members) > 1:
                leaves = groups.leaves(wide, torch.full((len(rows),), i))[:, 0]
                discrete.append(True)
                parts.append(levels(leaves, int(leaves.max()) + 1))
                continue
            feature = encoder.schema.features[members[0]]
            column = rows[:, members[0]].contiguous()
            discrete.append(feature.kind is not Kind.NUMERIC)
            parts.append(
                levels(column, len(feature.categories)) if discrete[-1] else numbers(column)
            )
        grid, mix = _pad(parts)
        sizes = torch.tensor([len(part.nodes) for part in parts])
        bins = torch.stack([part.bins for part in parts], 1)
        nodes = cls(sets.positions, grid, sizes, torch.tensor(discrete), groups, encoder)
        return nodes, Bins(bins, mix)

    def of_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The node left of every row's own x_S and the weight of the next one, (n, s) each."""
        n, s = len(rows), len(self.grid)
        values = rows[:, self.positions].reshape(n * s, 1, -1)
        left, weight = self.locate(values, torch.arange(s).repeat(n))
        return left.view(n, s), weight.view(n, s)

    def locate(self, values: Tensor, sets: Tensor) -> tuple[Tensor, Tensor]:
        """The node left of each value and the weight of the next one, (m, c) each.

        Args:
            values: (m, c, w) values of the sets' features.
            sets: (m,) the sets.
        """
        value, set_ = self._keys(values, sets).double(), sets[:, None]
        g = self.grid.shape[1]
        # One search serves all sets: each set's nodes are shifted to a stretch of their own.
        low, high = self.grid.amin(1).double(), self.grid.amax(1).double()
        shift = (high - low + 1.0).cumsum(0) - (high + 0.5)
        keys = (self.grid.double() + shift[:, None]).flatten()
        inside = torch.minimum(torch.maximum(value, low[set_]), high[set_])
        found = torch.searchsorted(keys, inside + shift[set_], right=True) - 1 - set_ * g
        left = torch.minimum(found, self.sizes[set_] - 2).clamp_min(0)
        right = torch.minimum(left + 1, self.sizes[set_] - 1)
        flat = self.grid.flatten()
        start, end = flat[left + set_ * g], flat[right + set_ * g]
        weight = ((inside - start) / (end - start).clamp_min(1e-12)).clamp(0.0, 1.0)
        return left, weight.float()

    def wide(self, values: Tensor, sets: Tensor) -> Tensor:
        """(m, c, d) encoded rows that hold only the values of x_S, zero elsewhere."""
        empty = torch.zeros(*values.shape[:2], self.encoder.p)
        positions = self.positions[sets][:, None].expand(values.shape)
        return self.encoder.expand(empty.scatter(2, positions, values))

    def located(self, level: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """(m, c, f) levels of atom-free features plus the groups' locations at x_S = values."""
        if self.groups is None:
            return level
        out, several = level.clone(), self.groups.tree[sets] >= 0
        wide = self.wide(values[several], sets[several])
        out[several] += self.groups.location(wide, sets[several])
        return out

    def _keys(self, values: Tensor, sets: Tensor) -> Tensor:
        """(m, c) what is looked up on the grid: a singleton's value, or a group's leaf."""
        if self.groups is None:
            return values[..., 0]
        keys = values[..., 0].clone()
        several = self.groups.tree[sets] >= 0
        wide = self.wide(values[several], sets[several])
        keys[several] = self.groups.leaves(wide, sets[several]).float()
        return keys


def _pad(parts: list[Partition]) -> tuple[Tensor, Tensor]:
    """Grids (s, g) and mixing weights (s, g, b) of unequal size as one tensor each."""
    g = max(len(part.nodes) for part in parts)
    b = max(part.mix.shape[1] for part in parts)
    grid = torch.stack(
        [torch.cat([p.nodes, p.nodes[-1:].expand(g - len(p.nodes))]) for p in parts]
    )
    mix = torch.zeros(len(parts), g, b)
    for i, part in enumerate(parts):
        mix[i, : len(part.nodes), : part.mix.shape[1]] = part.mix
        mix[i, len(part.nodes) :, : part.mix.shape[1]] = part.mix[-1]
    return grid, mix
