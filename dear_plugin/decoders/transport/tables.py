"""Tables (steps 7 and 8): ranks of counted features, and the values at these ranks elsewhere.

A *line* is the distribution of all counted features that move with x_S, in one sample, cell and
node: cumulative probabilities of ordered values, probabilities of categories without an order.
Ranks are inverted exactly. Lines are computed for the cells and nodes that are asked for, or all
at once where they fit into memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy

# Entries of the lines in memory: 64 MiB.
ENTRIES = 1 << 24
# A probability is 0 below it, and a tie at the middle within `MIDDLE` of 1/2.
TINY, MIDDLE = 1e-9, 1e-6


@dataclass(frozen=True)
class Moving:
    """The counted features that move with x_S, and where their values are on a line.

    Attributes:
        features: (f,) their positions.
        levels: (t,) their values, feature after feature.
        starts: (f,) the first value of each.
        sizes: (f,) the number of values of each.
        block: (f,) bool, which are categories without an order.
    """

    features: Tensor
    levels: Tensor
    starts: Tensor
    sizes: Tensor
    block: Tensor

    @classmethod
    def of(cls, features: Tensor, levels: list[Tensor], blocks: Tensor) -> Moving:
        """Lay the values of some features end to end."""
        some = [levels[j] for j in features.tolist()]
        sizes = torch.tensor([len(each) for each in some], dtype=torch.int64)
        every = torch.cat([torch.empty(0), *some])
        return cls(features, every, sizes.cumsum(0) - sizes, sizes, blocks[features])

    def codes(self, x: Tensor) -> Tensor:
        """(q, f) the index among `levels` of the nearest value of rows, (q, p)."""
        own = x[:, self.features].T.contiguous()
        return (torch.searchsorted(self._middles, own) + self.starts[:, None]).T

    def segment(self, f: int) -> slice:
        """The values of the f-th feature."""
        return slice(int(self.starts[f]), int(self.starts[f] + self.sizes[f]))

    @lazy
    def _middles(self) -> Tensor:
        """(f, most) the middles between neighbouring values, infinite behind the last."""
        parts = [self.levels[self.segment(f)] for f in range(len(self.sizes))]
        middles = [(each[1:] + each[:-1]) / 2.0 for each in parts]
        return torch.nn.utils.rnn.pad_sequence(
            [*middles, torch.empty(1)], batch_first=True, padding_value=torch.inf
        )[:-1]


@dataclass(frozen=True)
class Tables:
    """The factors of the lines of r samples, k cells and g nodes.

    Attributes:
        moving: the features.
        base: (r * k, t) see `ratios`.
        ratio: (r * g, t) likewise.
        cells: k, the number of cells.
        nodes: g, the number of nodes.
    """

    moving: Moving
    base: Tensor
    ratio: Tensor
    cells: int
    nodes: int

    def lines(self, at: Tensor) -> tuple[Tensor, Tensor]:
        """Lines, (u, t), and the line of each index, (q,): `(sample * k + cell) * g + node`."""
        if self._every is not None:
            return self._every, at
        asked, where = at.unique(return_inverse=True)
        return self._line(asked), where

    @lazy
    def _every(self) -> Tensor | None:
        count = len(self.base) * self.nodes
        return (
            self._line(torch.arange(count)) if count * len(self.moving.levels) <= ENTRIES else None
        )

    def _line(self, at: Tensor) -> Tensor:
        """(u, t) the lines with some indices."""
        cell = at.div(self.nodes, rounding_mode="floor")
        sample = cell.div(self.cells, rounding_mode="floor")
        out = self.base[cell] * self.ratio[sample * self.nodes + at % self.nodes]
        for f, block in enumerate(self.moving.block.tolist()):
            part = out[:, self.moving.segment(f)]
            total = part.sum(1, keepdim=True).clamp_min(1e-30)
            if not block:
                part.copy_(part.cumsum(1))
            part.div_(total)
        return out

    def ranks(self, x: Tensor, at: Tensor, tie: Tensor) -> Tensor:
        """(q, f) the rank of each feature in a row's own line; of a block, its tie.

        Args:
            x: (q, p) rows.
            at: (q,) their lines.
            tie: (q, f) the place among equal values, in (0, 1).
        """
        lines, where = self.lines(at)
        codes = self.moving.codes(x)
        below, up_to = self._bounds(lines, where, codes)
        return torch.where(self.moving.block, tie, below + tie * (up_to - below))

    def move(self, x: Tensor, v: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """(m, c, f) the values of the features on other lines.

        A value that keeps its place is that of the row.

        Args:
            x: (m, p) the factual rows.
            v: (m, f) their ranks.
            start: (m,) their lines.
            end: (m, c) the lines to move to.
        """
        (m, c), moving = end.shape, self.moving
        lines, where = self.lines(torch.cat([start[:, None], end], 1))
        own = moving.codes(x)
        here, there = where[:, 0], where[:, 1:].reshape(-1)
        codes = own[:, None].expand(m, c, -1).reshape(m * c, -1)
        ranks = v[:, None].expand(m, c, -1).reshape(m * c, -1)
        leaves = there.view(m, c) != here[:, None]
        below, up_to = self._bounds(lines, there, codes)
        before = lines[here[:, None], own][:, None].expand(m, c, -1).reshape(m * c, -1)
        kept = (up_to + TINY) / (before + TINY) >= off_middle(ranks)
        stays = torch.where(moving.block, kept, (ranks > below) & (ranks <= up_to))
        moved = (leaves.view(-1, 1) & ~stays).nonzero()
        out = x[:, None, moving.features].repeat(1, c, 1).view(m * c, -1)
        self._move_ordered(lines, there, ranks, moved[~moving.block[moved[:, 1]]], out)
        for f in moving.block.nonzero()[:, 0].tolist():
            row = moved[moved[:, 1] == f, 0]
            both = lines[:, moving.segment(f)]
            gain = (both[there[row]] - both[here[row.div(c, rounding_mode="floor")]]).clamp_min(
                0.0
            )
            keep = ((up_to[row, f] + TINY) / (before[row, f] + TINY)).clamp_max(1.0)
            out[row, f] = new_category(gain, ranks[row, f], keep).to(out.dtype)
        return out.view(m, c, -1)

    def _bounds(self, lines: Tensor, where: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """P(value < own) and P(value <= own), (q, f) each; of a block, 0 and P(own)."""
        flat, at = lines.view(-1), (where * lines.shape[1])[:, None] + codes
        first = self.moving.block | (codes == self.moving.starts)
        below = torch.where(first, 0.0, flat[(at - 1).clamp_min(0)])
        return below, flat[at]

    def _move_ordered(
        self, lines: Tensor, where: Tensor, ranks: Tensor, moved: Tensor, out: Tensor
    ) -> None:
        """Write the first value whose cumulative probability reaches the rank: a bisection."""
        row, f = moved.unbind(1)
        start, size, v = self.moving.starts[f], self.moving.sizes[f], ranks[row, f]
        first, flat = where[row] * lines.shape[1] + start, lines.view(-1)
        passed, step = torch.zeros_like(f), 1 << int(size.max() if len(f) else 1).bit_length()
        while step := step // 2:
            ahead = passed + step
            below = flat[first + (ahead - 1).clamp_max(size - 1)] < v
            passed = torch.where(below & (ahead < size), ahead, passed)
        out[row, f] = self.moving.levels[start + passed]


def off_middle(tie: Tensor) -> Tensor:
    """Ties of any shape, with those of 1/2 moved below it.

    Otherwise rounding would decide for a tie of 1/2 when a probability exactly halves.
    """
    return torch.where((tie - 0.5).abs() < MIDDLE, 0.5 - MIDDLE, tie)


def new_category(gain: Tensor, tie: Tensor, kept: Tensor) -> Tensor:
    """(m,) the categories of rows that do not keep theirs, by the maximal coupling.

    Args:
        gain: (m, c) the increase of the probability of each category.
        tie: (m,) the place among rows of the same category; 1/2 gives the category with the
            largest increase.
        kept: (m,) the probability to keep the category.
    """
    drawn = (tie - kept) / (1.0 - kept).clamp_min(1e-9)
    cumulative = gain.cumsum(1) / gain.sum(1, keepdim=True).clamp_min(1e-9)
    random = (cumulative < drawn[:, None]).sum(1).clamp_max(gain.shape[1] - 1)
    return torch.where((tie - 0.5).abs() < MIDDLE, gain.argmax(1), random)
