"""Poisson: the redraws of tables. Every count is replaced by a draw of that mean and read again.

It is a bootstrap without a second pass over the rows: of a sample with replacement, each count is
about Poisson. What is drawn of one set is made when it is first asked for, and the least recently
used is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.decoders.belief import Belief, Counted
from dear_plugin.decoders.given import Crowd
from dear_plugin.decoders.links import links
from dear_plugin.decoders.lookup import pick
from dear_plugin.decoders.nodes import nearest, partition
from dear_plugin.decoders.partition import Partition
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.decoders.remade import MOST_ROWS, Remade, of_set
from dear_plugin.decoders.state import EDGE, State
from dear_plugin.decoders.supports import Supports
from dear_plugin.decoders.tables import NOBODY, counted_of, exchanged, settled
from dear_plugin.encoding import Encoder
from dear_plugin.lazy import lazy
from dear_plugin.memory import chunks

COUNT = 16
# Seeds of bootstrap samples are apart from those of counts.
SMOOTH = 1 << 48
# Of all that is kept at a time: 96 MiB.
CELLS = 24_000_000
ENTRIES_A_CHUNK = 1 << 18


class Poisson(Redraws):
    """Redraws of what `Transport` counted.

    Nodes, values, cells, copies and the order of ties are the decoder's own, and so is which
    features have to do with which set: the others do not move in any redraw.

    Args:
        state: what the decoder counted,
        rows: (n, p) of these rows.
        encoder: the gate.
        sets: what may be acted on.
        count: R.
    """

    def __init__(
        self,
        state: State,
        rows: Tensor,
        encoder: Encoder,
        *,
        sets: ActionSets,
        count: int = COUNT,
    ) -> None:
        self.count = count
        self._state, self._rows, self._encoder, self._sets = state, rows, encoder, sets
        self._kept: dict[tuple[int, int], _Drawn] = {}

    def decode(self, x: Tensor, values: Tensor, sets: Tensor, which: Tensor) -> Tensor:
        """Where rows end up, (m, r, p); see `Redraws.decode`."""
        state = self._state
        positions = state.nodes.positions[sets]
        places = torch.stack([x.gather(1, positions), values], 1)
        out = x[:, None].repeat(1, len(which), 1)
        with torch.inference_mode():
            for one in sets.unique().tolist():
                rows = (sets == one).nonzero()[:, 0]
                for redraws, drawn in self._blocks(one, which):
                    size = max(1, ENTRIES_A_CHUNK // (len(redraws) * max(1, x.shape[1])))
                    for some in chunks(rows, size):
                        made = drawn.decode(x[some], places[some], which[redraws])
                        out[some[:, None], redraws] = made
        if state.copies is not None:
            every = torch.cat([places[:, :1], places[:, 1:].expand(-1, len(which), -1)], 1)
            out = state.copies.follow(out, x, every, sets)
        there = values[:, None].expand(-1, len(which), -1)
        return out.scatter_(2, positions[:, None].expand(there.shape), there)

    def _blocks(self, one: int, which: Tensor) -> list[tuple[Tensor, _Drawn]]:
        """Which of the redraws asked for are drawn at a time, and what was drawn for a set."""
        size = min(self.count, max(1, CELLS // max(1, self._cells[one])))
        block = which.div(size, rounding_mode="floor")
        return [
            ((block == at).nonzero()[:, 0], self._drawn(one, at * size, size))
            for at in block.unique().tolist()
        ]

    @property
    def kept_cells(self) -> int:
        """How many entries are kept now."""
        return sum(each.cells for each in list(self._kept.values()))

    def _drawn(self, one: int, first: int, size: int) -> _Drawn:
        # Another thread may be here too: what is gone already is no matter.
        drawn = self._kept.pop((one, first), None)
        if drawn is None:
            with torch.inference_mode(False):
                drawn = self._draw(one, range(first, min(first + size, self.count)))
            for oldest in list(self._kept):
                if self.kept_cells + drawn.cells <= CELLS:
                    break
                self._kept.pop(oldest, None)
        if drawn.cells <= CELLS:
            self._kept[one, first] = drawn
        return drawn

    def _draw(self, one: int, redraws: range) -> _Drawn:
        """Count the rows again, for one set, and redraw the counts."""
        state, known = self._state, self._known
        supports, part = state.supports, self._part(one)
        told = _moving(supports, known.belief.told[one] & ~self._sets.masks[one])
        codes = supports.codes(self._rows)
        t = len(supports.values)
        counted = counted_of(part, known.crowd, codes, one, t)
        drawn = torch.stack([_poisson(counted.counts, one, redraw) for redraw in redraws])
        shares = known.belief.redrawn(one, counted, drawn)
        table = _upto(shares, supports, told).flatten()
        (r, k, b, _), smooth = drawn.shape, None
        if state.smooth is not None:
            fitted, alone = of_set(state.smooth, state.nodes, one), _alone(known.crowd, one)
            drawn_rows = [_bootstrap(len(self._rows), one, redraw) for redraw in redraws]
            told_of = known.belief.told[one] & ~self._sets.masks[one]
            smooth = Remade.of(fitted, alone, part, told_of, drawn_rows)
        return _Drawn(state, one, redraws.start, (k, b), table, told, part.mix, smooth)

    def _part(self, one: int) -> Partition:
        nodes = self._state.nodes
        end = int(nodes.sizes[: one + 1].sum())
        grid = nodes.grid[end - int(nodes.sizes[one]) : end]
        return partition(self._known.crowd, nodes.groups, one, len(grid), grid)

    @lazy
    def _cells(self) -> list[int]:
        """How many cells one redraw of each set takes."""
        state, told = self._state, self._known.belief.told
        sizes = state.nodes.sizes[: len(told)]
        values = (told * state.supports.sizes).sum(1)
        cells = len(state.given) * sizes * values
        if state.smooth is not None:
            cells = cells + told[:, state.smooth.features].sum(1) * state.smooth.spread[0, :, 0].numel() * sizes
        return [int(c) for c in cells]

    @lazy
    def _known(self) -> _Known:
        state = self._state
        crowd = state.given.crowd(self._rows, self._encoder, self._sets)
        codes, k, t = state.supports.codes(self._rows), len(crowd.cells), len(state.supports.values)
        told = links(crowd, state.supports)
        total = counted_of(Partition(torch.zeros_like(crowd.own), torch.zeros(1), torch.ones(1, 1)), crowd, codes, 0, t).counts[:, 0].double()
        return _Known(crowd, Belief.of(total, crowd.within, state.supports, told))


class _Known(NamedTuple):
    """What all sets have in common."""

    crowd: Crowd
    belief: Belief


class _Moving(NamedTuple):
    """The counted features that may move: where their values are.

    Attributes:
        features: (f,) which they are.
        counted: (f,) their places among all that are counted.
        start: (f,) where each begins among all values.
        first: (f,) and among those of these features.
        size: (f,) how many values each has.
        blocks: (f,) bool, categories without an order.
        values: (u,) the places of their values.
    """

    features: Tensor
    counted: Tensor
    start: Tensor
    first: Tensor
    size: Tensor
    blocks: Tensor
    values: Tensor


def _moving(supports: Supports, told: Tensor) -> _Moving:
    """The counted features among those told of, (p,) bool."""
    place = told[supports.counted].nonzero()[:, 0]
    features = supports.counted[place]
    start, size = supports.starts[features], supports.sizes[features]
    blocks = torch.isin(features, torch.tensor(supports.blocks, dtype=torch.int64))
    first = size.cumsum(0) - size
    values = torch.arange(int(size.sum())) + (start - first).repeat_interleave(size)
    return _Moving(features, place, start, first, size, blocks, values)


def _alone(crowd: Crowd, one: int) -> Crowd:
    """The training rows, who may act on one set only."""
    sets = crowd.sets
    return replace(crowd, sets=ActionSets((sets.names[one],), (sets.members[one],), sets.p))


def _bootstrap(n: int, one: int, redraw: int) -> Tensor:
    """(z,) some of n rows, drawn with replacement."""
    generator = torch.Generator().manual_seed((one << 16) + redraw + SMOOTH)
    return torch.randint(n, (min(n, MOST_ROWS),), generator=generator)


def _poisson(counts: Tensor, one: int, redraw: int) -> Tensor:
    """Draws of mean `counts`: the same ones whenever, and whatever else, is asked for."""
    generator = torch.Generator().manual_seed((one << 16) + redraw)
    out = torch.zeros_like(counts)
    some = counts > 0
    out[some] = torch.poisson(counts[some], generator=generator)
    return out


def _upto(shares: Tensor, supports: Supports, told: _Moving) -> Tensor:
    """(..., u) P(x_j <= value) of the features that may move, from (..., t)."""
    out = shares.new_empty(*shares.shape[:-1], len(told.values))
    for start, first, size in zip(*(e.tolist() for e in told[2:5]), strict=True):
        here = shares[..., start : start + size].cumsum(-1, dtype=torch.float64)
        out[..., first : first + size] = here.clamp_(0.0, 1.0)
    return out


@dataclass(frozen=True)
class _Drawn:
    """Some redraws of one set.

    Attributes:
        state: what the decoder counted.
        one: the set.
        first: the first of the redraws.
        shape: how many cells and bins there are.
        table: (r * k * b * u,) P(x_j <= value | bin, cell), redraw after redraw.
        moving: the features that may move.
        mix: (g, b) what bins weigh at nodes.
        smooth: the redraws of atom-free features.
    """

    state: State
    one: int
    first: int
    shape: tuple[int, int]
    table: Tensor
    moving: _Moving
    mix: Tensor
    smooth: Remade | None

    @property
    def cells(self) -> int:
        """How many entries are kept."""
        return self.table.numel() + (0 if self.smooth is None else self.smooth.cells)

    def decode(self, x: Tensor, places: Tensor, which: Tensor) -> Tensor:
        """(m, r, p) where rows, (m, p), end up when they go from place to place, (m, 2, w)."""
        state, which = self.state, which - self.first
        sets = torch.full((len(x),), self.one)
        left, weight = state.nodes.locate(places, sets)
        node = nearest(left, weight)
        out = x[:, None].repeat(1, len(which), 1)
        if len(self.moving.features):
            self._counted(x, node, which, out)
        if self.smooth is not None:
            wide = None
            if state.smooth is not None and state.smooth.planes is not None and self.smooth.weights.numel():
                wide = state.smooth.planes.basis(state.nodes.wide(places, sets))
            basis = state.given.basis(x), wide
            self.smooth.move(x, basis, (left - self._start, weight), which, out)
        return out

    @lazy
    def _start(self) -> int:
        return int(self.state.nodes.sizes[: self.one].sum())

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
            tie = state.ties.standing(x, state.supports, codes, node[:, :1])[:, :, moving.counted]
        code = (codes[moving.counted].T - (moving.start - moving.first)).int()[:, None]
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
        first = self.moving.first.int()
        upto = rows.at(code)
        below = torch.where(code == first, 0.0, rows.at((code - 1).clamp_min_(0)))
        return below, upto

    def _reached(self, rows: _Rows, v: Tensor, i: Tensor, r: Tensor, f: Tensor) -> Tensor:
        """(z,) the first values whose cumulative shares reach standings v."""
        moving, some = self.moving, rows.some(i, r)
        first, size = moving.first.int()[f], moving.size.int()[f]
        # As many values lie below as can be stepped over.
        passed = torch.zeros_like(first)
        step = 1 << (int(moving.size.max()).bit_length() - 1)
        while step:
            ahead = passed + step
            inside = torch.minimum(ahead, size)
            less = (some.at(first + inside - 1) < v) & (ahead < size)
            passed.add_(less, alpha=step)
            step >>= 1
        return pick(self.state.supports.values, moving.start.int()[f] + passed)

    def _shares(self, rows: _Rows, i: Tensor, r: Tensor, f: int) -> Tensor:
        """(z, c) the shares of the categories of one feature."""
        first, size = int(self.moving.first[f]), int(self.moving.size[f])
        some = rows.some(i, r)
        upto = _Rows(*(e if e is None or isinstance(e, bool) else e for e in some)).at_all(
            torch.arange(first, first + size, dtype=torch.int32)
        )
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
    def of(cls, drawn: _Drawn, cell: Tensor, node: Tensor) -> _Rows:
        """The rows of bins around nodes, (m, 1), in cells, (m, r), of redraws."""
        a, b, weight, mixed = drawn._sides
        u, node = len(drawn.moving.values), node.long()
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

    def at_all(self, place: Tensor) -> Tensor:
        """(z, c) the entries at places, (c,), of each of z rows."""
        wide = _Rows(self.table, self.a[:, None], self.b[:, None], self.weight[:, None], self.mixed)
        return wide.at(place)
