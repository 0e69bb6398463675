"""Least squares (step 6): beta and gamma of smooth features, on winsorised training rows.

The features are regressed on the columns of x_S and of the held features at the same time. Blocks
of the former are added while they fit significantly better: straight, bends, heavy values,
products with each held feature. Likewise the logarithms of the residuals' sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor

from dear_plugin.data.special_values import or_nan
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


class LeastSquares:
    """The regressions of targets on x_S and held features, for any weights of the rows.

    Args:
        sample: the training rows.
        columns: those of the set; with earlier features among them, all targets are kept.
        may_move: (p,) bool, the targets, smooth features; special in the same rows.
        tested: how many features share the error rate.

    Attributes:
        point: the locations and scales in the sample itself, of targets that move.
    """

    def __init__(self, sample: Sample, columns: Columns, may_move: Tensor, *, tested: int) -> None:
        self._columns, self._tested = columns, tested
        self._features = may_move.nonzero()[:, 0]
        values, means = sample.shared(_targets)
        # Not those values: copies of each set would be the most memory of a fit.
        self._own = may_move[sample.shared(smooth_features)]
        self._means = means[self._own]
        known = sample.known[:, may_move].all(1)
        known &= sample.shared(complete, columns.held)
        rows = sample.shared(winsorised)
        # Centred columns keep the precision of their squares; about the mean is enough.
        self._centre = torch.zeros(1).double()
        self._centre = self._matrix(rows[::BLOCKS]).mean(0)
        self._centre[0] = 0.0
        # The constant and the columns of held features are in every model.
        self._held = len(self._centre) - columns.blocks.shape[1]
        self._every = rows, values, known[:, None].double()
        every = torch.ones_like(self._features, dtype=torch.bool)
        fit, scale = self._estimated(torch.ones(1, BLOCKS).double(), every, every)
        self._sloped, self._scaled = ((e[0, self._held :] != 0.0).any(0) for e in (fit, scale))
        self._moves = moves = self._sloped | self._scaled | bool(columns.earlier)
        self.point = self._lines(fit[..., moves], scale[..., moves], moves)

    def lines(self, weights: Tensor, *, untested: bool = False) -> Lines:
        """The locations and scales in r bootstrap samples; slopes of zero stay zero.

        Args:
            weights: (r, 64) those of blocks of rows.
            untested: whether what does not move has a straight line all the same.
        """
        kept = self._moves | untested
        fit, scale = self._estimated(weights, kept, self._scaled, forced=~self._moves & untested)
        fit[:, self._held :] *= (self._sloped | ~self._moves)[kept]
        return self._lines(fit, scale, kept)

    def _lines(self, fit: Tensor, scale: Tensor, kept: Tensor) -> Lines:
        """Those of some targets, (t,) bool."""
        held, slope = fit.split([self._held, fit.shape[1] - self._held], 1)
        return Lines(self._features[kept], self._columns, held, slope, scale[:, self._held :])

    def _estimated(
        self, weights: Tensor, some: Tensor, scaled: Tensor, *, forced: Tensor | bool = False
    ) -> tuple[Tensor, Tensor]:
        """(r, q, f) the coefficients of locations, and of scales, of f of t targets.

        Args:
            weights: (r, 64) those of blocks of rows.
            some: (t,) bool, these targets.
            scaled: (t,) bool, those of them whose scales are estimated; of others they are 0.
            forced: (t,) bool, those that take the first block untested.
        """
        part, drawn, count = lru_cache(1)(self._part), len(weights) > 1, len(weights)
        if not bool(some.any()):
            none = torch.zeros(count, len(self._centre), 0).double()
            return none, none
        # Of the sample itself also the sums of the rows that test groups.
        other = weights[:0] if drawn else (~grows(BLOCKS)).double()[None]
        sums = self._sums(part, torch.cat([weights, other]), some)
        if not drawn:
            self._allow([each[count:] for each in sums])
        gram, *targets = (each[:count] for each in sums)
        forced = torch.as_tensor(forced).expand_as(some)[some]
        fit, _ = self._selected((gram, *targets), self._allowed[:, some], drawn, forced)
        if not drawn:
            self._fit = fit[0]
        scale = torch.zeros_like(fit)
        if bool(scaled.any()):
            left = self._sums(part, weights, scaled, left=True)
            found, _ = self._selected((gram, *left), self._allowed[:, scaled], drawn)
            scale[..., scaled[some]] = found
        fit = fit.clone()
        fit[:, 0] += self._means[some] - (self._centre[:, None] * fit).sum(1)
        return fit, scale

    def _allow(self, sums: Sequence[Tensor]) -> None:
        """Find (b, t) bool, the blocks that may be taken: those of groups where other rows ask."""
        shape = len(self._columns.blocks), len(self._features)
        self._allowed = torch.ones(shape, dtype=torch.bool)
        if last := self._columns.honest:
            self._allowed[-last:] = self._selected(sums, self._allowed, False)[1][-last:, 0]

    def _sums(
        self, part: Part, weights: Tensor, some: Tensor, *, left: bool = False
    ) -> list[Tensor]:
        """The weighted sums of products of columns, of these with targets, and of squares.

        Args:
            part: of the rows.
            weights: (r, 64) of the blocks.
            some: (t,) bool, the targets.
            left: whether, in place of targets, logarithms of residuals are meant; without the
                products of columns.
        """
        parts = []
        for columns, values in map(part, range(self._count)):
            values = values[:, some]
            if left:
                values = values - columns @ self._fit[:, some]
                values = values.abs_().clamp_min_(SMALLEST).log_()
                # The constant is 0 in rows that are incomplete, or beyond the last.
                values *= columns[:, :1]
            others = [values] if left else [columns, values]
            squares = torch.tensordot(weights, _blocks(values).square().sum(1), 1)
            parts.append((*(_weighted(weights, columns, each) for each in others), squares))
        return [torch.stack(each).sum(0) for each in zip(*parts, strict=True)]

    @property
    def _size(self) -> int:
        """The rows of a part, a multiple of 64."""
        width = len(self._centre) + len(self._features)
        return max(ENTRIES // width // BLOCKS, 1) * BLOCKS

    @property
    def _count(self) -> int:
        """The number of parts."""
        return -(-len(self._every[0]) // self._size)

    def _part(self, i: int) -> tuple[Tensor, Tensor]:
        """The columns and the targets of a part of the training rows; the last ends with zeros."""
        some = slice(i * self._size, (i + 1) * self._size)
        rows, values, known = (each[some] for each in self._every)
        rows, values, known = map(_padded, (rows, values[:, self._own], known))
        return self._matrix(rows).mul_(known), values * known

    def _matrix(self, rows: Tensor) -> Tensor:
        """(m, q) the held features' and x_S' columns of training rows, centred."""
        own = self._columns.own(rows, rows[:, None, self._columns.acted])[:, 0]
        return torch.cat([self._columns.always(rows), own], 1).sub_(self._centre)

    def _selected(
        self, sums: Sequence[Tensor], allowed: Tensor, drawn: bool, forced: Tensor | bool = False
    ) -> tuple[Tensor, Tensor]:
        """(r, q, f) the coefficients, and (b, r, f) bool, the columns of x_S that fit better.

        Args:
            sums: (r, q, q) of products of columns, (r, q, f) of columns and targets, and (r, f) of
                targets.
            allowed: (b, f) bool, the blocks that each target may take.
            drawn: whether these are bootstrap samples, see `links`.
            forced: (f,) bool, the targets that take the first block untested.
        """
        (gram, right, square), q, own = sums, self._held, slice(self._held, None)
        blocks = self._columns.blocks
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
        for block, may in zip(blocks, allowed, strict=True):
            wider = taken | block
            more = wider.sum(2) - taken.sum(2)
            wanted = torch.where((may | (forced & (not added))) & (more > 0), code, -1)
            found, explained = _solved(left, ridge[:, own, own], right, wider, wanted)
            remains = (flat - explained).maximum(least)
            gain = n * (rest.maximum(least) / remains).log() - (2.0 * more if drawn else 0.0)
            better = (wanted >= 0) & ((gain > bounds[more]) | (forced & (not added)))
            added.append(better)
            fit = torch.where(better[:, None], found, fit)
            rest, taken = torch.where(better, remains, rest), taken | (better[..., None] & block)
            code = 2 * code + better
        return torch.cat([by_targets - by_own @ fit, fit], 1), torch.stack(added)


def _solved(
    gram: Tensor, ridge: Tensor, right: Tensor, columns: Tensor, wanted: Tensor
) -> tuple[Tensor, Tensor]:
    """(r, u, f) the coefficients of the targets that are wanted, each on some columns.

    Args:
        gram: (r, u, u) of products of columns.
        ridge: (r, u, u) what is added to them.
        right: (r, u, f) of columns and targets.
        columns: (r, f, u) bool, the columns of each target.
        wanted: (r, f) which targets have the same columns; -1 for those that are not wanted.

    Returns:
        The coefficients, and (r, f) the squares that they explain.
    """
    found, explained = torch.zeros_like(right), torch.zeros_like(right[:, 0])
    for same in wanted[wanted >= 0].unique():
        of = wanted == same
        first, rows, targets = of.nonzero()[0], of.any(1).nonzero(), of.any(0).nonzero()[:, 0]
        at = columns[first[0], first[1]].nonzero()
        own, of_targets = gram[rows[:, None], at, at[:, 0]], right[rows[:, None], at, targets]
        inverse = torch.linalg.inv(own + ridge[rows[:, None], at, at[:, 0]])
        # A product of matrices, or a sum over rows, would round equal targets differently.
        some = (inverse[:, :, None] * of_targets.mT.contiguous()[:, None]).sum(3)
        some *= of[rows, targets][:, None]
        found[rows[:, None], at, targets] += some
        explained[rows, targets] += ((2.0 * of_targets - own @ some) * some).sum(1)
    return found, explained


def _targets(sample: Sample) -> tuple[Tensor, Tensor]:
    """(n, f) the winsorised values of smooth features, centred, 0 if special; (f,) their means."""
    values = sample.shared(winsorised)[:, sample.shared(smooth_features)]
    values = or_nan(values)
    mean = values.nanmean(0)
    return (values - mean).nan_to_num_(), mean


def _bounds(most: int, tested: int) -> Tensor:
    """(most + 1,) the least gains in twice the log-likelihood of 0, 1, ... further columns.

    At an error rate of .001 over all tests.
    """
    from scipy.special import chdtri  # scipy.stats takes most of a second to import

    freedom = torch.arange(1, most + 1).double()
    bounds = torch.from_numpy(chdtri(freedom.numpy(), ERROR / max(tested, 1)))
    return torch.nn.functional.pad(bounds, (1, 0), value=torch.inf)


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
