"""Supports: the observed values that a feature may take in a table."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special, without_special
from dear_plugin.decoders.transport.bins import heavy_values, ordered, tally
from dear_plugin.decoders.transport.lookup import Ruler

MAX_VALUES = 128


@dataclass
class Supports:
    """The supported values of the features with atoms, laid end to end.

    Attributes:
        values: (t,) their values, sorted within each feature.
        starts: (p,) where each feature begins.
        sizes: (p,) how many values each has: none, where it is not counted.
        smooth: (p,) bool, numbers without an atom (no value holds 1 % of the rows).
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
    def of(cls, rows: Tensor, encoder: Encoder, given: Tensor, most: int = MAX_VALUES) -> Supports:
        """Read the supports off training rows, (n, p).

        Args:
            rows: the training rows.
            encoder: the gate.
            given: the features that do not move.
            most: how many values of a number are told apart.
        """
        parts, smooth = [], torch.zeros(encoder.p, dtype=torch.bool)
        fixed = set(given.tolist())
        for j, feature in enumerate(encoder.schema):
            part = torch.empty(0)
            if feature.kind is not Kind.NUMERIC:
                part = torch.arange(max(len(feature.categories), 1)).float()
            elif j not in fixed:
                smooth[j] = _is_smooth(rows[:, j])
                part = part if smooth[j] else _thin(rows[:, j], most)
            parts.append(part[: 0 if j in fixed else None])
        sizes = torch.tensor([len(part) for part in parts])
        return cls.again(encoder, torch.cat(parts), sizes.cumsum(0) - sizes, sizes, smooth)

    @classmethod
    def again(
        cls, encoder: Encoder, values: Tensor, starts: Tensor, sizes: Tensor, smooth: Tensor
    ) -> Supports:
        """Supports from their tensors; what the schema says is read off it."""
        counted = sizes > 0
        blocks = tuple((encoder.blocks & counted).nonzero()[:, 0].tolist())
        binary = [f.kind is Kind.BINARY and len(f.categories) == 2 for f in encoder.schema]
        two = torch.tensor(binary)
        binaries = tuple((two & counted).nonzero()[:, 0].tolist())
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
    def places(self) -> Tensor:
        """The places of the ranked features' values."""
        feature = torch.repeat_interleave(torch.arange(len(self.sizes)), self.sizes)
        return torch.isin(feature, self.ranked).nonzero()[:, 0]

    def segment(self, feature: int) -> slice:
        """The place of one feature in the tables."""
        start = int(self.starts[feature])
        return slice(start, start + int(self.sizes[feature]))

    def codes(self, rows: Tensor) -> Tensor:
        """(c, n) the nearest supported value of each counted cell, as an int32 into `values`."""
        ladders = torch.arange(len(self.counted))[:, None]
        return self._ruler.below(rows.T[self.counted], ladders)

    @lazy
    def _ruler(self) -> Ruler:
        """Each value begins half way from the one before."""
        begin = self.values.clone()
        begin[1:] = (self.values[1:] + self.values[:-1]) / 2.0
        sizes = self.sizes[self.counted]
        first = sizes.cumsum(0) - sizes
        begin[first] = self.values[first]
        return Ruler.of(begin, sizes)


def _is_smooth(column: Tensor) -> bool:
    """Whether a number, (n,), has values but no atom."""
    atoms = len(heavy_values(column)) > 0 or bool(is_special(column).any())
    return not atoms and bool((column != column[0]).any())


def _thin(column: Tensor, most: int) -> Tensor:
    """About `most` observed values: all, or the heavy ones and quantiles of the rest."""
    special = is_special(column)
    if bool(special.any()):
        values = tally(column[special])[0]
        return torch.cat([values, _thin(without_special(column), max(1, most - len(values)))])
    values, counts = tally(column)
    if len(values) <= most:
        return values
    heavy = heavy_values(column)
    if len(heavy) > most:
        heavy = values[counts.topk(most).indices]
    rest = ordered(column[~torch.isin(column, heavy)])
    count = most - min(len(heavy), most // 2)
    at = ((torch.arange(count) + 0.5) / count * len(rest)).long()
    return tally(torch.cat([heavy, rest[at]]))[0]
