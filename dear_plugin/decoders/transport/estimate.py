"""Estimate: the conditional distributions of one set in r samples; rows in, ranks and rows out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.axes import Axis
from dear_plugin.decoders.transport.cells import Cells
from dear_plugin.decoders.transport.lines import Lines
from dear_plugin.decoders.transport.tables import Tables

# Ranks are inside (0, 1) by so much.
EDGE = 1e-6


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
