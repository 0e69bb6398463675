"""Cells (step 2): rows are compared with rows of the same cell of the held features.

Held features of few values are cut at each value, other numbers at quintiles. A cell is a
combination of the first few of them that enough rows have; a row is in the finest cell it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.columns import sorted_values, value_counts

FEW_VALUES = 12
QUINTILES = 5
MIN_ROWS = 300
MAX_CELLS = 30
# Codes of cells stay below it: thirteen times as much still fits an int64.
MODULUS = 2**59


class Cut(NamedTuple):
    """How one held feature is cut.

    Attributes:
        feature: its position.
        rank: (t,) the rank of each category by frequency; empty for a number.
        at: the sorted cuts.
    """

    feature: int
    rank: Tensor
    at: Tensor

    def digits(self, column: Tensor) -> Tensor:
        """(n,) the interval between cuts of each entry of the feature's column, (n,)."""
        if len(self.rank):
            column = self.rank[column.long().clamp(0, len(self.rank) - 1)]
        return torch.bucketize(column.contiguous(), self.at)


@dataclass(frozen=True)
class Cells:
    """The cells of some held features.

    Attributes:
        cuts: how each held feature is cut, those of few values first.
        known: (k,) the sorted codes of the cells; the first, 0, is of rows in no other.
        own: (n,) the cell of each training row.
    """

    cuts: tuple[Cut, ...]
    known: Tensor
    own: Tensor

    @classmethod
    def of(cls, sample: Sample, held: Sequence[int]) -> Cells:
        """The cells of training rows; without held features there is one."""
        cuts = [_cut(sample, j) for j in held]
        cuts.sort(key=lambda cut: len(cut.at) == QUINTILES - 1 and not len(cut.rank))
        n, root = len(sample), torch.zeros(1, dtype=torch.int64)
        rows, finest = sample.rows, torch.zeros(n, dtype=torch.int64)
        for codes in _codes(cuts, rows):
            values, counts = value_counts(codes)
            frequent = values[counts >= max(MIN_ROWS, n // MAX_CELLS)]
            finest = torch.where(torch.isin(codes, frequent), codes, finest)
        cells = cls(tuple(cuts), value_counts(torch.cat([root, finest]))[0], finest)
        return cls(cells.cuts, cells.known, torch.searchsorted(cells.known, finest))

    def __len__(self) -> int:
        """The number of cells (k)."""
        return len(self.known)

    def at(self, x: Tensor) -> Tensor:
        """(m,) the cells of rows, (m, p)."""
        cell = torch.zeros(len(x), dtype=torch.int64)
        if len(self) == 1:
            return cell
        for codes in _codes(self.cuts, x):
            at = torch.searchsorted(self.known, codes).clamp_max(len(self) - 1)
            cell = torch.where(self.known[at] == codes, at, cell)
        return cell

    def uncut_shares(self, rows: Tensor) -> dict[int, float]:
        """The share of rows, (n, p), whose cell is not cut by each of the held features."""
        cut = [torch.isin(codes, self.known).float().mean() for codes in _codes(self.cuts, rows)]
        return {own.feature: 1.0 - float(at) for own, at in zip(self.cuts, cut, strict=True)}


def cells_of(sample: Sample, held: tuple[int, ...]) -> Cells:
    """The cells of some held features, computed once for a sample."""
    return sample.shared(lambda each: Cells.of(each, held), ("cells", held))


def _codes(cuts: Sequence[Cut], x: Tensor) -> Sequence[Tensor]:
    """H codes, (m,): of rows, (m, p), cut by the first 1 ... h held features."""
    code, codes = torch.zeros(len(x), dtype=torch.int64), []
    for cut in cuts:
        code = (code * (FEW_VALUES + 1) + cut.digits(x[:, cut.feature]) + 1) % MODULUS
        codes.append(code)
    return codes


def _cut(sample: Sample, j: int) -> Cut:
    """Cut feature j; of many categories the eleven most frequent are kept apart."""
    feature, column = sample.encoder.schema.features[j], sample.rows[:, j]
    if feature.kind is not Kind.NUMERIC:
        counts = torch.bincount(column.long(), minlength=len(feature.categories))
        rank = counts.argsort(descending=True, stable=True).argsort().clamp_max(FEW_VALUES - 1)
        return Cut(j, rank.float(), torch.arange(FEW_VALUES - 1) + 0.5)
    values = value_counts(column)[0]
    if len(values) <= FEW_VALUES:
        return Cut(j, torch.empty(0), (values[1:] + values[:-1]) / 2.0)
    quintiles = torch.arange(1, QUINTILES) * len(column) // QUINTILES
    return Cut(j, torch.empty(0), value_counts(sorted_values(column)[quintiles])[0])
