"""Estimator (step 9): the estimate of a set in a sample, and in bootstrap samples of it.

The sample itself (r = 1) and its bootstrap samples are estimated by the same lines: a bootstrap
sample differs in the weights of blocks of rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.axes import axis_of
from dear_plugin.decoders.transport.cells import cells_of
from dear_plugin.decoders.transport.counts import Counts
from dear_plugin.decoders.transport.estimate import Estimate
from dear_plugin.decoders.transport.least_squares import LeastSquares
from dear_plugin.decoders.transport.links import linked, tails_of
from dear_plugin.decoders.transport.ratios import fit_ratios
from dear_plugin.decoders.transport.tables import Moving, Tables
from dear_plugin.decoders.transport.values import Values, linear_copies

# The weights of the sample itself: one block.
WHOLE = torch.ones(1, 1, dtype=torch.float64)


class Estimator:
    """What the samples of one set share: values, cells, nodes, and which features may move.

    Args:
        sample: the training rows.
        acted: the features of the set.
        held: the features that do not move and are conditioned on.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members) -> None:
        self._sample, self._acted, self._held = sample, acted, held
        self._values, self._cells = sample.shared(Values.of), cells_of(sample, held)
        self._axis = axis_of(sample, acted)
        others = torch.ones(sample.encoder.p, dtype=torch.bool)
        others[[*acted, *held]] = False
        copies = [(i, j) for i, j in sample.shared(linear_copies) if i in acted and others[j]]
        columns = sample.rows.T
        self._twins = [
            (j, acted.index(i)) for i, j in copies if torch.equal(columns[i], columns[j])
        ]
        smooth = others & self._values.smooth
        smooth[[j for _, j in copies]] = True
        counted = (others & ~smooth).nonzero()[:, 0]
        self._counted = counted[self._values.blocks[counted].long().argsort(stable=True)]
        smooth_features, self._tested = smooth.nonzero()[:, 0], max(int(others.sum()), 1)
        self._fit = LeastSquares(sample, acted, held, smooth_features, tested=self._tested)

    @lazy
    def uncut_shares(self) -> dict[int, float]:
        """The share of rows that are compared with rows unequal in each held feature."""
        return self._cells.uncut_shares(self._sample.rows)

    def estimate(self, weights: Tensor = WHOLE, point: Estimate | None = None) -> Estimate:
        """The estimate in r samples.

        Args:
            weights: (r, q) the weights of blocks of rows.
            point: the estimate of the sample itself, where these are bootstrap samples: what does
                not move there moves in none of them.
        """
        tables = self._tables(weights, None if point is None else point.tables.moving.features)
        lines = self._fit.lines(weights, None if point is None else point.lines)
        return Estimate(list(self._acted), self._cells, self._axis, tables, lines, self._twins)

    def _tables(self, weights: Tensor, moving: Tensor | None) -> Tables:
        """The tables of the counted features that move, or may do so in bootstrap samples."""
        counts, values = Counts(self._sample, self._axis, self._held, weights), self._values
        features = self._counted if moving is None else moving
        may_move = self._linked(weights, features)
        if moving is None:
            features, may_move = features[may_move[0]], may_move[:, may_move[0]]
        some = features.tolist()
        base, ratio = fit_ratios(
            counts.rows,
            [counts.of_cells(j) for j in some],
            [counts.of_bins(j) for j in some],
            counts.levels,
            [values.splits[j] for j in some],
            drawn=counts.drawn,
        )
        mix = self._axis.mix
        at_nodes = [
            (mix @ torch.where(may[:, None, None], each, 1.0)).float()
            for each, may in zip(ratio, may_move.T, strict=True)
        ]
        ordered = int((~values.blocks[features]).sum())
        moving_values = Moving(features, [values.levels[j] for j in some], ordered)
        bases = [each.float() for each in base]
        return Tables(moving_values, bases, at_nodes, len(self._cells), len(mix))

    def _linked(self, weights: Tensor, features: Tensor) -> Tensor:
        """(r, f) bool, which counted features may move.

        The features of a set are tested one by one: a tree fitted to the same rows would appear to
        be associated with everything.
        """
        tails = [self._tails(j, weights, features) for j in self._acted]
        return torch.stack([linked(each, self._tested) for each in tails]).any(0)

    def _tails(self, j: int, weights: Tensor, features: Tensor) -> Tensor:
        """(l, r, f) the tail probabilities of features, by their dependence on feature j.

        Those of the sample itself are computed once, for all features.
        """
        axis = axis_of(self._sample, (j,))
        counts = Counts(self._sample, axis, self._held, weights)
        if counts.drawn:
            return tails_of(counts, features)

        def _of_all(_: Sample) -> Tensor:
            counted = ~self._values.smooth
            counted[[j, *self._held]] = False
            some = counted.nonzero()[:, 0]
            tails = tails_of(counts, some)
            every = tails.new_ones(len(tails), 1, len(counted))
            return every.index_copy(2, some, tails)

        return self._sample.shared(_of_all, ("tails", j, self._held))[..., features]
