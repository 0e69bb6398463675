"""Cells (step 2): rows are compared with rows of the same cell of the held features.

Where held numbers have many values, rows are first cut by E[x_S | held], see `balance`. Then held
features of few values are cut at each value, other numbers at quintiles. A cell is a combination
of the first few cuts that enough rows have; a row is in the finest cell it can be, so that rows of
rarer combinations share the cell of what they have in common, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import torch
from torch import Tensor

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
    """How rows are cut: by one held feature, or by E[x_S | held].

    Attributes:
        of: a number for each of some rows, (n, p) -> (n,).
        at: the sorted cuts.
        feature: the position of the held feature; None for the expectation.
    """

    of: Callable[[Tensor], Tensor]
    at: Tensor
    feature: int | None

    def digits(self, rows: Tensor) -> Tensor:
        """(n,) the interval between cuts of each of some rows, (n, p)."""
        return self.between(self.of(rows))

    def between(self, values: Tensor) -> Tensor:
        """(n,) the interval between cuts of each of some values, (n,)."""
        return torch.bucketize(values.contiguous(), self.at)


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
        self._cuts = sorted((sample.shared(_by_feature, j) for j in held), key=_has_quintiles)
        digits = [cut.digits(sample.rows) for cut in self._cuts]
        if grouped:
            cut, expected = _by_expectation(sample, grouped, held)
            self._cuts.insert(0, cut)
            digits.insert(0, cut.between(expected))
        self.uncut_shares: dict[int, float] = {}
        least = max(MIN_ROWS, len(sample) // MAX_CELLS)
        # The codes of the cells that may be cut further, and which of them a row is in, or -1.
        codes, places = torch.zeros(1).long(), torch.zeros(len(sample)).long()
        finest = torch.zeros(len(sample)).long()
        for cut, digit in zip(self._cuts, digits, strict=True):
            key = torch.where(places < 0, 0, places * BASE + digit + 1)
            counts = torch.bincount(key, minlength=len(codes) * BASE)
            counts[0] = 0
            frequent = (counts >= (1 if cut.feature is None else least)).nonzero()[:, 0]
            codes = (codes[frequent // BASE] * BASE + frequent % BASE) % MODULUS
            place_of = torch.full_like(counts, -1)
            place_of[frequent] = torch.arange(len(codes))
            places = place_of[key]
            is_cut = places >= 0
            finest[is_cut] = codes[places[is_cut]]
            if cut.feature is not None and not grouped:
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
    many = any(_has_quintiles(sample.shared(_by_feature, j)) for j in held)
    if held and not many:
        uncut = sample.shared(Cells, (), held).uncut_shares
        many = max(uncut.values(), default=0.0) > MOST_UNCUT
    return sample.shared(Cells, acted if many else (), held)


def _has_quintiles(cut: Cut) -> bool:
    return len(cut.at) == QUINTILES - 1


def _by_feature(sample: Sample, j: int) -> Cut:
    """Cut feature j; of many categories the eleven most frequent are kept apart."""
    feature = sample.encoder.schema.features[j]
    labels = partial(_of_labels, count=len(feature.categories))
    return feature.either(_of_amounts, labels, sample.rows[:, j], j)


def _of_labels(column: Tensor, j: int, count: int) -> Cut:
    counts = torch.bincount(column.long(), minlength=count)
    rank = counts.argsort(descending=True, stable=True).argsort().clamp_max(FEW_VALUES - 1)
    # A category that no training row has is in none of the cells that the feature cuts.
    rank = torch.nn.functional.pad(rank.double(), (0, 1), value=torch.inf)
    return Cut(partial(_ranked, rank, j), torch.arange(FEW_VALUES).double() + 0.5, j)


def _of_amounts(column: Tensor, j: int) -> Cut:
    values = value_counts(column)[0]
    at = (values[1:] + values[:-1]) / 2.0
    if len(values) > FEW_VALUES:
        at = sorted_values(column)[torch.arange(1, QUINTILES) * len(column) // QUINTILES].unique()
    return Cut(itemgetter((slice(None), j)), at, j)


def _ranked(rank: Tensor, j: int, rows: Tensor) -> Tensor:
    """(n,) the ranks of the categories of rows; the last one of those without training rows."""
    return rank[rows[:, j].clamp(0, len(rank) - 1).long()]


def _by_expectation(sample: Sample, acted: Members, held: Members) -> tuple[Cut, Tensor]:
    """Up to ten groups of equal size by E[x_S | held], which is (n,)."""
    balance = sample.shared(Balance, acted, held)
    expected = balance.score(sample.rows)
    ordered = sorted_values(expected[:: -(-len(sample) // ROWS)])
    count = max(min(GROUPS, len(sample) // GROUP_ROWS), 1)
    wanted = ordered[torch.arange(1, count) * len(ordered) // count]
    # Middles of gaps, so that rounding moves no row: many rows may have equal expectations.
    gap = EQUAL * (ordered[-1] - ordered[0])
    above = torch.searchsorted(ordered, wanted - gap)
    above = above[above > 0].unique()
    return Cut(balance.score, (ordered[above - 1] + ordered[above]) / 2.0, None), expected
