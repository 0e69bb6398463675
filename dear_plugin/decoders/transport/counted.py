"""Links (step 4): which counted features depend on x_S within cells.

A feature may move with x_S only if independence is rejected at some level of parts of x_S (see
`ratios`). Rows are expected from the distribution of their cell; deviations are summed over
cells before they are squared, so that many small cells have the power of a large one (Mantel and
Haenszel 1959).

Ratios (step 5): the distribution of a counted feature in every cell and at every node.

`P(value | cell, node) = base(cell, value) ratio(node, value) / Z`: the ratio is of x_S and shared
by all cells, the base makes the mean over the rows of a cell that of the cell (`fit_ratios`). They
are fitted in turn (iterative proportional fitting), from the rows of each cell and bin, of each
cell and value and of each bin and value. A value that a cell has never seen stays impossible
there, as do the values below a split that no row of a bin reaches; a cell without rows has the
shares of all rows. The values are split in two repeatedly (`values.splits_of`); at each split,
the share of rows on its left varies along x_S as far as the rows show, so that rare values do not
follow their few rows. How far they show it is for
`shrinkage` to say.

Shrinkage (step 5): how far ratios of observed to expected rows vary along x_S, as rows show.

The range of x_S is divided into halves, quarters, ... and single bins. In every part the ratios
are shrunk towards those of the level above, interpolated. How far is decided by Pearson's
statistic: its excess over the mean that equal distributions would give is the variance between
the parts, as the concentration A of a Dirichlet distribution; where it is not significant, parts
are equal.

Trends (step 5): ratios whose logarithms are linear in the ranks of x_S and the places of values.

It is one degree of freedom for each of S (Agresti 2010, 6.2), which few rows show, and holds
beyond the outer bins; what rows show besides is for `ratios`. The mean of a count is
log-linear (`places_of`). It is found within cells, together with their bases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad
from torch.nn.utils.rnn import pad_sequence

from dear_plugin._threads import lazy
from dear_plugin.decoders.protocol import Fit, Members, Sample
from dear_plugin.decoders.transport.held import cells_of
from dear_plugin.decoders.transport.values import (
    GROUPS,
    Axis,
    Values,
    axis_of,
    complete,
    counted_features,
    normal_places,
    places_of,
    resampled,
    squares,
)

# The family-wise error rate over all features that are independent of x_S; the l-th level has
# 1 / 2^l of it.
ERROR = 0.001


def linked(
    sample: Sample, i: int, held: Members, group: int | None, features: Tensor, tested: int
) -> Tensor:
    """(r, f) bool, which of f features depend on feature i in r samples.

    Args:
        sample: the training rows.
        i: the position of a feature of S.
        held: the features that are conditioned on.
        group: of bootstrap samples, see `resampled`; None for the sample itself.
        features: (f,) the features to test.
        tested: how many share the error rate.
    """
    return _found(sample.shared(_all_tails, i, held, group)[..., features], tested)


def _all_tails(sample: Sample, i: int, held: Members, group: int | None) -> Tensor:
    """(l, r, p) the tail probabilities of all counted features in some samples; others 1."""
    counted = sample.shared(counted_features).clone()
    counted[[i, *held]] = False
    counts = Counts(Fit(sample, (i,), held), group)
    out = torch.ones(len(counts.axis.levels.above) + 1, len(counts.rows), len(counted)).double()
    for batch in counts.batches(counted.nonzero()[:, 0].tolist()):
        out[..., batch.features] = _tails(counts, batch)
    return out


def _tails(counts: Counts, batch: Stack) -> Tensor:
    """(l, r, f) the probability of as much dependence of f features by chance, at each level."""
    seen, within = (_grouped(counts, batch, of(batch)) for of in (counts.of_bins, counts.of_cells))
    expected = within / counts.rows.sum(2)[:, None].clamp_min(LEAST) @ counts.rows
    return _tails_of(counts, seen, expected, within)


def _tails_of(counts: Counts, seen: Tensor, expected: Tensor, within: Tensor) -> Tensor:
    """(l, r, f) those of a trend and of all levels, given rows by bin, and `within` cells."""
    levels = counts.axis.levels
    found = shrunk(levels.of(seen), levels.of(expected), levels.above, drawn=counts.drawn).tails
    return torch.stack([_trend(counts, seen - expected, within), *found])


def _trend(counts: Counts, beyond: Tensor, within: Tensor) -> Tensor:
    """(r, f) the probability of such a linear association within cells (Mantel 1963).

    Of several features of S it is one along the mean of their places.

    Args:
        counts: of the rows.
        beyond: (g, r, f, b) observed rows of g groups of values in bins, without those expected.
        within: (g, r, f, k) rows of the groups in cells.
    """
    from scipy.special import chdtrc

    x = counts.axis.place.mean(1)
    y = normal_places(within.sum(3).movedim(0, -1))
    score = (beyond * y.movedim(-1, 0)[..., None] * x).sum((0, 3))
    spread = squares(within.movedim(0, -1), y[:, :, None])
    n = counts.rows.sum(2)[:, None]
    variance = (squares(counts.rows, x)[:, None] * spread / (n - 1.0).clamp_min(1.0)).sum(2)
    statistic = score.square() / variance.clamp_min(LEAST) - 2.0 * counts.drawn
    tail = torch.from_numpy(chdtrc(1.0, statistic.clamp_min(0.0).numpy()))
    return torch.where(variance > LEAST, tail, 1.0)


def differing(counts: Counts, fits: Mapping[int, Ratios], tested: int) -> list[int]:
    """The features of which any sample rejects ratios that were estimated in other rows.

    Args:
        counts: of rows by group, each with its own distribution in every cell.
        fits: the ratios of each, in one sample.
        tested: how many share the error rate.
    """
    found = []
    for batch in counts.batches([*fits]):
        rows, most = counts.rows.repeat(len(batch.features), 1, 1), max(batch.sizes)
        each = zip(batch.features, batch.sizes, strict=True)
        ratio = torch.stack([pad(fits[j].bins[0], (0, most - t)) for j, t in each])
        ratio, wanted = ratio.repeat_interleave(len(counts.rows), 0), counts.of_cells(batch)
        base = _shares(wanted)
        for _ in range(_rounds(rows)):
            base = _rescaled(rows, wanted, base, ratio)
        if_equal = torch.bmm(_weights(rows, base, ratio).mT, base) * ratio
        seen = (_grouped(counts, batch, e) for e in (counts.of_bins(batch), if_equal, wanted))
        rejected = _found(_tails_of(counts, *seen), tested * len(counts.rows)).any(0)
        found += [j for j, is_other in zip(batch.features, rejected, strict=True) if is_other]
    return found


def _grouped(counts: Counts, batch: Stack, rows: Tensor) -> Tensor:
    """(g, r, f, q) the rows of each group of values, given those of values, (f r, q, t)."""
    own = torch.bmm(rows, batch.members.repeat_interleave(len(counts.rows), 0))
    return own.view(-1, len(counts.rows), *own.shape[1:]).permute(3, 1, 0, 2)


def _found(tails: Tensor, tested: int) -> Tensor:
    """(r, f) bool, whether any of l levels rejects, given (l, r, f)."""
    error = ERROR / tested / 2.0 ** torch.arange(1, len(tails) + 1).double()
    return (tails < error[:, None, None]).any(0)


ROUNDS = 3

# The weights of the sample itself: one block.
WHOLE = torch.ones(1, 1, dtype=torch.float64)


# Entries of a batch, and those that are padding.
ENTRIES, MOST_PADDING = 1 << 22, 1 << 18


class Stack(NamedTuple):
    """Features that are estimated together: those with fewer than t values lack the last ones.

    Attributes:
        features: f of them.
        sizes: how many values each has.
        levels: (f, t) the values,
        place: (f, t) and the other attributes of `Values`.
        members: (f, t, g) 1 where a value belongs to a group.
        splits: (f, 2 q, t).
    """

    features: list[int]
    sizes: list[int]
    levels: Tensor
    place: Tensor
    members: Tensor
    splits: Tensor

    @classmethod
    def of(cls, sample: Sample, *features: int) -> Stack:
        """That of some features."""
        each = [sample.shared(Values.of, j) for j in features]
        sizes, parts = [len(values.levels) for values in each], [v.splits for v in each]
        padded = partial(pad_sequence, batch_first=True)
        levels, place = (padded([values[i] for values in each]) for i in (0, 4))
        members = padded([one_hot(values.groups, GROUPS).double() for values in each])
        t, q = (max(part.shape[i] for part in parts) for i in (2, 1))
        splits = [pad(e, (0, t - e.shape[2], 0, q - e.shape[1])) for e in parts]
        sides = torch.stack(splits).flatten(1, 2)
        return cls([*features], sizes, levels, place, members, sides)


class Counts:
    """The rows of r samples by cell of the held features, bin of x_S, and value.

    Args:
        fit: the training rows, the features of the set, and those that are conditioned on.
        group: of bootstrap samples, see `resampled`; None for the sample itself.
        by: (n,) groups of rows, each a sample of its own in each of the r; -1: in none.
        axis: that of the set, where it is known: one of several features takes time.

    Attributes:
        axis: the bins.
        drawn: whether these are bootstrap samples.
    """

    def __init__(
        self, fit: Fit, group: int | None, by: Tensor | None = None, axis: Axis | None = None
    ) -> None:
        self._fit, sample = fit, fit.sample
        weights = WHOLE if group is None else resampled(group)
        by = torch.zeros(len(sample)).long() if by is None else by
        groups = int(by.max()) + 1
        self._weights = torch.kron(weights, torch.eye(groups).double())
        block = torch.arange(len(sample)) % weights.shape[1] * groups + by
        some = (by >= 0) & sample.shared(complete, fit.held)
        self._some = slice(None) if bool(some.all()) else some.nonzero()[:, 0]
        self._block = block[self._some]
        self.axis = axis_of(sample, fit.acted) if axis is None else axis
        self.drawn, self._bins = group is not None, self.axis.mix.shape[1]

    @lazy
    def rows(self) -> Tensor:
        """(r, k, b) of each cell and bin."""
        return self._in_cells(self.axis.bins[None], self._bins)

    def batches(self, features: Sequence[int]) -> Iterator[Stack]:
        """Batches of features."""
        sample = self._fit.sample
        sizes = {j: len(sample.shared(Values.of, j).levels) for j in features}
        blocks, (r, k, b) = self._weights.shape[1], self.rows.shape
        run: list[int] = []
        for j, size in [*sorted(sizes.items(), key=itemgetter(1)), (-1, ENTRIES)]:
            one = max(len(sample), blocks * max(k, b) * size, 3 * r * k * b)
            padding = sum(size - sizes[i] for i in run) * r * (k + b)
            if run and ((len(run) + 1) * one > ENTRIES or padding > MOST_PADDING):
                yield sample.shared(Stack.of, *run)
                run = []
            run.append(j)

    def of_cells(self, batch: Stack) -> Tensor:
        """(f r, k, t) of each cell and value of features."""
        return self._in_cells(self._codes(batch), max(batch.sizes))

    def of_bins(self, batch: Stack) -> Tensor:
        """(f r, b, t) of each bin and value of features."""
        return self._crossed(self.axis.bins, self._bins, self._codes(batch), max(batch.sizes))

    def _codes(self, batch: Stack) -> Tensor:
        return torch.stack([self._fit.sample.shared(Values.of, j).codes for j in batch.features])

    def _in_cells(self, codes: Tensor, b: int) -> Tensor:
        cells = cells_of(*self._fit)
        return self._crossed(cells.own, len(cells), codes, b)

    def _crossed(self, one: Tensor, a: int, others: Tensor, b: int) -> Tensor:
        """(f r, a, b) the rows with each pair of codes: `one`, (n,), below a, (f, n) below b."""
        f, blocks = len(others), self._weights.shape[1]
        keys = (self._block * a + one[self._some]) * b + others[:, self._some]
        keys += torch.arange(f)[:, None] * (blocks * a * b)
        counts = torch.bincount(keys.flatten(), minlength=f * blocks * a * b).double()
        weights = self._weights.expand(f, -1, -1)
        return torch.bmm(weights, counts.view(f, blocks, a * b)).view(-1, a, b)


class Ratios(NamedTuple):
    """The factors of one feature in r samples.

    Attributes:
        base: (r, k, t).
        nodes: (r, g, t), the ratios at nodes.
        tilt: (r, w, t), the logarithms of the trend's ratios at place 1 of each of S.
        bins: (r, b, t), the ratios in bins.
    """

    base: Tensor
    nodes: Tensor
    tilt: Tensor
    bins: Tensor


def fit_ratios(counts: Counts, features: Sequence[int]) -> dict[int, Ratios]:
    """The bases and the ratios of features."""
    found: dict[int, Ratios] = {}
    for batch in counts.batches(features):
        shape = len(batch.features), len(counts.rows)
        each = zip(*(e.unflatten(0, shape) for e in _fitted(counts, batch)), strict=True)
        for j, t, own in zip(batch.features, batch.sizes, each, strict=True):
            found[j] = Ratios(*(part[..., :t] for part in own))
    return found


def _fitted(counts: Counts, batch: Stack) -> Ratios:
    """Those of f features one after the other."""
    rows, axis = counts.rows.repeat(len(batch.features), 1, 1), counts.axis
    wanted, bins = counts.of_cells(batch), counts.of_bins(batch)
    tilt, base = trend(counts, batch, bins, wanted)
    ratio = trends = _tilted(tilt, axis.place)
    splits = batch.splits.repeat_interleave(len(counts.rows), 0)
    observed, weights = torch.bmm(splits, bins.mT).unflatten(1, (2, -1)), None
    seen, total = axis.levels.of(observed, 1), observed.sum(1, keepdim=True)
    for _ in range(_rounds(rows)):
        if_equal = trends * torch.bmm(_weights(rows, base, ratio).mT, base)
        expected = torch.bmm(splits, if_equal.mT).unflatten(1, (2, -1))
        # The rows that reach a split are as they are: only the share of each side is estimated.
        expected = expected * (total / expected.sum(1, keepdim=True).clamp_min(LEAST))
        own = axis.levels.of(expected, 1)
        found = shrunk(seen, own, axis.levels.above, drawn=counts.drawn, weights=weights)
        weights = found.weights
        # The products of the ratios of sides along splits.
        logs = found.ratio.clamp_min(LEAST).log().movedim(0, 1).flatten(1, 2)
        beyond = torch.bmm(logs.mT, splits).exp()
        ratio = trends * beyond
        base = _rescaled(rows, wanted, base, ratio)
    # A cell without rows has the shares of all rows. Others are not shrunk towards these: what is
    # wider would move too far.
    n = rows.sum(2, keepdim=True)
    base = torch.where(n > 0.0, base, _shares((n * base).sum(1, keepdim=True)))
    # Beyond the outer bins a ratio may fall below 0; a cell keeps the only value that it has.
    mixed = axis.mix @ beyond
    nodes = _tilted(tilt, axis.nodes) * torch.where(mixed < 0.0, LEAST, mixed)
    return Ratios(base, nodes, tilt, ratio)


def _rounds(rows: Tensor) -> int:
    return ROUNDS if rows.shape[1] > 1 else 1


def _rescaled(rows: Tensor, wanted: Tensor, base: Tensor, ratio: Tensor) -> Tensor:
    """(r, k, t) the base with which the mean over the rows of a cell is that of the cell."""
    return _shares(wanted / torch.bmm(_weights(rows, base, ratio), ratio).clamp_min(LEAST))


def _weights(rows: Tensor, base: Tensor, ratio: Tensor) -> Tensor:
    """(r, k, b) rows over the normalisation Z of their cell and bin."""
    return rows / torch.bmm(base, ratio.mT).clamp_min(LEAST)


def _shares(x: Tensor) -> Tensor:
    """X over its sums along the last dimension."""
    return x / x.sum(-1, keepdim=True).clamp_min(LEAST)


# Of the parts of each level.
Parts = Sequence[Tensor]
# Fewer expected rows are left out of a statistic.
LEAST_EXPECTED = 5.0
# Parts are equal unless the statistic rejects it at this error rate.
LEVEL_ERROR = 0.01


class Shrunk(NamedTuple):
    """Ratios of observed to expected rows, and how much they vary at each of l levels.

    Attributes:
        ratio: (g, ..., b) of the bins.
        weights: (..., q) those of the rows of the parts of each level, beside the level above: 0
            where parts may be equal.
        tails: (...) the probability of as large a statistic if the parts of a level were equal;
            none where weights were known.
    """

    ratio: Tensor
    weights: Parts
    tails: Parts


def shrunk(
    seen: Parts, expected: Parts, above: Parts, *, drawn: bool, weights: Parts | None = None
) -> Shrunk:
    """The ratios of g groups along the bins, from the whole range down to single bins.

    Args:
        seen: (g, ..., q) rows in the parts of each level.
        expected: (g, ..., q) rows if the distributions were equal.
        above: see `Divisions`.
        drawn: whether these are bootstrap samples of half the rows, each counted twice: their
            noise adds twice the mean of the statistic.
        weights: (..., q) of each level, where they are known.
    """
    ratio, taken = torch.ones_like(seen[0][..., :1]), torch.zeros(())
    found, tails = list[Tensor](), list[Tensor]()
    for i, (own, if_equal, mixed) in enumerate(zip(seen, expected, above, strict=True)):
        n = own.sum(0)
        # As many rows are expected in each part as there are.
        ratio = (ratio @ mixed).clamp_min(LEAST)
        ratio = ratio * (n / (if_equal * ratio).sum(0).clamp_min(LEAST))
        if weights is None:
            tail, strength = _tested(own, if_equal * ratio, taken, drawn)
            weight = n / (n + strength[..., None]).clamp_min(LEAST)
            taken = (weight * n).sum(-1) / n.sum(-1).clamp_min(LEAST)
            tails.append(tail)
        else:
            weight = weights[i]
        found.append(weight)
        ratio = ratio.lerp(torch.where(if_equal > LEAST, own / if_equal, ratio), weight)
    return Shrunk(ratio, found, tails)


def pearson(seen: Tensor, if_equal: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pearson's statistic of equal distributions in the parts, and its moments, (...) each.

    Args:
        seen: (g, ..., q) rows of groups in parts.
        if_equal: (g, ..., q) rows if the distributions were equal.

    Returns:
        The statistic; its mean then; what small expectations add to its variance, twice the mean;
        and by how much it grows with the variance between the parts, 1 / (1 + A).
    """
    n = seen.sum(0)
    total = n.sum(-1, keepdim=True).clamp_min(LEAST)
    share = if_equal.sum(-1, keepdim=True) / total
    enough = if_equal >= LEAST_EXPECTED
    unit = torch.where(enough, (1.0 - n / total) * (1.0 - share), 0.0)
    inverse = torch.where(enough, 1.0 / if_equal, 0.0)
    statistic = ((seen - if_equal).square() * inverse).sum((0, -1))
    growth = (n * unit).sum((0, -1)).clamp_min(LEAST)
    return statistic, unit.sum((0, -1)), inverse.sum((0, -1)), growth


def _tested(seen: Tensor, if_equal: Tensor, taken: Tensor, drawn: bool) -> tuple[Tensor, Tensor]:
    """The tail probability and the concentration of one level, (...) each.

    Args:
        seen: (g, ..., q) rows of the parts.
        if_equal: (g, ..., q) rows by the level above.
        taken: how far the level above follows its parts: it has half of their variation then.
        drawn: see `shrunk`.
    """
    statistic, freedom, spread, growth = pearson(seen, if_equal)
    freedom = freedom * (1.0 - 0.5 * taken)
    statistic = statistic - 2.0 * freedom if drawn else statistic
    tail = _tail(statistic, freedom, 2.0 * freedom + spread)
    excess = (statistic - freedom) / growth
    excess = torch.where(tail < LEVEL_ERROR, excess.clamp_min(LEAST), 0.0)
    return tail, (1.0 / excess - 1.0).clamp_min(0.0)


def _tail(statistic: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """The probability of a larger statistic, by the gamma distribution of equal moments."""
    from scipy.special import gammaincc

    m, v = (np.maximum(each.numpy(), 1e-9) for each in (mean, variance))
    tail = gammaincc(m * m / v, np.maximum(statistic.numpy(), 0.0) / (v / m))
    return torch.from_numpy(np.where(m > 1e-6, tail, 1.0))


LEAST = 1e-12
# The least statistic of a trend for each of S, at an error rate of .01; Newton's steps, by how
# much they are too short, as bases change with slopes; the largest slope, and log of a ratio; the
# rows that are added where features of S are copies of each other.
TREND, STEPS, FURTHER, MOST_SLOPE, MOST_TILT, RIDGE = 6.63, 3, 1.25, 3.0, 60.0, 1e-3


def trend(counts: Counts, batch: Stack, seen: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """(f r, w, t) trends of features, 0 where they are not significant, and (f r, k, t) bases.

    Args:
        counts: of the rows.
        batch: the features.
        seen: (f r, b, t) their rows in bins.
        wanted: (f r, k, t) their rows in cells.
    """
    place, value, r = counts.axis.place, batch.place, len(counts.rows)
    if (freedom := place.shape[1]) > 1:
        # What several features explain makes all rows wider than any cell.
        in_all = seen.unflatten(0, (-1, r)).sum(1)
        value = torch.where(value.any(1, keepdim=True), places_of(batch.levels, in_all), 0.0)
    value, rows = value.repeat_interleave(r, 0)[:, None], counts.rows.repeat(len(value), 1, 1)
    slope, base = place.new_zeros(len(rows), freedom, 1), _shares(wanted)
    if not bool(place.any() and value.any()):
        return slope * value, base
    kept, total = torch.ones(()), (seen * value).sum(2)
    powers, ridge = torch.stack([value**k for k in range(3)], 1), RIDGE * torch.eye(freedom)
    ratio = _tilted(slope * value, place)
    for step in range(STEPS):
        weighted = (powers * base[:, None]).flatten(1, 2)
        shares = torch.bmm(weighted, ratio.mT).unflatten(1, (3, -1))
        _, mean, spread = (shares / shares[:, :1].clamp_min(LEAST)).unbind(1)
        size = rows * (spread - mean.square()).clamp_min(0.0)
        # Places are about their means in cells: their bases move with the slope.
        sums = size @ place
        inner = (size.sum(1)[..., None] * place).mT @ place
        middle = sums / size.sum(2, keepdim=True).clamp_min(LEAST)
        score = (total - (rows * mean).sum(1)) @ place
        more = torch.linalg.solve(inner - torch.bmm(sums.mT, middle) + ridge, score)
        if step == 0:
            # Shrunk by the noise that is in it.
            statistic = (score * more).sum(1)[:, None, None] - 2.0 * freedom * counts.drawn
            least = TREND * freedom
            kept = (1.0 - freedom / statistic.clamp_min(least)) * (statistic > least)
        further = FURTHER * more[..., None] * (kept > 0.0)
        further = (slope + further).clamp(-MOST_SLOPE, MOST_SLOPE)
        base, slope = base * (torch.bmm(middle, slope - further) * value).exp(), further
        ratio = _tilted(slope * value, place)
        base = _rescaled(rows, wanted, base, ratio)
    return kept * slope * value, base


def _tilted(tilt: Tensor, place: Tensor) -> Tensor:
    """(r, q, t) the ratios of a trend, (r, w, t), at some places, (q, w)."""
    tilted = place * tilt if place.shape[1] == 1 else place @ tilt
    return tilted.clamp(-MOST_TILT, MOST_TILT).exp()
