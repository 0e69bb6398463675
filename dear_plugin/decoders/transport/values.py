"""Values (step 1): which features are counted and which are smooth, and the counted ones' values.

A feature is *counted* if it has categories, special levels or an atom (a value that 1 % of the
rows have): it is looked up in tables of observed values. A number without atoms is *smooth*.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.columns import equal_groups, heavy_values, representatives
from dear_plugin.decoders.transport.ratios import splits_of

MAX_VALUES = 128
# Groups of a feature's values in the tests of dependence.
GROUPS = 5
# Linear copies hold up to the rounding of scaled float32 values.
COPY_TOLERANCE, COPY_ROWS = 1e-5, 20


@dataclass(frozen=True)
class Values:
    """The values of all features, computed once for a sample.

    Attributes:
        levels: p tensors, (t,) the sorted values of each counted feature; empty for smooth ones.
        codes: (p, n) int64, the nearest of these values for every training row.
        groups: p tensors, (t,) int64, the group of each value; see `GROUPS`.
        splits: p tensors, the binary splits of the values, see `splits_of`.
        smooth: (p,) bool.
        blocks: (p,) bool, features of more than two categories, which have no order.
    """

    levels: list[Tensor]
    codes: Tensor
    groups: list[Tensor]
    splits: list[Tensor]
    smooth: Tensor
    blocks: Tensor

    @classmethod
    def of(cls, sample: Sample) -> Values:
        """The values of training rows."""
        rows, schema = sample.rows, sample.encoder.schema
        smooth = torch.tensor(
            [f.kind is Kind.NUMERIC and _is_smooth(c) for f, c in zip(schema, rows.T, strict=True)]
        )
        levels = [
            torch.empty(0)
            if smooth[j]
            else representatives(rows[:, j], MAX_VALUES)
            if f.kind is Kind.NUMERIC
            else torch.arange(max(len(f.categories), 1)).float()
            for j, f in enumerate(schema)
        ]
        codes = torch.stack([code(*pair) for pair in zip(levels, rows.T, strict=True)])
        blocks = sample.encoder.blocks
        sizes = [
            torch.bincount(c, minlength=len(v)).double()
            for c, v in zip(codes, levels, strict=True)
        ]
        orders = [
            size.argsort(descending=True, stable=True) if block else torch.arange(len(size))
            for size, block in zip(sizes, blocks, strict=True)
        ]
        groups = [_groups(*pair) for pair in zip(sizes, orders, strict=True)]
        splits = [splits_of(*pair) for pair in zip(sizes, orders, strict=True)]
        return cls(levels, codes, groups, splits, smooth, blocks)


def code(levels: Tensor, column: Tensor) -> Tensor:
    """(n,) int64, the index of the value nearest to each entry of a column, (n,); 0 if none."""
    if len(levels) < 2:
        return torch.zeros(len(column), dtype=torch.int64)
    return torch.searchsorted((levels[1:] + levels[:-1]) / 2.0, column.contiguous())


def _is_smooth(column: Tensor) -> bool:
    """Whether a numeric column, (n,), varies and has neither atoms nor special levels."""
    atoms = len(heavy_values(column)) > 0 or bool(is_special(column).any())
    return not atoms and bool((column != column[0]).any())


def _groups(size: Tensor, order: Tensor) -> Tensor:
    """(t,) the group of each value, by the rows of each, in order."""
    group = torch.empty(len(size), dtype=torch.int64)
    group[order] = equal_groups(size[order], GROUPS)
    return group


def linear_copies(sample: Sample) -> list[tuple[int, int]]:
    """The pairs (i, j) of numbers of which j is a linear function of i in every row."""
    if len(sample) < COPY_ROWS:
        return []
    number = torch.tensor([f.kind is Kind.NUMERIC for f in sample.encoder.schema])
    x = sample.rows.double()
    x -= x.mean(0)
    products = x.T @ x
    slope = products / products.diagonal()[:, None].clamp_min(1e-30)
    # Few pairs leave so little variance that the residuals' range can be as small.
    left = products.diagonal() - slope * products
    near = (left <= len(x) * COPY_TOLERANCE**2) & (x != x[0]).any(0) & number & number[:, None]
    copies = []
    for i, j in near.fill_diagonal_(False).nonzero().tolist():
        rest = x[:, j] - slope[i, j] * x[:, i]
        if float(rest.max() - rest.min()) <= COPY_TOLERANCE:
            copies.append((i, j))
    return copies
