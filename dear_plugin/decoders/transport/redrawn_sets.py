"""Redrawn sets: some redraws of the tables of one set, and the rows that they decode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.transport.lookup import pick
from dear_plugin.decoders.transport.nodes import nearest
from dear_plugin.decoders.transport.redrawn_smooth import RedrawnSmooth
from dear_plugin.decoders.transport.state import EDGE, State
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.tables import TINY, new_categories, off_middle


class Moving(NamedTuple):
    """The counted features that may move, and where their values are.

    Attributes:
        features: (f,) the features.
        counted: (f,) their indices among all counted features.
        start: (f,) the index of their first value among all values,
        first: (f,) and among the values of these features.
        size: (f,) the number of values of each.
        blocks: (f,) bool, categories without an order.
    """

    features: Tensor
    counted: Tensor
    start: Tensor
    first: Tensor
    size: Tensor
    blocks: Tensor

    @classmethod
    def of(cls, supports: Supports, linked: Tensor) -> Moving:
        """The counted features among the linked ones, (p,) bool."""
        at = linked[supports.counted].nonzero()[:, 0]
        features = supports.counted[at]
        start, size = supports.starts[features], supports.sizes[features]
        blocks = torch.isin(features, torch.tensor(supports.blocks, dtype=torch.int64))
        first = size.cumsum(0) - size
        return cls(features, at, start.int(), first.int(), size.int(), blocks)

    def cumulative(self, shares: Tensor) -> Tensor:
        """(..., u) P(x_j <= value) of these features, from the shares of all values, (..., t)."""
        out = shares.new_empty(*shares.shape[:-1], int(self.size.sum()))
        segments = zip(*(each.tolist() for each in self[2:5]), strict=True)
        for start, first, size in segments:
            here = shares[..., start : start + size].cumsum(-1, dtype=torch.float64)
            out[..., first : first + size] = here.clamp_(0.0, 1.0)
        return out


@dataclass(frozen=True)
class RedrawnSet:
    """Some redraws of one set.

    Attributes:
        state: the state of the decoder.
        which: the set, and the number of the first redraw.
        shape: the number of cells and bins.
        table: (r * k * b * u,) P(x_j <= value | bin, cell), redraw after redraw.
        moving: the features that may move.
        mix: (r, g, b) the weights of bins at nodes.
        smooth: the redraws of atom-free features.
    """

    state: State
    which: tuple[int, int]
    shape: tuple[int, int]
    table: Tensor
    moving: Moving
    mix: Tensor
    smooth: RedrawnSmooth | None

    @property
    def entries(self) -> int:
        """The number of entries in memory."""
        return self.table.numel() + (0 if self.smooth is None else self.smooth.entries)

    def decode(self, x: Tensor, points: Tensor, which: Tensor) -> Tensor:
        """(m, r, p) the decoded rows.

        Args:
            x: (m, p) the factual rows.
            points: (m, 2, w) the values of x_S before and after.
            which: (r,) the redraws.
        """
        state, (i, first) = self.state, self.which
        which, sets = which - first, torch.full((len(x),), i)
        left, weight = state.nodes.locate(points, sets)
        out = x[:, None].repeat(1, len(which), 1)
        if len(self.moving.features):
            self._move_counted(x, nearest(left, weight), which, out)
        if self.smooth is not None:
            basis = state.given.basis(x), self._plane_basis(points, sets)
            self.smooth.move(x, basis, (left - self._start, weight), which, out)
        return out

    def _plane_basis(self, points: Tensor, sets: Tensor) -> Tensor | None:
        """(m, 2, e) what the locations of groups are linear in; None for a singleton."""
        nodes, fitted = self.state.nodes, self.state.smooth
        group = nodes.groups is not None and int(nodes.groups.tree[self.which[0]]) >= 0
        if not group or fitted is None or fitted.planes is None:
            return None
        return fitted.planes.basis(nodes.expand(points, sets))

    @lazy
    def _start(self) -> int:
        """The first node of the set."""
        return int(self.state.nodes.sizes[: self.which[0]].sum())

    @lazy
    def _two_bins(self) -> tuple[Tensor, Tensor, Tensor, bool]:
        """The two bins at each node, the weight of the second, and whether any is positive.

        The tensors are (r * g,).
        """
        bins = self.mix.topk(min(2, self.mix.shape[2]), 2).indices
        a, b = bins[..., 0], bins[..., -1]
        weight = torch.where(a == b, 0.0, self.mix.gather(2, b[..., None])[..., 0])
        return a.int().flatten(), b.int().flatten(), weight.flatten(), bool((weight > 0).any())

    def _move_counted(self, x: Tensor, node: Tensor, which: Tensor, out: Tensor) -> None:
        """Write the counted features of out, (m, r, p)."""
        state, moving = self.state, self.moving
        codes = state.supports.codes(x)
        tie: Tensor | float = 0.5
        if state.ties is not None:
            tie = state.ties.ranks_of(x, state.supports, codes, node[:, :1])[:, :, moving.counted]
        code = (codes[moving.counted].T - (moving.start - moving.first))[:, None]
        k, b = self.shape
        cell = which.int() * k + state.given.cells(x)[:, None].int()
        local = node - self._start
        g = self.mix.shape[1]
        nodes = which[:, None] * g + local[:, None]
        own, there = (_TableRows.of(self, cell * b, nodes[..., i]) for i in (0, 1))
        under, upto = self._around(own, code)
        low, high = self._around(there, code)
        share = upto - under
        v = (under + share * tie).clamp_(EDGE, 1.0 - EDGE)
        same = (local[:, 0] == local[:, 1])[:, None, None]
        moves = ~(same | ((low <= v) & (v <= high)) | moving.blocks)
        made = out[..., moving.features]
        at = moves.nonzero()
        if len(at):
            made[moves] = self._quantiles(there, v[moves], *at.unbind(1))
        before = share + TINY
        kept = ((high - low) + TINY) / before
        tie = off_middle(((v - under) / before).clamp_(0.0, 1.0))
        for f in moving.blocks.nonzero()[:, 0].tolist():
            i, r = ((kept[..., f] < tie[..., f]) & ~same[..., 0]).nonzero().unbind(1)
            if len(i):
                gain = (self._shares(there, i, r, f) - self._shares(own, i, r, f)).clamp_min_(0.0)
                category = new_categories(gain, tie[i, r, f], kept[i, r, f])
                made[i, r, f] = category.to(made.dtype)
        out[..., moving.features] = made

    def _around(self, rows: _TableRows, code: Tensor) -> tuple[Tensor, Tensor]:
        """P(x_j < value) and P(x_j <= value), (m, r, f) each, at codes (m, 1, f)."""
        first = self.moving.first
        upto = rows.at(code)
        below = torch.where(code == first, 0.0, rows.at((code - 1).clamp_min_(0)))
        return below, upto

    def _quantiles(self, rows: _TableRows, v: Tensor, i: Tensor, r: Tensor, f: Tensor) -> Tensor:
        """(z,) the first values whose cumulative probabilities reach ranks v, by bisection."""
        moving, some = self.moving, rows.subset(i, r)
        first, size = moving.first[f], moving.size[f]
        passed = torch.zeros_like(first)
        step = 1 << (int(moving.size.max()).bit_length() - 1)
        while step:
            ahead = passed + step
            inside = torch.minimum(ahead, size)
            less = (some.at(first + inside - 1) < v) & (ahead < size)
            passed.add_(less, alpha=step)
            step >>= 1
        return pick(self.state.supports.values, moving.start[f] + passed)

    def _shares(self, rows: _TableRows, i: Tensor, r: Tensor, f: int) -> Tensor:
        """(z, c) the probabilities of the categories of one feature."""
        first, size = int(self.moving.first[f]), int(self.moving.size[f])
        columns = torch.arange(first, first + size, dtype=torch.int32)
        cumulative = rows.subset(i, r).all_at(columns)
        return torch.diff(cumulative, dim=1, prepend=torch.zeros(len(cumulative), 1))


class _TableRows(NamedTuple):
    """Rows of a table at nodes, each a mixture of the rows of two bins.

    Attributes:
        table: the flat table.
        a: (..., 1) the index where the first row begins.
        b: (..., 1) and the second.
        weight: (..., 1) the weight of the second one.
        mixed: whether any of the weights is positive.
    """

    table: Tensor
    a: Tensor
    b: Tensor
    weight: Tensor
    mixed: bool

    @classmethod
    def of(cls, drawn: RedrawnSet, cell: Tensor, node: Tensor) -> _TableRows:
        """The rows at nodes of redraws, in cells of redraws, (m, r) each."""
        a, b, weight, mixed = drawn._two_bins
        u, node = int(drawn.moving.size.sum()), node.long()
        first, second = ((cell + side[node])[..., None] * u for side in (a, b))
        return cls(drawn.table, first, second, weight[node][..., None], mixed)

    def subset(self, i: Tensor, r: Tensor) -> _TableRows:
        """Those of rows i and redraws r, (z,)."""
        a, b = self.a[i, r, 0], self.b[i, r, 0]
        return _TableRows(self.table, a, b, self.weight[i, r, 0], self.mixed)

    def at(self, column: Tensor) -> Tensor:
        """The entries at columns, of a shape that broadcasts."""
        first = pick(self.table, self.a + column)
        if not self.mixed:
            return first
        return first * (1.0 - self.weight) + pick(self.table, self.b + column) * self.weight

    def all_at(self, columns: Tensor) -> Tensor:
        """(z, c) the entries at columns, (c,), of each of z rows."""
        a, b, weight = self.a[:, None], self.b[:, None], self.weight[:, None]
        return _TableRows(self.table, a, b, weight, self.mixed).at(columns)
