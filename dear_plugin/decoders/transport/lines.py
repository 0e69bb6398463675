"""Lines (step 6): locations and scales of smooth features by least squares on winsorised values.

A smooth feature moves by the change of its location and keeps its residual, rescaled:
`x_j' = x_j + (phi(a) - phi(x_S)) beta + v_j (exp((phi(a) - phi(x_S)) gamma) - 1)`. phi has the
values of x_S and their excess over kinks at quantiles, or indicators of categories; the held
features' columns are regressed on at the same time. Of three nested models (no slope, straight,
bent) the largest is taken that fits significantly better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special, without_special
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.columns import sorted_values
from dear_plugin.decoders.transport.links import ERROR

KINKS, WINSOR, RIDGE = 6, 0.005, 1e-9
# Blocks of rows that bootstrap samples are drawn from.
BLOCKS = 64
# Entries of the columns that are computed at a time: 32 MiB.
ENTRIES = 1 << 22
# A linear copy has at most this share of its variance left.
COPY = 1e-10
# The largest logarithm of a scale, and the smallest residual.
MOST_SCALE, SMALLEST = 1.5, 1e-9


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


@dataclass(frozen=True)
class Lines:
    """The locations of smooth features in r samples.

    Attributes:
        features: (f,) their positions.
        terms: of each feature of S.
        held: the held features, and
        beside: their terms.
        level: (r, 1 + h, f) a constant and the weights of the held features' columns.
        slope: (r, q, f) beta.
        scale: (q, f) gamma, of the sample itself.
    """

    features: Tensor
    terms: tuple[Terms, ...]
    held: list[int]
    beside: tuple[Terms, ...]
    level: Tensor
    slope: Tensor
    scale: Tensor

    def residual(self, x: Tensor, own: Tensor, draws: Tensor) -> Tensor:
        """(r, m, f) what the locations of r samples, (r,), leave of rows.

        Args:
            x: (m, p) the rows.
            own: (m, w) their x_S.
            draws: (r,) the samples.
        """
        columns = torch.cat([_phi(self.beside, x[:, self.held]), _phi(self.terms, own)], 1)
        weights = torch.cat([self.level[:, 1:], self.slope], 1)[draws]
        return x.index_select(1, self.features) - columns @ weights - self.level[draws, :1]

    def move(self, x: Tensor, v: Tensor, own: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(r, m, c, f) the values of the features when x_S changes.

        Args:
            x: (m, p) the rows.
            v: (r, m, f) their residuals.
            own: (m, w) their x_S.
            values: (m, c, w) the new ones.
            draws: (r,) the samples.
        """
        change = _phi(self.terms, values) - _phi(self.terms, own)[:, None]
        out = (change @ self.slope[draws, None]).add_(x[:, None, self.features])
        if self._scaled:
            scale = (change @ self.scale).clamp_(-MOST_SCALE, MOST_SCALE)
            out += v[:, :, None] * scale.expm1_()
        return out

    @lazy
    def _scaled(self) -> bool:
        return bool((self.scale != 0.0).any())


class LineFit:
    """Least squares of some features on x_S and held features, for any weights of the rows.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features.
        features: (f,) the features to fit.
        tested: how many features share the error rate.
    """

    def __init__(
        self,
        sample: Sample,
        acted: Members,
        held: Members,
        features: Tensor,
        *,
        tested: int,
    ) -> None:
        self.features, self._tested = features, tested
        self._acted, self._held = list(acted), list(held)
        self.terms = tuple(_terms(sample, j) for j in self._acted)
        self._beside = tuple(_terms(sample, j) for j in self._held)
        self._rows = sample.shared(_winsorised)
        # Centred columns keep the precision of their squares; about the mean is enough.
        self._centre = torch.zeros(0)
        self._centre = self._columns(self._rows[::BLOCKS]).mean(0)

    def lines(self, weights: Tensor, point: Lines | None = None) -> Lines:
        """The locations in r samples, given the weights of blocks of rows.

        Args:
            weights: (r, 64), or (r, 1) for all of them.
            point: the locations of the sample itself, whose slopes of zero and scales are kept.
        """
        own, f = self._own, len(self.features)
        if not f:
            return self._lines(self.features, torch.zeros(len(weights), len(self._centre), 0))
        products, squares = self._sums
        weights = weights.expand(-1, BLOCKS)
        gram = (weights @ products.flatten(1)).view(-1, *products.shape[1:])
        square = weights @ squares
        fit = self._selected(gram, square, drawn=point is not None)
        fit[:, 0] += self._centre[-f:] - (self._centre[1:-f, None] * fit[:, 1:]).sum(1)
        if point is not None:
            moves = torch.isin(self.features, point.features)
            still = (point.slope == 0.0).all(1, keepdim=True)
            drawn = self._lines(point.features, fit[..., moves], point.scale)
            return replace(drawn, slope=drawn.slope.masked_fill(still, 0.0))
        scale = self._scales(gram, square).float()
        moves = (fit[0, 1 : 1 + own] != 0.0).any(0) | (scale != 0.0).any(0)
        return self._lines(self.features[moves], fit[..., moves], scale[..., moves])

    def _lines(self, features: Tensor, fit: Tensor, scale: Tensor | None = None) -> Lines:
        """The locations with coefficients (r, 1 + q + h, f)."""
        own, fit = self._own, fit.float()
        level = torch.cat([fit[:, :1], fit[:, 1 + own :]], 1)
        slope = fit[:, 1 : 1 + own]
        scale = torch.zeros_like(slope[0]) if scale is None else scale
        return Lines(features, self.terms, self._held, self._beside, level, slope, scale)

    @property
    def _own(self) -> int:
        """The number of columns of x_S (q)."""
        return len(self._straight)

    @lazy
    def _straight(self) -> Tensor:
        """(q,) bool, the columns of x_S without kinks."""
        return torch.cat([each.straight for each in self.terms])

    @lazy
    def _sums(self) -> tuple[Tensor, Tensor]:
        """The sums of products, (64, q, q + f) and (64, f), see `_products`."""
        used = len(self._centre) - len(self.features)
        return _total(_products(columns, used) for columns in self._parts)

    @property
    def _parts(self) -> Iterator[Tensor]:
        """The columns of the training rows, in parts of a multiple of 64 rows."""
        return map(
            self._columns, self._rows.split(ENTRIES // len(self._centre) // BLOCKS * BLOCKS)
        )

    def _columns(self, rows: Tensor) -> Tensor:
        """(m, q + f) a constant, x_S, held features and targets of training rows, (m, p)."""
        rows = rows.double()
        own = _phi(self.terms, rows[:, self._acted])
        beside = _phi(self._beside, rows[:, self._held])
        out = torch.cat([rows.new_ones(len(rows), 1), own, beside, rows[:, self.features]], 1)
        if len(self._centre):
            out[:, 1:] -= self._centre[1:]
        return out

    def _selected(self, gram: Tensor, square: Tensor, *, drawn: bool) -> Tensor:
        """(r, q, f) the coefficients of the largest model that fits significantly better.

        Args:
            gram: (r, q, q + f) see `_products`.
            square: (r, f) likewise.
            drawn: whether these are bootstrap samples, see `links`.
        """
        used, n = gram.shape[1], gram[:, :1, 0]
        constant = torch.ones(1, dtype=torch.bool)
        beside = torch.ones(used - 1 - self._own, dtype=torch.bool)
        none, every = torch.zeros_like(self._straight), torch.ones_like(self._straight)
        chosen, left = _solved(gram, torch.cat([constant, none, beside]), used, square)
        best = torch.zeros_like(left)
        for own in (self._straight, every):
            fit, rest = _solved(gram, torch.cat([constant, own, beside]), used, square)
            more = float(own.sum()) - best
            gain = n * (left / rest).log() - (2.0 * more if drawn else 0.0)
            better = gain > _bound(more, self._tested)
            chosen = torch.where(better[:, None], fit, chosen)
            left, best = torch.where(better, rest, left), torch.where(better, own.sum(), best)
        return chosen

    def _scales(self, gram: Tensor, square: Tensor) -> Tensor:
        """(q, f) gamma: the same regression of log |residual|, without held features."""
        used, own = gram.shape[1], 1 + self._own
        fit = self._selected(gram, square, drawn=False)[0]

        def _sizes(columns: Tensor) -> tuple[Tensor, Tensor]:
            left = (columns[:, used:] - columns[:, :used] @ fit).abs().clamp_min(SMALLEST)
            return _products(torch.cat([columns[:, :own], left.log()], 1), own)

        products, squares = _total(map(_sizes, self._parts))
        total = products.sum(0, keepdim=True), squares.sum(0, keepdim=True)
        return self._selected(*total, drawn=False)[0, 1:own]


def _solved(gram: Tensor, columns: Tensor, used: int, square: Tensor) -> tuple[Tensor, Tensor]:
    """The coefficients, (r, used, f), on some columns, and the sum of squares left, (r, f)."""
    some = columns.nonzero()[:, 0]
    left = gram[:, some][:, :, some]
    size = left.diagonal(dim1=1, dim2=2)
    # A bootstrap sample of very few rows may have none.
    left = left + torch.diag_embed(RIDGE * (size + gram[:, :1, 0]) + SMALLEST**2)
    right = gram[:, some, used:]
    fit = torch.linalg.solve(left, right)
    rest = square - (2.0 * right - gram[:, some][:, :, some] @ fit).mul(fit).sum(1)
    out = gram.new_zeros(len(gram), used, right.shape[2])
    return out.index_copy(1, some, fit), rest.maximum(square * COPY).clamp_min(1e-30)


def _bound(freedom: Tensor, tested: int) -> Tensor:
    """The least gain in twice the log-likelihood at an error rate of .001 over all features."""
    from scipy.stats import chi2

    bound = torch.from_numpy(chi2.isf(ERROR / max(tested, 1), freedom.clamp_min(1.0).numpy()))
    return torch.where(freedom > 0, bound, torch.inf)


def _terms(sample: Sample, j: int) -> Terms:
    """The columns of feature j, computed once for a sample."""
    return sample.shared(lambda each: Terms.of(each, j), ("terms", j))


def _phi(terms: Sequence[Terms], values: Tensor) -> Tensor:
    """(..., q) the columns of features whose values are (..., w)."""
    if len(terms) == 1:
        return terms[0](values[..., 0])
    parts = [each(column) for each, column in zip(terms, values.unbind(-1), strict=True)]
    return torch.cat([values[..., :0], *parts], -1)


def _winsorised(sample: Sample) -> Tensor:
    """(n, p) the training rows with the outer 0.5 % of each number on either side clamped."""
    columns = enumerate(sample.rows.unbind(1))
    return torch.stack([_terms(sample, j).winsorised(column) for j, column in columns], 1)


def _products(columns: Tensor, used: int) -> tuple[Tensor, Tensor]:
    """Of each block of rows: the first q columns times all, (64, q, q + f), and squares, (64, f).

    Args:
        columns: (m, q + f), row i in block i modulo 64.
        used: q.
    """
    padded = torch.nn.functional.pad(columns, (0, 0, 0, -len(columns) % BLOCKS))
    blocks = padded.view(-1, BLOCKS, columns.shape[1]).transpose(0, 1)
    return blocks[..., :used].transpose(1, 2) @ blocks, blocks[..., used:].square().sum(1)


def _total(parts: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The sums of pairs of tensors."""
    first, second = zip(*parts, strict=True)
    return torch.stack(first).sum(0), torch.stack(second).sum(0)
