"""Supports: the observed values that the tables of a feature are indexed by."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special, without_special
from dear_plugin.decoders.transport.bins import heavy_values, sorted_values, value_counts
from dear_plugin.decoders.transport.lookup import SortedSegments

MAX_VALUES = 128


@dataclass
class Supports:
    """The supported values of the features with atoms, laid end to end.

    A feature is *counted* if it has values here. It is *smooth* if it is numeric without an atom
    (a value that 1 % of the rows have). Given features are neither.

    Attributes:
        values: (t,) the values, sorted within each feature.
        starts: (p,) the index of each feature's first value.
        sizes: (p,) the number of values of each feature; zero if it is not counted.
        smooth: (p,) bool, the smooth features.
        blocks: the counted features of m > 2 categories.
        binaries: the counted features of two.
    """

    values: Tensor
    starts: Tensor
    sizes: Tensor
    smooth: Tensor
    blocks: tuple[int, ...]
    binaries: tuple[int, ...]

    @classmethod
    def of(
        cls, rows: Tensor, encoder: Encoder, given: Tensor, max_values: int = MAX_VALUES
    ) -> Supports:
        """Compute the supports of training rows, (n, p).

        Args:
            rows: the training rows.
            encoder: the encoder.
            given: the given features.
            max_values: about how many values of a numeric feature are kept.
        """
        parts, smooth = [], torch.zeros(encoder.p, dtype=torch.bool)
        fixed = set(given.tolist())
        for j, feature in enumerate(encoder.schema):
            part = torch.empty(0)
            if feature.kind is not Kind.NUMERIC:
                part = torch.arange(max(len(feature.categories), 1)).float()
            elif j not in fixed:
                smooth[j] = _is_smooth(rows[:, j])
                part = part if smooth[j] else _thinned(rows[:, j], max_values)
            parts.append(part[: 0 if j in fixed else None])
        sizes = torch.tensor([len(part) for part in parts])
        starts = sizes.cumsum(0) - sizes
        return cls.from_tensors(encoder, torch.cat(parts), starts, sizes, smooth)

    @classmethod
    def from_tensors(
        cls, encoder: Encoder, values: Tensor, starts: Tensor, sizes: Tensor, smooth: Tensor
    ) -> Supports:
        """Supports from their tensors; the rest follows from the schema."""
        counted = sizes > 0
        blocks = tuple((encoder.blocks & counted).nonzero()[:, 0].tolist())
        binary = [f.kind is Kind.BINARY and len(f.categories) == 2 for f in encoder.schema]
        binaries = tuple((torch.tensor(binary) & counted).nonzero()[:, 0].tolist())
        return cls(values, starts, sizes, smooth, blocks, binaries)

    @lazy
    def counted(self) -> Tensor:
        """(c,) the features that have values here."""
        return self.sizes.nonzero()[:, 0]

    @lazy
    def ranked(self) -> Tensor:
        """(f,) the counted features whose values have an order: all but blocks."""
        counted = self.sizes > 0
        counted[list(self.blocks)] = False
        return counted.nonzero()[:, 0]

    @lazy
    def ranked_values(self) -> Tensor:
        """The indices of the ranked features' values."""
        feature = torch.repeat_interleave(torch.arange(len(self.sizes)), self.sizes)
        return torch.isin(feature, self.ranked).nonzero()[:, 0]

    def segment(self, feature: int) -> slice:
        """The indices of one feature's values."""
        start = int(self.starts[feature])
        return slice(start, start + int(self.sizes[feature]))

    def codes(self, rows: Tensor) -> Tensor:
        """(c, n) the nearest supported value of each counted entry, an int32 index of `values`."""
        segments = torch.arange(len(self.counted))[:, None]
        return self._segments.locate(rows.T[self.counted], segments)

    @lazy
    def _segments(self) -> SortedSegments:
        """The midpoints between neighbouring values; the first value of each feature."""
        begin = self.values.clone()
        begin[1:] = (self.values[1:] + self.values[:-1]) / 2.0
        sizes = self.sizes[self.counted]
        first = sizes.cumsum(0) - sizes
        begin[first] = self.values[first]
        return SortedSegments.of(begin, sizes)


def _is_smooth(column: Tensor) -> bool:
    """Whether a numeric column, (n,), varies and has no atom."""
    atoms = len(heavy_values(column)) > 0 or bool(is_special(column).any())
    return not atoms and bool((column != column[0]).any())


def _thinned(column: Tensor, max_values: int) -> Tensor:
    """All observed values, or heavy ones and quantiles: at most 1.5 times `max_values`."""
    special = is_special(column)
    if bool(special.any()):
        values = value_counts(column[special])[0]
        rest = _thinned(without_special(column), max(1, max_values - len(values)))
        return torch.cat([values, rest])
    values, counts = value_counts(column)
    if len(values) <= max_values:
        return values
    heavy = heavy_values(column)
    if len(heavy) > max_values:
        heavy = values[counts.topk(max_values).indices]
    rest = sorted_values(column[~torch.isin(column, heavy)])
    count = max_values - min(len(heavy), max_values // 2)
    at = ((torch.arange(count) + 0.5) / count * len(rest)).long()
    return value_counts(torch.cat([heavy, rest[at]]))[0]
