"""Poisson: the redraws of tables. Every count is replaced by a draw of that mean and read again.

It is a bootstrap without a second pass over the rows: of a sample with replacement, each count is
about Poisson. What is drawn of one set is made when it is first asked for, and the least recently
used is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin._batches import chunks
from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.decoders.transport.bins import Partition
from dear_plugin.decoders.transport.conditioning import Crowd
from dear_plugin.decoders.transport.nodes import partition
from dear_plugin.decoders.transport.posterior import Posterior
from dear_plugin.decoders.transport.redrawn_sets import Moving, RedrawnSets
from dear_plugin.decoders.transport.redrawn_smooth import RedrawnSmooth, of_set
from dear_plugin.decoders.transport.relevance import links
from dear_plugin.decoders.transport.state import State
from dear_plugin.decoders.transport.tables import counted_of, histogram
from dear_plugin.problem.action_sets import ActionSets

COUNT = 16
# Of all that is kept at a time: 96 MiB.
CELLS = 24_000_000
ENTRIES_A_CHUNK = 1 << 18
# Atom-free features are fitted again on so many rows at most.
MOST_ROWS = 20_000
# Seeds of samples of rows are apart from those of counts.
SAMPLES = 1 << 48


class PoissonRedraws(Redraws):
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
        self._kept: dict[tuple[int, int], RedrawnSets] = {}
        self._sizes: dict[int, int] = {}

    @property
    def kept_cells(self) -> int:
        """How many entries are kept now."""
        return sum(each.cells for each in list(self._kept.values()))

    def decode(self, x: Tensor, values: Tensor, sets: Tensor, which: Tensor) -> Tensor:
        """Where rows end up, (m, r, p); see `Redraws.decode`."""
        state, r = self._state, len(which)
        positions = state.nodes.positions[sets]
        places = torch.stack([x.gather(1, positions), values], 1)
        out = x[:, None].repeat(1, r, 1)
        with torch.inference_mode():
            for one in sets.unique().tolist():
                rows = (sets == one).nonzero()[:, 0]
                for redraws, drawn in self._blocks(one, which):
                    size = max(1, ENTRIES_A_CHUNK // (len(redraws) * x.shape[1]))
                    for some in chunks(rows, size):
                        made = drawn.decode(x[some], places[some], which[redraws])
                        out[some[:, None], redraws] = made
        there = places[:, 1:].expand(-1, r, -1)
        if state.copies is not None:
            out = state.copies.follow(out, x, torch.cat([places[:, :1], there], 1), sets)
        return out.scatter_(2, positions[:, None].expand(there.shape), there)

    def _blocks(self, one: int, which: Tensor) -> Iterator[tuple[Tensor, RedrawnSets]]:
        """Which of the redraws asked for are drawn together, and what was drawn for a set."""
        if one not in self._sizes:
            self._sizes[one] = self._cells(one)
        size = min(self.count, max(1, CELLS // max(1, self._sizes[one])))
        block = which.div(size, rounding_mode="floor")
        for at in block.unique().tolist():
            redraws = range(at * size, min((at + 1) * size, self.count))
            yield (block == at).nonzero()[:, 0], self._drawn(one, redraws)

    def _drawn(self, one: int, redraws: range) -> RedrawnSets:
        # Another thread may be here too: what is gone already is no matter.
        key = one, redraws.start
        drawn = self._kept.pop(key, None)
        if drawn is None:
            with torch.inference_mode(False):
                drawn = self._draw(one, redraws)
            for oldest in list(self._kept):
                if self.kept_cells + drawn.cells <= CELLS:
                    break
                self._kept.pop(oldest, None)
        if drawn.cells <= CELLS:
            self._kept[key] = drawn
        return drawn

    def _draw(self, one: int, redraws: range) -> RedrawnSets:
        """Count the rows again, for one set, and redraw the counts."""
        state, (crowd, belief) = self._state, self._known
        supports, part = state.supports, self._part(one)
        codes = supports.codes(self._rows)
        counted = counted_of(part, crowd, codes, one, len(supports.values))
        drawn = torch.stack([_poisson(counted.counts, one, redraw) for redraw in redraws])
        moving = Moving.of(supports, self._told[one])
        table = moving.upto(belief.redrawn(one, counted, drawn)).flatten()
        cells, bins = counted.counts.shape[:2]
        smooth = self._remade(one, part, redraws)
        return RedrawnSets(
            state, (one, redraws.start), (cells, bins), table, moving, part.mix, smooth
        )

    def _remade(self, one: int, part: Partition, redraws: range) -> RedrawnSmooth | None:
        """The same of atom-free features, fitted on samples of the rows."""
        state, n = self._state, len(self._rows)
        if state.smooth is None or not bool(self._told[one][state.smooth.features].any()):
            return None
        fitted = of_set(state.smooth, state.nodes, one)
        drawn = [_sample(n, one, redraw) for redraw in redraws]
        samples = ((self._people(one, rows), part.of(rows)) for rows in drawn)
        # A fit of fewer rows is farther off than one of all would be.
        pull = min(1.0, MOST_ROWS / n) ** 0.5
        return RedrawnSmooth.of(fitted, samples, self._told[one], pull)

    def _people(self, one: int, drawn: Tensor) -> Crowd:
        """Some of the rows, who may act on one set only."""
        sets, rows = self._sets, self._rows[drawn]
        alone = ActionSets((sets.names[one],), (sets.members[one],), sets.p)
        own = self._known.crowd.own[drawn]
        return Crowd(rows, self._encoder, alone, [], own, self._state.given.basis(rows))

    def _part(self, one: int) -> Partition:
        """The bins of one set, at the nodes that it has."""
        nodes = self._state.nodes
        end = int(nodes.sizes[: one + 1].sum())
        grid = nodes.grid[end - int(nodes.sizes[one]) : end]
        return partition(self._known.crowd, nodes.groups, one, len(grid), grid)

    def _cells(self, one: int) -> int:
        """How many entries one redraw of a set takes."""
        state, told = self._state, self._told[one]
        nodes, bins = self._part(one).mix.shape
        cells = len(state.given) * bins * int(state.supports.sizes[told].sum())
        if state.smooth is None:
            return cells
        smooth = int(told[state.smooth.features].sum())
        return cells + smooth * nodes * (2 * state.smooth.spread.shape[1] + 1)

    @lazy
    def _told(self) -> Tensor:
        """(s, p) bool, which features may move with each set."""
        return self._known.belief.told & ~self._sets.masks

    @lazy
    def _known(self) -> _Known:
        state = self._state
        crowd = state.given.crowd(self._rows, self._encoder, self._sets)
        codes, k = state.supports.codes(self._rows), len(crowd.cells)
        total = histogram(crowd.own, codes, k, len(state.supports.values)).double()
        told = links(crowd, state.supports)
        belief = Posterior.of(total, crowd.within, state.supports, told)
        # Who is in which cell besides their own, and what is given, is large and has served.
        none = torch.empty(0, dtype=torch.int64)
        return _Known(replace(crowd, cells=[none] * k, beside=crowd.beside[:, :0].clone()), belief)


class _Known(NamedTuple):
    """What all sets have in common."""

    crowd: Crowd
    belief: Posterior


def _poisson(counts: Tensor, one: int, redraw: int) -> Tensor:
    """Draws of mean `counts`: the same ones whenever, and whatever else, is asked for."""
    generator = torch.Generator().manual_seed((one << 16) + redraw)
    out, some = torch.zeros_like(counts), counts > 0
    out[some] = torch.poisson(counts[some], generator=generator)
    return out


def _sample(n: int, one: int, redraw: int) -> Tensor:
    """(z,) some of n rows, drawn with replacement."""
    generator = torch.Generator().manual_seed(SAMPLES + (one << 16) + redraw)
    return torch.randint(n, (min(n, MOST_ROWS),), generator=generator)
