"""Terms (step 6): the columns of features, on which others are regressed."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.data.kinds.labels import NEW
from dear_plugin.data.special_values import amounts_of, known
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.values import sorted_values

KINKS, WINSOR = 6, 0.005
# Outer kinks, as shares of the rows beyond them, and the least rows there.
OUTER, OUTER_ROWS = (0.02, 0.06), 60
# Beyond the winsorised range, lines go on for this part of it: nothing shows how far they would.
BEYOND = 0.5
LEAST_DEVIATION = 1e-9


class Term(NamedTuple):
    """What makes the columns of some features.

    Attributes:
        shift: (q,) double, what is subtracted from a value in each column: 0 and kinks; of a
            category its values.
        least: (q,) the least difference kept in each column of a number: -infinity, so that the
            value itself is kept, and 0 for each kink; NaN in those of a category.
        outer: (q,) bool, the outer kinks.
        ends: (2, w) the winsorised ranges of numbers.
        mean: (w,) what replaces special levels; NaN where a number has none.
    """

    shift: Tensor = torch.empty(0).double()
    least: Tensor = torch.empty(0).double()
    outer: Tensor = torch.empty(0).bool()
    ends: Tensor = torch.empty(2, 0).double()
    mean: Tensor = torch.empty(0).double()

    @classmethod
    def of(cls, sample: Sample, j: int) -> Term:
        """That of feature j; a category has an indicator for each label."""
        feature = sample.encoder.schema.features[j]
        return feature.either(
            cls._of_amounts, cls._of_labels, sample.scaled(j), feature.label_values
        )

    @classmethod
    def _of_labels(cls, _: Tensor, labels: Tensor) -> Term:
        none = torch.tensor([math.nan]).double()
        ends = torch.tensor([[-math.inf], [math.inf]]).double()
        least = none.expand(len(labels))
        return cls(labels.double(), least, torch.zeros_like(labels).bool(), ends, none)

    @classmethod
    def _of_amounts(cls, column: Tensor, _: Tensor) -> Term:
        """That of a number, of which training rows have scaled values, (n,).

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
        shift = torch.nn.functional.pad(kinks, (1, 0))
        least = torch.zeros_like(shift).index_fill(0, torch.tensor([0]), -math.inf)
        outer = ~torch.isin(shift, inner) & (least == 0.0)
        ends = ordinary[[cut, n - 1 - cut]][:, None]
        return cls(shift, least, outer, ends, torch.tensor([special]).double())


class Terms:
    """The columns phi of w features, on which smooth features are regressed.

    Values are scaled here, and in all regressions: numbers are shares of their range.

    A number has its value and its excess over each kink: a line with bends. A category has an
    indicator for each of its values.

    Args:
        sample: the training rows.
        features: the positions of the features.

    Attributes:
        of: (q,) the place of the feature of each column.
        straight: (q,) bool, the columns without kinks.
        outer: (q,) bool, those of outer kinks.
        ends: (2, w) the winsorised ranges of numbers.
    """

    def __init__(self, sample: Sample, features: Members) -> None:
        each = [sample.shared(Term.of, j) for j in features]
        counts = torch.tensor([len(term.shift) for term in each]).long()
        self.of = torch.arange(len(each)).repeat_interleave(counts)
        joined = Term(*(torch.cat(parts, -1) for parts in zip(Term(), *each, strict=True)))
        self._shift, self._least, self.outer, self.ends, self._mean = joined
        self.straight, self._special = ~self._least.isfinite(), ~self._mean.isnan()
        self._labels = self._least.isnan().nonzero()[:, 0]
        self._share = (1.0 / counts.double())[self.of[self._labels]]
        more = BEYOND * (self.ends[1] - self.ends[0])
        self._most = self.ends[0] - more, self.ends[1] + more

    def __call__(self, values: Tensor) -> Tensor:
        """(..., q) double, the columns of scaled values, (..., w)."""
        own = self._ordinary(values)
        out = own.index_select(-1, self.of).sub_(self._shift)
        torch.maximum(out, self._least, out=out)
        if len(at := self._labels):
            own = own.index_select(-1, self.of[at])
            is_own = (own == self._shift[at]).to(out)
            # One that no training row has is like their mean.
            out.index_copy_(-1, at, torch.where(own < NEW, is_own, self._share))
        return out

    def factors(self, values: Tensor, weights: Tensor) -> Tensor:
        """(m, w) numbers, without special levels, or the weights, (q,), of categories."""
        out, at = self._ordinary(values), self._labels
        if len(at):
            own = self(values).index_select(1, at) * weights[at]
            out = out.index_fill(1, self.of[at], 0.0).index_add(1, self.of[at], own)
        return out

    def _ordinary(self, values: Tensor) -> Tensor:
        if bool(self._special.any()):
            values = torch.where(known(values) | ~self._special, values, self._mean)
        return values.clamp(*self._most)


def standardised(sample: Sample, features: Members, rows: Tensor) -> Tensor:
    """(m, q) straight columns of features of scaled rows, (m, p); one of 0 if there are none."""
    if not features:
        return rows.new_zeros(len(rows), 1)
    terms = sample.shared(Terms, features)
    found = terms(rows[:, features])[:, terms.straight]
    return (found - found.mean(0)) / found.std(0, correction=0).clamp_min(LEAST_DEVIATION)


def winsorised(sample: Sample) -> Tensor:
    """(n, p) scaled training rows with the outer 0.5 % of each number on either side clamped."""
    ends = Terms(sample, tuple(range(sample.encoder.p))).ends
    rows = sample.encoder.scaled(sample.rows)
    return torch.where(known(rows), rows.clamp(*ends), rows)
