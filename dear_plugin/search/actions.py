"""Actions: tables of actions, and what is known of their outcome."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.settings import CRITERIA


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


@dataclass(frozen=True)
class Actions(Entries):
    """m actions of some rows.

    Attributes:
        sets: (m,) the set acted on.
        values: (m, w) the new values of the set's features.
        cost: (m,) the l1 cost, direct and indirect.
        margin: (m,) the goal's margin.
        price: (m,) the cost by which actions are compared: discounted where no indirect change
            is needed (`Search.prefer_alone`).
        score: (m,) double, -1 where the criteria are not evaluated; the number of criteria met,
            in their order, plus 1 minus what is missing of the next one; infinite for all.
        measured: (m, c) the criteria's values in the order of `CRITERIA`, NaN if unknown.
    """

    sets: Tensor
    values: Tensor
    cost: Tensor
    margin: Tensor
    price: Tensor
    score: Tensor
    measured: Tensor

    @classmethod
    def of(cls, rows: Tensor, sets: Tensor, values: Tensor, outcome: Tensor) -> Actions:
        """Evaluated actions; `outcome`, (3, m), has their cost, margin and price."""
        m = len(rows)
        cost, margin, price = outcome
        score = torch.full((m,), -1.0, dtype=torch.float64)
        measured = torch.full((m, len(CRITERIA)), torch.nan)
        return cls(rows, sets, values, cost, margin, price, score, measured)

    @classmethod
    def none(cls, width: int) -> Actions:
        """No actions, of sets of up to `width` features."""
        rows = torch.empty(0, dtype=torch.int64)
        return cls.of(rows, rows, torch.empty(0, width), torch.empty(3, 0))

    def extended(self, other: Actions) -> Actions:
        """These actions, then those of another table."""
        names = [field.name for field in fields(self)]
        return Actions(*(torch.cat([getattr(self, n), getattr(other, n)]) for n in names))


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
