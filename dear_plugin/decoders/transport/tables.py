"""Tables (steps 7 and 8): ranks of counted features, and the values at these ranks elsewhere.

A *line* is the distribution of all counted features that move with x_S, in one sample, cell and
node: cumulative probabilities of ordered values, probabilities of categories without an order.
Ranks are inverted exactly. Lines are computed for the cells and nodes that are needed, or all
at once where they fit into memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from dear_plugin._threads import lazy
from dear_plugin.data.numbers import Array, known
from dear_plugin.decoders.protocol import maximal_coupling
from dear_plugin.decoders.transport.counted import MOST_TILT

# The least share of known, or of missing values.
TINY = 1e-6
# Entries of the lines in memory, 64 MiB, and of those that are computed at a time.
ENTRIES, AT_ONCE = 1 << 24, 1 << 19


@dataclass(eq=False)
class Tables:
    """The counted features that move with x_S, and the factors of their lines.

    A line has a *slot* for each value of a feature, and one before them that is 0.

    Attributes:
        features: (f,) their positions, those with an order first.
        levels: f arrays, the sorted values of each.
        ordered: the number of those with an order.
        base: (r, k, slots), of r samples and k cells, see `ratios`.
        ratio: (r, g, slots), of r samples and g nodes, likewise.
        tilt: (r, w, slots), the logarithms of ratios at places 1 within nodes.
        fine: w arrays, (q,), such places of each feature of S; none if nodes are all there is.
        starts: (f + 1,) the slot before the values of each feature, and the number of slots.
    """

    features: Array
    levels: list[Array]
    ordered: int
    base: Array
    ratio: Array
    tilt: Array
    fine: tuple[Array, ...]

    def __post_init__(self) -> None:
        self.starts = np.cumsum([0, *(len(each) + 1 for each in self.levels)])
        # The place of the feature, and the value, of each slot.
        self._feature = np.arange(len(self.levels)).repeat(np.diff(self.starts))
        self._values = np.concatenate([[], *(np.append(0.0, each) for each in self.levels)])
        # The middles between neighbouring values of each feature.
        self._middles = [(each[1:] + each[:-1]) / 2.0 for each in self.levels]
        # The ordered features with special levels, and the number of these.
        counts = [int((~known(each)).sum()) for each in self.levels[: self.ordered]]
        self._special = [(j, count) for j, count in enumerate(counts) if count]
        # The numbers of samples, cells, nodes, and places within these of each feature of S.
        self._shape = *self.base.shape[:2], self.ratio.shape[1], *map(len, self.fine)
        # The number of lines; 0 if there are places within nodes: those are many.
        self._count = 0 if self.fine else prod(self._shape)

    def lines(self, at: Array) -> tuple[Array, Array]:
        """Lines, (u, slots), and that of each index: `(sample * k + cell) * g + node`.

        Where there are places within nodes, they are its last digits, see `Axis`.
        """
        if self._every is not None:
            return self._every, at
        wanted, where = np.unique(at, return_inverse=True)
        return self._lines(wanted), where.reshape(at.shape)

    @lazy
    def entries(self) -> int:
        """The number of entries of the factors, and of all lines where they are kept."""
        factors = self.base.size + self.ratio.size + self.tilt.size
        lines = self._count * int(self.starts[-1])
        return factors + lines * (lines <= ENTRIES)

    @lazy
    def _every(self) -> Array | None:
        few = 0 < self._count * int(self.starts[-1]) <= ENTRIES
        return self._lines(np.arange(self._count)) if few else None

    def _lines(self, at: Array) -> Array:
        """(u, slots) the lines with some indices."""
        out = np.empty((len(at), int(self.starts[-1])), np.float32)
        size = max(1, AT_ONCE // max(out.shape[1], 1))
        for i in range(0, len(at), size):
            out[i : i + size] = self._shares(at[i : i + size])
        return out

    def _shares(self, at: Array) -> Array:
        sample, cell, node, *within = np.unravel_index(at, self._shape)
        product = self.base[sample, cell] * self.ratio[sample, node]
        if within:
            tilt = self.tilt[sample, 0] * self.fine[0][within[0], None]
            for i, place in enumerate(within[1:], 1):
                tilt += self.tilt[sample, i] * self.fine[i][place, None]
            product = product * np.exp(tilt.clip(-MOST_TILT, MOST_TILT, out=tilt))
        # Of a slot before the values of a feature the sum is that of earlier features.
        sums: Array = product.cumsum(1, np.float64)
        before = sums[:, self.starts[:-1]]
        total = np.append(before[:, 1:], sums[:, -1:], 1) - before
        sums -= before.take(self._feature, 1)
        ends = self.starts[self.ordered]
        sums[:, ends:] = product[:, ends:]
        sums /= np.maximum(total, 1e-30).take(self._feature, 1)
        return sums

    def _slots(self, x: Array) -> Array:
        """(m, f) the slot of the nearest value of rows, (m, p)."""
        each = zip(self._middles, self.features, strict=True)
        slots: Array = np.stack([middle.searchsorted(x[:, j]) for middle, j in each], 1)
        slots += self.starts[:-1] + 1
        return slots

    def ranks(self, x: Array, at: Array, tie: Any) -> Array:
        """(r, m, f) the rank of each feature in a row's own line; without an order, its tie.

        Args:
            x: (m, p) rows.
            at: (r, m) their lines in r samples.
            tie: a number, or (r or 1, m or 1, f), the place among equal values, in (0, 1).
        """
        lines, where = self.lines(at)
        slots, out = self._slots(x), np.empty((*at.shape, len(self.features)), np.float32)
        out[:], ordered = tie, slice(self.ordered)
        place = where[..., None] * lines.shape[1] + slots[:, ordered]
        below, up_to = lines.take(place - 1), lines.take(place)
        out[..., ordered] = below + out[..., ordered] * (up_to - below)
        return out

    def move(
        self, x: Array, v: Array, start: Array, end: Array, luck: Array | None = None
    ) -> Array:
        """(r, m, c, f) the values of the features on other lines.

        A value that keeps its place is that of the row.

        Args:
            x: (m, p) the factual rows.
            v: (r, m, f) their ranks.
            start: (r, m) their lines.
            end: (r, m, c) the lines to move to.
            luck: (r,) in (0, 1), which rows become missing as more are; None: no row.
        """
        (r, m, c), f = end.shape, len(self.features)
        lines, where = self.lines(np.concatenate([start[..., None], end], 2))
        where, own = where.reshape(r * m, 1 + c), x.take(self.features, 1)
        leaves = (where[:, 1:] != where[:, :1]).ravel().nonzero()[0]
        row = leaves // c
        here, there = where[:, 0].take(row), where[:, 1:].ravel().take(leaves)
        ranks, slots = v.reshape(r * m, f)[row], self._slots(x)[row % m]
        moved = own[row % m]
        chance = None if luck is None else luck[row // m]
        ranks = self._among_known((lines, here, there), chance, slots, ranks)
        self._move_ordered(lines, there, slots, ranks, moved)
        for j in range(self.ordered, f):
            first, end = self.starts[j] + 1, self.starts[j + 1]
            own_line, code = lines[:, first:end], slots[:, j] - first
            moved[:, j] = maximal_coupling(own_line, here, there, code, ranks[:, j])
        out = np.tile(own.repeat(c, 0), (r, 1))
        out[leaves] = moved
        return out.reshape(r, m, c, f)

    def _among_known(
        self, at: tuple[Array, Array, Array], luck: Array | None, slots: Array, ranks: Array
    ) -> Array:
        """(l, f) ranks; where a number may be missing, those among rows of the same status.

        A number that is known stays known in an answer, and becomes missing in so many of its
        resamples as more rows are.

        Args:
            at: all lines, and those of each row before and after, (l,).
            luck: (l,) which rows become missing; None: no row.
            slots: (l, f) the rows' slots.
            ranks: (l, f) their ranks.
        """
        (lines, here, there), out = at, ranks.copy() if self._special else ranks
        for j, count in self._special:
            last, own = int(self.starts[j]) + count, ranks[:, j].astype(np.float64)
            a, b, known = lines[here, last], lines[there, last], slots[:, j] > last
            place = (own - a * known) / np.maximum(np.where(known, 1.0 - a, a), TINY)
            # Just above the special ones.
            among = np.maximum(b + place * (1.0 - b), np.nextafter(b, 2.0, dtype=b.dtype))
            among = np.where(b < 1.0 - TINY, among, own)
            if luck is not None:
                among = np.where(luck * (1.0 - a) < b - a, b * luck, among)
            out[:, j] = np.where(known, among, place * b)
        return out

    def _move_ordered(
        self, lines: Array, there: Array, slots: Array, ranks: Array, moved: Array
    ) -> None:
        """Write the first value whose cumulative probability reaches the rank: a bisection.

        Args:
            lines: all of them, (u, slots).
            there: (l,) the line of each row.
            slots: (l, f) the rows' own slots.
            ranks: (l, f) their ranks.
            moved: (l, f) their values, to be changed.
        """
        ordered, starts = slice(self.ordered), self.starts
        first = there * lines.shape[1]
        at, ranks = first[:, None] + slots[:, ordered], ranks[:, ordered]
        row, f = ((ranks <= lines.take(at - 1)) | (ranks > lines.take(at))).nonzero()
        v, zero, size = ranks[row, f], first[row] + starts[f], starts[f + 1] - starts[f] - 1
        passed, step = np.zeros_like(f), 1 << int(size.max(initial=1)).bit_length()
        while step := step // 2:
            ahead = passed + step
            below = lines.take(zero + np.minimum(ahead, size)) < v
            passed += step * (below & (ahead < size))
        moved[row, f] = self._values[starts[f] + 1 + passed]
