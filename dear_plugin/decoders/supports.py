"""Supports: the observed values that a feature may take in a table."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.partition import distinct, heavy_values
from dear_plugin.encoding import Encoder
from dear_plugin.schema import Kind

MAX_VALUES = 128


@dataclass
class Supports:
    """Every feature's supported values, laid end to end.

    Attributes:
        values: (t,) the values of all features, sorted within each.
        starts: (p,) where each feature begins.
        sizes: (p,) how many values each has.
        smooth: (p,) bool, numbers without an atom (no value holds 1 % of the rows).
        blocks: the features of m > 2 categories.
        binaries: the features of two.
    """

    values: Tensor
    starts: Tensor
    sizes: Tensor
    smooth: Tensor
    blocks: tuple[int, ...]
    binaries: tuple[int, ...]

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder) -> Supports:
        """Read the supports off training rows, (n, p)."""
        parts, smooth = [], []
        for j, feature in enumerate(encoder.schema):
            if feature.kind is not Kind.NUMERIC:
                parts.append(torch.arange(max(len(feature.categories), 1)).float())
                smooth.append(False)
                continue
            values = distinct(rows[:, j])
            heavy = heavy_values(rows[:, j])
            smooth.append(not len(heavy) and len(values) > 1)
            parts.append(_thin(rows[:, j], values, heavy))
        sizes = torch.tensor([len(part) for part in parts])
        starts = sizes.cumsum(0) - sizes
        return cls.again(encoder, torch.cat(parts), starts, sizes, torch.tensor(smooth))

    @classmethod
    def again(
        cls, encoder: Encoder, values: Tensor, starts: Tensor, sizes: Tensor, smooth: Tensor
    ) -> Supports:
        """Supports from their tensors; what the schema says is read off it."""
        blocks = tuple(int(j) for j in encoder.blocks.nonzero()[:, 0])
        binaries = tuple(j for j, f in enumerate(encoder.schema) if len(f.categories) == 2)
        return cls(values, starts, sizes, smooth, blocks, binaries)

    def segment(self, feature: int) -> slice:
        """The place of one feature in the tables."""
        start = int(self.starts[feature])
        return slice(start, start + int(self.sizes[feature]))

    def codes(self, rows: Tensor) -> Tensor:
        """(n, p) the nearest supported value of each cell, as an index into `values`."""
        codes = torch.empty(rows.shape, dtype=torch.int64)
        for j in range(rows.shape[1]):
            segment = self.segment(j)
            codes[:, j] = _nearest(self.values[segment], rows[:, j].contiguous()) + segment.start
        return codes


def _nearest(values: Tensor, column: Tensor) -> Tensor:
    """(n,) the index of the nearest of some sorted values."""
    if len(values) == 1:
        return torch.zeros(len(column), dtype=torch.int64)
    middles = (values[1:] + values[:-1]) / 2.0
    return torch.bucketize(column, middles)


def _thin(column: Tensor, values: Tensor, heavy: Tensor) -> Tensor:
    """At most `MAX_VALUES` observed values: all, or the heavy ones and quantiles of the rest."""
    if len(values) <= MAX_VALUES:
        return values
    rest = column[~torch.isin(column, heavy)].sort().values
    count = MAX_VALUES - min(len(heavy), MAX_VALUES // 2)
    at = ((torch.arange(count) + 0.5) / count * len(rest)).long()
    return distinct(torch.cat([heavy, rest[at]]))
