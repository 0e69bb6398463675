"""Estimate: the conditional distributions of one set in r samples; rows in, ranks and rows out.

The sample itself (r = 1) and its bootstrap samples (step 9) are estimated by the same lines: a
bootstrap sample differs in the weights of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.schema import Kind
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.axes import Axis, axis_of
from dear_plugin.decoders.transport.cells import Cells
from dear_plugin.decoders.transport.lines import BLOCKS, LineFit, Lines
from dear_plugin.decoders.transport.links import linked
from dear_plugin.decoders.transport.ratios import fit_ratios
from dear_plugin.decoders.transport.shrinkage import Level, levels_of
from dear_plugin.decoders.transport.tables import Moving, Tables
from dear_plugin.decoders.transport.values import GROUPS, Values

# Ranks are inside (0, 1) by so much.
EDGE = 1e-6
# Linear copies hold up to the rounding of scaled float32 values.
COPY_TOLERANCE, COPY_ROWS = 1e-5, 20
# Rows that rule out most copies.
COPY_SAMPLE = 1_000


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
        own, features = x[:, self.acted], self.tables.moving.features
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
        if len(features := self.tables.moving.features):
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
        moving, out = self.tables.moving, {}
        at = self.cells.at(x) * len(self.axis.mix) + self.axis.node(values)
        lines, where = self.tables.lines(at)
        for f, j in enumerate(moving.features[: moving.ordered].tolist()):
            if len(moving.levels[f]) == 2:
                first, own = lines[where, moving.starts[f] + 1], float(x[0, j] > 0.5)
                before, after = 1.0 - first if own else first
                left = max(0.0, 1.0 - float(after / max(before, EDGE)))
                out[j] = (own, abs(own - left))
        return out


class Estimator:
    """What the samples of one set share: values, cells, nodes, and which features may move.

    Args:
        sample: the training rows.
        acted: the features of the set.
        held: the features that do not move and are conditioned on.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members) -> None:
        self._sample, self._acted = sample, acted
        self._values = sample.shared(Values.of)
        self._cells = sample.shared(lambda each: Cells.of(each, held), ("cells", held))
        self._axis = axis_of(sample, acted)
        others = torch.ones(sample.encoder.p, dtype=torch.bool)
        others[[*acted, *held]] = False
        copies = _copies(sample, acted) & others
        self._twins = [
            (j, i)
            for j in copies.nonzero()[:, 0].tolist()
            for i, k in enumerate(acted)
            if torch.equal(sample.rows[:, j], sample.rows[:, k])
        ]
        smooth = (others & self._values.smooth) | copies
        self._counted = (others & ~smooth).nonzero()[:, 0]
        smooth_features, self._tested = smooth.nonzero()[:, 0], max(int(others.sum()), 1)
        self._fit = LineFit(sample, acted, held, smooth_features, tested=self._tested)

    @lazy
    def uncut_shares(self) -> dict[int, float]:
        """The share of rows that are compared with rows unequal in each held feature."""
        return self._cells.uncut_shares(self._sample.rows)

    def estimate(self, weights: Tensor, point: Estimate | None = None) -> Estimate:
        """The estimate in r samples.

        Args:
            weights: (r, 64) the weights of blocks of rows.
            point: the estimate of the sample itself, where these are bootstrap samples: what does
                not move there moves in none of them.
        """
        drawn = point is not None
        features = self._counted if point is None else point.tables.moving.features
        counts = self._counts(weights, features, self._axis)
        may_move = self._linked(weights, features, counts, drawn=drawn)
        tables = self._tables(features, may_move, counts, drawn=drawn)
        lines = self._fit.lines(weights, None if point is None else point.lines)
        return Estimate(list(self._acted), self._cells, self._axis, tables, lines, self._twins)

    def _counts(self, weights: Tensor, features: Tensor, axis: Axis) -> Counts:
        """The rows of each cell, bin of an axis and value, in samples of weights (r, 64)."""
        cells, k, b, values = self._cells.own, len(self._cells), axis.mix.shape[1], self._values
        sizes = [(values.codes[j], len(values.levels[j])) for j in features.tolist()]
        return Counts(
            counted(weights, cells, k, axis.bins, b),
            [counted(weights, cells, k, *each) for each in sizes],
            [counted(weights, axis.bins, b, *each) for each in sizes],
            levels_of(b, axis.ordered),
        )

    def _linked(self, weights: Tensor, features: Tensor, counts: Counts, *, drawn: bool) -> Tensor:
        """(r, f) bool, which counted features may move.

        The features of a set are tested one by one: a tree fitted to the same rows would appear to
        be associated with everything.
        """
        groups, found = [self._values.groups[j] for j in features.tolist()], []
        if not groups:
            return torch.zeros(len(weights), 0, dtype=torch.bool)
        in_cells, several = _grouped(counts.cells, groups), len(self._acted) > 1
        for j in self._acted:
            of_j = counts
            if several:
                of_j = self._counts(weights, features, axis_of(self._sample, (j,)))
            in_bins, options = _grouped(of_j.bins, groups), {"tested": self._tested}
            found.append(linked(of_j.rows, in_cells, in_bins, of_j.levels, **options, drawn=drawn))
        return torch.stack(found).any(0)

    def _tables(
        self, features: Tensor, may_move: Tensor, counts: Counts, *, drawn: bool
    ) -> Tables:
        """The tables of the counted features that move: those that may, (r, f) bool.

        All that move in the sample itself are in the tables of bootstrap samples.
        """
        (r, k, _), mix, values = counts.rows.shape, self._axis.mix, self._values
        g = len(mix)
        some = torch.ones_like(may_move[0]) if drawn else may_move[0]
        moving = Moving.of(features[some], values.levels, values.blocks)
        place, bases, ratios = {j: f for f, j in enumerate(features.tolist())}, [], []
        for f in (place[j] for j in moving.features.tolist()):
            each, splits = (counts.cells[f], counts.bins[f]), values.splits[int(features[f])]
            base, ratio = fit_ratios(counts.rows, *each, counts.levels, splits, drawn=drawn)
            ratio = torch.where(may_move[:, f, None, None], ratio, 1.0)
            bases.append(base.float())
            ratios.append((mix @ ratio).float())
        return Tables(moving, bases, ratios, k, g)


class Counts(NamedTuple):
    """The rows of r samples by cell, bin and value of f features.

    Attributes:
        rows: (r, k, b) of each cell and bin.
        cells: f tensors, (r, k, t), of each cell and value.
        bins: f tensors, (r, b, t), of each bin and value.
        levels: the divisions of the bins.
    """

    rows: Tensor
    cells: list[Tensor]
    bins: list[Tensor]
    levels: list[Level]


def counted(weights: Tensor, one: Tensor, a: int, other: Tensor, b: int) -> Tensor:
    """(r, a, b) the weight of the rows with each pair of codes.

    Args:
        weights: (r, 64) the weights of blocks of rows: row i is in block i modulo 64.
        one: (n,) codes.
        a: the number of these codes.
        other: (n,) other codes.
        b: the number of those.
    """
    keys = (torch.arange(len(one)) % BLOCKS * a + one) * b + other
    blocks = torch.bincount(keys, minlength=BLOCKS * a * b).view(BLOCKS, -1)
    return (weights @ blocks.double()).view(-1, a, b)


def _grouped(counts: list[Tensor], groups: list[Tensor]) -> Tensor:
    """(r, f, b, g) rows by group of values, from f tensors by value, (r, b, t)."""
    member = [torch.nn.functional.one_hot(each, GROUPS).double() for each in groups]
    return torch.stack([c @ m for c, m in zip(counts, member, strict=True)], 1)


def _copies(sample: Sample, acted: Members) -> Tensor:
    """(p,) bool, the numbers that are a linear function of a feature of S in every row."""
    number = torch.tensor([f.kind is Kind.NUMERIC for f in sample.encoder.schema])
    out = torch.zeros_like(number)
    if len(sample) < COPY_ROWS:
        return out
    for i in (i for i in acted if number[i]):
        few = _residual_range(sample.rows[:COPY_SAMPLE].double(), i)
        some = ((few <= COPY_TOLERANCE) & number).nonzero()[:, 0]
        own = int((some == i).nonzero()[0]) if bool((some == i).any()) else -1
        if own >= 0 and len(some) > 1:
            exact = _residual_range(sample.rows[:, some].double(), own) <= COPY_TOLERANCE
            out[some] |= exact & (sample.rows[:, some] != sample.rows[0, some]).any(0)
    return out


def _residual_range(x: Tensor, i: int) -> Tensor:
    """(p,) the range of what a linear function of column i leaves of the columns of x, (n, p)."""
    centred = x - x.mean(0)
    slope = centred[:, i] @ centred / centred[:, i].square().sum().clamp_min(1e-30)
    residual = centred - centred[:, i, None] * slope
    return residual.amax(0) - residual.amin(0)
