"""Columns (step 6): what smooth features are regressed on, for one set."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.balance import Balance
from dear_plugin.decoders.transport.terms import Terms, phi, straight
from dear_plugin.decoders.transport.values import HEAVY, value_counts

# Heavy values of a number that have a column, and their least rows.
ATOMS, ATOM_ROWS = 12, 50
# Held features, and columns of one, by which effects may differ.
MODIFIERS, MOST_LEVELS = 12, 12


class Columns:
    """The columns of the held features, in every model, and those of x_S.

    The columns of x_S are those of `Terms`; an indicator for each heavy value, at which a feature
    may jump; and the products of the straight ones with those of held features, by which an
    effect may differ.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features.

    Attributes:
        encoder: scales rows.
        acted: (w,) the features of S.
        blocks: (b, u) bool, the columns of x_S that are added together: straight ones, bends,
            heavy values, and the products with each held feature.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members) -> None:
        self.encoder, self.acted = sample.encoder, torch.tensor(acted)
        self._balance = sample.shared(Balance, acted, held) if held else None
        self._terms = [sample.shared(Terms.of, j) for j in acted]
        self._atoms = [sample.shared(_atoms, j) for j in acted]
        some = [j for j in held if _levels(sample, j) <= MOST_LEVELS][:MODIFIERS]
        self._by, self._modifiers = torch.tensor(some), [sample.shared(Terms.of, j) for j in some]
        self._straight = straight(self._terms)
        self.blocks = self._blocks()

    def always(self, rows: Tensor) -> Tensor:
        """(m, q) a constant, and the held features' columns of scaled rows, (m, p)."""
        return (
            rows.new_ones(len(rows), 1) if self._balance is None else self._balance.columns(rows)
        )

    def own(self, rows: Tensor, values: Tensor, most: int | None = None) -> Tensor:
        """(m, c, u) the columns of x_S.

        Args:
            rows: (m, p) scaled rows, of which the held features are read.
            values: (m, c, w) the scaled values of x_S.
            most: how many columns are needed, from the first on.
        """
        found = phi(self._terms, values)
        if most is not None and found.shape[-1] >= most:
            return found[..., :most]
        parts = [found, *self._jumps(values)]
        if len(self._modifiers):
            own = found[..., self._straight, None]
            parts += [(own * by[:, None, None]).flatten(2) for by in self._levels(rows)]
        return torch.cat(parts, -1)[..., :most]

    def _jumps(self, values: Tensor) -> Iterator[Tensor]:
        """(m, c, a) whether each acted number has each of its heavy values."""
        for column, atoms in zip(values.unbind(-1), self._atoms, strict=True):
            yield (column[..., None] == atoms).to(values.dtype)

    def _levels(self, rows: Tensor) -> Iterator[Tensor]:
        """(m, l) the straight columns of each held feature that an effect may differ by."""
        for terms, column in zip(self._modifiers, rows[:, self._by].T, strict=True):
            yield terms(column)[:, terms.straight]

    def _blocks(self) -> Tensor:
        bends, jumps = len(self._straight), sum(map(len, self._atoms))
        levels = [int(terms.straight.sum()) for terms in self._modifiers]
        own = int(self._straight.sum())
        sizes = [bends, jumps, *(own * count for count in levels)]
        block = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        is_straight = torch.zeros_like(block, dtype=torch.bool)
        is_straight[:bends] = self._straight
        each = [block == i for i in range(len(sizes))]
        crossed = [is_straight | own for own in each[2:]]
        return torch.stack([is_straight, each[0], each[1], *crossed])


def _atoms(sample: Sample, j: int) -> Tensor:
    """The heaviest values of a number; empty for a category, which has indicators."""
    if not sample.encoder.schema.features[j].is_number:
        return torch.empty(0)
    values, counts = value_counts(sample.scaled(j))
    heavy = counts.topk(min(ATOMS, len(counts))).indices.sort().values
    least = max(ATOM_ROWS, HEAVY * len(sample))
    return values[heavy[counts[heavy] >= least]]


def _levels(sample: Sample, j: int) -> int:
    return len(sample.shared(Terms.of, j).straight.nonzero())
