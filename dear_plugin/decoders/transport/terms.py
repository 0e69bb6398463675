"""Terms (step 6): the columns phi of a feature, on which smooth features are regressed.

A number has its value and its excess over kinks at quantiles, a category an indicator each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special, without_special
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.columns import sorted_values

KINKS, WINSOR = 6, 0.005


@dataclass(frozen=True)
class Terms:
    """The columns phi of one feature: a number and its excess over kinks, or indicators.

    Attributes:
        shift: (q,) what is subtracted from a value in each column: 0 and kinks, or categories.
        least: (q,) the least difference kept in each column of a number; empty for a category.
        ends: (2,) the winsorised range of a number.
        mean: what replaces special levels; NaN where a number has none.
    """

    shift: Tensor
    least: Tensor
    ends: tuple[float, float] = (-math.inf, math.inf)
    mean: float = math.nan

    @classmethod
    def of(cls, sample: Sample, j: int) -> Terms:
        """The columns of feature j."""
        feature, column = sample.encoder.schema.features[j], sample.rows[:, j]
        if feature.kind is not Kind.NUMERIC:
            return cls(torch.arange(max(len(feature.categories), 1)).double(), torch.empty(0))
        ordinary = sorted_values(without_special(column))
        n, cut = len(ordinary), int(WINSOR * (len(ordinary) - 1))
        kinks = ordinary[[(n * (i + 1)) // (KINKS + 1) for i in range(KINKS)]].unique()
        kinks = kinks[(kinks > ordinary[0]) & (kinks < ordinary[-1])].double()
        special = float(ordinary.double().mean()) if bool(is_special(column).any()) else math.nan
        ends = float(ordinary[cut]), float(ordinary[n - 1 - cut])
        least = torch.cat([torch.tensor([-math.inf]), torch.zeros(len(kinks))]).double()
        return cls(torch.cat([torch.zeros(1).double(), kinks]), least, ends, special)

    def __call__(self, column: Tensor) -> Tensor:
        """(..., q) the columns of values, (...)."""
        if not len(self.least):
            return (column[..., None] == self.shift).to(column.dtype)
        if not math.isnan(self.mean):
            column = torch.where(is_special(column), self.mean, column)
        return torch.maximum(column[..., None] - self.shift, self.least).to(column.dtype)

    @property
    def straight(self) -> Tensor:
        """(q,) bool, the columns without kinks."""
        number = torch.arange(len(self.shift)) < 1
        return number if len(self.least) else torch.ones(len(self.shift), dtype=torch.bool)

    def winsorised(self, column: Tensor) -> Tensor:
        """Training values with the outer 0.5 % of a number on either side clamped."""
        return torch.where(is_special(column), column, column.clamp(*self.ends))


def terms_of(sample: Sample, j: int) -> Terms:
    """The terms of feature j, computed once for a sample."""
    return sample.shared(lambda each: Terms.of(each, j), ("terms", j))


def phi(terms: Sequence[Terms], values: Tensor) -> Tensor:
    """(..., q) the columns of features whose values are (..., w)."""
    if len(terms) == 1:
        return terms[0](values[..., 0])
    parts = [each(column) for each, column in zip(terms, values.unbind(-1), strict=True)]
    return torch.cat([values[..., :0], *parts], -1)


def winsorised(sample: Sample) -> Tensor:
    """(n, p) the training rows with the outer 0.5 % of each number on either side clamped."""
    columns = enumerate(sample.rows.unbind(1))
    return torch.stack([terms_of(sample, j).winsorised(column) for j, column in columns], 1)
