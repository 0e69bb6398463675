"""Ratios (step 5): the distribution of a counted feature in every cell and at every node.

`P(value | cell, node) = base(cell, value) ratio(node, value) / Z`: the ratio is of x_S and shared
by all cells, the base makes the mean over the rows of a cell that of the cell (`fit_ratios`). They
are fitted in turn (iterative proportional fitting), from the rows of each cell and bin, of each
cell and value and of each bin and value. A value that a cell has never seen stays impossible
there, as do the values below a split that no row of a bin reaches; a cell without rows has the
shares of all rows. The values are split in two repeatedly (`values.splits_of`); at each split,
the share of rows on its left varies along x_S as far as the rows show, so that rare values do not
follow their few rows. How far they show it is for
`shrinkage` to say.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.axes import Axis, axis_of
from dear_plugin.decoders.transport.cells import cells_of
from dear_plugin.decoders.transport.shrinkage import pearson, shrunk
from dear_plugin.decoders.transport.trends import LEAST, Trend
from dear_plugin.decoders.transport.values import Values, complete

ROUNDS = 4

# The weights of the sample itself: one block.
WHOLE = torch.ones(1, 1, dtype=torch.float64)


class Counts:
    """The rows of r samples by cell of the held features, bin of x_S, and value.

    Args:
        sample: the training rows.
        acted: the features of the set.
        held: the features that are conditioned on.
        weights: (r, q) the weights of blocks of rows: row i is in block i modulo q.
        by: (n,) groups of rows, each a sample of its own in each of the r; -1: in none.
        axis: that of the set, where it is known: one of several features takes time.

    Attributes:
        axis: the bins.
        drawn: whether these are bootstrap samples.
    """

    def __init__(
        self,
        sample: Sample,
        acted: Members,
        held: Members,
        weights: Tensor,
        by: Tensor | None = None,
        axis: Axis | None = None,
    ) -> None:
        self._sample, self._set = sample, (acted, held)
        by = torch.zeros(len(sample)).long() if by is None else by
        groups = int(by.max()) + 1
        self._weights = torch.kron(weights, torch.eye(groups).double())
        block = torch.arange(len(sample)) % weights.shape[1] * groups + by
        some = (by >= 0) & sample.shared(complete, held)
        self._some = slice(None) if bool(some.all()) else some.nonzero()[:, 0]
        self._block = block[self._some]
        self.axis = axis_of(sample, acted) if axis is None else axis
        self.drawn, self._bins = len(weights) > 1, self.axis.mix.shape[1]

    def values(self, j: int) -> Values:
        """The values of feature j."""
        return self._sample.shared(Values.of, j)

    @lazy
    def rows(self) -> Tensor:
        """(r, k, b) of each cell and bin."""
        cells = cells_of(self._sample, *self._set)
        return self._crossed(cells.own, len(cells), self.axis.bins, self._bins)

    def of_cells(self, j: int) -> Tensor:
        """(r, k, t) of each cell and value of feature j."""
        cells, (levels, codes, *_) = cells_of(self._sample, *self._set), self.values(j)
        return self._crossed(cells.own, len(cells), codes, len(levels))

    def of_bins(self, j: int) -> Tensor:
        """(r, b, t) of each bin and value of feature j."""
        levels, codes, *_ = self.values(j)
        return self._crossed(self.axis.bins, self._bins, codes, len(levels))

    def _crossed(self, one: Tensor, a: int, other: Tensor, b: int) -> Tensor:
        """(r, a, b) the rows with each pair of codes: `one`, (n,), below a, `other` below b."""
        blocks = self._weights.shape[1]
        keys = (self._block * a + one[self._some]) * b + other[self._some]
        counts = torch.bincount(keys, minlength=blocks * a * b).view(blocks, -1)
        return (self._weights @ counts.double()).view(-1, a, b)


class Ratios(NamedTuple):
    """The factors of one feature in r samples.

    Attributes:
        base: (r, k, t).
        bins: (r, b, t), the ratios in bins.
        nodes: (r, g, t), the ratios at nodes.
    """

    base: Tensor
    bins: Tensor
    nodes: Tensor


def fit_ratios(counts: Counts, features: list[int]) -> dict[int, Ratios]:
    """The bases and the ratios of features."""
    if not features:
        return {}
    rows, axis = counts.rows, counts.axis
    bins, wanted = [counts.of_bins(j) for j in features], _wanted(counts, features)
    base, ratio = [_shares(each) for each in wanted], [torch.ones_like(each) for each in bins]
    values = [counts.values(j) for j in features]
    splits = [each.splits for each in values]
    observed, concentration = _by_side(bins, splits), None
    for _ in range(_rounds(rows)):
        factors = zip(base, ratio, strict=True)
        if_equal = [_weights(rows, b, q).transpose(1, 2) @ b for b, q in factors]
        known = zip(bins, if_equal, (each.place for each in values), strict=True)
        trends = [Trend.of(seen, own, axis.place, v, drawn=counts.drawn) for seen, own, v in known]
        expected = _by_side(
            [t.at(axis.place) * b for t, b in zip(trends, if_equal, strict=True)], splits
        )
        # The rows that reach a split are as they are: only the share of each side is estimated.
        expected = expected * (observed.sum(0) / expected.sum(0).clamp_min(LEAST))
        found = shrunk(
            observed, expected, axis.levels, drawn=counts.drawn, concentration=concentration
        )
        beyond, concentration = _by_value(found.ratio, splits), found.concentration
        ratio = [t.at(axis.place) * q for t, q in zip(trends, beyond, strict=True)]
        base = [_rescaled(rows, *each) for each in zip(wanted, base, ratio, strict=True)]
    # Beyond the outer bins a ratio may fall below 0; a cell keeps the only value that it has.
    mixed = [axis.mix @ each for each in beyond]
    mixed = [torch.where(each < 0.0, LEAST, each) for each in mixed]
    nodes = [t.at(axis.nodes) * q for t, q in zip(trends, mixed, strict=True)]
    return dict(zip(features, map(Ratios, base, ratio, nodes), strict=True))


def fit_bases(counts: Counts, features: list[int], ratio: list[Tensor]) -> list[Tensor]:
    """The bases, (r, k, t), of features whose ratios, (r, b, t), are known; nothing is shrunk."""
    wanted = [counts.of_cells(j) for j in features]
    base = [_shares(each) for each in wanted]
    for _ in range(_rounds(counts.rows)):
        base = [_rescaled(counts.rows, *each) for each in zip(wanted, base, ratio, strict=True)]
    return base


def _wanted(counts: Counts, features: list[int]) -> list[Tensor]:
    """F tensors, (r, k, t), the rows of each cell and value, shrunk to those of all rows."""
    # A cell without rows has the shares of all rows.
    total = counts.rows.sum(2, keepdim=True).clamp_min(1.0)
    return [_cell_shares(counts.of_cells(j)) * total for j in features]


def _rounds(rows: Tensor) -> int:
    return ROUNDS if rows.shape[1] > 1 else 1


def _by_side(counts: list[Tensor], splits: list[Tensor]) -> Tensor:
    """(2, r, q, b) the rows on both sides of the splits of all features."""
    pairs = zip(counts, splits, strict=True)
    return torch.cat([sides[:, None] @ rows.transpose(1, 2) for rows, sides in pairs], 2)


def _by_value(ratio: Tensor, splits: list[Tensor]) -> list[Tensor]:
    """F tensors, (r, b, t), the products of the ratios of sides, (2, r, q, b), along splits."""
    logs = ratio.clamp_min(LEAST).log().split([sides.shape[1] for sides in splits], 2)
    pairs = zip(logs, splits, strict=True)
    return [(each.transpose(2, 3) @ sides[:, None]).sum(0).exp() for each, sides in pairs]


def _rescaled(rows: Tensor, wanted: Tensor, base: Tensor, ratio: Tensor) -> Tensor:
    """(r, k, t) the base with which the mean over the rows of a cell is that of the cell."""
    reach = _weights(rows, base, ratio) @ ratio
    return _shares(torch.where(wanted > 0, wanted / reach.clamp_min(LEAST), 0.0))


def _weights(rows: Tensor, base: Tensor, ratio: Tensor) -> Tensor:
    """(r, k, b) rows over the normalisation Z of their cell and bin."""
    return rows / (base @ ratio.transpose(1, 2)).clamp_min(LEAST)


def _shares(x: Tensor) -> Tensor:
    """X over its sums along the last dimension."""
    return x / x.sum(-1, keepdim=True).clamp_min(LEAST)


def _cell_shares(cells: Tensor) -> Tensor:
    """(r, k, t) the shares of values in cells, shrunk to those of all rows by moments."""
    if cells.shape[1] == 1:
        return _shares(cells)
    n, share = cells.sum(2, keepdim=True), _shares(cells.sum(1, keepdim=True))
    statistic, freedom, _, growth = pearson(*(x.permute(2, 0, 1) for x in (cells, n * share)))
    excess = ((statistic - freedom) / growth).clamp_min(LEAST)
    strength = (1.0 / excess - 1.0).clamp_min(0.0)[:, None, None]
    own = (cells + strength * share) / (n + strength).clamp_min(LEAST)
    # A value that a cell with rows has never seen stays impossible there.
    own = torch.where(cells > 0, own, torch.where(n > 0, 0.0, share))
    # Of many rare values most are in no cell: those that are stand for them, not frequent ones.
    for _ in range(ROUNDS):
        if_equal = (n * own).sum(1, keepdim=True)
        own = _shares(own * (cells.sum(1, keepdim=True) / if_equal.clamp_min(LEAST)))
    return own
