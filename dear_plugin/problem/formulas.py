"""Formulas: the relations and lookups of a schema as rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.grid import NEAR, Grid, in_steps
from dear_plugin.data.relations import Lookup, Relation
from dear_plugin.data.rule import Cells, Rule


def formula(encoder: Encoder, relation: Relation | Lookup) -> Rule:
    """The rule of a relation or lookup."""
    if isinstance(relation, Lookup):
        return _table(encoder, relation)
    if not relation.is_order:
        return Sum(relation)
    return Order(relation, encoder.schema.index(relation.members[::-1]), encoder.grid)


@dataclass(frozen=True)
class Formula(Rule):
    """A relation or lookup of a schema; members begin with what the others determine.

    Attributes:
        relation: the relation or lookup.
    """

    relation: Any

    @property
    def members(self) -> Sequence[str]:
        """Those of the relation."""
        members: Sequence[str] = self.relation.members
        return members

    @property
    def text(self) -> str:
        """That of the relation."""
        return str(self.relation.text)

    @property
    def forces(self) -> bool:
        """Whether it holds in all rows."""
        return bool(self.relation.is_order or self.relation.is_definition)


@dataclass(frozen=True)
class Order(Formula):
    """The lower number is at most the upper one; members are (lower, upper).

    Attributes:
        at: the positions of the lower and the upper number.
        grid: the decimals of numbers.
    """

    at: tuple[int, ...]
    grid: Grid

    @property
    def members(self) -> Sequence[str]:
        """The lower number and the upper one."""
        return super().members[::-1]

    def holds(self, rows: Cells) -> Tensor:
        """See `Rule`."""
        lower, upper = self.members
        return ~(rows[lower] > rows[upper])

    def repair(self, rows: Cells, before: Cells, member: str) -> Tensor:
        """The factual value if it is possible beside the other number, else the nearest one."""
        lower, upper = self.members
        other, own = rows[upper if member == lower else lower], before[member]
        least, most = self.grid.inward(other, other, self.at[member == upper])
        if member == lower:
            return torch.where(own <= other, own, most)
        return torch.where(own >= other, own, least)


class Sum(Formula):
    """A number is a sum or product of others, within bounds."""

    def holds(self, rows: Cells) -> Tensor:
        """See `Rule`; sums of -inf and inf, as of products of zero, hold."""
        each, y, total = self.relation, rows[self.members[0]], self._total(rows)
        low, high = (self._number(total + end, 0) for end in (each.low, each.high))
        size = y.clamp(min=0.0) if self._is_log(0) else y
        outside: Tensor = (size < low - each.error) | (size > high + each.error)
        if each.unit:
            outside |= (self._whole(y) - y).abs() > NEAR * each.unit
        if each.mixed:
            outside &= (y > 0.0) & total.isfinite()
        return ~outside

    def repair(self, rows: Cells, before: Cells, member: str) -> Tensor:
        """The value with which the residual is the factual one; of a definition there is none."""
        at = self.members.index(member)
        wanted = torch.zeros_like(rows[member])
        if not self.relation.is_definition:
            own = self._part(before, 0) - self._total(before)
            wanted = own.where(own.isfinite(), (self.relation.low + self.relation.high) / 2.0)
        if not at:
            return self._whole(self._number(self._total(rows) + wanted, 0))
        weight = self.relation.weights[at - 1]
        others = self._total(rows, without=at)
        return self._number((self._part(rows, 0) - wanted - others) / weight, at)

    def _whole(self, own: Tensor) -> Tensor:
        """The number as it is rounded."""
        return in_steps(own, own.new_tensor(self.relation.unit))

    def _is_log(self, at: int) -> bool:
        """Whether the logarithm of a member counts."""
        return self.relation.log and (at > 0 or self.relation.shift is None)

    def _number(self, part: Tensor, at: int) -> Tensor:
        """A member's number, of its part of the sum."""
        shift = self.relation.shift or 0.0
        return part.exp() - shift * (at > 0) if self._is_log(at) else part

    def _part(self, rows: Cells, at: int) -> Tensor:
        """(...) a member's number or logarithm in rows; NaN for none, -inf for that of 0."""
        cells = rows[self.members[at]]
        if not self._is_log(at):
            return cells
        return torch.log((cells + (self.relation.shift or 0.0)).clamp(min=0.0))

    def _total(self, rows: Cells, without: int = 0) -> Tensor:
        """(...) the constant and the weighted parts of all other members."""
        constant = self.relation.constant
        total = torch.full(rows.rows.shape[:-1], constant, dtype=rows.rows.dtype)
        for at, weight in enumerate(self.relation.weights, 1):
            if at != without:
                total = total + weight * self._part(rows, at)
        return total


@dataclass(frozen=True)
class Table(Formula):
    """A feature is a function of another one.

    Attributes:
        keys: (l,) ascending, row values of the other one.
        values: (l,) those of the feature.
    """

    keys: Tensor
    values: Tensor

    def holds(self, rows: Cells) -> Tensor:
        """See `Rule`; a level that no training row has may have any value."""
        y, x = (rows[name] for name in self.members)
        known, value = self._found(x)
        return ~known | torch.eq(value, y) | y.isnan()

    def repair(self, rows: Cells, before: Cells, member: str) -> Tensor:
        """The value of the level, or the only level with the value."""
        y, x = (rows[name] for name in self.members)
        if member == self.members[0]:
            known, value = self._found(x)
            return torch.where(known, value, y)
        same = y[:, None] == self.values
        return torch.where(same.sum(1) == 1, self.keys[same.int().argmax(1)], x)

    def _found(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the table has row values, (...), and what it says of them."""
        at = torch.searchsorted(self.keys, x.contiguous()).clamp(max=len(self.keys) - 1)
        return self.keys[at] == x, self.values[at]


def _table(encoder: Encoder, lookup: Lookup) -> Table:
    """The table of a lookup, of row values; labels that no feature has are left out."""
    at = encoder.schema.index(lookup.members)
    name, other = (encoder.schema.features[j] for j in at)
    pairs = [(other.place(x), name.place(y)) for x, y in lookup.table]
    read = sorted(pair for pair in pairs if all(isinstance(each, Real) for each in pair))
    keys, values = torch.tensor(read, dtype=torch.float64).view(-1, 2).T.contiguous()
    known = ~(keys.isnan() | values.isnan())
    values = encoder.grid.round(values[known], at[0])
    return Table(lookup, keys[known], values)
