"""Redraws of tables: bins and counts of bootstrap samples of the rows.

A sample has its own bins of a number as well as its own counts: where values are far apart, such
as those of a capital gain, the bins decide which rows a value is compared with. The redraws of a
set are made at the first request; the least recently used ones are dropped when memory is full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.batches import chunks
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.decoders.transport.bins import Partition
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.nodes import partition
from dear_plugin.decoders.transport.posterior import Posterior, SetCounts
from dear_plugin.decoders.transport.redrawn_sets import Moving, RedrawnSet
from dear_plugin.decoders.transport.redrawn_smooth import RedrawnSmooth, of_set
from dear_plugin.decoders.transport.relevance import linked_features
from dear_plugin.decoders.transport.state import State
from dear_plugin.decoders.transport.tables import counts_of_set, histogram
from dear_plugin.problem.action_sets import ActionSets

COUNT = 16
# The maximum number of entries in memory: 96 MiB.
MAX_ENTRIES = 24_000_000
ENTRIES_A_CHUNK = 1 << 18
# The maximum number of rows that atom-free features are refitted on.
MAX_ROWS = 20_000


class TableRedraws(Redraws):
    """Redraws of the tables of `Transport`.

    Redraw r is made of the same sample of rows for every set. Nodes, values, cells, copies and
    the order of ties are those of the decoder, and so is which features are linked to which set:
    the others do not move in any redraw.

    Args:
        state: the state of the decoder.
        rows: (n, p) the rows that it was fitted on.
        encoder: the encoder.
        sets: the sets that it was fitted with.
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
        self._state, self._draws = state, _Draws(state, rows, encoder, sets)
        self._kept: dict[tuple[int, int], RedrawnSet] = {}
        self._sizes: dict[int, int] = {}

    @property
    def kept_entries(self) -> int:
        """The number of entries in memory."""
        return sum(each.entries for each in list(self._kept.values()))

    def decode(self, x: Tensor, values: Tensor, sets: Tensor, which: Tensor) -> Tensor:
        """The decoded rows, (m, r, p); see `Redraws.decode`."""
        state, r = self._state, len(which)
        positions = state.nodes.positions[sets]
        points = torch.stack([x.gather(1, positions), values], 1)
        out = x[:, None].repeat(1, r, 1)
        with torch.inference_mode():
            for i in sets.unique().tolist():
                self._decode_set(i, (sets == i).nonzero()[:, 0], x, points, which, out)
        there = points[:, 1:].expand(-1, r, -1)
        if state.copies is not None:
            out = state.copies.follow(out, x, torch.cat([points[:, :1], there], 1), sets)
        return out.scatter_(2, positions[:, None].expand(there.shape), there)

    def _decode_set(
        self, i: int, rows: Tensor, x: Tensor, points: Tensor, which: Tensor, out: Tensor
    ) -> None:
        """Write the decoded rows of set i, all but x_S and copies, to out, (m, r, p)."""
        for redraws, drawn in self._blocks(i, which):
            size = max(1, ENTRIES_A_CHUNK // (len(redraws) * x.shape[1]))
            for some in chunks(rows, size):
                made = drawn.decode(x[some], points[some], which[redraws])
                out[some[:, None], redraws] = made

    def _blocks(self, i: int, which: Tensor) -> Iterator[tuple[Tensor, RedrawnSet]]:
        """The indices of requested redraws that are in memory together, and their tables."""
        if i not in self._sizes:
            self._sizes[i] = self._draws.entries(i)
        size = min(self.count, max(1, MAX_ENTRIES // max(1, self._sizes[i])))
        block = which.div(size, rounding_mode="floor")
        for at in block.unique().tolist():
            redraws = range(at * size, min((at + 1) * size, self.count))
            yield (block == at).nonzero()[:, 0], self._drawn(i, redraws)

    def _drawn(self, i: int, redraws: range) -> RedrawnSet:
        # Another thread may remove the same entries: hence the defaults of `pop`.
        key = i, redraws.start
        drawn = self._kept.pop(key, None)
        if drawn is None:
            with torch.inference_mode(False):
                drawn = self._draws.of_set(i, redraws)
            for oldest in list(self._kept):
                if self.kept_entries + drawn.entries <= MAX_ENTRIES:
                    break
                self._kept.pop(oldest, None)
        if drawn.entries <= MAX_ENTRIES:
            self._kept[key] = drawn
        return drawn


@dataclass
class _Draws:
    """Draws redraws of one set; arguments as in `TableRedraws`."""

    state: State
    rows: Tensor
    encoder: Encoder
    sets: ActionSets

    def of_set(self, i: int, redraws: range) -> RedrawnSet:
        """Lay the bins of set i again, and count the rows in them, for each redraw."""
        state, posterior = self.state, self._shared.posterior
        samples = [_bootstrap(len(self.rows), redraw) for redraw in redraws]
        parts = [self._partition(i, self.rows[rows]) for rows in samples]
        moving = Moving.of(state.supports, self._linked[i])
        drawn = self._counts(i, samples, parts)
        table = moving.cumulative(posterior.redrawn(i, drawn)).flatten()
        cells, bins = drawn.counts.shape[1:3]
        mix = torch.stack([_with_empty_bins(part.mix, bins) for part in parts])
        smooth = self._smooth(i, samples, parts)
        return RedrawnSet(state, (i, redraws.start), (cells, bins), table, moving, mix, smooth)

    def _counts(self, i: int, samples: Sequence[Tensor], parts: Sequence[Partition]) -> SetCounts:
        """The counts of set i, (r, k, b, t), with empty bins where a sample has fewer."""
        whole, supports = self._shared.sample, self.state.supports
        codes, counted = supports.codes(self.rows), []
        for rows, part in zip(samples, parts, strict=True):
            sample = replace(whole, own=whole.own[rows])
            counted.append(counts_of_set(part, sample, codes[:, rows], i, len(supports.values)))
        bins = max(each.counts.shape[1] for each in counted)
        counts = torch.stack([_with_empty_bins(each.counts, bins) for each in counted])
        return SetCounts(counts, counted[0].ordered)

    def _smooth(
        self, i: int, samples: Sequence[Tensor], parts: Sequence[Partition]
    ) -> RedrawnSmooth | None:
        """The redraws of atom-free features, refitted on the samples."""
        state, n = self.state, len(self.rows)
        if state.smooth is None or not bool(self._linked[i][state.smooth.features].any()):
            return None
        fitted, some = of_set(state.smooth, state.nodes, i), torch.arange(min(n, MAX_ROWS))
        pairs = zip(samples, parts, strict=True)
        fewer = ((self._subsample(i, rows[some]), part.subset(some)) for rows, part in pairs)
        # A fit of fewer rows has a larger error than one of all rows.
        pull = min(1.0, MAX_ROWS / n) ** 0.5
        return RedrawnSmooth.of(fitted, fewer, self._linked[i], pull)

    def _subsample(self, i: int, drawn: Tensor) -> TrainingSample:
        """The rows with these indices, with set i only."""
        sets, rows = self.sets, self.rows[drawn]
        single = ActionSets((sets.names[i],), (sets.members[i],), sets.p)
        own = self._shared.sample.own[drawn]
        return TrainingSample(rows, self.encoder, single, [], own, self.state.given.basis(rows))

    def _partition(self, i: int, rows: Tensor) -> Partition:
        """The bins of rows, (m, p), for set i, at its nodes."""
        nodes, sample = self.state.nodes, self._shared.sample
        end = int(nodes.sizes[: i + 1].sum())
        grid = nodes.grid[end - int(nodes.sizes[i]) : end]
        return partition(replace(sample, rows=rows), nodes.groups, i, len(grid), grid)

    def entries(self, i: int) -> int:
        """The number of entries of one redraw of set i."""
        state, linked = self.state, self._linked[i]
        nodes, bins = self._partition(i, self.rows).mix.shape
        entries = len(state.given) * bins * int(state.supports.sizes[linked].sum())
        if state.smooth is None:
            return entries
        smooth = int(linked[state.smooth.features].sum())
        return entries + smooth * nodes * (2 * state.smooth.spread.shape[1] + 1)

    @lazy
    def _linked(self) -> Tensor:
        """(s, p) bool, which features may move with each set."""
        return self._shared.posterior.linked & ~self.sets.masks

    @lazy
    def _shared(self) -> _Shared:
        state = self.state
        sample = state.given.training_sample(self.rows, self.encoder, self.sets)
        codes, k = state.supports.codes(self.rows), len(sample.cells)
        total = histogram(sample.own, codes, k, len(state.supports.values)).double()
        linked = linked_features(sample, state.supports)
        posterior = Posterior.of(total, sample.within, state.supports, linked)
        # The rows of cells and the covariates are large and no longer needed.
        cells = [torch.empty(0, dtype=torch.int64)] * k
        small = replace(sample, cells=cells, covariates=sample.covariates[:, :0].clone())
        return _Shared(small, posterior)


class _Shared(NamedTuple):
    """What all sets share."""

    sample: TrainingSample
    posterior: Posterior


def _bootstrap(n: int, redraw: int) -> Tensor:
    """(n,) indices of n rows, drawn with replacement."""
    generator = torch.Generator().manual_seed(redraw)
    return torch.randint(n, (n,), generator=generator)


def _with_empty_bins(table: Tensor, count: int) -> Tensor:
    """A table whose second dimension, the bins, is filled up with zeros."""
    empty = table.new_zeros(len(table), count - table.shape[1], *table.shape[2:])
    return torch.cat([table, empty], 1)
