"""Cells (step 2): rows are compared with rows of the same cell of the held features.

Where held numbers have many values, rows are first cut by E[x_S | held], see `balance`. Then held
features of few values are cut at each value, other numbers at quintiles. A cell is a combination
of the first few cuts that enough rows have; a row is in the finest cell it can be, so that rows of
rarer combinations share the cell of what they have in common, whatever its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.kinds.labels import NEW
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.balance import Balance
from dear_plugin.decoders.transport.values import sorted_values, value_counts

FEW_VALUES = 12
QUINTILES = 5
MIN_ROWS = 300
# Groups of equal expectations, their least rows, and training rows that the cuts are found on.
GROUPS, GROUP_ROWS, ROWS = 10, 100, 10_000
# Also where this share of the rows is in cells that a held category does not cut.
MOST_UNCUT = 0.1
# Expectations that differ by less, as a share of their range, are equal.
EQUAL = 1e-9
# So many that those of equal expectations are cut by the held features, too.
MAX_CELLS = 72
# The base of codes, which stay below the modulus: thirteen times as much still fits an int64.
BASE, MODULUS = FEW_VALUES + 1, 2**59


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
        if not self.rank.numel():
            return torch.bucketize(column.contiguous(), self.at)
        digits = torch.bucketize(self.rank[column.long().clamp(0, len(self.rank) - 1)], self.at)
        # A category that no training row has is in none of the cells that the feature cuts.
        return torch.where(column < NEW, digits, FEW_VALUES)


class Groups(NamedTuple):
    """How rows are cut by E[x_S | held].

    Attributes:
        encoder: scales rows.
        balance: the expectation.
        at: the sorted cuts.
    """

    encoder: Encoder
    balance: Balance
    at: Tensor

    @classmethod
    def of(cls, sample: Sample, acted: Members, held: Members) -> Groups:
        """Up to ten groups of equal size."""
        balance = sample.shared(Balance, acted, held)
        encoder, some = sample.encoder, sample.rows[:: -(-len(sample) // ROWS)]
        ordered = sorted_values(balance.score(encoder.scaled(some)))
        count = max(min(GROUPS, len(sample) // GROUP_ROWS), 1)
        wanted = ordered[torch.arange(1, count) * len(ordered) // count]
        # Middles of gaps, so that rounding moves no row: many rows may have equal expectations.
        gap = EQUAL * (ordered[-1] - ordered[0])
        above = torch.searchsorted(ordered, wanted - gap)
        above = above[above > 0].unique()
        return cls(encoder, balance, (ordered[above - 1] + ordered[above]) / 2.0)

    def digits(self, rows: Tensor) -> Tensor:
        """(n,) the group of each of some rows, (n, p)."""
        return torch.bucketize(self.balance.score(self.encoder.scaled(rows)), self.at)


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
        grouped: the features of S, if rows are first cut by E[x_S | held], or ().
        held: the held features.

    Attributes:
        known: (k,) the sorted codes of the cells.
        own: (n,) the cell of each training row, as a place in `known`.
        uncut_shares: the share of training rows whose cell is not cut by each held feature, so
            that they are compared with rows unequal in it.
    """

    def __init__(self, sample: Sample, grouped: Members, held: Members) -> None:
        cuts = (sample.shared(_cut, j) for j in held)
        self._cuts: list[Cut | Groups] = [*sorted(cuts, key=_is_number_of_many_values)]
        if grouped:
            self._cuts.insert(0, Groups.of(sample, grouped, held))
        self.uncut_shares: dict[int, float] = {}
        least = max(MIN_ROWS, len(sample) // MAX_CELLS)
        # The codes of the cells that may be cut further, and which of them a row is in, or -1.
        codes, places = torch.zeros(1).long(), torch.zeros(len(sample)).long()
        finest = torch.zeros(len(sample)).long()
        for cut in self._cuts:
            key = torch.where(places < 0, 0, places * BASE + cut.digits(sample.rows) + 1)
            counts = torch.bincount(key, minlength=len(codes) * BASE)
            counts[0] = 0
            rows = least if isinstance(cut, Cut) else 1
            frequent = (counts >= rows).nonzero()[:, 0]
            codes = (codes[frequent // BASE] * BASE + frequent % BASE) % MODULUS
            place_of = torch.full_like(counts, -1)
            place_of[frequent] = torch.arange(len(codes))
            places = place_of[key]
            is_cut = places >= 0
            finest[is_cut] = codes[places[is_cut]]
            if isinstance(cut, Cut) and not grouped:
                self.uncut_shares[cut.feature] = 1.0 - float(is_cut.float().mean())
        self.known, own = torch.cat([torch.zeros(1).long(), finest]).unique(return_inverse=True)
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
        """The codes, (m,) each: of rows, (m, p), after the first, second, ... cut."""
        code = torch.zeros(len(x), dtype=torch.int64)
        for cut in self._cuts:
            code = (code * BASE + cut.digits(x) + 1) % MODULUS
            yield code


def cells_of(sample: Sample, acted: Members, held: Members) -> Cells:
    """The cells of a set; those of held features of few values are computed once for all sets."""
    return sample.shared(_cells, acted, held)


def _cells(sample: Sample, acted: Members, held: Members) -> Cells:
    many = any(_is_number_of_many_values(sample.shared(_cut, j)) for j in held)
    if held and not many:
        uncut = sample.shared(Cells, (), held).uncut_shares
        many = max(uncut.values(), default=0.0) > MOST_UNCUT
    return sample.shared(Cells, acted if many else (), held)


def _is_number_of_many_values(cut: Cut) -> bool:
    return len(cut.at) == QUINTILES - 1 and not len(cut.rank)


def _cut(sample: Sample, j: int) -> Cut:
    """Cut feature j; of many categories the eleven most frequent are kept apart."""
    feature, column = sample.encoder.schema.features[j], sample.rows[:, j]
    if not feature.is_number:
        counts = torch.bincount(column.long(), minlength=len(feature.categories))
        rank = counts.argsort(descending=True, stable=True).argsort().clamp_max(FEW_VALUES - 1)
        return Cut(j, rank.float(), torch.arange(FEW_VALUES - 1) + 0.5)
    values = value_counts(column)[0]
    if len(values) <= FEW_VALUES:
        return Cut(j, torch.empty(0), (values[1:] + values[:-1]) / 2.0)
    quintiles = torch.arange(1, QUINTILES) * len(column) // QUINTILES
    return Cut(j, torch.empty(0), value_counts(sorted_values(column)[quintiles])[0])
