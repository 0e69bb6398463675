"""Terms (step 6): the columns of one feature, on which others are regressed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.kinds.labels import NEW
from dear_plugin.data.special_values import amounts_of, known
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.values import sorted_values

KINKS, WINSOR = 6, 0.005
# Outer kinks, as shares of the rows beyond them, and the least rows there.
OUTER, OUTER_ROWS = (0.02, 0.06), 60
# Beyond the winsorised range, lines go on for this part of it: nothing shows how far they would.
BEYOND = 0.5
LEAST_DEVIATION = 1e-9


@dataclass(frozen=True)
class Terms:
    """The columns phi of one feature, on which smooth features are regressed.

    Values are scaled here, and in all regressions: numbers are shares of their range.

    A number has its value and its excess over each kink: a line with bends. A category has an
    indicator for each of its values.

    Attributes:
        shift: (q,) what is subtracted from a value in each column: 0 and kinks, or categories.
        least: (q,) the least difference kept in each column of a number: -infinity, so that the
            value itself is kept, and 0 for each kink; empty for a category.
        ends: (2,) the winsorised range of a number.
        mean: what replaces special levels; NaN where a number has none.
        outer: (q,) bool, the outer kinks.
    """

    shift: Tensor
    least: Tensor
    outer: Tensor
    ends: tuple[float, float] = (-math.inf, math.inf)
    mean: float = math.nan

    @classmethod
    def of(cls, sample: Sample, j: int) -> Terms:
        """The columns of feature j; of a category an indicator for each label."""
        feature = sample.encoder.schema.features[j]
        return feature.either(
            cls._of_amounts, cls._of_labels, sample.scaled(j), feature.label_values
        )

    @classmethod
    def _of_labels(cls, _: Tensor, labels: Tensor) -> Terms:
        return cls(labels, torch.empty(0), torch.zeros(len(labels)).bool())

    @classmethod
    def _of_amounts(cls, column: Tensor, _: Tensor) -> Terms:
        """The columns of a number, of which training rows have scaled values, (n,).

        The kinks of a number are the six values that cut its sorted training values, without
        special levels, into seven equal parts: of 0, 1, ..., 69 they are 10, 20, ..., 60, so the
        columns of the value 25 are 25, 15, 5, 0, 0, 0, 0. Further kinks are beyond 2 and 6 % of
        enough rows on either side. Equal kinks count once, and those at
        either end, where the slope would have nothing on one side, are left out: of the values 0
        (50 rows), 1 (10) and 2 (10) only 1 remains, so the columns of 2 are 2 and 1.
        """
        ordinary = sorted_values(amounts_of(column))
        n, cut = len(ordinary), int(WINSOR * (len(ordinary) - 1))
        inner = ordinary[[(n * (i + 1)) // (KINKS + 1) for i in range(KINKS)]].unique()
        beyond = [int(share * n) for share in OUTER if share * n >= OUTER_ROWS]
        kinks = torch.cat([inner, ordinary[beyond + [n - 1 - i for i in beyond]]]).unique()
        kinks = kinks[(kinks > ordinary[0]) & (kinks < ordinary[-1])]
        special = float(ordinary.mean()) if bool((~known(column)).any()) else math.nan
        ends = float(ordinary[cut]), float(ordinary[n - 1 - cut])
        shift = torch.nn.functional.pad(kinks, (1, 0))
        least = torch.zeros_like(shift).index_fill(0, torch.tensor([0]), -math.inf)
        return cls(shift, least, ~torch.isin(shift, inner) & (least == 0.0), ends, special)

    def __call__(self, column: Tensor) -> Tensor:
        """(..., q) the columns of values, (...)."""
        if not self.least.numel():
            own = (column[..., None] == self.shift).to(column.dtype)
            # One that no training row has is like their mean.
            return torch.where((column < NEW)[..., None], own, 1.0 / len(self.shift))
        column = self._ordinary(column)
        return torch.maximum(column[..., None] - self.shift, self.least).to(column.dtype)

    def _ordinary(self, column: Tensor) -> Tensor:
        if not math.isnan(self.mean):
            column = torch.where(known(column), column, self.mean)
        low, high = self.ends
        more = BEYOND * (high - low)
        return column.clamp(low - more, high + more)

    def factor(self, column: Tensor, weights: Tensor) -> Tensor:
        """(m,) a number, without special levels, or the weights of categories."""
        return self._ordinary(column) if self.least.numel() else self(column) @ weights

    @property
    def straight(self) -> Tensor:
        """(q,) bool, the columns without kinks."""
        return ~self.least.isfinite() if self.least.numel() else torch.ones_like(self.shift).bool()


def phi(terms: Sequence[Terms], values: Tensor) -> Tensor:
    """(..., q) the columns of features whose values are (..., w)."""
    if len(terms) == 1:
        return terms[0](values[..., 0])
    parts = [each(column) for each, column in zip(terms, values.unbind(-1), strict=True)]
    return torch.cat([values[..., :0], *parts], -1)


def straight(terms: Sequence[Terms]) -> Tensor:
    """(q,) bool, the columns of features that have no kinks."""
    return torch.cat([each.straight for each in terms])


def standardised(sample: Sample, features: Sequence[int], rows: Tensor) -> Tensor:
    """(m, q) straight columns of features of scaled rows, (m, p); one of 0 if there are none."""
    if not features:
        return rows.new_zeros(len(rows), 1)
    terms = [sample.shared(Terms.of, j) for j in features]
    found = phi(terms, rows[:, list(features)])[:, straight(terms)]
    return (found - found.mean(0)) / found.std(0, correction=0).clamp_min(LEAST_DEVIATION)


def outer(terms: Sequence[Terms]) -> Tensor:
    """(q,) bool, the columns of features that have outer kinks."""
    return torch.cat([each.outer for each in terms])


def winsorised(sample: Sample) -> Tensor:
    """(n, p) scaled training rows with the outer 0.5 % of each number on either side clamped."""
    ends = [sample.shared(Terms.of, j).ends for j in range(sample.encoder.p)]
    rows = sample.encoder.scaled(sample.rows)
    clamped = rows.clamp(*torch.tensor(ends, dtype=torch.float64).T)
    return torch.where(known(rows), clamped, rows)
