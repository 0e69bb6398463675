"""Columns (step 6): what smooth features are regressed on, for one set."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.balance import Balance
from dear_plugin.decoders.transport.modifiers import Modifiers
from dear_plugin.decoders.transport.terms import Terms, winsorised
from dear_plugin.decoders.transport.values import HEAVY, value_counts

# Heavy values of a number that have a column, and their least rows.
ATOMS, ATOM_ROWS = 12, 50
# Held features, and columns of one, by which effects may differ.
MODIFIERS, MOST_LEVELS = 12, 12


class Columns:
    """The columns of the held features, in every model, and those of x_S.

    The columns of x_S are those of `Terms`; an indicator for each heavy value, at which a feature
    may jump; the products of the straight ones of two acted features; and those by which an effect
    may differ: products of the straight ones with those of held features, and of these and the
    bent ones with the groups of `Modifiers`.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features.
        groups: by which effects may differ, if any are.
        earlier: counted features that others follow, too; in every model.

    Attributes:
        encoder: scales rows.
        acted: (w,) the features of S.
        held: the held features.
        earlier: the earlier ones.
        blocks: (b, u) bool, the columns of x_S that are added together: straight ones, bends,
            heavy values, products with each held feature, those of acted features, outer bends,
            and what differs between groups.
        honest: how many of these, the last ones, rows that did not make them must ask for.
    """

    def __init__(
        self,
        sample: Sample,
        acted: Members,
        held: Members,
        groups: Modifiers | None,
        *,
        earlier: Members = (),
    ) -> None:
        self.encoder, self.acted, self.held = sample.encoder, torch.tensor(acted), held
        self.earlier, self._groups = earlier, groups
        self._between = Terms(sample, earlier)
        self._balance = sample.shared(Balance, acted, held) if held else None
        self._terms = sample.shared(Terms, acted)
        self._atoms = [sample.shared(_atoms, j) for j in acted]
        self._by = sample.shared(_modifiers, held)
        self._straight, self._outer = self._terms.straight, self._terms.outer
        of = self._terms.of[self._straight]
        self._pairs = torch.triu_indices(len(of), len(of), 1)
        self._pairs = self._pairs[:, of[self._pairs[0]] != of[self._pairs[1]]]
        first = sample.shared(winsorised)[:1]
        parts = [*self._parts(first, first[:, None, self.acted])]
        self.honest = 0 if groups is None else 2
        self.blocks = self._blocks(torch.tensor([part.shape[-1] for part in parts]))

    def always(self, rows: Tensor) -> Tensor:
        """(m, q) a constant, the held features' columns of scaled rows, (m, p), and `between`."""
        held = (
            rows.new_ones(len(rows), 1) if self._balance is None else self._balance.columns(rows)
        )
        return torch.cat([held, self.between(rows)], 1)

    def between(self, rows: Tensor) -> Tensor:
        """(m, e) the columns of the earlier features in scaled rows."""
        return self._between(rows[:, self.earlier])

    def own(self, rows: Tensor, values: Tensor, most: int | None = None) -> Tensor:
        """(m, c, u) the columns of x_S.

        Args:
            rows: (m, p) scaled rows, of which the held features are read.
            values: (m, c, w) the scaled values of x_S.
            most: how many columns are needed, from the first on.
        """
        parts, count = [], 0
        for part in self._parts(rows, values):
            parts.append(part)
            count += part.shape[-1]
            if most is not None and count >= most:
                break
        return torch.cat(parts, -1)[..., :most]

    def _parts(self, rows: Tensor, values: Tensor) -> Iterator[Tensor]:
        """(m, c, q) the columns of each part: bends, jumps, and products."""
        found = self._terms(values)
        yield found
        for column, atoms in zip(values.unbind(-1), self._atoms, strict=True):
            yield (column[..., None] == atoms).to(values.dtype)
        own = found[..., self._straight]
        by, terms, levels = self._by
        for each in terms(rows[:, by])[:, terms.straight].split(levels, 1):
            yield _product(own, each)
        yield own[..., self._pairs[0]] * own[..., self._pairs[1]]
        if self._groups is not None:
            group = one_hot(self._groups(rows), len(self._groups))[:, 1:].to(own)
            yield _product(own, group)
            yield _product(found[..., ~self._straight & ~self._outer], group)

    def _blocks(self, sizes: Tensor) -> Tensor:
        part = torch.arange(len(sizes)).repeat_interleave(sizes)
        bends, jumps = part == 0, (part > 0) & (part <= len(self._atoms))
        line, outer = (torch.zeros_like(bends) for _ in range(2))
        line[: sizes[0]], outer[: sizes[0]] = self._straight, self._outer
        last = len(sizes) - self.honest
        crossed = [line | (part == i) for i in range(len(self._atoms) + 1, last)]
        inner, groups = bends & ~outer, [part == i for i in range(last, len(sizes))]
        differ = [line | groups[0], inner | groups[0] | groups[1]] if self.honest else []
        return torch.stack([line, inner, jumps, *crossed, bends, *differ])


def _product(columns: Tensor, by: Tensor) -> Tensor:
    """(m, c, q l) the products of columns, (m, c, q), and others, (m, l)."""
    return (columns[..., None] * by[:, None, None]).flatten(2)


def _atoms(sample: Sample, j: int) -> Tensor:
    """The heaviest values of a number; empty for a category, which has indicators."""
    feature = sample.encoder.schema.features[j]
    return feature.either(_heaviest, lambda column: column[:0], sample.scaled(j))


def _heaviest(column: Tensor) -> Tensor:
    values, counts = value_counts(column)
    heavy = counts.topk(min(ATOMS, len(counts))).indices.sort().values
    least = max(ATOM_ROWS, HEAVY * len(column))
    return values[heavy[counts[heavy] >= least]]


def _modifiers(sample: Sample, held: Members) -> tuple[Members, Terms, list[int]]:
    """The held features by which effects may differ; their columns, and how many each has."""
    levels = {j: int(Terms(sample, (j,)).straight.sum()) for j in held}
    some = tuple(j for j in held if levels[j] <= MOST_LEVELS)[:MODIFIERS]
    return some, Terms(sample, some), [levels[j] for j in some]
