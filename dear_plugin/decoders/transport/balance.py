"""Balance (step 2): E[x_S | held]; rows are compared where it is equal.

x_S is regressed on columns of the held features: each of them with bends, the products of two of
them that x_S depends on, and the leaves of a tree of what these leave. Among rows with the same
expectation x_S is nearly independent of the held features (Rosenbaum and Rubin 1983; Imai and van
Dyk 2004), so that any number of them, crossed or curved, costs one dimension.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.leaves import Leaves
from dear_plugin.decoders.transport.regression import Regression
from dear_plugin.decoders.transport.terms import Terms, standardised, winsorised

# Training rows that the columns are chosen on.
ROWS = 5_000
# Held features whose products are looked at, products that are taken, and their least t-statistic.
FACTORS, PRODUCTS, LEAST_T = 24, 24, 4.0
# The least rows of a leaf, and their share.
MIN_LEAF, LEAF_SHARE = 40, 100
# Of a finer tree, whose predictions are one more column: any error that it makes of x_S does no
# harm to what is regressed on both, and what it finds is no longer taken for an effect.
FINE, LEAST_FINE = 400, 12


class Balance:
    """The columns of the held features of one set, and E[x_S | held] by least squares on them.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features, at least one.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members) -> None:
        self._at, self._scaled = torch.tensor(held), sample.encoder.scaled
        self._terms = sample.shared(Terms, held)
        rows = sample.shared(winsorised)[:: -(-len(sample) // ROWS)]
        wanted = standardised(sample, acted, rows)
        regression = sample.shared(plain, held, 1, ROWS)
        weights, left = regression(wanted)
        self._codes = _leading(weights, regression.columns, wanted)[1:]
        factors = self._factors(rows)
        self._pairs = _products(factors, left)
        if self._pairs.shape[1]:
            regression = Regression(_product(factors, self._pairs), regression)
            left = regression(wanted)[1]
        self._leaves = Leaves(factors, left, max(MIN_LEAF, len(rows) // LEAF_SHARE))
        regression = Regression(self._in_leaves(factors), regression)
        weights, left = regression(wanted)
        self._fine = Leaves(factors, left, LEAST_FINE, FINE)
        at = self._fine(factors)
        sums = left.new_zeros(len(self._fine), left.shape[1]).index_add_(0, at, left)
        self._mean = sums / torch.bincount(at, minlength=len(sums))[:, None]
        self._weights = _leading(weights, regression.columns, wanted)

    def columns(self, rows: Tensor) -> Tensor:
        """(m, q) a constant, the held features' columns, products and leaves of scaled rows."""
        return torch.cat([_columns(self._terms, rows[:, self._at]), self.more(rows)], 1)

    def more(self, rows: Tensor) -> Tensor:
        """(m, q) the columns of this set alone, products and leaves, of scaled rows."""
        factors = self._factors(rows)
        means = self._mean[self._fine(factors)]
        return torch.cat([_product(factors, self._pairs), self._in_leaves(factors), means], 1)

    def score(self, rows: Tensor) -> Tensor:
        """(m,) double, E[x_S | held] of rows, (m, p)."""
        return self.columns(self._scaled(rows))[:, : len(self._weights)] @ self._weights

    def _factors(self, rows: Tensor) -> Tensor:
        """(m, h) double, one column of each held feature: of a category, what x_S is expected."""
        return self._terms.factors(rows[:, self._at], self._codes)

    def _in_leaves(self, factors: Tensor) -> Tensor:
        return one_hot(self._leaves(factors), len(self._leaves)).double()


def plain(sample: Sample, held: Members, step: int, most: int) -> Regression:
    """The regression on a constant and the held features' columns, the same for all sets.

    Args:
        sample: the training rows, winsorised here.
        held: the held features.
        step: every so manieth row,
        most: and of these evenly spread ones, at most so many.
    """
    rows = sample.shared(winsorised)[::step]
    terms = sample.shared(Terms, held)
    return Regression(_columns(terms, rows[:: -(-len(rows) // most)][:, list(held)]))


def _columns(terms: Terms, values: Tensor) -> Tensor:
    """(m, q) a constant, and the columns of features whose values are (m, h)."""
    return torch.cat([values.new_ones(len(values), 1), terms(values)], 1)


def _products(factors: Tensor, left: Tensor) -> Tensor:
    """(2, q) the pairs of factors, (m, h), whose products go with what is left of x_S, (m, t)."""
    some = (factors - factors.mean(0))[:, :FACTORS]
    pairs = torch.triu_indices(some.shape[1], some.shape[1], 1)
    product = _product(some, pairs)
    product = product - product.mean(0)
    size = product.square().sum(0)[:, None] * left.square().mean(0)
    t = ((product.T @ left).abs() / size.clamp_min(1e-12).sqrt()).amax(1)
    best = t.topk(min(PRODUCTS, len(t))).indices
    return pairs[:, best[t[best] > LEAST_T].sort().values]


def _product(factors: Tensor, pairs: Tensor) -> Tensor:
    return factors[:, pairs[0]] * factors[:, pairs[1]]


def _leading(weights: Tensor, columns: Tensor, wanted: Tensor) -> Tensor:
    """(q,) of t columns of x_S, the combination that the held features predict best."""
    best: Tensor = torch.linalg.eigh(wanted.T @ (columns @ weights)).eigenvectors[:, -1]
    return weights @ best
