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

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin._threads import lazy
from dear_plugin.decoders.protocol import Members, Sample
from dear_plugin.decoders.transport.held import cells_of
from dear_plugin.decoders.transport.values import (
    GROUPS,
    Axis,
    Level,
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
    some, weights = counted.nonzero()[:, 0], WHOLE if group is None else resampled(group)
    tails = _tails(Counts(sample, (i,), held, weights), some)
    return tails.new_ones(*tails.shape[:2], len(counted)).index_copy(2, some, tails)


def _tails(counts: Counts, features: Tensor) -> Tensor:
    """(l, r, f) the probability of as much dependence of f features by chance, at each level."""
    if not len(features):
        return torch.ones(len(counts.axis.levels) + 1, len(counts.rows), 0).double()
    seen, within = (
        _grouped(counts, features.tolist(), of) for of in (counts.of_bins, counts.of_cells)
    )
    expected = within / counts.rows.sum(2)[:, None].clamp_min(LEAST) @ counts.rows
    return _tails_of(counts, seen, expected, within)


def _tails_of(counts: Counts, seen: Tensor, expected: Tensor, within: Tensor) -> Tensor:
    """(l, r, f) those of a trend and of all levels, given rows by bin, and `within` cells."""
    found = shrunk(seen, expected, counts.axis.levels, drawn=counts.drawn).tail
    return torch.cat([_trend(counts, seen - expected, within)[None], found])


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


def differing(counts: Counts, fits: Mapping[int, Ratios], tested: int) -> Tensor:
    """(f,) bool, of which features any sample rejects ratios that were estimated in other rows.

    Args:
        counts: of rows by group, each with its own distribution in every cell.
        fits: the ratios of each, in one sample.
        tested: how many share the error rate.
    """
    features = [*fits]
    ratio = [each.bins.expand(len(counts.rows), -1, -1) for each in fits.values()]
    bases = fit_bases(counts, features, ratio)
    if_equal = {
        j: (counts.rows / (base @ own.mT).clamp_min(LEAST)).mT @ base * own
        for j, base, own in zip(features, bases, ratio, strict=True)
    }
    rows = counts.of_bins, if_equal.__getitem__, counts.of_cells
    seen = (_grouped(counts, features, of) for of in rows)
    return _found(_tails_of(counts, *seen), tested * len(counts.rows)).any(0)


def _grouped(counts: Counts, features: list[int], of: Callable[[int], Tensor]) -> Tensor:
    """(g, r, f, q) the rows of each group of values, given those of values, (r, q, t)."""
    members = [one_hot(counts.values(j).groups, GROUPS).double() for j in features]
    rows = [of(j) @ member for j, member in zip(features, members, strict=True)]
    return torch.stack(rows, 1).movedim(3, 0)


def _found(tails: Tensor, tested: int) -> Tensor:
    """(r, f) bool, whether any of l levels rejects, given (l, r, f)."""
    error = ERROR / tested / 2.0 ** torch.arange(1, len(tails) + 1).double()
    return (tails < error[:, None, None]).any(0)


ROUNDS = 4

# The weights of the sample itself: one block.
WHOLE = torch.ones(1, 1, dtype=torch.float64)


class Counts:
    """The rows of r samples by cell of the held features, bin of x_S, and value.

    Args:
        sample: the training rows.
        acted: the features of the set.
        held: the features that are conditioned on.
        weights: (r, q) the weights of blocks of rows: row i is in block i modulo q.
        by: (n,) groups of rows, each a sample of its own in each of the r; -1: in none.
        axis: that of the set, where it is known: one of several features takes time.

    Attributes:
        axis: the bins.
        drawn: whether these are bootstrap samples.
    """

    def __init__(
        self,
        sample: Sample,
        acted: Members,
        held: Members,
        weights: Tensor,
        by: Tensor | None = None,
        axis: Axis | None = None,
    ) -> None:
        self._sample, self._set = sample, (acted, held)
        by = torch.zeros(len(sample)).long() if by is None else by
        groups = int(by.max()) + 1
        self._weights = torch.kron(weights, torch.eye(groups).double())
        block = torch.arange(len(sample)) % weights.shape[1] * groups + by
        some = (by >= 0) & sample.shared(complete, held)
        self._some = slice(None) if bool(some.all()) else some.nonzero()[:, 0]
        self._block = block[self._some]
        self.axis = axis_of(sample, acted) if axis is None else axis
        self.drawn, self._bins = len(weights) > 1, self.axis.mix.shape[1]

    def values(self, j: int) -> Values:
        """The values of feature j."""
        return self._sample.shared(Values.of, j)

    @lazy
    def rows(self) -> Tensor:
        """(r, k, b) of each cell and bin."""
        cells = cells_of(self._sample, *self._set)
        return self._crossed(cells.own, len(cells), self.axis.bins, self._bins)

    def of_cells(self, j: int) -> Tensor:
        """(r, k, t) of each cell and value of feature j."""
        cells, (levels, codes, *_) = cells_of(self._sample, *self._set), self.values(j)
        return self._crossed(cells.own, len(cells), codes, len(levels))

    def of_bins(self, j: int) -> Tensor:
        """(r, b, t) of each bin and value of feature j."""
        levels, codes, *_ = self.values(j)
        return self._crossed(self.axis.bins, self._bins, codes, len(levels))

    def _crossed(self, one: Tensor, a: int, other: Tensor, b: int) -> Tensor:
        """(r, a, b) the rows with each pair of codes: `one`, (n,), below a, `other` below b."""
        blocks = self._weights.shape[1]
        keys = (self._block * a + one[self._some]) * b + other[self._some]
        counts = torch.bincount(keys, minlength=blocks * a * b).view(blocks, -1)
        return (self._weights @ counts.double()).view(-1, a, b)


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


def fit_ratios(counts: Counts, features: list[int]) -> dict[int, Ratios]:
    """The bases and the ratios of features."""
    if not features:
        return {}
    rows, axis = counts.rows, counts.axis
    bins, wanted = ([of(j) for j in features] for of in (counts.of_bins, counts.of_cells))
    values = [counts.values(j) for j in features]
    fits = [trend(counts, *each) for each in zip(values, bins, wanted, strict=True)]
    tilts, base = ([*each] for each in zip(*fits, strict=True))
    ratio = trends = [_tilted(each, axis.place) for each in tilts]
    splits = [each.splits for each in values]
    observed, concentration = _by_side(bins, splits), None
    for _ in range(_rounds(rows)):
        factors = zip(base, ratio, strict=True)
        if_equal = [torch.bmm(_weights(rows, b, q).mT, b) for b, q in factors]
        expected = _by_side([t * b for t, b in zip(trends, if_equal, strict=True)], splits)
        # The rows that reach a split are as they are: only the share of each side is estimated.
        expected = expected * (observed.sum(0) / expected.sum(0).clamp_min(LEAST))
        found = shrunk(
            observed, expected, axis.levels, drawn=counts.drawn, concentration=concentration
        )
        beyond, concentration = _by_value(found.ratio, splits), found.concentration
        ratio = [t * q for t, q in zip(trends, beyond, strict=True)]
        base = [_rescaled(rows, *each) for each in zip(wanted, base, ratio, strict=True)]
    # A cell without rows has the shares of all rows. Others are not shrunk towards these: what is
    # wider would move too far.
    n = rows.sum(2, keepdim=True)
    base = [torch.where(n > 0.0, b, _shares((n * b).sum(1, keepdim=True))) for b in base]
    # Beyond the outer bins a ratio may fall below 0; a cell keeps the only value that it has.
    mixed = [axis.mix @ each for each in beyond]
    mixed = [torch.where(each < 0.0, LEAST, each) for each in mixed]
    nodes = [_tilted(t, axis.nodes) * q for t, q in zip(tilts, mixed, strict=True)]
    return dict(zip(features, map(Ratios, base, nodes, tilts, ratio), strict=True))


def fit_bases(counts: Counts, features: list[int], ratio: list[Tensor]) -> list[Tensor]:
    """The bases, (r, k, t), of features whose ratios, (r, b, t), are known; nothing is shrunk."""
    wanted = [counts.of_cells(j) for j in features]
    base = [_shares(each) for each in wanted]
    for _ in range(_rounds(counts.rows)):
        base = [_rescaled(counts.rows, *each) for each in zip(wanted, base, ratio, strict=True)]
    return base


def _rounds(rows: Tensor) -> int:
    return ROUNDS if rows.shape[1] > 1 else 1


def _by_side(counts: list[Tensor], splits: list[Tensor]) -> Tensor:
    """(2, r, q, b) the rows on both sides of the splits of all features."""
    pairs = zip(counts, splits, strict=True)
    return torch.cat([sides[:, None] @ rows.transpose(1, 2) for rows, sides in pairs], 2)


def _by_value(ratio: Tensor, splits: list[Tensor]) -> list[Tensor]:
    """F tensors, (r, b, t), the products of the ratios of sides, (2, r, q, b), along splits."""
    logs = ratio.clamp_min(LEAST).log().split([sides.shape[1] for sides in splits], 2)
    pairs = zip(logs, splits, strict=True)
    return [(each.transpose(2, 3) @ sides[:, None]).sum(0).exp() for each, sides in pairs]


def _rescaled(rows: Tensor, wanted: Tensor, base: Tensor, ratio: Tensor) -> Tensor:
    """(r, k, t) the base with which the mean over the rows of a cell is that of the cell."""
    return _shares(wanted / torch.bmm(_weights(rows, base, ratio), ratio).clamp_min(LEAST))


def _weights(rows: Tensor, base: Tensor, ratio: Tensor) -> Tensor:
    """(r, k, b) rows over the normalisation Z of their cell and bin."""
    return rows / torch.bmm(base, ratio.mT).clamp_min(LEAST)


def _shares(x: Tensor) -> Tensor:
    """X over its sums along the last dimension."""
    return x / x.sum(-1, keepdim=True).clamp_min(LEAST)


# Fewer expected rows are left out of a statistic.
LEAST_EXPECTED = 5.0
# Parts are equal unless the statistic rejects it at this error rate.
LEVEL_ERROR = 0.01


class Shrunk(NamedTuple):
    """Ratios of observed to expected rows, and how much they vary at each of l levels.

    Attributes:
        ratio: (g, ..., b) of the bins.
        tail: (l, ...) the probability of as large a statistic if the parts were equal.
        concentration: (l, ...) A; infinite where they may be equal.
    """

    ratio: Tensor
    tail: Tensor
    concentration: Tensor


def shrunk(
    observed: Tensor,
    expected: Tensor,
    levels: list[Level],
    *,
    drawn: bool,
    concentration: Tensor | None = None,
) -> Shrunk:
    """The ratios of g groups along the bins, from the whole range down to single bins.

    Args:
        observed: (g, ..., b) rows.
        expected: (g, ..., b) rows if the distributions were equal.
        levels: the divisions of the bins.
        drawn: whether these are bootstrap samples of half the rows, each counted twice: their
            noise adds twice the mean of the statistic.
        concentration: (l, ...) where it is known.
    """
    ratio, taken = torch.ones_like(observed[..., :1]), torch.zeros(())
    tails, concentrations = [], []
    for i, level in enumerate(levels):
        seen, if_equal = observed @ level.parts.T, expected @ level.parts.T
        n = seen.sum(0)
        # As many rows are expected in each part as there are.
        ratio = (ratio @ level.above.T).clamp_min(LEAST)
        ratio = ratio * (n / (if_equal * ratio).sum(0).clamp_min(LEAST))
        if concentration is None:
            tail, strength = _tested(seen, if_equal * ratio, taken, drawn)
            tails.append(tail)
        else:
            strength = concentration[i]
        concentrations.append(strength)
        weight = n / (n + strength[..., None]).clamp_min(LEAST)
        raw = torch.where(if_equal > LEAST, seen / if_equal.clamp_min(LEAST), ratio)
        ratio = ratio + weight * (raw - ratio)
        taken = (weight * n).sum(-1) / n.sum(-1).clamp_min(LEAST)
    return Shrunk(ratio, torch.stack(tails or concentrations), torch.stack(concentrations))


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
    inverse = torch.where(enough, 1.0 / if_equal.clamp_min(LEAST), 0.0)
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

    mean, variance = mean.clamp_min(1e-9), variance.clamp_min(1e-9)
    shape, scale = mean.square() / variance, variance / mean
    tail = gammaincc(shape.numpy(), (statistic.clamp_min(0.0) / scale).numpy())
    return torch.where(mean > 1e-6, torch.as_tensor(tail), 1.0)


LEAST = 1e-12
# The least statistic of a trend for each of S, at an error rate of .01; Newton's steps, by how
# much they are too short, as bases change with slopes; the largest slope, and log of a ratio; the
# rows that are added where features of S are copies of each other.
TREND, STEPS, FURTHER, MOST_SLOPE, MOST_TILT, RIDGE = 6.63, 3, 1.25, 3.0, 60.0, 1e-3


def trend(counts: Counts, values: Values, seen: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """(r, w, t) the trend of one feature, 0 where it is not significant, and (r, k, t) its base.

    Args:
        counts: of the rows.
        values: those of the feature.
        seen: (r, b, t) its rows in bins.
        wanted: (r, k, t) its rows in cells.
    """
    place, rows, value = counts.axis.place, counts.rows, values.place
    if place.shape[1] > 1 and bool(value.any()):
        # What several features explain makes all rows wider than any cell.
        value = places_of(values.levels, seen.sum(0))
    slope, base = place.new_zeros(len(rows), place.shape[1], 1), _shares(wanted)
    if not bool(place.any() and value.any()):
        return slope * value, base
    freedom, kept, total = place.shape[1], torch.ones(()), seen @ value
    powers = torch.stack([value**k for k in range(3)])[:, None, None]
    ridge = RIDGE * torch.eye(freedom)
    for step in range(STEPS):
        shares = (powers * base) @ _tilted(slope * value, place).mT
        _, mean, spread = shares / shares[0].clamp_min(LEAST)
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
        base = _rescaled(rows, wanted, base, _tilted(slope * value, place))
    return kept * slope * value, base


def _tilted(tilt: Tensor, place: Tensor) -> Tensor:
    """(r, q, t) the ratios of a trend, (r, w, t), at some places, (q, w)."""
    return (place @ tilt).clamp(-MOST_TILT, MOST_TILT).exp()
