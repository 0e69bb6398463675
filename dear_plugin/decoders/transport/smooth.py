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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin._threads import lazy
from dear_plugin.data.causes import ranks
from dear_plugin.data.numbers import or_nan
from dear_plugin.decoders.protocol import Members, Sample
from dear_plugin.decoders.transport.counted import ERROR
from dear_plugin.decoders.transport.held import Balance, Modifiers, Terms, grows, winsorised
from dear_plugin.decoders.transport.values import HEAVY, complete, smooth_features, value_counts

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

    features: Tensor
    columns: Columns
    held: Tensor
    slope: Tensor
    scale: Tensor

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """Those of several regressions on the same columns as one."""
        weights = (
            torch.cat([getattr(each, name) for each in parts], 2)
            for name in ("held", "slope", "scale")
        )
        return cls(torch.cat([each.features for each in parts]), parts[0].columns, *weights)

    def residual(self, x: Tensor, draws: Tensor) -> Tensor:
        """(r, m, f) what the locations of r samples, (r,), leave of scaled rows, given (m, p)."""
        rows = self.columns.encoder.scaled(x)
        own = self._own(rows, rows[:, None, self.columns.acted])[:, 0]
        location = self.columns.always(rows) @ self.held[draws] + own @ self._slope[draws]
        return rows.index_select(1, self.features) - location

    def move(self, x: Tensor, v: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(r, m, c, f) the values of the features when x_S changes.

        Args:
            x: (m, p) the rows.
            v: (r, m, f) their residuals.
            values: (m, c, w) the new values of x_S.
            draws: (r,) the samples.
        """
        encoder, acted = self.columns.encoder, self.columns.acted
        rows = encoder.scaled(x)
        change = self._own(rows, encoder.scaled(values, acted))
        change = change - self._own(rows, rows[:, None, acted])
        out = change @ self._slope[draws, None]
        if self._scaled:
            scale = change @ self.scale[draws, None, : self._most]
            out += v[:, :, None] * scale.clamp_(-MOST_SCALE, MOST_SCALE).expm1_()
        return out.mul_(encoder.width[self.features]).add_(x[:, None, self.features])

    def follow(self, x: Tensor, reached: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(r, m, f) the values of the features when x_S and the earlier features change.

        Args:
            x: (m, p) the rows.
            reached: (r, m, p) the rows with the new values of the earlier features.
            values: (m, w) the new values of x_S.
            draws: (r,) the samples.
        """
        scaled, between = self.columns.encoder.scaled, self.columns.between
        moved = self.move(x, self.residual(x, draws), values[:, None], draws)[:, :, 0]
        there = between(scaled(reached.flatten(0, 1))).view(*reached.shape[:2], -1)
        change = (there - between(scaled(x))) @ self.held[draws, -there.shape[2] :]
        out: Tensor = moved + change * self.columns.encoder.width[self.features]
        return out

    def _own(self, x: Tensor, values: Tensor) -> Tensor:
        return self.columns.own(x, values, self._most)

    @lazy
    def _most(self) -> int:
        """How many columns of x_S are used, from the first on."""
        used = ((self.slope != 0.0) | (self.scale != 0.0)).any(2).any(0)
        return int(used.nonzero().max()) + 1 if bool(used.any()) else 1

    @lazy
    def _slope(self) -> Tensor:
        return self.slope[:, : self._most]

    @lazy
    def _scaled(self) -> bool:
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
        groups: by which effects may differ, if any are.
        earlier: counted features that others follow, too; in every model.

    Attributes:
        encoder: scales rows.
        acted: (w,) the features of S.
        held: the held features.
        earlier: the earlier ones.
        blocks: (b, u) bool, the columns of x_S that are added together: straight ones, bends,
            heavy values, products with each held feature, those of acted features, outer bends,
            and what differs between groups.
        honest: how many of these, the last ones, rows that did not make them must ask for.
    """

    def __init__(
        self,
        sample: Sample,
        acted: Members,
        held: Members,
        groups: Modifiers | None,
        *,
        earlier: Members = (),
    ) -> None:
        self.encoder, self.acted, self.held = sample.encoder, torch.tensor(acted), held
        self.earlier, self._groups = earlier, groups
        self._between = Terms(sample, earlier)
        self._balance = sample.shared(Balance, acted, held) if held else None
        self._terms = sample.shared(Terms, acted)
        self._atoms = [sample.shared(_atoms, j) for j in acted]
        self._by = sample.shared(_modifiers, held)
        self._straight, self._outer = self._terms.straight, self._terms.outer
        of = self._terms.of[self._straight]
        self._pairs = torch.triu_indices(len(of), len(of), 1)
        self._pairs = self._pairs[:, of[self._pairs[0]] != of[self._pairs[1]]]
        first = sample.shared(winsorised)[:1]
        parts = [*self._parts(first, first[:, None, self.acted])]
        self.honest = 0 if groups is None else 2
        self.blocks = self._blocks(torch.tensor([part.shape[-1] for part in parts]))

    def always(self, rows: Tensor) -> Tensor:
        """(m, q) a constant, the held features' columns of scaled rows, (m, p), and `between`."""
        held = (
            rows.new_ones(len(rows), 1) if self._balance is None else self._balance.columns(rows)
        )
        return torch.cat([held, self.between(rows)], 1)

    def between(self, rows: Tensor) -> Tensor:
        """(m, e) the columns of the earlier features in scaled rows."""
        return self._between(rows[:, self.earlier])

    def own(self, rows: Tensor, values: Tensor, most: int | None = None) -> Tensor:
        """(m, c, u) the columns of x_S.

        Args:
            rows: (m, p) scaled rows, of which the held features are read.
            values: (m, c, w) the scaled values of x_S.
            most: how many columns are needed, from the first on.
        """
        parts, count = [], 0
        for part in self._parts(rows, values):
            parts.append(part)
            count += part.shape[-1]
            if most is not None and count >= most:
                break
        return torch.cat(parts, -1)[..., :most]

    def _parts(self, rows: Tensor, values: Tensor) -> Iterator[Tensor]:
        """(m, c, q) the columns of each part: bends, jumps, and products."""
        found = self._terms(values)
        yield found
        for column, atoms in zip(values.unbind(-1), self._atoms, strict=True):
            yield (column[..., None] == atoms).to(values.dtype)
        own = found[..., self._straight]
        by, terms, levels = self._by
        for each in terms(rows[:, by])[:, terms.straight].split(levels, 1):
            yield _product(own, each)
        yield own[..., self._pairs[0]] * own[..., self._pairs[1]]
        if self._groups is not None:
            group = one_hot(self._groups(rows), len(self._groups))[:, 1:].to(own)
            yield _product(own, group)
            yield _product(found[..., ~self._straight & ~self._outer], group)

    def _blocks(self, sizes: Tensor) -> Tensor:
        part = torch.arange(len(sizes)).repeat_interleave(sizes)
        bends, jumps = part == 0, (part > 0) & (part <= len(self._atoms))
        line, outer = (torch.zeros_like(bends) for _ in range(2))
        line[: sizes[0]], outer[: sizes[0]] = self._straight, self._outer
        last = len(sizes) - self.honest
        crossed = [line | (part == i) for i in range(len(self._atoms) + 1, last)]
        inner, groups = bends & ~outer, [part == i for i in range(last, len(sizes))]
        differ = [line | groups[0], inner | groups[0] | groups[1]] if self.honest else []
        return torch.stack([line, inner, jumps, *crossed, bends, *differ])


def _product(columns: Tensor, by: Tensor) -> Tensor:
    """(m, c, q l) the products of columns, (m, c, q), and others, (m, l)."""
    return (columns[..., None] * by[:, None, None]).flatten(2)


def _atoms(sample: Sample, j: int) -> Tensor:
    """The heaviest values of a number; empty for a category, which has indicators."""
    feature = sample.encoder.schema.features[j]
    return feature.either(_heaviest, lambda column: column[:0], sample.scaled(j))


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
    sample: Sample,
    columns: Callable[..., Columns],
    counted: Tensor,
    smooth: Tensor,
    *,
    tested: int,
) -> list[LeastSquares]:
    """The smooth features that follow counted ones, of one place in the order of causes each.

    A counted feature with the same place is taken for a cause where x_S has no effect beside it.

    Args:
        sample: the training rows.
        columns: what x_S and the held features enter as, given `earlier` causes.
        counted: (f,) the counted features that move.
        smooth: (f,) the smooth ones; those with special levels are not: a counted cause moves
            which rows are special.
        tested: the number of features that may follow.
    """
    place, chains = (
        torch.tensor(ranks(sample.encoder.schema.tiers, sample.encoder.schema.names)),
        [],
    )
    for own in place[smooth].unique().tolist() if len(counted) else ():
        before = place[counted] < own
        earlier = counted[before if bool(before.any()) else place[counted] == own]
        may_move = torch.zeros(len(place), dtype=torch.bool)
        may_move[smooth[place[smooth] == own]] = True
        while bool(may_move.any()) and len(earlier):
            fit = LeastSquares(
                sample, columns(earlier=tuple(earlier.tolist())), may_move, tested=tested
            )
            direct = fit.point.features[(fit.point.slope[0] != 0.0).any(0)]
            if bool(before.any()) or not len(direct):
                chains.append(fit)
                break
            may_move[direct] = False
    return chains
