"""Conditioning: the given features that rows are compared at equal values of, besides x_S.

In: training rows and the given features (by default the immutable ones); out: the cell of every
row. Features of few values are strata, numeric features of many values are cut at quintiles; both
together make *cells*, in which distributions are counted separately. A cell with few rows falls
back to a coarser one, which is cut by fewer features; the coarsest, cell 0, has all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind, Schema
from dear_plugin.data.special_values import is_special
from dear_plugin.decoders.transport.bins import sorted_values, value_counts
from dear_plugin.problem.action_sets import ActionSets

FEW_VALUES = 12
QUINTILES = 5
MIN_ROWS = 300
MAX_CELLS = 100
# Codes of cells stay below it: thirteen times as much still fits an int64.
MODULUS = 2**59


@dataclass
class Conditioning:
    """How rows are assigned to cells by the given features.

    Attributes:
        features: (h,) the given features, those of few values first.
        few: (h,) bool, which have few values.
        cuts: (h, 11) where each is cut, infinite after the last cut.
        rank: (h, l) the rank that replaces each category, NaN for numeric features.
        known: (k,) the sorted codes of the cells; the first, 0, has all rows.
    """

    features: Tensor
    few: Tensor
    cuts: Tensor
    rank: Tensor
    known: Tensor

    @classmethod
    def of(
        cls,
        rows: Tensor,
        encoder: Encoder,
        features: Sequence[int],
        max_cells: int = MAX_CELLS,
    ) -> Conditioning:
        """Cut the given features of training rows, (n, p); without features there is one cell.

        Args:
            rows: the training rows.
            encoder: the encoder.
            features: the given features.
            max_cells: about how many cells there may be.
        """
        cuts = sorted(
            (_cut(rows, encoder.schema, j) for j in features), key=lambda cut: not cut.few
        )
        width = max([1, *(len(cut.rank) for cut in cuts)])
        given = cls(
            torch.tensor([cut.feature for cut in cuts], dtype=torch.int64),
            torch.tensor([cut.few for cut in cuts], dtype=torch.bool),
            _padded([cut.at for cut in cuts], FEW_VALUES - 1, torch.inf),
            _padded([cut.rank for cut in cuts], width, torch.nan),
            torch.zeros(1, dtype=torch.int64),
        )
        min_rows = max(MIN_ROWS, len(rows) // min(max_cells, MAX_CELLS))
        given.known = given._frequent(rows, min_rows)
        return given

    def __len__(self) -> int:
        """The number of cells, cell 0 included."""
        return len(self.known)

    def cells(self, rows: Tensor) -> Tensor:
        """(n,) the finest cell of each row, (n, p)."""
        cell = torch.zeros(len(rows), dtype=torch.int64)
        if len(self) == 1:
            return cell
        for code in self._codes(rows):
            at = torch.searchsorted(self.known, code).clamp_max(len(self) - 1)
            cell = torch.where(self.known[at] == code, at, cell)
        return cell

    def coarse_share(self, rows: Tensor) -> float:
        """The share of rows, (n, p), whose cell is not cut by all of the given features."""
        codes = self._codes(rows)
        if not len(codes):
            return 0.0
        return float((~torch.isin(codes[-1], self.known)).float().mean())

    def training_sample(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> TrainingSample:
        """Training rows, (n, p), by cell; a coarser cell has the rows of the finer ones too."""
        codes = self._codes(rows)
        finer = [(codes == code).any(0).nonzero()[:, 0] for code in self.known[1:]]
        cells = [torch.arange(len(rows)), *finer]
        return TrainingSample(rows, encoder, sets, cells, self.cells(rows), self.basis(rows))

    def basis(self, rows: Tensor) -> Tensor:
        """(n, b) covariates: indicators of strata, and numbers with a kink at each quintile."""
        if not len(self.features):
            return rows.new_zeros((len(rows), 0), dtype=torch.float64)
        value = self._values(rows)
        strata = self._digits(value)[:, self.few, None] == torch.arange(FEW_VALUES)
        number = value[:, ~self.few, None]
        number = torch.where(is_special(number), 0.0, number)
        excess = (number - self.cuts[~self.few, : QUINTILES - 1]).clamp_min(0.0)
        return torch.cat([strata.flatten(1), number.flatten(1), excess.flatten(1)], 1).double()

    def _values(self, rows: Tensor) -> Tensor:
        """(n, h) what is cut: a number, or a category's rank."""
        own = rows[:, self.features]
        level = own.long().clamp(0, self.rank.shape[1] - 1)
        rank = self.rank.T.gather(0, level)
        return torch.where(rank.isnan(), own, rank)

    def _digits(self, value: Tensor) -> Tensor:
        """(n, h) the index of the interval between cuts of each value."""
        columns = value.T.contiguous()
        each = [torch.bucketize(own, at) for own, at in zip(columns, self.cuts, strict=True)]
        return torch.stack(each, 1) if each else value.long()

    def _codes(self, rows: Tensor) -> Tensor:
        """(h, n) the codes of the rows' cells cut by the first 1 ... h features."""
        code = torch.zeros(len(rows), dtype=torch.int64)
        codes = []
        for digit in self._digits(self._values(rows)).T:
            code = (code * (FEW_VALUES + 1) + digit + 1) % MODULUS
            codes.append(code)
        return torch.stack(codes) if codes else code[None, :][:0]

    def _frequent(self, rows: Tensor, min_rows: int) -> Tensor:
        """The sorted codes of the finest cell with at least `min_rows` rows of each row."""
        finest = torch.zeros(len(rows), dtype=torch.int64)
        for code in self._codes(rows):
            values, counts = value_counts(code)
            frequent = values[counts >= min_rows]
            finest = torch.where(torch.isin(code, frequent), code, finest)
        return value_counts(torch.cat([self.known, finest]))[0]


@dataclass(frozen=True)
class TrainingSample:
    """Training rows with what they are conditioned on.

    Attributes:
        rows: (n, p) the training rows.
        encoder: the encoder.
        sets: the s action sets.
        cells: the row indices of each cell; the first cell has all rows.
        own: (n,) the finest cell of each row.
        covariates: (n, b) what is regressed on besides x_S.
    """

    rows: Tensor
    encoder: Encoder
    sets: ActionSets
    cells: list[Tensor]
    own: Tensor
    covariates: Tensor

    @property
    def within(self) -> Tensor:
        """(k, k) double, 1 where the rows of the second cell lie within the first."""
        out = torch.eye(len(self.cells), dtype=torch.float64)
        for cell, rows in zip(out, self.cells, strict=True):
            cell[self.own[rows].unique()] = 1.0
        return out


class _Cut(NamedTuple):
    """How one given feature is cut.

    Attributes:
        feature: its index.
        few: whether it has few values.
        at: the cuts.
        rank: the rank of each category by frequency; empty for a numeric feature.
    """

    feature: int
    few: bool
    at: Tensor
    rank: Tensor


def _cut(rows: Tensor, schema: Schema, j: int) -> _Cut:
    """Cut feature j; of many categories the eleven most frequent are strata of their own."""
    feature, column = schema.features[j], rows[:, j]
    if feature.kind is not Kind.NUMERIC:
        counts = torch.bincount(column.long(), minlength=len(feature.categories))
        rank = counts.argsort(descending=True, stable=True).argsort().clamp_max(FEW_VALUES - 1)
        return _Cut(j, True, torch.arange(FEW_VALUES - 1) + 0.5, rank.float())
    values, none = value_counts(column)[0], torch.empty(0)
    if len(values) <= FEW_VALUES:
        return _Cut(j, True, (values[1:] + values[:-1]) / 2.0, none)
    quintiles = torch.arange(1, QUINTILES) * len(column) // QUINTILES
    return _Cut(j, False, value_counts(sorted_values(column)[quintiles])[0], none)


def _padded(parts: list[Tensor], width: int, value: float) -> Tensor:
    """(h, width) parts of unequal length, padded with a value."""
    out = torch.full((len(parts), width), value)
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = part
    return out
