"""Given: what people are compared at equal values of, besides x_S; mostly what cannot change.

Features of few values make strata, numbers of many are cut at quintiles; both together make
*cells* of people alike, for whom distributions are counted apart. A cell with few rows falls back
to a coarser one, cut by fewer features, in the end to everyone.
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
from dear_plugin.decoders.transport.bins import ordered, tally
from dear_plugin.problem.action_sets import ActionSets

FEW_VALUES = 12
QUINTILES = 5
LEAST_ROWS = 300
MOST_CELLS = 100
# Codes of cells stay below it: thirteen times as much still fits an int64.
MODULUS = 2**59


@dataclass
class Conditioning:
    """How people are told apart by what is given.

    Attributes:
        features: (h,) the given features, those of few values first.
        few: (h,) bool, which have few values.
        cuts: (h, 11) where each is cut, infinite behind the last cut.
        rank: (h, l) what each category counts as, NaN for numbers.
        known: (k,) the sorted codes of the cells; the first, 0, is everyone.
    """

    features: Tensor
    few: Tensor
    cuts: Tensor
    rank: Tensor
    known: Tensor

    @classmethod
    def of(
        cls, rows: Tensor, encoder: Encoder, features: Sequence[int], most: int = MOST_CELLS
    ) -> Conditioning:
        """Cut the given features of training rows, (n, p); no features make one cell.

        Args:
            rows: the training rows.
            encoder: the gate.
            features: what is given.
            most: about how many cells there may be.
        """
        cuts = sorted(
            (_cut(rows, encoder.schema, j) for j in features), key=lambda cut: not cut.few
        )
        widest = max([1, *(len(cut.rank) for cut in cuts)])
        given = cls(
            torch.tensor([cut.feature for cut in cuts], dtype=torch.int64),
            torch.tensor([cut.few for cut in cuts], dtype=torch.bool),
            _filled([cut.at for cut in cuts], FEW_VALUES - 1, torch.inf),
            _filled([cut.rank for cut in cuts], widest, torch.nan),
            torch.zeros(1, dtype=torch.int64),
        )
        given.known = given._populous(rows, max(LEAST_ROWS, len(rows) // min(most, MOST_CELLS)))
        return given

    def __len__(self) -> int:
        """How many cells there are, everyone's included."""
        return len(self.known)

    def cells(self, rows: Tensor) -> Tensor:
        """(n,) the finest cell that each row, (n, p), belongs to."""
        cell = torch.zeros(len(rows), dtype=torch.int64)
        if len(self) == 1:
            return cell
        for code in self._codes(rows):
            at = torch.searchsorted(self.known, code).clamp_max(len(self) - 1)
            cell = torch.where(self.known[at] == code, at, cell)
        return cell

    def lacking(self, rows: Tensor) -> float:
        """The share of rows, (n, p), that are not told apart by all that is given."""
        codes = self._codes(rows)
        if not len(codes):
            return 0.0
        return float((~torch.isin(codes[-1], self.known)).float().mean())

    def crowd(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> Crowd:
        """Training rows, (n, p), told apart; a coarser cell holds those of the finer ones too."""
        codes = self._codes(rows)
        own = [(codes == code).any(0).nonzero()[:, 0] for code in self.known[1:]]
        cells = [torch.arange(len(rows)), *own]
        return Crowd(rows, encoder, sets, cells, self.cells(rows), self.basis(rows))

    def basis(self, rows: Tensor) -> Tensor:
        """(n, b) indicators of strata, and numbers with a bend at each of their quintiles."""
        if not len(self.features):
            return rows.new_zeros((len(rows), 0), dtype=torch.float64)
        value = self._values(rows)
        strata = self._digits(value)[:, self.few, None] == torch.arange(FEW_VALUES)
        number = value[:, ~self.few, None]
        number = torch.where(is_special(number), 0.0, number)
        bent = (number - self.cuts[~self.few, : QUINTILES - 1]).clamp_min(0.0)
        return torch.cat([strata.flatten(1), number.flatten(1), bent.flatten(1)], 1).double()

    def _values(self, rows: Tensor) -> Tensor:
        """(n, h) what is cut: a number, or a category's rank."""
        own = rows[:, self.features]
        level = own.long().clamp(0, self.rank.shape[1] - 1)
        rank = self.rank.T.gather(0, level)
        return torch.where(rank.isnan(), own, rank)

    def _digits(self, value: Tensor) -> Tensor:
        """(n, h) between which cuts each value lies."""
        columns = value.T.contiguous()
        each = [torch.bucketize(own, at) for own, at in zip(columns, self.cuts, strict=True)]
        return torch.stack(each, 1) if each else value.long()

    def _codes(self, rows: Tensor) -> Tensor:
        """(h, n) the cells of rows when only the first features are told apart, coarse to fine."""
        code = torch.zeros(len(rows), dtype=torch.int64)
        codes = []
        for digit in self._digits(self._values(rows)).T:
            code = (code * (FEW_VALUES + 1) + digit + 1) % MODULUS
            codes.append(code)
        return torch.stack(codes) if codes else code[None, :][:0]

    def _populous(self, rows: Tensor, least: int) -> Tensor:
        """The codes of the finest cells of at least so many rows that rows belong to."""
        finest = torch.zeros(len(rows), dtype=torch.int64)
        for code in self._codes(rows):
            values, counts = tally(code)
            enough = values[counts >= least]
            finest = torch.where(torch.isin(code, enough), code, finest)
        return tally(torch.cat([self.known, finest]))[0]


@dataclass(frozen=True)
class Crowd:
    """The training rows and who among them is compared with whom.

    Attributes:
        rows: (n, p) the training rows.
        encoder: the gate.
        sets: the s action sets.
        cells: the rows of each cell; the first cell holds everyone.
        own: (n,) the finest cell of each row.
        beside: (n, b) what is regressed on beside x_S.
    """

    rows: Tensor
    encoder: Encoder
    sets: ActionSets
    cells: list[Tensor]
    own: Tensor
    beside: Tensor

    @property
    def within(self) -> Tensor:
        """(k, k) double, 1 where the rows of the second cell lie within the first."""
        out = torch.eye(len(self.cells), dtype=torch.float64)
        for cell, rows in zip(out, self.cells, strict=True):
            cell[self.own[rows].unique()] = 1.0
        return out


class _Cut(NamedTuple):
    """How one given feature is cut: where, whether into few values, its categories by rank."""

    feature: int
    few: bool
    at: Tensor
    rank: Tensor


def _cut(rows: Tensor, schema: Schema, j: int) -> _Cut:
    """Cut feature j of training rows; of many categories the eleven most frequent stay apart."""
    feature, column = schema.features[j], rows[:, j]
    if feature.kind is not Kind.NUMERIC:
        counts = torch.bincount(column.long(), minlength=len(feature.categories))
        rank = counts.argsort(descending=True, stable=True).argsort().clamp_max(FEW_VALUES - 1)
        return _Cut(j, True, torch.arange(FEW_VALUES - 1) + 0.5, rank.float())
    values, none = tally(column)[0], torch.empty(0)
    if len(values) <= FEW_VALUES:
        return _Cut(j, True, (values[1:] + values[:-1]) / 2.0, none)
    quintiles = torch.arange(1, QUINTILES) * len(column) // QUINTILES
    return _Cut(j, False, tally(ordered(column)[quintiles])[0], none)


def _filled(parts: list[Tensor], width: int, value: float) -> Tensor:
    """(h, width) parts of unequal length, a value behind."""
    out = torch.full((len(parts), width), value)
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = part
    return out
