"""Least squares (step 6): beta and gamma of smooth features, on winsorised training rows.

The features are regressed on the terms of x_S and of the held features at the same time. Of three
nested models (no slope, straight, bent) the largest is taken that fits significantly better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.lines import Lines, Terms, phi, winsorised
from dear_plugin.decoders.transport.links import ERROR
from dear_plugin.decoders.transport.values import linear_copies, smooth_features

RIDGE = 1e-9
# Blocks of rows that bootstrap samples are drawn from.
BLOCKS = 64
# Entries of the columns that are computed at a time: 32 MiB.
ENTRIES = 1 << 22
# A linear copy has at most this share of its variance left.
COPY = 1e-10
# The smallest residual.
SMALLEST = 1e-9


class Targets(NamedTuple):
    """What may be regressed in a sample: smooth features and linear copies.

    Attributes:
        features: (f,) their positions, ascending.
        values: (n, f) double, their winsorised values minus
        centre: (f,) their means.
    """

    features: Tensor
    values: Tensor
    centre: Tensor

    @classmethod
    def of(cls, sample: Sample) -> Targets:
        """Those of training rows."""
        smooth = sample.shared(smooth_features).clone()
        smooth[[j for _, j in sample.shared(linear_copies)]] = True
        values = sample.shared(winsorised)[:, smooth].double()
        centre = values.mean(0)
        values -= centre
        return cls(smooth.nonzero()[:, 0], values, centre)


class LeastSquares:
    """The regressions of all targets on x_S and held features, for any weights of the rows.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features.
        may_move: (p,) bool, the targets to keep.
        tested: how many features share the error rate.
    """

    def __init__(
        self, sample: Sample, acted: Members, held: Members, may_move: Tensor, *, tested: int
    ) -> None:
        self._at, self._tested = torch.tensor([*held, *acted]), tested
        self._terms = [sample.shared(Terms.of, j) for j in (*held, *acted)]
        self._rows, self._targets = sample.shared(winsorised), sample.shared(Targets.of)
        self._kept = may_move[self._targets.features]
        straight = torch.cat([each.straight for each in self._terms[len(held) :]])
        # Centred columns keep the precision of their squares; about the mean is enough.
        self._centre = torch.zeros(1).double()
        self._centre = self._columns(self._rows[::BLOCKS]).mean(0)
        self._centre[0] = 0.0
        self._own = len(straight)
        # The constant and the columns of held features are in every model of the location.
        self._always = torch.ones(len(self._centre) - self._own, dtype=torch.bool)
        self._models = [torch.zeros_like(straight), straight, torch.ones_like(straight)]

    def lines(self, weights: Tensor, point: Lines | None = None) -> Lines:
        """The locations in r samples, given the weights of blocks of rows.

        Args:
            weights: (r, 64), or (r, 1) for all of them.
            point: the locations of the sample itself, whose slopes of zero and scales are kept.
        """
        targets = self._targets
        fit = torch.zeros(len(weights), len(self._centre), len(targets.features)).double()
        scale = fit[0, : self._own]
        if bool(self._kept.any()):
            blocks = weights.expand(-1, BLOCKS)
            sums = [torch.tensordot(blocks, each, 1) for each in self._sums]
            fit = self._selected(sums, self._always, drawn=point is not None)
            scale = self._scales(fit[0]) if point is None else scale
        fit[:, 0] += targets.centre - (self._centre[:, None] * fit).sum(1)
        slope = fit[:, -self._own :]
        if point is None:
            moves = self._kept & ((slope[0] != 0.0).any(0) | (scale != 0.0).any(0))
            scale = scale[:, moves].float()
        else:
            moves, scale = torch.isin(targets.features, point.features), point.scale
            flat = (point.weights[:, -self._own :] == 0.0).all(1)
            slope[..., moves] = slope[..., moves].masked_fill(flat, 0.0)
        fit = fit[..., moves].float()
        return Lines(targets.features[moves], self._at, self._terms, fit, scale)

    @lazy
    def _sums(self) -> tuple[Tensor, ...]:
        """The sums in each block: products of columns, with targets, and of each target."""
        return _total(_products(*part) for part in self._parts)

    @property
    def _parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The columns and the targets of the training rows, in parts of a multiple of 64 rows."""
        width = len(self._centre) + len(self._targets.features)
        size = max(ENTRIES // width // BLOCKS, 1) * BLOCKS
        parts = self._rows.split(size), self._targets.values.split(size)
        return ((self._columns(rows), values) for rows, values in zip(*parts, strict=True))

    def _columns(self, rows: Tensor) -> Tensor:
        """(m, q) a constant, held features' and x_S' columns of training rows, centred."""
        columns = phi(self._terms, rows[:, self._at].double())
        return torch.nn.functional.pad(columns, (1, 0), value=1.0) - self._centre

    def _selected(self, sums: Sequence[Tensor], always: Tensor, *, drawn: bool) -> Tensor:
        """(r, q, f) the coefficients of the largest model that fits significantly better.

        Args:
            sums: (r, q, q) of products of columns, (r, q, f) of columns and targets, and (r, f) of
                targets.
            always: bool, which columns besides those of S are in all models.
            drawn: whether these are bootstrap samples, see `links`.
        """
        gram, right, square = sums
        n, (flat, *larger) = gram[:, :1, 0], [torch.cat([always, own]) for own in self._models]
        chosen, left = _solved(gram, right, square, flat)
        size = torch.full_like(left, float(flat.sum()))
        for model in larger:
            fit, rest = _solved(gram, right, square, model)
            more = float(model.sum()) - size
            gain = n * (left / rest).log() - (2.0 * more if drawn else 0.0)
            better = gain > _bound(more, self._tested)
            chosen = torch.where(better[:, None], fit, chosen)
            left, size = torch.where(better, rest, left), torch.where(better, size + more, size)
        return chosen

    def _scales(self, fit: Tensor) -> Tensor:
        """(u, f) gamma: the same regression of log |residual|, without held features."""

        def _sizes(columns: Tensor, values: Tensor) -> tuple[Tensor, ...]:
            left = (values - columns @ fit).abs_().clamp_min_(SMALLEST).log_()
            return columns.T @ left, left.square().sum(0)

        right, square = _total(_sizes(*part) for part in self._parts)
        sums = self._sums[0].sum(0, True), right[None], square[None]
        constant = torch.arange(len(self._always)) < 1
        return self._selected(sums, constant, drawn=False)[0, -self._own :]


def _solved(gram: Tensor, right: Tensor, square: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """The coefficients, (r, q, f), on some columns, and the sum of squares left, (r, f)."""
    some = columns.nonzero()[:, 0]
    left, right = gram[:, some][:, :, some], right[:, some]
    # A bootstrap sample of very few rows may have none.
    ridge = RIDGE * (left.diagonal(dim1=1, dim2=2) + gram[:, :1, 0]) + SMALLEST**2
    fit = torch.linalg.solve(left + torch.diag_embed(ridge), right)
    rest = square - (2.0 * right - left @ fit).mul(fit).sum(1)
    out = gram.new_zeros(len(gram), len(columns), right.shape[2])
    return out.index_copy(1, some, fit), rest.maximum(square * COPY).clamp_min(1e-30)


def _bound(freedom: Tensor, tested: int) -> Tensor:
    """The least gain in twice the log-likelihood at an error rate of .001 over all features."""
    from scipy.special import chdtri  # scipy.stats takes most of a second to import

    bound = torch.from_numpy(chdtri(freedom.clamp_min(1.0).numpy(), ERROR / max(tested, 1)))
    return torch.where(freedom > 0, bound, torch.inf)


def _blocks(x: Tensor) -> Tensor:
    """(64, m, q) the rows of each block, of (n, q): row i is in block i modulo 64."""
    padded = torch.nn.functional.pad(x, (0, 0, 0, -len(x) % BLOCKS))
    return padded.view(len(padded) // BLOCKS, BLOCKS, x.shape[1]).transpose(0, 1)


def _products(columns: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of each block: (64, q, q) products of columns, (64, q, f) with targets, (64, f) squares."""
    own, targets = _blocks(columns), _blocks(targets)
    return own.mT @ own, own.mT @ targets, targets.square().sum(1)


def _total(parts: Iterable[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The sums of the first, second, ... tensors."""
    return tuple(torch.stack(each).sum(0) for each in zip(*parts, strict=True))
