"""Ratios (step 5): the distribution of a counted feature in every cell and at every node.

`P(value | cell, node) = base(cell, value) ratio(node, value) / Z`: the ratio is of x_S and shared
by all cells, the base makes the mean over the rows of a cell that of the cell. They are fitted in
turn (iterative proportional fitting), from the rows of each cell and bin, of each cell and value
and of each bin and value. A value that a cell has never seen stays impossible there.

The values are split in two repeatedly; at each split, the share of rows on its left varies along
x_S as far as the rows show (see `shrinkage`), so that rare values do not follow their few rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.shrinkage import LEAST, Level, shrunk, strength_of

ROUNDS = 3
# Values are divided into so many groups at most; within a group all have the same ratio.
MAX_GROUPS = 32


@dataclass(frozen=True)
class Splits:
    """Binary splits of the values of a feature.

    Attributes:
        sides: (t, q, 2) 1 where a value is on the left or right side of a split.
    """

    sides: Tensor

    @classmethod
    def of(cls, size: Tensor, order: Tensor) -> Splits:
        """Split values repeatedly, the part with most rows first, so that rows are halved.

        Args:
            size: (t,) the rows of each value.
            order: (t,) the values in order.
        """
        parts, sides = [order], []
        while len(parts) < min(MAX_GROUPS, len(order)):
            some = [size[p].sum() if len(p) > 1 else torch.tensor(-1.0) for p in parts]
            part = parts.pop(int(torch.stack(some).argmax()))
            middle = size[part].cumsum(0) - size[part].sum() / 2.0
            at = min(max(int(middle.abs().argmin()) + 1, 1), len(part) - 1)
            pair = part[:at], part[at:]
            sides.append(torch.stack([torch.isin(torch.arange(len(size)), p) for p in pair], 1))
            parts += pair
        empty = torch.zeros(len(size), 0, 2).double()
        return cls(torch.stack(sides, 1).double() if sides else empty)

    def count(self, rows: Tensor) -> Tensor:
        """(..., q, b, 2) the rows on both sides of each split, from (..., b, t) by value."""
        return torch.einsum("...bt,tqg->...qbg", rows, self.sides)

    def ratios(self, of_sides: Tensor) -> Tensor:
        """(..., b, t) the ratios of values: the products along their splits, (..., q, b, 2)."""
        return torch.einsum("...qbg,tqg->...bt", of_sides.clamp_min(LEAST).log(), self.sides).exp()


def fit_ratios(
    rows: Tensor,
    cells: Tensor,
    counts: Tensor,
    levels: list[Level],
    splits: Splits,
    *,
    drawn: bool,
) -> tuple[Tensor, Tensor]:
    """The base, (r, k, t), and the ratios in bins, (r, b, t), of one feature in r samples.

    Args:
        rows: (r, k, b) the rows of each cell and bin.
        cells: (r, k, t) the rows of each cell and value.
        counts: (r, b, t) the rows of each bin and value.
        levels: the divisions of the bins.
        splits: of the values.
        drawn: whether these are bootstrap samples.
    """
    wanted = _cell_shares(cells) * rows.sum(2, keepdim=True)
    base, ratio = wanted / wanted.sum(2, keepdim=True).clamp_min(LEAST), torch.ones_like(counts)
    observed, concentration = splits.count(counts), None
    for _ in range(ROUNDS if rows.shape[1] > 1 else 1):
        expected = splits.count(_weights(rows, base, ratio).transpose(1, 2) @ base)
        # The rows that reach a split are as they are: only the share of each side is estimated.
        reached = observed.sum(-1, keepdim=True)
        expected = expected * reached / expected.sum(-1, keepdim=True).clamp_min(LEAST)
        if concentration is None:
            concentration = strength_of(observed, expected, levels, drawn=drawn).concentration
        ratio = splits.ratios(shrunk(observed, expected, levels, concentration))
        reach = _weights(rows, base, ratio) @ ratio
        base = torch.where(wanted > 0, wanted / reach.clamp_min(LEAST), 0.0)
        base = base / base.sum(2, keepdim=True).clamp_min(LEAST)
    return base, ratio


def _weights(rows: Tensor, base: Tensor, ratio: Tensor) -> Tensor:
    """(r, k, b) rows over the normalisation Z of their cell and bin."""
    return rows / (base @ ratio.transpose(1, 2)).clamp_min(LEAST)


def _cell_shares(cells: Tensor) -> Tensor:
    """(r, k, t) the shares of values in cells, shrunk to those of all rows by moments."""
    if cells.shape[1] == 1:
        return cells / cells.sum(2, keepdim=True).clamp_min(LEAST)
    n, total = cells.sum(2, keepdim=True), cells.sum((1, 2))[:, None, None].clamp_min(LEAST)
    share = cells.sum(1, keepdim=True) / total
    hoped = n * share
    terms = torch.where(hoped >= 5.0, (cells - hoped).square() / hoped.clamp_min(LEAST), 0.0)
    unit = torch.where(hoped >= 5.0, (1.0 - n / total) * (1.0 - share), 0.0)
    excess = (terms - unit).sum((1, 2)) / (n * unit).sum((1, 2)).clamp_min(LEAST)
    concentration = (1.0 / excess.clamp_min(LEAST) - 1.0).clamp_min(0.0)[:, None, None]
    own = (cells + concentration * share) / (n + concentration).clamp_min(LEAST)
    # A value that a cell has never seen stays impossible there.
    return torch.where(cells > 0, own, 0.0)
