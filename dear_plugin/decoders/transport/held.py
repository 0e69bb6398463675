"""Cells (step 2): rows are compared with rows of the same cell of the held features.

Where held numbers have many values, rows are first cut by E[x_S | held], see `balance`. Then held
features of few values are cut at each value, other numbers at quintiles. A cell is a combination
of the first few cuts that enough rows have; a row is in the finest cell it can be, so that rows of
rarer combinations share the cell of what they have in common, whatever its size.

Modifiers (step 3): groups of rows in which x_S may have another effect; a tree of what is held.

Where `y' = x' beta + e` are what the held features leave of a follower and of x_S (Robinson 1988),
`x' e` has mean 0 in every group of rows of the same effect (Nie and Wager 2021; Athey, Tibshirani
and Wager 2019). A tree predicts it for all followers at once, on one half of the rows. Whether
effects differ between its leaves is for the other half to say.

Balance (step 2): E[x_S | held]; rows are compared where it is equal.

x_S is regressed on columns of the held features: each of them with bends, the products of two of
them that x_S depends on, and the leaves of a tree of what these leave. Bends and columns of many
labels are shrunk, and the tree is pruned: rows with the same noise in their expectation would
differ in what is held. Among rows with the same expectation x_S is nearly independent of the held
features (Rosenbaum and Rubin 1983; Imai and van Dyk 2004), so that any number of them, crossed or
curved, costs one dimension. Where many rows have the same value of x_S, rows of the same
expectation may differ in how many have it: this is predicted, too, and may cost a second one.

Regression: least squares on some columns, factored once; targets in, what is left of them out.

Columns that others come after are factored once for all of these, by blocks: what all sets of the
same held features share is shared.

Terms (step 6): the columns of features, on which others are regressed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.numbers import Array, amounts_of, known, times
from dear_plugin.decoders.protocol import Members, Sample
from dear_plugin.decoders.transport.values import Leaves, Scaled, sorted_values, value_counts

FEW_VALUES = 12
QUINTILES = 5
MIN_ROWS = 300
# Groups of equal expectations by each direction, the least rows of these on average, training rows
# that the cuts are found on, and the least variance of the second direction.
GROUPS, GROUP_ROWS, CELL_ROWS, LEAST_SECOND = (10, 8), 100, 10_000, 0.01
# Also where this share of the rows is in cells that a held category does not cut.
MOST_UNCUT = 0.1
# Expectations that differ by less, as a share of their range, are equal.
EQUAL = 1e-9
# So many that those of equal expectations are cut by the held features, too.
MAX_CELLS = 72
# The base of codes, which stay below the modulus: thirteen times as much still fits an int64.
BASE, MODULUS = FEW_VALUES + 1, 2**59


class Cut(NamedTuple):
    """How rows are cut: by one held feature, or by E[x_S | held].

    Attributes:
        of: a number for each of some rows, (n, p) -> (n,).
        at: the sorted cuts.
        feature: the position of the held feature; None for the expectation.
    """

    of: Callable[[Array], Array]
    at: Array
    feature: int | None


class Cells:
    """The cells of some held features; without these there is one.

    A cell has the code of its combination: the digits of its first held features, in base 13.
    Code 0 is the cell of rows whose combinations are all too rare; it exists even if there are
    none, for rows that are decoded later. So the cells of one held feature with two groups of
    enough rows are three: `known = [0, 1, 2]`, and `own` has only 1 and 2. With a second feature,
    cut in two, of which only the first group has enough rows on both sides, they are
    `[0, 2, 14, 15]`: in none, group 2, and group 1 by the two sides (1 * 13 + 1 and 1 * 13 + 2).

    Args:
        sample: the training rows.
        grouped: the features of S, if rows are first cut by E[x_S | held], or ().
        held: the held features.

    Attributes:
        known: (k,) the sorted codes of the cells.
        own: (n,) the cell of each training row, as a place in `known`.
        uncut_shares: the share of training rows whose cell is not cut by each held feature, so
            that they are compared with rows unequal in it.
    """

    def __init__(self, sample: Sample, grouped: Members, held: Members) -> None:
        self._cuts = sorted((sample.shared(_by_feature, j) for j in held), key=_has_quintiles)
        values: Iterable[Array] = (cut.of(sample.rows.numpy()) for cut in [*self._cuts])
        if grouped:
            first = _by_expectation(sample, grouped, held)
            self._cuts[:0] = [cut for cut, _ in first]
            values = chain([expected for _, expected in first], values)
        self.uncut_shares = {j: 1.0 for j in held if not grouped}
        least = max(MIN_ROWS, len(sample) // MAX_CELLS)
        # The codes of the cells that may be cut further, and which of them a row is in, or -1.
        codes, places = np.zeros(1, np.int64), np.zeros(len(sample), np.int64)
        finest = places.copy()
        for i, (cut, own) in enumerate(zip(self._cuts, values, strict=True)):
            if not len(codes):
                # No cell has rows enough to be cut further.
                del self._cuts[i:]
                break
            key = np.where(places < 0, 0, places * BASE + cut.at.searchsorted(own) + 1)
            counts = np.bincount(key, minlength=len(codes) * BASE)
            counts[0] = 0
            frequent = (counts >= (1 if cut.feature is None else least)).nonzero()[0]
            codes = (codes[frequent // BASE] * BASE + frequent % BASE) % MODULUS
            place_of = np.full_like(counts, -1)
            place_of[frequent] = np.arange(len(codes))
            places = place_of[key]
            is_cut = places >= 0
            finest[is_cut] = codes[places[is_cut]]
            if cut.feature is not None and not grouped:
                self.uncut_shares[cut.feature] = 1.0 - float(is_cut.mean())
        self.known, own = np.unique(np.append(0, finest), return_inverse=True)
        self.own = torch.from_numpy(own[1:])

    def __len__(self) -> int:
        """The number of cells (k)."""
        return len(self.known)

    def at(self, x: Array) -> Array:
        """(m,) the cells of rows, (m, p)."""
        cell, last = np.zeros(len(x), np.int64), len(self.known) - 1
        code = cell
        for cut in self._cuts if last else ():
            code = (code * BASE + cut.at.searchsorted(cut.of(x)) + 1) % MODULUS
            at = np.minimum(self.known.searchsorted(code), last)
            cell = np.where(self.known[at] == code, at, cell)
        return cell


def cells_of(sample: Sample, acted: Members, held: Members) -> Cells:
    """The cells of a set; those of held features of few values are computed once for all sets."""
    return sample.shared(_cells, acted, held)


def _cells(sample: Sample, acted: Members, held: Members) -> Cells:
    many = any(_has_quintiles(sample.shared(_by_feature, j)) for j in held)
    if held and not many:
        uncut = sample.shared(Cells, (), held).uncut_shares
        many = max(uncut.values(), default=0.0) > MOST_UNCUT
    return sample.shared(Cells, acted if many else (), held)


def _has_quintiles(cut: Cut) -> bool:
    return len(cut.at) == QUINTILES - 1


def _by_feature(sample: Sample, j: int) -> Cut:
    """Cut feature j; of many categories the eleven most frequent are kept apart."""
    feature = sample.encoder.schema.features[j]
    column, count = sample.rows[:, j], len(feature.categories)
    return _of_amounts(column, j) if feature.has_order else _of_labels(column, j, count)


def _of_labels(column: Tensor, j: int, count: int) -> Cut:
    counts = torch.bincount(column.long(), minlength=count)
    rank = counts.argsort(descending=True, stable=True).argsort().clamp_max(FEW_VALUES - 1)
    # A category that no training row has is in none of the cells that the feature cuts.
    ranked = partial(_ranked, np.append(rank.double(), np.inf), j)
    return Cut(ranked, np.arange(FEW_VALUES) + 0.5, j)


def _of_amounts(column: Tensor, j: int) -> Cut:
    values = value_counts(column)[0]
    at = (values[1:] + values[:-1]) / 2.0
    if len(values) > FEW_VALUES:
        at = sorted_values(column)[torch.arange(1, QUINTILES) * len(column) // QUINTILES].unique()
    return Cut(itemgetter((slice(None), j)), at.numpy(), j)


def _ranked(rank: Array, j: int, rows: Array) -> Array:
    """(n,) the ranks of the categories of rows; the last one of those without training rows."""
    return rank[np.clip(rows[:, j], 0, len(rank) - 1).astype(np.int64)]


def _by_expectation(sample: Sample, acted: Members, held: Members) -> list[tuple[Cut, Array]]:
    """Cuts into groups of equal size by E[x_S | held], and what each cuts, (n,).

    There are up to ten groups by the direction in which most of x_S is predicted. Where a value of
    x_S is frequent, each is cut in up to eight by the next one, if that predicts enough.
    """
    each = [sample.whole.shared(Balance, j, held) for j in acted]
    columns = np.concatenate([sample.shared(_expected, j, held) for j in acted], 1)
    some = columns[:: -(-len(sample) // ROWS)]
    sizes, directions = np.linalg.eigh(np.atleast_2d(np.cov(some.T, bias=True)))
    found, size = list[tuple[Cut, Array]](), len(sample)
    is_cut_twice = any(one.has_frequent for one in each) and sizes[-2] > LEAST_SECOND
    for i, most in enumerate(GROUPS[: 1 + is_cut_twice]):
        weights, count = directions[:, -1 - i], max(min(most, size // GROUP_ROWS), 1)
        expected, size = times(columns, weights), size // count
        score = partial(_score, sample.shared(Scaled), each, weights)
        found.append((Cut(score, _between_groups(expected, count), None), expected))
    return found


def _between_groups(expected: Array, count: int) -> Array:
    """The cuts between groups of equal size, so many at most; (n,) expectations."""
    ordered = np.sort(expected[:: -(-len(expected) // CELL_ROWS)])
    wanted = ordered[np.arange(1, count) * len(ordered) // count]
    # Middles of gaps, so that rounding moves no row: many rows may have equal expectations.
    gap = EQUAL * (ordered[-1] - ordered[0])
    above = ordered.searchsorted(wanted - gap)
    above = np.unique(above[above > 0])
    cuts: Array = (ordered[above - 1] + ordered[above]) / 2.0
    return cuts


def _expected(sample: Sample, j: int, held: Members) -> Array:
    """(n, t) what a feature's straight columns are expected to be in the training rows."""
    expected, scaled = sample.whole.shared(Balance, j, held).expected, sample.shared(Scaled)
    return in_parts(lambda rows: expected(scaled(rows)), sample.rows.numpy())


def _score(scaled: Scaled, each: Sequence[Balance], weights: Array, rows: Array) -> Array:
    """(m,) a weighted sum of what the features of S are expected to be, of rows, (m, p)."""
    own = scaled(rows)
    return times(np.concatenate([one.expected(own) for one in each], 1), weights)


# Leaves, their least rows and share, and rows that the tree is grown on.
LEAVES, MODIFIER_MIN_LEAF, MODIFIER_LEAF_SHARE, MODIFIER_ROWS = 6, 150, 16, 10_000
# Held columns whose products are inputs, too: a tree does not see a crossing alone.
CROSSED = 10


def grows(n: int) -> Array:
    """(n,) bool, the rows that the tree is grown on; the others test it."""
    return np.equal(np.arange(n) % 2, 0)


class Modifiers:
    """The groups of the held features by which effects of one feature may differ.

    Args:
        sample: the training rows.
        acted: the feature.
        held: the held features, at least one.
        followers: the features that may follow.
    """

    def __init__(self, sample: Sample, acted: int, held: Members, followers: Members) -> None:
        self._at, self._terms = np.array(held, int), sample.shared(Terms, held)
        rows = sample.shared(winsorised)[grows(len(sample))]
        rows = rows[:: -(-len(rows) // MODIFIER_ROWS)]
        more = sample.shared(Balance, acted, held).columns(rows)
        regression = Regression(
            torch.from_numpy(more), sample.shared(plain, held, 2, MODIFIER_ROWS)
        )
        own, rest = (
            regression(standardised(sample, some, rows))[1] for some in ((acted,), followers)
        )
        if not sample.encoder.blocks[acted]:
            # Bends may differ where lines do not.
            own = torch.cat([own, regression(own.square())[1]], 1)
        effect = (own[:, :, None] * Regression(own)(rest)[1][:, None]).flatten(1)
        self._middle = self._columns(rows).mean(0)
        crossed = min(len(self._middle), CROSSED)
        self._pairs = torch.triu_indices(crossed, crossed, 1).numpy()
        least = max(MODIFIER_MIN_LEAF, len(rows) // MODIFIER_LEAF_SHARE)
        self._leaves = Leaves(torch.from_numpy(self._inputs(rows)), effect, least, LEAVES)

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._leaves)

    def __call__(self, rows: Array) -> Array:
        """(m,) int64, the group of scaled rows, (m, p)."""
        return in_parts(lambda part: self._leaves(self._inputs(part)), rows)

    def _columns(self, rows: Array) -> Array:
        return self._terms(rows.take(self._at, 1))[:, self._terms.straight]

    def _inputs(self, rows: Array) -> Array:
        columns = self._columns(rows)
        return np.concatenate([columns, _product(columns - self._middle, self._pairs)], 1)


# Training rows that the columns are chosen on.
ROWS = 5_000
# The share of rows from which a value is frequent.
FREQUENT = 0.05
# Held features whose products are looked at, products that are taken, and their least t-statistic.
FACTORS, PRODUCTS, LEAST_T = 24, 24, 4.0
# The least rows of a leaf, and their share.
MIN_LEAF, LEAF_SHARE = 40, 100
# Of a finer tree, whose predictions are one more column: any error that it makes of x_S does no
# harm to what is regressed on both, and what it finds is no longer taken for an effect.
FINE, LEAST_FINE = 400, 12


class Balance:
    """What one feature depends on among the held ones: products of them, and leaves of a tree.

    Args:
        sample: the training rows.
        acted: the feature.
        held: the held features, at least one.

    Attributes:
        has_frequent: whether it is also predicted where the feature has its most frequent value.
        summed: (q, t) from its columns to those of a set of several features: what the products
            and what the leaves let expect of it, and what the finer tree finds.
    """

    def __init__(self, sample: Sample, acted: int, held: Members) -> None:
        self._at, self._terms = np.array(held, int), sample.shared(Terms, held)
        rows = sample.shared(winsorised)[:: -(-len(sample) // ROWS)]
        frequent = _frequent(sample, acted, rows)
        wanted = torch.cat([standardised(sample, (acted,), rows), frequent], 1)
        self.has_frequent = frequent.shape[1] > 0
        regression = sample.shared(plain, held, 1, ROWS)
        weights, left = regression(wanted)
        noise = _noise(regression, self._terms, (wanted, weights, left))
        self._codes = _leading(weights - noise, regression.columns, wanted)[1:].numpy()
        factors = self._factors(rows)
        self._pairs = _products(torch.from_numpy(factors), left).numpy()
        if self._pairs.shape[1]:
            products = torch.from_numpy(_product(factors, self._pairs))
            regression = Regression(products, regression)
            left = regression(wanted)[1]
        inputs, least = torch.from_numpy(factors), max(MIN_LEAF, len(rows) // LEAF_SHARE)
        self._leaves, self._sure = (
            Leaves(inputs, left, least, least_t=least_t) for least_t in (0.0, LEAST_T)
        )
        sure = Regression(torch.from_numpy(self._sure.columns(factors)), regression)
        self._weights = sure(wanted)[0].numpy()
        self._weights[: len(noise)] -= noise.numpy()
        regression = Regression(torch.from_numpy(self._leaves.columns(factors)), regression)
        weights, left = regression(wanted)
        self._fine = Leaves(inputs, left, LEAST_FINE, FINE)
        at = torch.from_numpy(self._fine(factors))
        sums = left.new_zeros(len(self._fine), left.shape[1]).index_add_(0, at, left)
        self._mean = (sums / torch.bincount(at, minlength=len(sums))[:, None]).numpy()
        sizes = [1 + len(self._codes), self._pairs.shape[1], len(self._leaves)]
        parts = _leading(weights, regression.columns, wanted).split(sizes)[1:]
        one = torch.eye(left.shape[1]).double()
        self.summed = torch.block_diag(*(part[:, None] for part in parts), one).numpy()

    def columns(self, rows: Array) -> Array:
        """(m, q) its products, leaves, and what the finer tree finds, of scaled rows, (m, p)."""
        factors = self._factors(rows)
        leaves, means = self._leaves.columns(factors), self._mean[self._fine(factors)]
        return np.concatenate([_product(factors, self._pairs), leaves, means], 1)

    def means(self, rows: Array) -> Array:
        """(m, t) its columns as a set of several has them, of scaled rows, (m, p)."""
        return in_parts(lambda part: times(self.columns(part), self.summed), rows)

    def expected(self, rows: Array) -> Array:
        """(m, t) what its straight columns are expected to be in scaled rows, (m, p)."""
        factors, own = self._factors(rows), plain_columns(self._terms, rows.take(self._at, 1))
        more = _product(factors, self._pairs), self._sure.columns(factors)
        return times(np.concatenate([own, *more], 1), self._weights)

    def _factors(self, rows: Array) -> Array:
        """(m, h) double, one column of each held feature: of a category, what x_S is expected."""
        return self._terms.factors(rows.take(self._at, 1), self._codes)


def _frequent(sample: Sample, j: int, rows: Array) -> Tensor:
    """(m, 1) where a number has its most frequent value, or (m, 0).

    Two rows may expect the same 60, one of them 0 or 300, the other 0 or 100. This is of interest
    if at least one row in twenty has the value, and at most half as many have any other.
    """
    values, counts = np.unique(rows[:, j], return_counts=True)
    *_, second, most = [0, 0, *np.sort(counts)]
    if sample.encoder.blocks[j] or len(values) < 3 or most < max(FREQUENT * len(rows), 2 * second):
        return torch.empty(len(rows), 0).double()
    found = torch.from_numpy(rows[:, [j]] == values[counts.argmax()]).double()
    return (found - found.mean(0)) / found.std(0, correction=0)


def plain(sample: Sample, held: Members, step: int, most: int) -> Regression:
    """The regression on a constant and the held features' columns, the same for all sets.

    Args:
        sample: the training rows, winsorised here.
        held: the held features.
        step: every so manieth row,
        most: and of these evenly spread ones, at most so many.
    """
    rows = sample.shared(winsorised)[::step]
    some = rows[:: -(-len(rows) // most)].take(np.array(held, int), 1)
    return Regression(torch.from_numpy(plain_columns(sample.shared(Terms, held), some)))


def _noise(regression: Regression, terms: Terms, of: tuple[Tensor, ...]) -> Tensor:
    """(q, t) the part of weights that is noise of bends and of many labels (James and Stein 1961).

    Args:
        regression: on a constant and the held features' columns, q together.
        terms: what makes these.
        of: targets, (m, t), their weights, (q, t), and what is left of them, (m, t).
    """
    wanted, weights, left = of
    (m, q), noise = regression.columns.shape, torch.zeros_like(weights)
    variance = left.square().sum() / max(m - q, 1)
    for some in (~terms.many, ~terms.many & terms.straight):
        kept = torch.from_numpy(np.append(True, some))
        if (fewer := int(kept.sum())) == q:
            continue
        own, beside = Regression(regression.columns[:, kept])(wanted)
        own = torch.zeros_like(weights).index_put((kept,), own)
        gain = (beside.square().sum() - left.square().sum()).clamp_min(LEAST_RIDGE)
        noise += ((q - fewer - 2.0) * variance / gain).clamp(0.0, 1.0) * (weights - own)
        weights, left, q = own, beside, fewer
    return noise


def plain_columns(terms: Terms, values: Array) -> Array:
    """(m, q) a constant, and the columns of features whose values are (m, h)."""
    return np.concatenate([np.ones((len(values), 1)), terms(values)], 1)


def _products(factors: Tensor, left: Tensor) -> Tensor:
    """(2, q) the pairs of factors, (m, h), whose products go with what is left of x_S, (m, t)."""
    some = (factors - factors.mean(0))[:, :FACTORS]
    pairs = torch.triu_indices(some.shape[1], some.shape[1], 1)
    product = some[:, pairs[0]] * some[:, pairs[1]]
    product = product - product.mean(0)
    size = product.square().sum(0)[:, None] * left.square().mean(0)
    t = ((product.T @ left).abs() / size.clamp_min(1e-12).sqrt()).amax(1)
    best = t.topk(min(PRODUCTS, len(t))).indices
    return pairs[:, best[t[best] > LEAST_T].sort().values]


def _product(factors: Array, pairs: Array) -> Array:
    product: Array = factors.take(pairs[0], 1) * factors.take(pairs[1], 1)
    return product


def _leading(weights: Tensor, columns: Tensor, wanted: Tensor) -> Tensor:
    """(q,) of t columns of x_S, the combination that the held features predict best."""
    best: Tensor = torch.linalg.eigh(wanted.T @ (columns @ weights)).eigenvectors[:, -1]
    return weights @ best


# Of the squares of each column, whatever its scale; and of an empty one.
RIDGE, LEAST_RIDGE = 2e-9, 1e-18


class Regression:
    """Least squares on columns, (m, q), for any targets.

    Args:
        columns: the columns, (m, c), or those that come after
        before: the earlier ones.

    Attributes:
        columns: (m, q) all of them.
    """

    def __init__(self, columns: Tensor, before: Regression | None = None) -> None:
        gram = columns.T @ columns
        gram.diagonal().mul_(1.0 + RIDGE).add_(LEAST_RIDGE)
        self._before, self.columns = before, columns
        if before is not None:
            cross = before.columns.T @ columns
            self._cross = before._solve(cross)
            gram -= cross.T @ self._cross
            self.columns = torch.cat([before.columns, columns], 1)
        self._factor = torch.linalg.lu_factor(gram)

    def __call__(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """(q, t) the weights of the columns for targets, (m, t), and (m, t) what is left."""
        weights = self._solve(self.columns.T @ targets)
        return weights, targets - self.columns @ weights

    def _solve(self, right: Tensor) -> Tensor:
        """(q, t) the weights, given the products of columns and targets, (q, t)."""
        if self._before is None:
            weights: Tensor = torch.linalg.lu_solve(*self._factor, right)
            return weights
        first, last = right.split([len(self._cross), len(right) - len(self._cross)])
        last = torch.linalg.lu_solve(*self._factor, last - self._cross.T @ first)
        return torch.cat([self._before._solve(first) - self._cross @ last, last])


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
        if feature.has_order:
            return cls._of_amounts(sample.scaled(j))
        return cls._of_labels(feature.label_values)

    @classmethod
    def _of_labels(cls, labels: Tensor) -> Term:
        none = torch.tensor([math.nan]).double()
        ends = torch.tensor([[-math.inf], [math.inf]]).double()
        least = none.expand(len(labels))
        return cls(labels.double(), least, torch.zeros_like(labels).bool(), ends, none)

    @classmethod
    def _of_amounts(cls, column: Tensor) -> Term:
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
        of: (q,) the place of the feature of each column,
        straight: (q,) bool, the columns without kinks.
        many: (q,) bool, those of categories of many levels.
        outer: (q,) bool, those of outer kinks.
        ends: (2, w) the winsorised ranges of numbers.
    """

    def __init__(self, sample: Sample, features: Members) -> None:
        each = [sample.shared(Term.of, j) for j in features]
        counts = np.array([len(term.shift) for term in each], int)
        self.of = np.arange(len(each)).repeat(counts)
        joined = (torch.cat(parts, -1).numpy() for parts in zip(Term(), *each, strict=True))
        self._shift, self._least, self.outer, self.ends, self._mean = joined
        self.straight, self._special = ~np.isfinite(self._least), ~np.isnan(self._mean)
        self._labels = np.isnan(self._least).nonzero()[0]
        self._label_of, self._label = self.of[self._labels], self._shift[self._labels]
        self.many = np.isnan(self._least) & (counts[self.of] > FEW_VALUES)
        self._count = counts[self._label_of].astype(np.float64)
        self._share = 1.0 / self._count
        self._categories, self._starts = np.unique(self._label_of, return_index=True)
        more = BEYOND * (self.ends[1] - self.ends[0])
        self._most = self.ends[0] - more, self.ends[1] + more

    def __call__(self, values: Array) -> Array:
        """(..., q) double, the columns of scaled values, (..., w)."""
        own = self._ordinary(values)
        out = own.take(self.of, -1)
        out -= self._shift
        np.maximum(out, self._least, out=out)
        if len(self._labels):
            out[..., self._labels] = self._indicators(own)
        return out

    def factors(self, values: Array, weights: Array) -> Array:
        """(m, w) numbers, without special levels, or the weights, (q,), of categories."""
        out = self._ordinary(values)
        if len(self._labels):
            own = self._indicators(out) * weights[self._labels]
            out[:, self._categories] = np.add.reduceat(own, self._starts, 1)
        return out

    def _indicators(self, own: Array) -> Array:
        """(..., l) the columns of categories; one that no training row has is like their mean."""
        own = own.take(self._label_of, -1)
        return np.where(own < self._count, own == self._label, self._share)

    def _ordinary(self, values: Array) -> Array:
        if self._special.any():
            values = np.where(known(values) | ~self._special, values, self._mean)
        low, high = self._most
        return np.minimum(np.maximum(values, low), high)


def standardised(sample: Sample, features: Members, rows: Array) -> Tensor:
    """(m, q) straight columns of features of scaled rows, (m, p); one of 0 if there are none."""
    if not features:
        return torch.zeros(len(rows), 1).double()
    terms = sample.shared(Terms, features)
    found = torch.from_numpy(terms(rows.take(features, 1))[:, terms.straight])
    return (found - found.mean(0)) / found.std(0, correction=0).clamp_min(LEAST_DEVIATION)


def winsorised(sample: Sample) -> Array:
    """(n, p) scaled training rows with the outer 0.5 % of each number on either side clamped."""
    low, high = Terms(sample, tuple(range(sample.encoder.p))).ends
    rows = sample.shared(Scaled)(sample.rows.numpy())
    for part in _parts(rows):
        part[:] = np.where(known(part), np.minimum(np.maximum(part, low), high), part)
    return rows


def of_rows(sample: Sample, call: Callable[[Array], Array]) -> Array:
    """What a call returns for the winsorised training rows."""
    return call(sample.shared(winsorised))


# Rows whose columns are in memory at a time.
PART = 1 << 14


def in_parts(call: Callable[[Array], Array], rows: Array) -> Array:
    """What a call returns for rows, part by part."""
    if len(rows) <= PART:
        return call(rows)
    return np.concatenate([call(part) for part in _parts(rows)])


def _parts(rows: Array) -> Iterator[Array]:
    return (rows[i : i + PART] for i in range(0, max(len(rows), 1), PART))
