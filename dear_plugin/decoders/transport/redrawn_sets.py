"""Drawn: some redraws of one set, and where they send people."""

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
from dear_plugin.decoders.transport.tables import NOBODY, exchanged, settled


class Moving(NamedTuple):
    """The counted features that may move: where their values are.

    Attributes:
        features: (f,) which they are.
        counted: (f,) their places among all that are counted.
        start: (f,) where each begins among all values,
        first: (f,) and among those of these features.
        size: (f,) how many values each has.
        blocks: (f,) bool, categories without an order.
    """

    features: Tensor
    counted: Tensor
    start: Tensor
    first: Tensor
    size: Tensor
    blocks: Tensor

    @classmethod
    def of(cls, supports: Supports, told: Tensor) -> Moving:
        """The counted features among those told of, (p,) bool."""
        place = told[supports.counted].nonzero()[:, 0]
        features = supports.counted[place]
        start, size = supports.starts[features], supports.sizes[features]
        blocks = torch.isin(features, torch.tensor(supports.blocks, dtype=torch.int64))
        first = size.cumsum(0) - size
        return cls(features, place, start.int(), first.int(), size.int(), blocks)

    def upto(self, shares: Tensor) -> Tensor:
        """(..., u) P(x_j <= value) of these features, from the shares of all values, (..., t)."""
        out = shares.new_empty(*shares.shape[:-1], int(self.size.sum()))
        places = zip(*(each.tolist() for each in self[2:5]), strict=True)
        for start, first, size in places:
            here = shares[..., start : start + size].cumsum(-1, dtype=torch.float64)
            out[..., first : first + size] = here.clamp_(0.0, 1.0)
        return out


@dataclass(frozen=True)
class RedrawnSets:
    """Some redraws of one set.

    Attributes:
        state: what the decoder counted.
        which: the set and the first of the redraws.
        shape: how many cells and bins there are.
        table: (r * k * b * u,) P(x_j <= value | bin, cell), redraw after redraw.
        moving: the features that may move.
        mix: (g, b) what bins weigh at nodes.
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
    def cells(self) -> int:
        """How many entries are kept."""
        return self.table.numel() + (0 if self.smooth is None else self.smooth.cells)

    def decode(self, x: Tensor, places: Tensor, which: Tensor) -> Tensor:
        """(m, r, p) where rows, (m, p), end up when they go from place to place, (m, 2, w)."""
        state, (one, first) = self.state, self.which
        which, sets = which - first, torch.full((len(x),), one)
        left, weight = state.nodes.locate(places, sets)
        node = nearest(left, weight)
        out = x[:, None].repeat(1, len(which), 1)
        if len(self.moving.features):
            self._counted(x, node, which, out)
        if self.smooth is not None:
            basis = state.given.basis(x), self._linear(places, sets)
            self.smooth.move(x, basis, (left - self._start, weight), which, out)
        return out

    def _linear(self, places: Tensor, sets: Tensor) -> Tensor | None:
        """(m, 2, e) what the locations of groups are linear in; None for a singleton."""
        nodes, fitted = self.state.nodes, self.state.smooth
        group = nodes.groups is not None and int(nodes.groups.tree[self.which[0]]) >= 0
        if not group or fitted is None or fitted.planes is None:
            return None
        return fitted.planes.basis(nodes.wide(places, sets))

    @lazy
    def _start(self) -> int:
        return int(self.state.nodes.sizes[: self.which[0]].sum())

    @lazy
    def _sides(self) -> tuple[Tensor, Tensor, Tensor, bool]:
        """The two bins at each node, what the second one weighs, and whether any does."""
        bins = self.mix.topk(min(2, self.mix.shape[1]), 1).indices
        a, b = bins[:, 0], bins[:, -1]
        weight = torch.where(a == b, 0.0, self.mix.gather(1, b[:, None])[:, 0])
        return a.int(), b.int(), weight, bool((weight > 0).any())

    def _counted(self, x: Tensor, node: Tensor, which: Tensor, out: Tensor) -> None:
        """Move the counted features of out, (m, r, p)."""
        state, moving = self.state, self.moving
        codes = state.supports.codes(x)
        tie: Tensor | float = 0.5
        if state.ties is not None:
            tie = state.ties.ranks_of(x, state.supports, codes, node[:, :1])[:, :, moving.counted]
        code = (codes[moving.counted].T - (moving.start - moving.first))[:, None]
        k, b = self.shape
        cell = which.int() * k + state.given.cells(x)[:, None].int()
        local = node - self._start
        own, there = (_Rows.of(self, cell * b, local[:, [i]]) for i in (0, 1))
        under, upto = self._around(own, code)
        low, high = self._around(there, code)
        share = upto - under
        v = (under + share * tie).clamp_(EDGE, 1.0 - EDGE)
        still = (local[:, 0] == local[:, 1])[:, None, None]
        moves = ~(still | ((low <= v) & (v <= high)) | moving.blocks)
        made = out[..., moving.features]
        at = moves.nonzero()
        if len(at):
            made[moves] = self._reached(there, v[moves], *at.unbind(1))
        before = share + NOBODY
        kept = ((high - low) + NOBODY) / before
        place = settled(((v - under) / before).clamp_(0.0, 1.0))
        for f in moving.blocks.nonzero()[:, 0].tolist():
            i, r = ((kept[..., f] < place[..., f]) & ~still[..., 0]).nonzero().unbind(1)
            if len(i):
                gain = (self._shares(there, i, r, f) - self._shares(own, i, r, f)).clamp_min_(0.0)
                made[i, r, f] = exchanged(gain, place[i, r, f], kept[i, r, f]).to(made.dtype)
        out[..., moving.features] = made

    def _around(self, rows: _Rows, code: Tensor) -> tuple[Tensor, Tensor]:
        """P(x_j < value) and P(x_j <= value), (m, r, f) each, at codes (m, 1, f)."""
        first = self.moving.first
        upto = rows.at(code)
        below = torch.where(code == first, 0.0, rows.at((code - 1).clamp_min_(0)))
        return below, upto

    def _reached(self, rows: _Rows, v: Tensor, i: Tensor, r: Tensor, f: Tensor) -> Tensor:
        """(z,) the first values whose cumulative shares reach standings v."""
        moving, some = self.moving, rows.some(i, r)
        first, size = moving.first[f], moving.size[f]
        # As many values lie below as can be stepped over.
        passed = torch.zeros_like(first)
        step = 1 << (int(moving.size.max()).bit_length() - 1)
        while step:
            ahead = passed + step
            inside = torch.minimum(ahead, size)
            less = (some.at(first + inside - 1) < v) & (ahead < size)
            passed.add_(less, alpha=step)
            step >>= 1
        return pick(self.state.supports.values, moving.start[f] + passed)

    def _shares(self, rows: _Rows, i: Tensor, r: Tensor, f: int) -> Tensor:
        """(z, c) the shares of the categories of one feature."""
        first, size = int(self.moving.first[f]), int(self.moving.size[f])
        some = rows.some(i, r)
        upto = some.all_at(torch.arange(first, first + size, dtype=torch.int32))
        return torch.diff(upto, dim=1, prepend=torch.zeros(len(upto), 1))


class _Rows(NamedTuple):
    """Rows of a table, mixed of two.

    Attributes:
        table: flat.
        a: (..., 1) the flat places where the first begin.
        b: (..., 1) and the second.
        weight: (..., 1) what the second one weighs.
        mixed: whether it weighs anything anywhere.
    """

    table: Tensor
    a: Tensor
    b: Tensor
    weight: Tensor
    mixed: bool

    @classmethod
    def of(cls, drawn: RedrawnSets, cell: Tensor, node: Tensor) -> _Rows:
        """The rows of bins around nodes, (m, 1), in cells, (m, r), of redraws."""
        a, b, weight, mixed = drawn._sides
        u, node = int(drawn.moving.size.sum()), node.long()
        first, second = ((cell + side[node])[..., None] * u for side in (a, b))
        return cls(drawn.table, first, second, weight[node].expand(cell.shape)[..., None], mixed)

    def some(self, i: Tensor, r: Tensor) -> _Rows:
        """Those of some people and redraws, (z,)."""
        a, b = self.a[i, r, 0], self.b[i, r, 0]
        return _Rows(self.table, a, b, self.weight[i, r, 0], self.mixed)

    def at(self, place: Tensor) -> Tensor:
        """The entries at places, of a shape that broadcasts."""
        first = pick(self.table, self.a + place)
        if not self.mixed:
            return first
        return first * (1.0 - self.weight) + pick(self.table, self.b + place) * self.weight

    def all_at(self, place: Tensor) -> Tensor:
        """(z, c) the entries at places, (c,), of each of z rows."""
        wide = _Rows(
            self.table, self.a[:, None], self.b[:, None], self.weight[:, None], self.mixed
        )
        return wide.at(place)
