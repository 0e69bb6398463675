"""Least squares (step 6): beta and gamma of smooth features, on winsorised training rows.

The features are regressed on the columns of x_S and of the held features at the same time. Blocks
of the former are added while they fit significantly better: straight, bends, heavy values,
products with each held feature. Likewise the logarithms of the residuals' sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from dear_plugin.data.special_values import or_nan
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.columns import Columns
from dear_plugin.decoders.transport.lines import Lines
from dear_plugin.decoders.transport.links import ERROR
from dear_plugin.decoders.transport.modifiers import grows
from dear_plugin.decoders.transport.terms import winsorised
from dear_plugin.decoders.transport.values import complete, smooth_features

RIDGE = 2e-9
# Blocks of rows that bootstrap samples are drawn from.
BLOCKS = 64
# Entries of the columns that are computed at a time: 32 MiB.
ENTRIES = 1 << 22
# What an exact function of the columns has left of its squares, at most.
EXACT = 1e-10
# The smallest residual.
SMALLEST = 1e-9
# The columns, (m, q), and the targets, (m, f), of the first, second, ... part of the rows.
Part: TypeAlias = Callable[[int], tuple[Tensor, Tensor]]


class Targets(NamedTuple):
    """What may be regressed in a sample: smooth features.

    Attributes:
        features: (f,) their positions, ascending.
        values: (n, f) double, their winsorised values, 0 for special ones, minus
        centre: (f,) their means.
    """

    features: Tensor
    values: Tensor
    centre: Tensor

    @classmethod
    def of(cls, sample: Sample) -> Targets:
        """Those of training rows."""
        smooth = sample.shared(smooth_features)
        values = sample.shared(winsorised)[:, smooth]
        values = or_nan(values)
        centre = values.nanmean(0)
        values = (values - centre).nan_to_num_()
        return cls(smooth.nonzero()[:, 0], values, centre)

    def part(self, kept: Tensor) -> Targets:
        """Some of them, (f,) bool."""
        return Targets(self.features[kept], self.values[:, kept], self.centre[kept])


class LeastSquares:
    """The regressions of targets on x_S and held features, for any weights of the rows.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features.
        may_move: (p,) bool, the targets to keep; special in the same rows.
        tested: how many features share the error rate.
        earlier: see `Columns`; with some, all targets are kept.
    """

    def __init__(
        self,
        sample: Sample,
        acted: Members,
        held: Members,
        may_move: Tensor,
        *,
        tested: int,
        earlier: Members = (),
    ) -> None:
        self._columns, self._tested = Columns(sample, acted, held, earlier), tested
        self._keeps_all = bool(earlier)
        known = sample.known[:, may_move].all(1) & sample.shared(complete, held)
        self._known = known[:, None].double()
        self._rows, targets = sample.shared(winsorised), sample.shared(Targets.of)
        self._targets = targets.part(may_move[targets.features])
        # Centred columns keep the precision of their squares; about the mean is enough.
        self._centre = torch.zeros(1).double()
        self._centre = self._matrix(self._rows[::BLOCKS]).mean(0)
        self._centre[0] = 0.0
        # The constant and the columns of held features are in every model.
        self._held = len(self._centre) - self._columns.blocks.shape[1]
        self._fit = torch.empty(0)

    def lines(
        self, weights: Tensor, point: Lines | None = None, *, untested: bool = False
    ) -> Lines:
        """The locations and scales in r samples, given the weights of blocks of rows.

        Args:
            weights: (r, 64), or (r, 1) for all of them.
            point: those of the sample itself, whose slopes of zero are kept.
            untested: whether what does not move there has a straight line all the same.
        """
        targets, blocks, part = self._targets, weights.expand(-1, BLOCKS), lru_cache(1)(self._part)
        shape = len(weights), len(self._centre), len(targets.features)
        fit = scale = torch.zeros(shape).double()
        if shape[2]:
            columns, drawn = self._columns.blocks, point is not None
            found = targets.features.new_ones(0) if point is None else point.features
            forced = ~torch.isin(targets.features, found) & untested
            # Of the sample itself also the sums of the rows that test groups.
            other = (~grows(BLOCKS)).double()[None] if point is None else blocks[:0]
            sums, others = _split(self._sums(part, torch.cat([blocks, other])), len(blocks))
            if point is None:
                self._allowed = self._asked_for(columns, others)
            fit, _ = self._selected(sums, columns, self._allowed, drawn=drawn, forced=forced)
            self._fit = fit[0] if point is None else self._fit
            sums[1:] = self._sizes(part, blocks)
            scale, _ = self._selected(sums, columns, self._allowed, drawn=drawn)
        fit = fit.clone()
        fit[:, 0] += targets.centre - (self._centre[:, None] * fit).sum(1)
        held, slope = fit.split([self._held, shape[1] - self._held], 1)
        scale = scale[:, self._held :]
        if point is None:
            moves = ((slope[0] != 0.0) | (scale[0] != 0.0)).any(0) | self._keeps_all
        else:
            moves = torch.isin(targets.features, point.features) | untested
        held, slope, scale = (each[..., moves] for each in (held, slope, scale))
        if point is not None:
            known = torch.isin(targets.features[moves], point.features)
            slope[..., known] *= (point.slope != 0.0).any(1, keepdim=True)
            scale[..., known] *= (point.scale != 0.0).any(1, keepdim=True)
            scale[..., ~known] = 0.0
        return Lines(targets.features[moves], self._columns, held, slope, scale)

    def _asked_for(self, blocks: Tensor, sums: Sequence[Tensor]) -> Tensor:
        """(b, f) bool, the blocks that may be taken: those of groups where other rows ask."""
        allowed = torch.ones(len(blocks), len(self._targets.features), dtype=torch.bool)
        if last := self._columns.honest:
            allowed[-last:] = self._selected(sums, blocks, allowed, drawn=False)[1][-last:, 0]
        return allowed

    def _sums(self, part: Part, weights: Tensor) -> list[Tensor]:
        """The weighted sums of products of columns, of these with targets, and of squares."""
        every = (part(i) for i in range(self._count))
        return _total(
            (_weighted(weights, columns, columns), *_with(weights, columns, values))
            for columns, values in every
        )

    def _sizes(self, part: Part, weights: Tensor) -> list[Tensor]:
        """Likewise of columns with the logarithms of residuals, and of these."""

        def _left(columns: Tensor, values: Tensor) -> Tensor:
            left = (values - columns @ self._fit).abs_().clamp_min_(SMALLEST).log_()
            # The constant is 0 in rows that are incomplete, or beyond the last.
            return left.mul_(columns[:, :1])

        every = (part(i) for i in range(self._count))
        return _total(_with(weights, c, _left(c, values)) for c, values in every)

    @property
    def _size(self) -> int:
        """The rows of a part, a multiple of 64."""
        width = len(self._centre) + len(self._targets.features)
        return max(ENTRIES // width // BLOCKS, 1) * BLOCKS

    @property
    def _count(self) -> int:
        """The number of parts."""
        return -(-len(self._rows) // self._size)

    def _part(self, i: int) -> tuple[Tensor, Tensor]:
        """The columns and the targets of a part of the training rows; the last ends with zeros."""
        some = slice(i * self._size, (i + 1) * self._size)
        every = (self._rows, self._targets.values, self._known)
        rows, values, known = (_padded(each[some]) for each in every)
        return self._matrix(rows).mul_(known), values * known

    def _matrix(self, rows: Tensor) -> Tensor:
        """(m, q) the held features' and x_S' columns of training rows, centred."""
        own = self._columns.own(rows, rows[:, None, self._columns.acted])[:, 0]
        return torch.cat([self._columns.always(rows), own], 1).sub_(self._centre)

    def _selected(
        self,
        sums: Sequence[Tensor],
        blocks: Tensor,
        allowed: Tensor,
        *,
        drawn: bool,
        forced: Tensor | bool = False,
    ) -> tuple[Tensor, Tensor]:
        """(r, q, f) the coefficients, and (b, r, f) bool, the columns of x_S that fit better.

        Args:
            sums: (r, q, q) of products of columns, (r, q, f) of columns and targets, and (r, f) of
                targets.
            blocks: (b, u) bool, the columns of x_S that are added together.
            allowed: (b, f) bool, those that may be added.
            drawn: whether these are bootstrap samples, see `links`.
            forced: (f,) bool, the targets that take the first block untested.
        """
        (gram, right, square), q, own = sums, self._held, slice(self._held, None)
        n = (gram[:, 0, :1] - q).clamp_min(1.0)
        # A bootstrap sample of very few rows may have none.
        ridge = RIDGE * gram.diagonal(dim1=1, dim2=2) + SMALLEST**2
        ridge = torch.diag_embed(ridge)
        # What the columns of held features leave of those of x_S and of the targets.
        always = torch.cat([gram[:, :q, own], right[:, :q]], 2)
        held = torch.linalg.solve((gram + ridge)[:, :q, :q], always)
        by_own, by_targets = held.split([gram.shape[1] - q, right.shape[2]], 2)
        left = gram[:, own, own] - gram[:, own, :q] @ by_own
        right, first = right[:, own] - gram[:, own, :q] @ by_targets, (right[:, :q] * by_targets)
        flat = square - first.sum(1)
        least, rest = (square * EXACT).clamp_min(1e-30), flat
        fit, taken = torch.zeros_like(right), torch.zeros_like(right.mT, dtype=torch.bool)
        # Which blocks were taken, as digits of a number, and the least gains by added columns.
        added: list[Tensor] = []
        code = torch.zeros_like(rest, dtype=torch.int64)
        bounds = _bounds(len(left[0]), self._tested * max(len(blocks) - 2, 1))
        for block, may in zip(blocks, allowed, strict=False):
            wider = taken | block
            more = wider.sum(2) - taken.sum(2)
            asked = torch.where((may | (forced & (not added))) & (more > 0), code, -1)
            found = _solved(left + ridge[:, own, own], right, wider, asked)
            remains = flat - (2.0 * right - left @ found).mul(found).sum(1)
            remains = remains.maximum(least)
            gain = n * (rest.maximum(least) / remains).log() - (2.0 * more if drawn else 0.0)
            better = (asked >= 0) & ((gain > bounds[more]) | (forced & (not added)))
            added.append(better)
            fit = torch.where(better[:, None], found, fit)
            rest, taken = torch.where(better, remains, rest), taken | (better[..., None] & block)
            code = 2 * code + better
        return torch.cat([by_targets - by_own @ fit, fit], 1), torch.stack(added)


def _solved(gram: Tensor, right: Tensor, columns: Tensor, asked: Tensor) -> Tensor:
    """(r, u, f) the coefficients of the targets that are asked for, each on some columns.

    Args:
        gram: (r, u, u) of products of columns.
        right: (r, u, f) of columns and targets.
        columns: (r, f, u) bool, the columns of each target.
        asked: (r, f) which targets have the same columns; -1 for those that are not asked for.
    """
    found = torch.zeros_like(right)
    for same in asked[asked >= 0].unique():
        of = asked == same
        at, rows = columns[of][0].nonzero()[:, 0], of.any(1).nonzero()[:, 0]
        inverse = torch.linalg.inv(gram[rows[:, None, None], at[:, None], at])
        # A product of matrices, or a sum over rows, would round equal targets differently.
        of_targets = right[rows[:, None], at].mT.contiguous()
        some = (inverse[:, :, None] * of_targets[:, None]).sum(3)
        found[rows[:, None], at] += some * of[rows, None]
    return found


def _bounds(most: int, tested: int) -> Tensor:
    """(most + 1,) the least gains in twice the log-likelihood of 0, 1, ... further columns.

    At an error rate of .001 over all tests.
    """
    from scipy.special import chdtri  # scipy.stats takes most of a second to import

    freedom = torch.arange(1, most + 1).double()
    bounds = torch.from_numpy(chdtri(freedom.numpy(), ERROR / max(tested, 1)))
    return torch.nn.functional.pad(bounds, (1, 0), value=torch.inf)


def _split(sums: Sequence[Tensor], count: int) -> tuple[list[Tensor], list[Tensor]]:
    """The sums of the first samples, so many, and of the others."""
    return [each[:count] for each in sums], [each[count:] for each in sums]


def _padded(x: Tensor) -> Tensor:
    """(m, q) rows, (n, q), and rows of 0 up to a multiple of 64."""
    rest = -len(x) % BLOCKS
    return torch.nn.functional.pad(x, (0, 0, 0, rest)) if rest else x


def _blocks(x: Tensor) -> Tensor:
    """(64, m, q) the rows of each block, of (n, q): row i is in block i modulo 64."""
    return x.view(len(x) // BLOCKS, BLOCKS, x.shape[1]).transpose(0, 1)


def _weighted(weights: Tensor, columns: Tensor, others: Tensor) -> Tensor:
    """(r, q, f) the products of columns, (m, q), and others, (m, f), in weighted blocks."""
    by, size = _blocks(others), max(ENTRIES // BLOCKS // others.shape[1], 1)
    some = (_blocks(columns)[..., i : i + size] for i in range(0, columns.shape[1], size))
    return torch.cat([torch.tensordot(weights, each.mT @ by, 1) for each in some], 1)


def _with(weights: Tensor, columns: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """(r, q, f) the products of columns and targets in weighted blocks, and (r, f) squares."""
    squares = torch.tensordot(weights, _blocks(targets).square().sum(1), 1)
    return _weighted(weights, columns, targets), squares


def _total(parts: Iterable[tuple[Tensor, ...]]) -> list[Tensor]:
    """The sums of the first, second, ... tensors."""
    return [torch.stack(each).sum(0) for each in zip(*parts, strict=True)]
