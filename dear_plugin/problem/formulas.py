"""Formulas: one relation or lookup of a schema; rows in, whether it holds and what repairs it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.feature import Feature
from dear_plugin.data.grid import Grid
from dear_plugin.data.relations import Lookup, Relation
from dear_plugin.data.special_values import is_special


class Formula(Protocol):
    """What holds between some features."""

    @property
    def members(self) -> tuple[int, ...]:
        """The features, in the order in which they are repaired."""

    def hold(self, rows: Tensor) -> Tensor:
        """(...) bool: whether it holds in rows, (..., p), or a member has no value there."""

    def solved(self, j: int, x: Tensor, rows: Tensor) -> Tensor:
        """(q,) the values of member j with which it holds, as far as one is known.

        Args:
            j: the feature.
            x: (q, p) the factual rows.
            rows: (q, p) rows in which it is broken.
        """


def formula(encoder: Encoder, relation: Relation | Lookup) -> Formula:
    """The formula of a relation or lookup."""
    if isinstance(relation, Lookup):
        return _table(encoder, relation)
    members = encoder.schema.index(relation.members)
    return (
        Order(members[::-1], encoder.grid)
        if relation.is_order
        else Sum(members, encoder.grid, relation)
    )


@dataclass(frozen=True)
class Order:
    """The lower number is at most the upper one; members are (lower, upper)."""

    members: tuple[int, ...]
    grid: Grid

    def hold(self, rows: Tensor) -> Tensor:
        """See `Formula`."""
        lower, upper = rows[..., self.members[0]], rows[..., self.members[1]]
        out: Tensor = (lower <= upper) | is_special(upper)
        return out

    def solved(self, j: int, x: Tensor, rows: Tensor) -> Tensor:
        """The factual value if it is possible beside the other number, else the nearest one."""
        lower, upper = self.members
        other = rows[:, upper if j == lower else lower]
        least, most = self.grid.inward(other, other, j)
        fits = x[:, j] <= other if j == lower else x[:, j] >= other
        return torch.where(fits & ~is_special(x[:, j]), x[:, j], most if j == lower else least)


@dataclass(frozen=True)
class Sum:
    """A number is a sum or product of others, within bounds; members begin with it."""

    members: tuple[int, ...]
    grid: Grid
    relation: Relation

    def hold(self, rows: Tensor) -> Tensor:
        """See `Formula`; sums of -inf and inf, as of products of zero, hold."""
        each, y, total = self.relation, rows[..., self.members[0]], self._total(rows)
        low, high = (self._number(total + end, 0) for end in (each.low, each.high))
        size = y.clamp(min=0.0) if self._is_log(0) else y
        outside = (size < low - each.error) | (size > high + each.error)
        if each.mixed:
            outside &= (y > 0.0) & total.isfinite()
        holds: Tensor = ~outside | is_special(y)
        return holds

    def solved(self, j: int, x: Tensor, rows: Tensor) -> Tensor:
        """The value with which the residual is the factual one; of a definition there is none."""
        at, wanted = self.members.index(j), torch.zeros(len(x), dtype=x.dtype)
        if not self.relation.is_definition:
            own = self._part(x, 0) - self._total(x)
            wanted = own.where(own.isfinite(), (self.relation.low + self.relation.high) / 2.0)
        if not at:
            return self.grid.round(self._number(self._total(rows) + wanted, 0), j)
        weight = self.relation.weights[at - 1]
        others = self._total(rows, without=at)
        return self.grid.round(
            self._number((self._part(rows, 0) - wanted - others) / weight, at), j
        )

    def _is_log(self, at: int) -> bool:
        """Whether the logarithm of a member counts."""
        return self.relation.log and (at > 0 or self.relation.shift is None)

    def _number(self, part: Tensor, at: int) -> Tensor:
        """A member's number, of its part of the sum."""
        shift = self.relation.shift or 0.0
        return part.exp() - shift * (at > 0) if self._is_log(at) else part

    def _part(self, rows: Tensor, at: int) -> Tensor:
        """(...) a member's number or logarithm in rows; NaN for none, -inf for that of 0."""
        cells = rows[..., self.members[at]]
        cells = cells.masked_fill(is_special(cells), math.nan)
        if not self._is_log(at):
            return cells
        logs: Tensor = (cells + (self.relation.shift or 0.0)).clamp(min=0.0).log()
        return logs

    def _total(self, rows: Tensor, without: int = 0) -> Tensor:
        """(...) the constant and the weighted parts of all other members."""
        total = torch.full(rows.shape[:-1], self.relation.constant, dtype=rows.dtype)
        for at, weight in enumerate(self.relation.weights, 1):
            if at != without:
                total = total + weight * self._part(rows, at)
        return total


@dataclass(frozen=True)
class Table:
    """A feature is a function of another one; members are (it, the other one).

    Attributes:
        keys: (l,) ascending, row values of the other one.
        values: (l,) those of the feature.
    """

    members: tuple[int, ...]
    keys: Tensor
    values: Tensor

    def hold(self, rows: Tensor) -> Tensor:
        """See `Formula`; a level that no training row has may have any value."""
        y, x = (rows[..., j] for j in self.members)
        known, value = self._found(x)
        out: Tensor = ~known | (value == y) | is_special(y)
        return out

    def solved(self, j: int, x: Tensor, rows: Tensor) -> Tensor:
        """The value of the level, or the only level with the value."""
        name, other = self.members
        if j == name:
            known, value = self._found(rows[:, other])
            return torch.where(known, value, rows[:, name])
        same = rows[:, name, None] == self.values
        only = same.sum(1) == 1
        return torch.where(only, self.keys[same.int().argmax(1)], rows[:, other])

    def _found(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the table has row values, (...), and what it says of them."""
        at = torch.searchsorted(self.keys, x.contiguous()).clamp(max=len(self.keys) - 1)
        return self.keys[at] == x, self.values[at]


def _table(encoder: Encoder, lookup: Lookup) -> Table:
    """The table of a lookup, of row values; labels that no feature has are left out."""
    at = encoder.schema.index(lookup.members)
    name, other = (encoder.schema.features[j] for j in at)
    pairs = [(_row_value(other, x), _row_value(name, y)) for x, y in lookup.table]
    keys, values = torch.tensor(sorted(pairs), dtype=torch.float64).view(-1, 2).T.contiguous()
    known = ~(keys.isnan() | values.isnan())
    return Table(at, keys[known], encoder.grid.round(values[known], at[0]))


def _row_value(feature: Feature, cell: Any) -> float:
    """The row value of a cell: its number, or the position of its label; NaN for neither."""
    if not feature.choices:
        return float(cell)
    return float(feature.choices.index(cell)) if cell in feature.choices else math.nan
