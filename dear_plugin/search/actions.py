"""Actions: candidates, tried actions and what is known of their outcome, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.settings import CRITERIA

# Larger than any position.
NEVER = 1 << 62


@dataclass(frozen=True)
class Entries:
    """Columns of m entries, each of which is of a row.

    Attributes:
        rows: (m,) the row.
    """

    rows: Tensor

    def __len__(self) -> int:
        """The number of entries (m)."""
        return len(self.rows)

    def part(self, at: Tensor) -> Self:
        """The entries at positions (q,), or where a mask, (m,) bool, is true."""
        return type(self)(*(getattr(self, field.name)[at] for field in fields(self)))

    def extended(self, other: Self) -> Self:
        """These entries, then others."""
        return self.joined([self, other])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Entries one after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Valued(Entries):
    """Columns of m entries that set values.

    Attributes:
        sets: (m,) the set acted on.
        values: (m, w) the new values of the set's features; a shorter set repeats the first.
    """

    sets: Tensor
    values: Tensor

    def widened(self, width: int) -> Self:
        """The same, of sets of up to `width` features."""
        more = width - self.values.shape[1]
        if more <= 0:
            return self
        values = torch.cat([self.values, self.values[:, :1].expand(-1, more)], 1)
        return replace(self, values=values)


@dataclass(frozen=True)
class Candidates(Valued):
    """m actions that may be tried.

    Attributes:
        direct_cost: (m,) their direct cost, which no cost is below.
    """

    direct_cost: Tensor

    @classmethod
    def none(cls, width: int) -> Self:
        """No candidates, of sets of up to `width` features."""
        rows = torch.empty(0, dtype=torch.int64)
        return cls(rows, rows, torch.empty(0, width).double(), torch.empty(0))


@dataclass(frozen=True)
class TriedActions(Valued):
    """m actions of some rows.

    Attributes:
        cost: (m,) the l1 cost, direct and indirect, as `Search.indirect_weight` counts it.
        margin: (m,) the goal's margin.
        price: (m,) the cost by which actions are compared: discounted where no indirect change
            is needed (`Search.prefer_alone`).
        met: (m,) double, -1 where the criteria are not evaluated; the number of criteria met,
            in their order, plus 1 minus what is missing of the next one; infinite for all.
        measured: (m, c) the criteria's values in the order of `CRITERIA`, NaN if unknown.
    """

    cost: Tensor
    margin: Tensor
    price: Tensor
    met: Tensor
    measured: Tensor

    @classmethod
    def of(cls, new: Candidates, cost: Tensor, margin: Tensor, price: Tensor) -> TriedActions:
        """Candidates with their evaluated cost, margin and price, (m,) each."""
        score = torch.full((len(new),), -1.0, dtype=torch.float64)
        measured = torch.full((len(new), len(CRITERIA)), torch.nan)
        return cls(new.rows, new.sets, new.values, cost, margin, price, score, measured)

    @classmethod
    def none(cls, width: int) -> TriedActions:
        """No actions, of sets of up to `width` features."""
        return cls.of(Candidates.none(width), *torch.empty(3, 0))


def in_order(owner: Tensor, value: Tensor) -> Tensor:
    """(m,) the order of entries by owner, then by value."""
    return torch.from_numpy(np.lexsort((value.numpy(), owner.numpy())))


def first_of_each(owner: Tensor, count: int) -> Tensor:
    """(q,) the positions of the first `count` entries of each owner, (m,), ascending."""
    start = torch.searchsorted(owner, owner)
    return (torch.arange(len(owner)) - start < count).nonzero()[:, 0]


def least(values: Tensor, owner: Tensor, count: int, none: float) -> Tensor:
    """(count,) the least of the values, (m,), of each owner, (m,); `none` where there are none."""
    return values.new_full((count,), none).scatter_reduce(0, owner, values, "amin")


def greatest(values: Tensor, owner: Tensor, count: int, none: float) -> Tensor:
    """(count,) the greatest of the values, (m,), of each owner, (m,), or `none`, a lower bound."""
    return values.new_full((count,), none).scatter_reduce(0, owner, values, "amax")


def first_of(at: Tensor, owner: Tensor, count: int) -> Tensor:
    """(q,) the least of positions, (m,), of each of `count` owners that has some."""
    first = least(at, owner, count, NEVER)
    return first[first < NEVER]
