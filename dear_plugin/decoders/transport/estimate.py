"""Estimate: the conditional distributions of one set in r samples (step 9); rows in, rows out.

The sample itself (r = 1) and its bootstrap samples are estimated by the same lines: a bootstrap
sample differs in the weights of blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.axes import Axis, axis_of
from dear_plugin.decoders.transport.cells import Cells, cells_of
from dear_plugin.decoders.transport.least_squares import BLOCKS, LeastSquares
from dear_plugin.decoders.transport.lines import Lines
from dear_plugin.decoders.transport.links import Counts, linked
from dear_plugin.decoders.transport.ratios import fit_ratios
from dear_plugin.decoders.transport.tables import Tables
from dear_plugin.decoders.transport.values import linear_copies, smooth_features, values_of

# The number of bootstrap samples.
DRAWS = 16
# Ranks are inside (0, 1) by so much.
EDGE = 1e-6
# The weights of the sample itself: one block.
WHOLE = torch.ones(1, 1, dtype=torch.float64)


@dataclass(frozen=True)
class Estimate:
    """The conditional distributions of one set in r samples.

    Attributes:
        acted: the features of the set.
        cells: the cells of the held features.
        axis: the nodes of x_S.
        tables: of the counted features that move.
        lines: of the smooth features that move.
        twins: features equal to one of S in every training row, and its place in S.
    """

    acted: list[int]
    cells: Cells
    axis: Axis
    tables: Tables
    lines: Lines
    twins: list[tuple[int, int]]

    def encode(self, x: Tensor, draws: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """(r, m, p + 1) ranks of counted features and residuals of smooth ones that move with x_S.

        A feature that does not move has its own value; the last column is the row's line in the
        tables.

        Args:
            x: (m, p) rows.
            draws: (r,) the samples.
            generator: breaks ties at random; None takes the middle.
        """
        own, features = x[:, self.acted], self.tables.features
        cell = draws[:, None] * len(self.cells) + self.cells.at(x)
        at = cell * len(self.axis.mix) + self.axis.node(own)
        v = torch.cat([x.expand(len(draws), -1, -1), at[..., None].to(x.dtype)], 2)
        if len(features):
            tie = torch.full((len(x), len(features)), 0.5)
            if generator is not None:
                tie = torch.rand(tie.shape, generator=generator)[:, features.argsort().argsort()]
            v[..., features] = self.tables.ranks(x, at, tie).clamp(EDGE, 1.0 - EDGE)
        if len(self.lines.features):
            v[..., self.lines.features] = self.lines.residual(x, own, draws)
        return v

    def decode(self, x: Tensor, v: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """The rows that follow, (r, m, c, p), in r samples; see `Decoder.decode`.

        Args:
            x: (m, p) the factual rows.
            v: (r, m, k) their latents.
            values: (m, c, w) the new values of x_S.
            draws: (r,) the samples.
        """
        own, (m, c, _), nodes = x[:, self.acted], values.shape, len(self.axis.mix)
        out = x[:, None].repeat(len(draws), 1, c, 1)
        if len(features := self.tables.features):
            start, node = v[..., -1].long(), self.axis.node(values.flatten(0, 1)).view(m, c)
            end = (start - start % nodes)[..., None] + node
            moved = self.tables.move(x, v.index_select(2, features), start, end)
            out.index_copy_(3, features, moved)
        if len(features := self.lines.features):
            moved = self.lines.move(x, v.index_select(2, features), own, values, draws)
            out.index_copy_(3, features, moved)
        # The line of a twin is exact up to the rounding of its sums.
        for j, i in self.twins:
            equal = x[:, j, None] == own[:, i, None]
            out[..., j] = torch.where(equal, values[..., i], out[..., j])
        return out.index_copy_(3, torch.tensor(self.acted), values.expand(len(draws), -1, -1, -1))

    def flip_probabilities(self, x: Tensor, values: Tensor) -> dict[int, tuple[float, float]]:
        """See `Decoder.flip_probabilities`: by the maximal coupling, at most the ratio is kept."""
        tables, out = self.tables, {}
        at = self.cells.at(x) * len(self.axis.mix) + self.axis.node(values)
        for f, j in enumerate(tables.features[: tables.ordered].tolist()):
            if len(tables.levels[f]) == 2:
                lines, where = tables.lines(at)
                first, own = lines[where, tables.starts[f] + 1], float(x[0, j] > 0.5)
                before, after = 1.0 - first if own else first
                left = max(0.0, 1.0 - float(after / max(before, EDGE)))
                out[j] = (own, abs(own - left))
        return out


class Estimator:
    """The estimates of one set: of a sample, and of bootstrap samples of it.

    Args:
        sample: the training rows.
        acted: the features of the set.
        held: the features that do not move and are conditioned on.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members) -> None:
        self._sample, self._acted, self._held = sample, acted, held
        self._cells, self._axis = cells_of(sample, held), axis_of(sample, acted)
        others = torch.ones(sample.encoder.p, dtype=torch.bool)
        others[[*acted, *held]] = False
        copies = [(i, j) for i, j in sample.shared(linear_copies) if i in acted and others[j]]
        columns = sample.rows.T
        self._twins = [
            (j, acted.index(i)) for i, j in copies if torch.equal(columns[i], columns[j])
        ]
        smooth = others & sample.shared(smooth_features)
        smooth[[j for _, j in copies]] = True
        # Features with an order first.
        blocks = sample.encoder.blocks
        self._counted = torch.cat(
            [(others & ~smooth & each).nonzero()[:, 0] for each in (~blocks, blocks)]
        )
        self._tested = max(int(others.sum()), 1)
        self._fit = LeastSquares(sample, acted, held, smooth, tested=self._tested)
        self.point = self._estimate(WHOLE)

    @lazy
    def drawn(self) -> Estimate:
        """The estimates of all redraws, each of half as many rows.

        Two samples differ by the noise of both: half the rows have twice the variance.
        """
        generator = torch.Generator().manual_seed(0)
        blocks = torch.randint(BLOCKS, (DRAWS, BLOCKS // 2), generator=generator)
        weights = 2.0 * torch.nn.functional.one_hot(blocks, BLOCKS).sum(1).double()
        return self._estimate(weights, self.point)

    def _estimate(self, weights: Tensor, point: Estimate | None = None) -> Estimate:
        """The estimate in r samples.

        Args:
            weights: (r, q) the weights of blocks of rows.
            point: the estimate of the sample itself, where these are bootstrap samples: what does
                not move there moves in none of them.
        """
        tables = self._tables(weights, None if point is None else point.tables.features)
        lines = self._fit.lines(weights, None if point is None else point.lines)
        return Estimate(list(self._acted), self._cells, self._axis, tables, lines, self._twins)

    def _tables(self, weights: Tensor, moving: Tensor | None) -> Tables:
        """The tables of the counted features that move, or may do so in bootstrap samples."""
        features = self._counted if moving is None else moving
        # One by one: a tree fitted to the same rows would appear to depend on everything.
        tails = [self._tails(j, weights, features) for j in self._acted]
        may_move = torch.stack([linked(each, self._tested) for each in tails]).any(0)
        if moving is None:
            features, may_move = features[may_move[0]], may_move[:, may_move[0]]
        some, counts = features.tolist(), Counts(self._sample, self._axis, self._held, weights)
        values = [values_of(self._sample, j) for j in some]
        base, ratio = fit_ratios(
            counts.rows,
            [(counts.of_cells(j), counts.of_bins(j)) for j in some],
            counts.levels,
            [each.splits for each in values],
            drawn=counts.drawn,
        )
        at_nodes = [
            (self._axis.mix @ torch.where(may[:, None, None], each, 1.0)).float()
            for each, may in zip(ratio, may_move.T, strict=True)
        ]
        ordered = int((~self._sample.encoder.blocks[features]).sum())
        levels, base = [each.levels for each in values], [each.float() for each in base]
        return Tables(features, levels, ordered, base, at_nodes)

    def _tails(self, j: int, weights: Tensor, features: Tensor) -> Tensor:
        """(l, r, f) the tail probabilities of features, by their dependence on feature j.

        Those of the sample itself are computed once, for all features.
        """
        counts = Counts(self._sample, axis_of(self._sample, (j,)), self._held, weights)
        if counts.drawn:
            return counts.tails(features)

        def _of_all(sample: Sample) -> Tensor:
            counted = ~sample.shared(smooth_features)
            counted[[j, *self._held]] = False
            some = counted.nonzero()[:, 0]
            tails = counts.tails(some)
            every = tails.new_ones(len(tails), 1, len(counted))
            return every.index_copy(2, some, tails)

        return self._sample.shared(_of_all, ("tails", j, self._held))[..., features]
