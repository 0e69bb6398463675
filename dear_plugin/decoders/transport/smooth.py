"""Least squares (step 6): beta and gamma of smooth features, on winsorised training rows.

The features are regressed on the columns of x_S and of the held features at the same time. Blocks
of the former are added while they fit significantly better: straight, bends, heavy values,
products with each held feature. Likewise the logarithms of the residuals' sizes.

Lines (step 6): locations and scales of smooth features; rows in, residuals and rows out.

A smooth feature moves by the change of its location and keeps its residual, rescaled:
`x_j' = x_j + (phi(a) - phi(x_S)) beta + v_j (exp((phi(a) - phi(x_S)) gamma) - 1)`; phi are the
columns of x_S (`Columns.own`), beta and gamma those of `least_squares`. Sums are of doubles: their
order depends on the number of rows, and a row must be the same in every batch.

Columns (step 6): what smooth features are regressed on, for one set.

Chains: smooth features that follow counted ones, by their place in the order of causes.

What a counted cause does next is not sure of one row, nor is then what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import call
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from dear_plugin._threads import lazy
from dear_plugin.data.causes import ranks
from dear_plugin.data.numbers import Array, or_nan, times
from dear_plugin.decoders.protocol import Members, Sample
from dear_plugin.decoders.transport.counted import ERROR
from dear_plugin.decoders.transport.held import (
    Balance,
    Modifiers,
    Terms,
    of_rows,
    plain_columns,
    winsorised,
)
from dear_plugin.decoders.transport.values import (
    BLOCKS,
    DRAWS,
    HEAVY,
    Scaled,
    alike,
    complete,
    resampled,
    smooth_features,
    value_counts,
)

# Of the squares of a column, before it is left alone by the held ones.
RIDGE = 1e-11
# Entries of the columns that are computed at a time: 32 MiB.
ENTRIES = 1 << 22
# Results that are kept of all held features: columns of rows, and factors of their products.
LATEST = 8
# Entries of the factors that are tried at a time.
TRIED = 1 << 16
# What an exact function of the columns has left of its squares, at most.
EXACT = 1e-9
# The smallest residual.
SMALLEST = 1e-9
# The group of the sample itself, and of the half of its rows that test what the others found: of
# two blocks, see `grows`.
ITSELF, HALVES = -1, torch.tensor([[1.0, 1.0], [0.0, 1.0]]).double()


class Held:
    """The training rows, and what the held features' columns leave of others there.

    What all sets that hold the same have in common is here (Frisch and Waugh 1933; Lovell 1963):
    a set is regressed on what is left.

    Args:
        sample: the training rows.
        held: the held features.
        like: the place among the `alike` of features that are known in the rows.

    Attributes:
        rows: (n, p) scaled, winsorised.
        centre: (q,) about the means of the columns: centred, they keep the precision of squares.
    """

    def __init__(self, sample: Sample, held: Members, like: int) -> None:
        self._terms, self._at = sample.shared(Terms, held), np.array(held, int)
        self.rows, self._latest = sample.shared(winsorised), sample.shared(_latest)
        some = sample.known[:, sample.shared(alike)[like]].all(1) & sample.shared(complete, held)
        self._some = None if bool(some.all()) else some[:, None].double().numpy()
        self.centre = np.zeros(1)
        self.centre = self._plain(slice(None, None, BLOCKS)).mean(0)
        self.centre[0] = 0.0

    def __len__(self) -> int:
        """The number of columns."""
        return len(self.centre)

    def parts(self, width: int) -> list[slice]:
        """Parts of the rows, given how many columns there will be besides these."""
        size = max(ENTRIES // (width + len(self)) // BLOCKS, 1) * BLOCKS
        return [slice(i, i + size) for i in range(0, len(self.rows), size)]

    def there(self, part: slice, columns: Array) -> Array:
        """Columns of some rows, (m, q), which are changed: 0 where something is not known."""
        if self._some is not None:
            columns *= self._some[part]
        return columns

    def columns(self, part: slice) -> Array:
        """(m, q) a constant and the held features' columns of some rows."""
        if len(self.rows) * len(self) > ENTRIES:
            return self._made(part)
        every: Array = self._latest(self._made)
        return every[part]

    def factor(self, group: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(r, 1) the rows of the samples of a group, and factors of the products of columns."""
        few = len(self) ** 2 * len(weights_of(group)) <= ENTRIES
        return self._latest(self._factor, group) if few else self._factor(group)

    def _factor(self, group: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        each = (self.columns(part) for part in self.parts(0))
        sums = (products(weights_of(group), columns, columns) for columns in each)
        gram = sum(sums, torch.zeros(()))
        ridge = torch.diag_embed(RIDGE * gram.diagonal(dim1=1, dim2=2) + SMALLEST**2)
        return gram[:, 0, :1].clone(), torch.linalg.lu_factor(gram + ridge)

    def _made(self, part: slice = slice(None)) -> Array:
        return self.there(part, self._plain(part))

    def _plain(self, part: slice) -> Array:
        columns = plain_columns(self._terms, self.rows[part].take(self._at, 1))
        columns -= self.centre
        return columns


def _latest(sample: Sample) -> Callable[..., Any]:
    """What calls a function, and keeps what the latest ones returned: of all held features."""
    return lru_cache(LATEST)(call)


def weights_of(group: int) -> Tensor:
    """(r, b) those of blocks of rows: row i is in block i modulo b."""
    return HALVES if group == ITSELF else resampled(group)


def _blocks(x: Array, count: int) -> Array:
    """(b, m, q) the rows of each of b blocks, of (n, q); the last ones may be 0."""
    if rest := -len(x) % count:
        x = np.pad(x, ((0, rest), (0, 0)))
    return x.reshape(-1, count, x.shape[1]).swapaxes(0, 1)


def products(weights: Tensor, one: Array, other: Array) -> Tensor:
    """(r, q, f) the weighted sums over b blocks of products of columns, (m, q) and (m, f)."""
    (r, b), (q, f) = weights.shape, (one.shape[1], other.shape[1])
    size, right = max(ENTRIES // b // max(f, 1), 1), torch.from_numpy(_blocks(other, b))
    left = (_blocks(one[:, i : i + size], b).swapaxes(1, 2) for i in range(0, q, size))
    each = (torch.bmm(torch.from_numpy(some), right) for some in left)
    return torch.cat([(weights @ some.view(b, -1)).view(r, -1, f) for some in each], 1)


class Left(NamedTuple):
    """What the columns that are in every model leave of those of x_S and of targets, r samples.

    Attributes:
        gram: (r, u, u) the products of the columns of x_S,
        right: (r, u, f) and of these with targets.
        flat: (r, f) the squares of targets.
        rows: (r, 1) how many rows, without those that the columns have used up.
        others: (r, q, u + f) the coefficients of those columns for what is left.
    """

    gram: Tensor
    right: Tensor
    flat: Tensor
    rows: Tensor
    others: Tensor


class LeastSquares:
    """The regressions of targets on x_S and held features, in the sample and in resamples.

    Args:
        sample: the training rows.
        columns: those of the set; with earlier features among them, all targets are kept.
        may_move: (p,) bool, the targets, smooth features; all among the `alike` of one place.
        tested: how many features share the error rate.
        like: that place.

    Attributes:
        point: the locations and scales in the sample itself, of targets that move.
    """

    def __init__(
        self, sample: Sample, columns: Columns, may_move: Tensor, *, tested: int, like: int = 0
    ) -> None:
        self._columns, self._features = columns, may_move.nonzero()[:, 0]
        own = may_move[sample.shared(smooth_features)]
        self._values, means = sample.shared(_targets)
        self._own, self._means = own.numpy(), means[own]
        self._held, self._blocks = sample.shared(Held, columns.held, like), columns.blocks
        self._bounds = _bounds(self._blocks.shape[1], tested * max(len(self._blocks) - 2, 1))
        self._middle = self._more(slice(None, None, BLOCKS)).mean(0)
        self._slices = self._held.parts(2 * len(self._middle))
        self._width = self._blocks.shape[1]
        self._always = len(self._held) + len(self._middle) - self._width
        every = torch.ones_like(self._features).bool()
        self._allowed = every.expand(len(self._blocks), -1).clone()
        parts = [*self._parts()] if len(self._slices) == 1 and len(every) else None
        fit = partial(self._estimated, ITSELF, parts=parts)
        self._fit = fit(every, ~every, honest=columns.honest)[0]
        scale = fit(~every, every)[:1]
        self._leave_out(columns.honest)
        slopes = self._fit[self._always :], scale[0, self._always :]
        self._sloped, self._scaled = ((each != 0.0).any(0) for each in slopes)
        self._moves = moves = self._sloped | self._scaled | bool(columns.earlier)
        self.point = self._lines(self._fit[None, :, moves], scale[..., moves], moves)

    def lines(self, group: int) -> Lines:
        """The locations and scales in a group of bootstrap samples; slopes of zero stay zero.

        Args:
            group: see `resampled`.
        """
        kept, scaled = self._moves, self._scaled
        found = self._estimated(group, kept, scaled)
        fit, some = found.split([int(kept.sum()), int(scaled.sum())], 2)
        lines = self._lines(fit, torch.zeros_like(fit), kept)
        lines.slope[...] *= self._sloped[kept].numpy()
        lines.scale[..., scaled[kept].numpy()] = some[:, self._always :].numpy()
        return lines

    def _lines(self, fit: Tensor, scale: Tensor, kept: Tensor) -> Lines:
        """Those of some targets, (t,) bool, by the coefficients of centred columns."""
        held, slope = fit.clone().split([self._always, fit.shape[1] - self._always], 1)
        centre = torch.from_numpy(np.concatenate([self._held.centre, self._middle]))
        held[:, 0] += self._means[kept] - (centre[:, None] * fit).sum(1)
        weights = (each.numpy() for each in (held, slope, scale[:, self._always :]))
        return Lines(self._features[kept].numpy(), self._columns, *weights)

    def _leave_out(self, honest: int) -> None:
        """Resamples need no columns of groups that no target may take."""
        kept = len(self._allowed) - honest * (not bool(self._allowed[-honest:].any()))
        self._blocks, self._allowed = self._blocks[:kept], self._allowed[:kept]
        self._blocks = self._blocks[:, : int(self._blocks.any(0).nonzero().max()) + 1]

    def _targets(self, part: slice, plain: Array, more: Array, of: tuple[Tensor, Tensor]) -> Array:
        """(m, f) some targets of rows, and the logarithms of what locations leave of others.

        Args:
            part: of the rows.
            plain: (m, q) their columns of held features.
            more: (m, u) those of the set.
            of: both, (t,) bool.
        """
        values, (some, scaled) = self._values[part][:, self._own], (each.numpy() for each in of)
        found = values[:, some]
        if scaled.any():
            fit, q = self._fit.numpy()[:, scaled], len(self._held)
            left = values[:, scaled] - times(more, fit[q : q + more.shape[1]])
            left -= times(plain, fit[:q])
            found = np.concatenate([found, np.log(np.maximum(abs(left), SMALLEST))], 1)
        return self._held.there(part, found)

    def _more(self, part: slice) -> Array:
        """(m, q) the columns that are of this set alone in some rows."""
        columns, rows = self._columns, self._held.rows[part]
        own = columns.own(rows, rows[:, None, columns.acted], self._blocks.shape[1], part)
        return np.concatenate([columns.more(rows, part), own[:, 0]], 1)

    def _parts(self) -> Iterator[tuple[slice, Array, Array]]:
        """Parts of the rows, and the columns there, held and of this set."""
        for part in self._slices:
            more = self._more(part)
            more -= self._middle[: more.shape[1]]
            yield part, self._held.columns(part), self._held.there(part, more)

    def _estimated(
        self,
        group: int,
        some: Tensor,
        scaled: Tensor,
        *,
        honest: int = 0,
        parts: Iterable[tuple[slice, Array, Array]] | None = None,
    ) -> Tensor:
        """(r, q, f) the coefficients of centred columns in the samples of a group.

        Args:
            group: of samples.
            some: (t,) bool, of these targets, and
            scaled: of the logarithms of what locations leave of these.
            honest: how many blocks, the last ones, rows that did not make them must ask for.
            parts: the columns of all rows, where they are known.
        """
        weights, sums = weights_of(group), list[Tensor]()
        of = torch.cat([each.nonzero()[:, 0] for each in (some, scaled)])
        if not len(of):
            return torch.zeros(len(weights), self._always + self._width, 0).double()
        for part, plain, more in parts or self._parts():
            values = self._targets(part, plain, more, (some, scaled))
            both = np.concatenate([more, values], 1)
            squares = _blocks(np.square(values), weights.shape[1]).sum(1)
            found = [products(weights, each, both) for each in (plain, more)]
            found.append(weights @ torch.from_numpy(squares))
            sums = [a.add_(b) for a, b in zip(sums, found, strict=True)] if sums else found
        squares = sums[2]
        left = self._beside(group, *sums)
        own = self._selected(left, squares, of, honest)
        of_own, of_targets = left.others.split([own.shape[1], own.shape[2]], 2)
        wide = torch.cat([of_targets - of_own @ own, own], 1)
        return pad(wide, (0, 0, 0, self._always + self._width - wide.shape[1]))

    def _beside(self, group: int, plain: Tensor, more: Tensor, squares: Tensor) -> Left:
        """What is left of the columns of x_S and of targets.

        Args:
            group: of samples.
            plain: (r, q, m + f) products of the held features' columns with those of the set and
                targets.
            more: (r, m, m + f) of those of the set.
            squares: (r, f) of targets.
        """
        m, u = more.shape[1], self._blocks.shape[1]
        ridge = RIDGE * more.diagonal(dim1=1, dim2=2) + SMALLEST**2
        rows, factor = self._held.factor(group)
        of_plain, c = torch.linalg.lu_solve(*factor, plain), m - u
        left = more - plain[..., :m].mT @ of_plain
        left.diagonal(dim1=1, dim2=2).add_(ridge)
        of_more = torch.linalg.solve(left[:, :c, :c], left[:, :c, c:])
        flat = squares - (plain * of_plain)[..., m:].sum(1)
        flat = flat - (left[:, :c, c:] * of_more)[..., u:].sum(1)
        others = torch.cat([of_plain[..., c:] - of_plain[..., :c] @ of_more, of_more], 1)
        left = left[:, c:, c:] - left[:, :c, c:m].mT @ of_more
        gram, right = left.split([u, flat.shape[1]], 2)
        return Left(gram, right, flat, (rows - others.shape[1]).clamp_min(1.0), others)

    def _selected(self, left: Left, squares: Tensor, of: Tensor, honest: int) -> Tensor:
        """(r, u, f) the coefficients of the columns of x_S, block by block where they fit better.

        Args:
            left: beside the other columns.
            squares: (r, f) of the targets.
            of: (f,) the target that each belongs to.
            honest: see above.
        """
        (r, u, f), rest, steps = left.right.shape, left.flat[..., None], Stepwise(*left[:2])
        least, n = (squares * EXACT).clamp_min(1e-30)[..., None], left.rows[..., None]
        allowed, tests = self._allowed[:, of].T, torch.arange(len(self._blocks))
        tests = tests >= len(tests) - honest
        for some, at in _runs(self._blocks, TRIED // max(r * f, 1)):
            while len(some):
                gained, more = (each.view(r, f, -1) for each in steps.beside(at))
                remains = (rest - gained).maximum(least)
                gain = n * (rest.maximum(least) / remains).log()
                bounds = self._bounds[more]
                better = (gain > (bounds + 2.0 * more if r == DRAWS else bounds)) & allowed[
                    :, some
                ]
                if honest:
                    wanted = better[-1] | ~tests[some]
                    self._allowed[some], better = wanted.T, better & wanted
                asking = better.flatten(0, 1).any(0).nonzero()[:1, 0].tolist()
                for i in asking:
                    is_better = better[..., i : i + 1]
                    steps.take(at[i], i, is_better.flatten())
                    rest = torch.where(is_better, remains[..., i : i + 1], rest)
                used = asking[0] + 1 if asking else len(some)
                some, at = some[used:], at[used:]
        return steps.coefficients().view(r, f, u).mT


def _runs(blocks: Tensor, most: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Successive blocks: (k,) their numbers, (k, q) their columns, of smaller ones also u.

    Args:
        blocks: (b, u) bool.
        most: the number of k q q, unless a block alone has more.
    """
    at, sizes = (~blocks).long().argsort(stable=True), blocks.sum(1).tolist()
    at = torch.where(blocks.gather(1, at), at, blocks.shape[1])
    run: list[int] = []
    for i, size in [*enumerate(sizes), (len(sizes), most)]:
        widest = max(sizes[k] for k in run) if run else 0
        if run and (len(run) + 1) * max(widest, size) ** 2 > most:
            yield torch.tensor(run), at[run, :widest]
            run = []
        run += [i] if size else []


class Stepwise:
    """Regressions of f targets in r samples that take blocks of columns, one after the other.

    Of each there is a Cholesky factor of the products of the columns that it has taken: a block is
    looked at beside what these leave.

    Args:
        gram: (r, u, u) the products of columns.
        right: (r, u, f) of columns and targets.
    """

    def __init__(self, gram: Tensor, right: Tensor) -> None:
        # The last column is empty.
        self._gram, self._right = pad(gram, (0, 1, 0, 1)), pad(right.mT.flatten(0, 1), (0, 1))
        self._of = torch.arange(len(gram)).repeat_interleave(right.shape[2])
        self._order, (c, u) = [self._of[:0]], self._right.shape
        self._taken = torch.arange(1, u + 1).expand(c, u) == u
        self._rows, self._known = right.new_zeros(c, u, 0), right.new_zeros(c, 0, 1)

    def beside(self, at: Tensor) -> tuple[Tensor, Tensor]:
        """(r f, k) the squares that k blocks explain, -1 if they have no factor; and new columns.

        Args:
            at: (k, q) the columns of each block.
        """
        (k, q), (c, _, t) = at.shape, self._rows.shape
        taken, before = self._taken[:, at], self._rows[:, at].view(c * k, q, t)
        own = self._gram[self._of[:, None, None, None], at[..., None], at[:, None]]
        own = torch.baddbmm(own.view(c * k, q, q), before, before.mT, alpha=-1.0)
        # Of columns that were taken nothing is left: no squares, nor products.
        own.diagonal(dim1=1, dim2=2).add_(taken.view(c * k, q))
        factor, failed = torch.linalg.cholesky_ex(own)
        right, known = self._right[:, at].view(c * k, q, 1), self._known.repeat_interleave(k, 0)
        right = torch.baddbmm(right, before, known, alpha=-1.0)
        part = torch.linalg.solve_triangular(factor, right, upper=False)
        self._tried = factor.view(c, k, q, q), part.view(c, k, q, 1), ~taken[..., None]
        gained = torch.where(failed == 0, part.square().sum((1, 2)), -1.0)
        return gained, q - taken.sum(2)

    def take(self, at: Tensor, i: int, taken: Tensor) -> None:
        """Take the columns of the i-th block that was looked at, (q,), where `taken`, (r f,)."""
        factor, part, new = (each[:, i] for each in self._tried)
        new = new & taken[:, None, None]
        wider = torch.baddbmm(
            self._gram[:, at][self._of], self._rows[:, at], self._rows.mT, alpha=-1.0
        )
        wider = torch.linalg.solve_triangular(factor, wider, upper=False) * new
        self._rows = torch.cat([self._rows, wider.mT], 2)
        self._known = torch.cat([self._known, part * new], 1)
        self._taken[:, at] |= taken[:, None]
        self._order.append(at)

    def coefficients(self) -> Tensor:
        """(r f, u) of the columns that were taken; of others 0."""
        at = torch.cat(self._order)
        own = self._rows[:, at].mT.triu()
        is_taken = own.diagonal(dim1=1, dim2=2) != 0.0
        own = torch.where(is_taken[:, None], own, torch.diag_embed((~is_taken).double()))
        found = torch.linalg.solve_triangular(own, self._known, upper=True)[..., 0]
        return torch.zeros_like(self._right).index_add_(1, at, found)[:, :-1]


def _targets(sample: Sample) -> tuple[Array, Tensor]:
    """(n, f) the winsorised values of smooth features, centred, 0 if special; (f,) their means."""
    smooth = sample.shared(smooth_features)
    values = torch.from_numpy(or_nan(sample.shared(winsorised).compress(smooth, 1)))
    mean = values.nanmean(0)
    return values.sub_(mean).nan_to_num_().numpy(), mean


def _bounds(most: int, tested: int) -> Tensor:
    """(most + 1,) the least gains in twice the log-likelihood of 0, 1, ... further columns.

    At an error rate of .001 over all tests.
    """
    from scipy.special import chdtri  # scipy.stats takes most of a second to import

    freedom = torch.arange(1, most + 1).double()
    bounds = torch.from_numpy(chdtri(freedom.numpy(), ERROR / max(tested, 1)))
    return pad(bounds, (1, 0), value=torch.inf)


# The largest logarithm of a scale.
MOST_SCALE = 1.5


@dataclass(frozen=True)
class Lines:
    """The locations and scales of smooth features in r samples.

    Attributes:
        features: (f,) their positions.
        columns: phi, and those of the held features.
        held: (r, q, f) double, the weights of a constant and of the held features' columns.
        slope: (r, u, f) double, beta.
        scale: (r, u, f) double, gamma.
    """

    features: Array
    columns: Columns
    held: Array
    slope: Array
    scale: Array

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """Those of several regressions on the same columns as one."""
        each = zip(*((part.held, part.slope, part.scale) for part in parts), strict=True)
        weights = (np.concatenate(some, 2) for some in each)
        return cls(np.concatenate([part.features for part in parts]), parts[0].columns, *weights)

    def residual(self, x: Array, draws: Array) -> Array:
        """(r, m, f) what the locations of r samples, (r,), leave of scaled rows, given (m, p)."""
        rows = self.columns.scaled(x)
        own = self.columns.own(rows, rows[:, None, self.columns.acted], self._most)[:, 0]
        left = rows.take(self.features, 1) - times(self.columns.always(rows), self.held[draws])
        return left - times(own, self.slope[draws, : self._most])

    def move(self, x: Array, v: Array, values: Array, draws: Array) -> Array:
        """(r, m, c, f) the values of the features when x_S changes.

        Args:
            x: (m, p) the rows.
            v: (r, m, f) their residuals.
            values: (m, c, w) the new values of x_S.
            draws: (r,) the samples.
        """
        columns, rows = self.columns, self.columns.scaled(x)
        new, own = columns.scaled(values, columns.acted), rows[:, None, columns.acted]
        own = columns.own(rows, np.concatenate([new, own], 1), self._most)
        change = own[:, :-1] - own[:, -1:]
        out = times(change, self.slope[draws, None, : self._most])
        if self.scales:
            scale = times(change, self.scale[draws, None, : self._most])
            out += v[:, :, None] * np.expm1(scale.clip(-MOST_SCALE, MOST_SCALE, out=scale))
        out *= columns.scaled.width[self.features]
        out += x[:, None, self.features]
        return out

    def follow(self, x: Array, reached: Array, values: Array, draws: Array) -> Array:
        """(r, m, f) the values of the features when x_S and the earlier features change.

        Args:
            x: (m, p) the rows.
            reached: (r, m, p) the rows with the new values of the earlier features.
            values: (m, w) the new values of x_S.
            draws: (r,) the samples.
        """
        columns, (r, m, p) = self.columns, reached.shape
        moved = self.move(x, self.residual(x, draws), values[:, None], draws)[:, :, 0]
        there = columns.between(columns.scaled(reached.reshape(r * m, p))).reshape(r, m, -1)
        there -= columns.between(columns.scaled(x))
        change = times(there, self.held[draws, -there.shape[2] :])
        out: Array = moved + change * columns.scaled.width[self.features]
        return out

    @lazy
    def _most(self) -> int:
        """How many columns of x_S are used, from the first on."""
        used = ((self.slope != 0.0) | (self.scale != 0.0)).any((0, 2))
        return int(used.nonzero()[0].max(initial=0)) + 1

    @lazy
    def scales(self) -> bool:
        """Whether some scale changes, so that residuals are needed."""
        return bool((self.scale != 0.0).any())


# Heavy values of a number that have a column, and their least rows.
ATOMS, ATOM_ROWS = 12, 50
# Held features, and columns of one, by which effects may differ.
MODIFIERS, MOST_LEVELS = 12, 12


class Columns:
    """The columns of the held features, in every model, and those of x_S.

    The columns of x_S are those of `Terms`; an indicator for each heavy value, at which a feature
    may jump; the products of the straight ones of two acted features; and those by which an effect
    may differ: products of the straight ones with those of held features, and of these and the
    bent ones with the groups of `Modifiers`.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features.
        groups: by which effects of each of S may differ; none without held features.

    Attributes:
        scaled: scales rows, or values of features.
        acted: (w,) the features of S.
        held: the held features.
        earlier: counted features that others follow, too; in every model.
        blocks: (b, u) bool, the columns of x_S that are added together: straight ones, bends,
            heavy values, products with each held feature, those of acted features, outer bends,
            and what differs between groups.
        honest: how many of these, the last ones, rows that did not make them must ask for.
    """

    def __init__(
        self, sample: Sample, acted: Members, held: Members, groups: Sequence[Modifiers]
    ) -> None:
        self.scaled, self.acted = sample.shared(Scaled), np.array(acted)
        self.held, self._at = held, np.array(held, int)
        self._sample, self._between = sample, sample.shared(Terms, ())
        self.earlier: Members = ()
        self._balance = [sample.whole.shared(Balance, j, held) for j in acted] if held else []
        self._terms, self._plain = (sample.shared(Terms, each) for each in (acted, held))
        atoms = [sample.shared(_atoms, j) for j in acted]
        self._atoms = np.concatenate(atoms)
        self._atom_of = np.arange(len(acted)).repeat([len(each) for each in atoms])
        self._by, self._groups = sample.shared(_modifiers, held), [g for g in groups if len(g) > 1]
        self._straight = sample.shared(_straight, held)
        self.honest = 2 if self._groups else 0
        self._products, self.blocks = self._made([i for i, g in enumerate(groups) if len(g) > 1])

    def _made(self, differ: Sequence[int]) -> tuple[Array, Tensor]:
        """(2, q) the places of the factors of products, and the blocks.

        Args:
            differ: the places in S of features whose effects may differ by group.
        """
        terms = self._terms
        straight, of, outer = map(torch.from_numpy, (terms.straight, terms.of, terms.outer))
        inner, line = ~straight & ~outer, straight.nonzero()[:, 0]
        # Factors are the bends, the straight columns of held features, and those of groups.
        sizes = [len(of), *self._by[2], *(len(groups) - 1 for groups in self._groups)]
        _, *by = torch.arange(sum(sizes)).split(sizes)
        pairs = line[torch.triu_indices(len(line), len(line), 1)]
        products = [_crossed(line, each) for each in by[: len(self._by[2])]]
        if len(differ) < len(of) and len(of[line].unique()) > 1:
            products.append(pairs[:, of[pairs[0]] != of[pairs[1]]])
        last = len(products)
        for some in (straight, inner) if differ else ():
            at = [(some & (of == i)).nonzero()[:, 0] for i in differ]
            each = zip(at, by[len(self._by[2]) :], strict=True)
            products.append(torch.cat([_crossed(*both) for both in each], 1))
        counts = [len(of), len(self._atoms), *(each.shape[1] for each in products)]
        part = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        bends, jumps, *others = (part == i for i in range(len(counts)))
        lines, inner = (pad(each, (0, len(part) - len(of))) for each in (straight, inner))
        blocks = [lines, inner | lines, jumps, *(lines | each for each in others[:last]), bends]
        if differ:
            groups = others[last]
            blocks += [lines | groups, inner | lines | groups | others[last + 1]]
        empty = torch.empty(2, 0).long()
        return torch.cat([empty, *products], 1).numpy(), torch.stack(blocks)

    def after(self, earlier: Members) -> Columns:
        """The same with some earlier features."""
        other = copy(self)
        other.earlier, other._between = earlier, Terms(self._sample, earlier)
        return other

    def always(self, rows: Array) -> Array:
        """(m, q) a constant, the held features' columns of scaled rows, (m, p), and `more`."""
        plain = plain_columns(self._plain, rows.take(self._at, 1))
        return np.concatenate([plain, self.more(rows)], 1)

    def more(self, rows: Array, part: slice | None = None) -> Array:
        """(m, q) columns in every model that are of this set alone, of held and earlier features.

        Of several features what their columns let expect of each: one by one they are many. Those
        of training rows are kept.

        Args:
            rows: (m, p) scaled rows.
            part: their places, where they are training rows.
        """
        if len(self._balance) == 1:
            found = [self._balance[0].columns(rows)]
        elif part is None:
            found = [each.means(rows) for each in self._balance]
        else:
            found = [self._sample.shared(of_rows, each.means)[part] for each in self._balance]
        found += [self.between(rows)] if self.earlier else []
        return np.concatenate(found, 1) if found else np.empty((len(rows), 0))

    def between(self, rows: Array) -> Array:
        """(m, e) the columns of the earlier features in scaled rows."""
        return self._between(rows.take(np.array(self.earlier, int), 1))

    def own(
        self, rows: Array, values: Array, most: int | None = None, part: slice | None = None
    ) -> Array:
        """(m, c, u) the columns of x_S.

        Args:
            rows: (m, p) scaled rows, of which the held features are read.
            values: (m, c, w) the scaled values of x_S.
            most: how many columns are needed, from the first on.
            part: the places of the rows, where they are training rows.
        """
        found = self._terms(values)
        is_atom = values.take(self._atom_of, -1) == self._atoms
        first: Array = np.concatenate([found, is_atom], -1)
        if most is not None and most <= first.shape[-1]:
            return first[..., :most]
        one, other = self._products[:, : None if most is None else most - first.shape[-1]]
        by = _by_number(self._by, rows) if part is None else self._straight[part]
        factors = [by]
        if self._groups and int(other[-1]) >= found.shape[-1] + by.shape[1]:
            for each in self._groups:
                known = None if part is None else self._sample.shared(of_rows, each)[part]
                group = each(rows) if known is None else known
                factors.append(np.eye(len(each))[group, 1:])
        held = np.concatenate(factors, 1)[:, None]
        every = np.concatenate([found, held.repeat(found.shape[1], 1)], -1)
        return np.concatenate([first, every.take(one, -1) * every.take(other, -1)], -1)


def _straight(sample: Sample, held: Members) -> Array:
    """(n, l) the columns of held features by which effects may differ, in the training rows."""
    return _by_number(sample.shared(_modifiers, held), sample.shared(winsorised))


def _by_number(of: tuple[Members, Terms, list[int]], rows: Array) -> Array:
    by, terms, _ = of
    return terms(rows.take(np.array(by, int), 1))[:, terms.straight]


def _crossed(one: Tensor, other: Tensor) -> Tensor:
    """(2, q u) each of some numbers, (q,), beside each of others, (u,)."""
    return torch.stack([one.repeat_interleave(len(other)), other.repeat(len(one))])


def _atoms(sample: Sample, j: int) -> Array:
    """The heaviest values of a number; empty for a category, which has indicators."""
    feature = sample.encoder.schema.features[j]
    column = sample.scaled(j)
    return (_heaviest(column) if feature.has_order else column[:0]).numpy()


def _heaviest(column: Tensor) -> Tensor:
    values, counts = value_counts(column)
    heavy = counts.topk(min(ATOMS, len(counts))).indices.sort().values
    least = max(ATOM_ROWS, HEAVY * len(column))
    return values[heavy[counts[heavy] >= least]]


def _modifiers(sample: Sample, held: Members) -> tuple[Members, Terms, list[int]]:
    """The held features by which effects may differ; their columns, and how many each has."""
    levels = {j: int(Terms(sample, (j,)).straight.sum()) for j in held}
    some = tuple(j for j in held if levels[j] <= MOST_LEVELS)[:MODIFIERS]
    return some, Terms(sample, some), [levels[j] for j in some]


def chains_of(
    sample: Sample, columns: Columns, counted: Tensor, smooth: Tensor, *, tested: int
) -> list[LeastSquares]:
    """The smooth features that follow counted ones, of one place in the order of causes each.

    A counted feature with the same place is taken for a cause where x_S has no effect beside it.

    Args:
        sample: the training rows.
        columns: what x_S and the held features enter as.
        counted: (f,) the counted features that move.
        smooth: (f,) the smooth ones; those with special levels are not: a counted cause moves
            which rows are special.
        tested: the number of features that may follow.
    """
    tiers, names = sample.encoder.schema.tiers, sample.encoder.schema.names
    place, chains = torch.tensor(ranks(tiers, names)), []
    for own in place[smooth].unique().tolist() if len(counted) else ():
        before = place[counted] < own
        earlier = counted[before if bool(before.any()) else place[counted] == own]
        may_move = torch.zeros(len(place), dtype=torch.bool)
        may_move[smooth[place[smooth] == own]] = True
        while bool(may_move.any()) and len(earlier):
            wider = columns.after(tuple(earlier.tolist()))
            fit = LeastSquares(sample, wider, may_move, tested=tested)
            direct = fit.point.features[(fit.point.slope[0] != 0.0).any(0)]
            if bool(before.any()) or not len(direct):
                chains.append(fit)
                break
            may_move[direct] = False
    return chains
