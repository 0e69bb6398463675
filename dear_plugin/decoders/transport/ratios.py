"""Ratios (step 5): the distribution of a counted feature in every cell and at every node.

`P(value | cell, node) = base(cell, value) ratio(node, value) / Z`: the ratio is of x_S and shared
by all cells, the base makes the mean over the rows of a cell that of the cell. They are fitted in
turn (iterative proportional fitting), from the rows of each cell and bin, of each cell and value
and of each bin and value. A value that a cell has never seen stays impossible there.

The values are split in two repeatedly; at each split, the share of rows on its left varies along
x_S as far as the rows show (see `shrinkage`), so that rare values do not follow their few rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.decoders.transport.shrinkage import LEAST, Level, shrunk

ROUNDS = 3
# Values are divided into so many groups at most; within a group all have the same ratio.
MAX_GROUPS = 32


def splits_of(size: Tensor, order: Tensor) -> Tensor:
    """(2, q, t) binary splits of values: 1 where a value is on the left, or right, side.

    The part with most rows is split first, so that its rows are halved.

    Args:
        size: (t,) the rows of each value.
        order: (t,) the values in order.
    """
    until, parts, splits = [0.0, *size[order].cumsum(0).tolist()], [(0, len(order))], []
    while len(parts) < min(MAX_GROUPS, len(order)):
        rows = [until[end] - until[start] if end - start > 1 else -1.0 for start, end in parts]
        start, end = parts.pop(rows.index(max(rows)))
        half = (until[start] + until[end]) / 2.0
        middle = min(range(start + 1, end), key=lambda i: abs(until[i] - half))
        splits.append((start, middle, end))
        parts += [(start, middle), (middle, end)]
    start_of, middle_of, end_of = torch.tensor(splits).view(-1, 3).T[..., None]
    place = order.argsort()
    left, right = (
        (place >= start_of) & (place < middle_of),
        (place >= middle_of) & (place < end_of),
    )
    return torch.stack([left, right]).double()


def fit_ratios(
    rows: Tensor,
    cells: list[Tensor],
    counts: list[Tensor],
    levels: list[Level],
    splits: list[Tensor],
    *,
    drawn: bool,
) -> tuple[list[Tensor], list[Tensor]]:
    """The bases, (r, k, t), and the ratios in bins, (r, b, t), of f features in r samples.

    Args:
        rows: (r, k, b) the rows of each cell and bin.
        cells: f tensors, (r, k, t), the rows of each cell and value.
        counts: f tensors, (r, b, t), the rows of each bin and value.
        levels: the divisions of the bins.
        splits: f tensors, of the values.
        drawn: whether these are bootstrap samples.
    """
    wanted = [_cell_shares(each) * rows.sum(2, keepdim=True) for each in cells]
    base, ratio = [_shares(each) for each in wanted], [torch.ones_like(each) for each in counts]
    if not cells:
        return base, ratio
    observed, concentration = _by_side(counts, splits), None
    for _ in range(ROUNDS if rows.shape[1] > 1 else 1):
        factors = zip(base, ratio, strict=True)
        hoped = [_weights(rows, b, q).transpose(1, 2) @ b for b, q in factors]
        expected = _by_side(hoped, splits)
        # The rows that reach a split are as they are: only the share of each side is estimated.
        expected = expected * (observed.sum(0) / expected.sum(0).clamp_min(LEAST))
        found = shrunk(observed, expected, levels, drawn=drawn, concentration=concentration)
        ratio, concentration = _by_value(found.ratio, splits), found.concentration
        base = [_rescaled(rows, *each) for each in zip(wanted, base, ratio, strict=True)]
    return base, ratio


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
