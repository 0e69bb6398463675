"""Scale: the numbers of some rows, or their logarithms, as functions of others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from dear_plugin._lazy import lazy
from dear_plugin.data.definitions.numbers import Numbers
from dear_plugin.data.kinds.cells import Array, Mask
from dear_plugin.data.relations import Relation

# The rows that are looked at.
FIT_ROWS = 1000


@dataclass(frozen=True)
class Scale:
    """The numbers of some rows, as functions of others: of one kind, sums to logarithms.

    Attributes:
        numbers: the names and units.
        own: (n, m) the numbers, or their logarithms, as what is explained.
        others: (n, m) likewise, as what explains.
        kind: the relation without members.
    """

    numbers: Numbers
    own: Array
    others: Array
    kind: Relation

    @classmethod
    def all(cls, numbers: Numbers) -> tuple[Scale, ...]:
        """Sums, products, and the logarithms of numbers with 0 or 1 added."""
        raw, none = numbers.values[:FIT_ROWS], Relation("", (), weights=(), high=0.0)
        log, log1 = (np.log(np.where(raw + c > 0.0, raw + c, np.nan)) for c in (0.0, 1.0))
        return (
            cls(numbers, raw, raw, none),
            cls(numbers, log, log, replace(none, log=True)),
            cls(numbers, raw, log, replace(none, log=True, shift=0.0)),
            cls(numbers, raw, log1, replace(none, log=True, shift=1.0)),
        )

    def __len__(self) -> int:
        """The number of columns (m)."""
        return len(self.numbers.names)

    def rows(self, columns: list[int]) -> Mask:
        """(n,) bool, the rows that have the first column, and the others to explain it."""
        known = ~np.isnan(self.own[:, columns[0]])
        out: Mask = known & ~np.isnan(self.others[:, columns[1:]]).any(1)
        return out

    def target(self, here: Mask, y: int) -> Array:
        """(n,) a column less its mean; 0 in other rows."""
        out: Array = np.where(here, self.own[:, y], 0.0)
        return np.where(here, out - out.sum() / max(here.sum(), 1), 0.0)

    def linked(self, target: Array, here: Mask) -> Array:
        """(m,) the size of the correlations of columns with a target, (n,), in the rows here."""
        size = np.sqrt((target**2).sum() * _product(here.astype(np.float64), self._squares))
        sums = np.abs(_product(target, self._centred))
        out: Array = sums / np.where(size > 0.0, size, np.inf)
        return out

    @lazy
    def spread(self) -> Array:
        """(m,) the standard deviations of columns."""
        out: Array = np.sqrt((self._centred**2).sum(0) / (~np.isnan(self.others)).sum(0).clip(1))
        return out

    @lazy
    def _centred(self) -> Array:
        """(n, m) columns less their means, 0 where unknown."""
        known = ~np.isnan(self.others)
        filled = np.where(known, self.others, 0.0)
        return np.where(known, filled - filled.sum(0) / np.maximum(known.sum(0), 1), 0.0)

    @lazy
    def _squares(self) -> Array:
        """(n, m) their squares."""
        return self._centred**2

    @property
    def raw(self) -> Array:
        """(n, m) the numbers."""
        return self.numbers.values[:FIT_ROWS]

    @property
    def is_product(self) -> bool:
        """Whether the logarithms of numbers are explained."""
        return self.kind.log and self.kind.shift is None

    def relation(self, y: int, others: list[int], weights: Array, constant: float) -> Relation:
        """A relation of a column to others, those that vary most first."""
        names, pairs = self.numbers.names, dict(zip(others, weights.tolist(), strict=True))
        most = sorted(pairs, key=lambda j: -abs(pairs[j]) * self.spread[j])
        members, factors = tuple(names[j] for j in most), tuple(pairs[j] for j in most)
        return replace(
            self.kind, name=names[y], others=members, weights=factors, constant=constant
        )

    def row(self, relation: Relation) -> Array:
        """(m + 1,) the relation as coefficients that sum to 0."""
        row = np.zeros(len(self.numbers.names) + 1)
        at = [self.numbers.names.index(name) for name in relation.members]
        row[[*at, -1]] = [-1.0, *relation.weights, relation.constant]
        return row


def _product(row: Array, table: Array) -> Array:
    """(m,) the product of a row, (n,), and a table, (n, m); torch has one thread here."""
    out: Array = (torch.from_numpy(row) @ torch.from_numpy(table)).numpy()
    return out
