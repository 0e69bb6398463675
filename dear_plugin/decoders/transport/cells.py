"""Cells (step 2): rows are compared with rows of the same cell of the held features.

Held features of few values are cut at each value, other numbers at quintiles. A cell is a
combination of the first few of them that enough rows have; a row is in the finest cell it can be,
so that rows of rarer combinations share the cell of what they have in common, whatever its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.values import sorted_values, value_counts

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

    def digits(self, rows: Tensor) -> Tensor:
        """(n,) the interval between cuts of the feature in each of some rows, (n, p)."""
        column = rows[:, self.feature]
        if len(self.rank):
            column = self.rank[column.long().clamp(0, len(self.rank) - 1)]
        return torch.bucketize(column.contiguous(), self.at)


class Cells:
    """The cells of some held features; without these there is one.

    A cell has the code of its combination: the digits of its first held features, in base 13.
    Code 0 is the cell of rows whose combinations are all too rare; it exists even if there are
    none, for rows that are decoded later. So the cells of one held feature with two groups of
    enough rows are three: `known = [0, 1, 2]`, and `own` has only 1 and 2. With a second feature,
    cut in two, of which only the first group has enough rows on both sides, they are
    `[0, 2, 14, 15]`: in none, group 2, and group 1 by the two sides (1 * 13 + 1 and 1 * 13 + 2).

    Args:
        sample: the training rows.
        held: the held features.

    Attributes:
        known: (k,) the sorted codes of the cells.
        own: (n,) the cell of each training row, as a place in `known`.
        uncut_shares: the share of training rows whose cell is not cut by each held feature, so
            that they are compared with rows unequal in it.
    """

    def __init__(self, sample: Sample, held: Members) -> None:
        self._cuts = sorted((_cut(sample, j) for j in held), key=_is_number_of_many_values)
        root, finest = torch.zeros(1, dtype=torch.int64), torch.zeros(len(sample)).long()
        self.uncut_shares: dict[int, float] = {}
        for cut, codes in zip(self._cuts, self._codes(sample.rows), strict=True):
            values, counts = value_counts(codes)
            frequent = values[counts >= max(MIN_ROWS, len(sample) // MAX_CELLS)]
            is_cut = torch.isin(codes, frequent)
            finest = torch.where(is_cut, codes, finest)
            self.uncut_shares[cut.feature] = 1.0 - float(is_cut.float().mean())
        self.known, own = torch.cat([root, finest]).unique(return_inverse=True)
        self.own = own[1:]

    def __len__(self) -> int:
        """The number of cells (k)."""
        return len(self.known)

    def at(self, x: Tensor) -> Tensor:
        """(m,) the cells of rows, (m, p)."""
        cell = torch.zeros(len(x), dtype=torch.int64)
        for codes in self._codes(x) if len(self) > 1 else ():
            at = torch.searchsorted(self.known, codes).clamp_max(len(self) - 1)
            cell = torch.where(self.known[at] == codes, at, cell)
        return cell

    def _codes(self, x: Tensor) -> Iterator[Tensor]:
        """The h codes, (m,) each: of rows, (m, p), cut by the first 1 ... h held features."""
        code = torch.zeros(len(x), dtype=torch.int64)
        for cut in self._cuts:
            code = (code * (FEW_VALUES + 1) + cut.digits(x) + 1) % MODULUS
            yield code


def _is_number_of_many_values(cut: Cut) -> bool:
    return len(cut.at) == QUINTILES - 1 and not len(cut.rank)


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
