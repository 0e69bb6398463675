"""The rules of a schema on rows: which of them hold, and the repair of rows that break one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import NEAR, Grid, in_steps, nearest, or_nan
from dear_plugin.data.relations import Cells, Lookup, Relation, Rule, Stated, expression

# The repair of one rule may break another. Steps to the value with which a formula holds.
ROUNDS, SECANT = 4, 20
# (q, p) each: which features are free, and their least and greatest values.
Bounds = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Rules:
    """The r rules of a schema in their order: its relations and lookups, then the user's.

    Attributes:
        encoder: of the rows.
        every: the rules.
    """

    encoder: Encoder
    every: tuple[Rule, ...]

    @classmethod
    def of(cls, encoder: Encoder) -> Rules:
        """The rules of a schema, which may have none."""
        schema = encoder.schema
        related = [formula(encoder, each) for each in schema.relations]
        stated = [each if isinstance(each, Rule) else Stated(each) for each in schema.rules]
        return cls(encoder, (*related, *stated))

    def __len__(self) -> int:
        """The number of rules (r)."""
        return len(self.every)

    @lazy
    def forces(self) -> Tensor:
        """(r,) bool, the rules that an action alone must keep, too."""
        return torch.tensor([rule.forces for rule in self.every], dtype=torch.bool)

    @property
    def names(self) -> list[str]:
        """(r,) what messages call the rules."""
        return [rule.text for rule in self.every]

    def hold(self, rows: Tensor) -> Tensor:
        """(m, r) bool: the rules that hold in rows, (m, p), or have no value there."""
        return self._hold(rows, range(len(self)))

    def repair(
        self,
        x: Tensor,
        reached: Tensor,
        free: Tensor,
        bounds: tuple[Tensor, Tensor],
        required: Tensor,
    ) -> Tensor:
        """(m, c, p) rows of which free features are set so that broken rules hold again.

        The rules come in their order, up to `ROUNDS` times, as one may break another. What a row
        becomes depends on that row alone. What changes here is forced by the action.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the rows to repair.
            free: (m, p) bool, features that are not acted on.
            bounds: (m, p) each, the least and greatest value of the features.
            required: (m, r) bool, the rules that hold in the factual rows.
        """
        out, known = reached, [k for k, rule in enumerate(self.every) if rule.members]
        for _ in range(ROUNDS if known else 0):
            for one in self._computed_ones:
                out = self._computed(one, x, out, free & required[:, one[:1]], bounds)
            broken = required[:, None, known] & ~self._hold(out, known)
            which = broken.flatten(0, 1).any(0).nonzero()[:, 0].tolist()
            out = out.clone() if which and out is reached else out
            for k in which:
                rule = self.every[known[k]]
                row, at = broken[..., k].nonzero(as_tuple=True)
                still = ~rule.holds(self._cells(out[row, at]))
                row, at = row[still], at[still]
                limits = free[row], bounds[0][row], bounds[1][row]
                out[row, at] = self._repaired(rule, x[row], out[row, at], limits)
            if not which:
                break
        return out

    def _computed(
        self,
        at: tuple[int, str],
        x: Tensor,
        rows: Tensor,
        free: Tensor,
        ends: tuple[Tensor, Tensor],
    ) -> Tensor:
        """Rows, (m, c, p), in which a number has the one value that a definition gives it.

        Beside it there may be others that are as near, up to rounding errors.

        Args:
            at: the position of the definition, and the number.
            x: (m, p) the factual rows.
            rows: (m, c, p) the rows.
            free: (m, p) bool, the features that it may set.
            ends: (m, p) each, the least and greatest value of the features.
        """
        (k, name), cells = at, self._cells(rows)
        first, *others = (self._at[each] for each in self.every[k].members)
        own, others = (first, others) if name == self.every[k].members[0] else (others[0], [first])
        known = free[:, None, own] & (rows != x[:, None])[..., others].any(2)
        known &= ~free[:, None, first] if own != first else True
        if not bool(known.any()):
            return rows
        before = self._cells(x[:, None].expand_as(rows))
        value = self.encoder.grid.round(self.every[k].repair(cells, before, name), own)
        low, high = (end[:, None, own] for end in ends)
        known &= (value >= low) & (value <= high) & cells[name].isfinite()
        return self._with(own, value, rows, known)

    @lazy
    def _computed_ones(self) -> list[tuple[int, str]]:
        """Definitions of numbers by position, each with what others determine: of two, either."""
        sums = [(k, rule) for k, rule in enumerate(self.every) if isinstance(rule, Sum)]
        known = ((k, each.members) for k, each in sums if each.forces)
        return [(k, name) for k, own in known for name in own[: 1 + (len(own) == 2)]]

    @lazy
    def _at(self) -> dict[str, int]:
        """The position of each feature."""
        return {name: j for j, name in enumerate(self.encoder.schema.names)}

    @lazy
    def _orders(self) -> Tensor:
        """(2, r) the positions of the lower and upper numbers of orders; 0 for other rules."""
        pairs = [each.at if isinstance(each, Order) else (0, 0) for each in self.every]
        return torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T

    def _cells(self, rows: Tensor) -> Cells:
        return Cells(rows, self._at, self.encoder.frame)

    def _hold(self, rows: Tensor, some: range | list[int]) -> Tensor:
        """(..., q) bool, which of some rules hold in rows, (..., p)."""
        lower, upper = self._orders[:, list(some)]
        above = rows[..., upper]  # all orders at once: there may be hundreds
        out: Tensor = ~(rows[..., lower] > or_nan(above))
        cells = self._cells(rows)
        for i, k in enumerate(some):
            if not isinstance(self.every[k], Order):
                out[..., i] = self.every[k].holds(cells)
        return out

    def _repaired(self, rule: Rule, x: Tensor, rows: Tensor, bounds: Bounds) -> Tensor:
        """Rows, (q, p), that break a rule, with the first of some tries in which it holds."""
        out, done = rows, torch.zeros(len(rows), dtype=torch.bool)
        for tried in self._tries(rule, x, rows, bounds):
            holds = rule.holds(self._cells(tried)) & ~done
            out, done = torch.where(holds[:, None], tried, out), done | holds
            if bool(done.all()):
                break
        return out

    def _tries(self, rule: Rule, x: Tensor, rows: Tensor, bounds: Bounds) -> Iterator[Tensor]:
        """Rows, (q, p), with one free member set; with several, to their ends; with none moved."""
        (free, low, high), members = bounds, [self._at[name] for name in rule.members]
        for name, j in zip(rule.members, members, strict=True):
            value = self._value(rule, x, rows, name)
            fits = ((value >= low[:, j]) & (value <= high[:, j])) | (value == x[:, j])
            yield self._with(j, value, rows, fits & free[:, j])
        several = rows
        for name, j in zip(rule.members, members, strict=True):
            value = self._value(rule, x, several, name).clamp(low[:, j], high[:, j])
            several = self._with(j, value, several, free[:, j])
            yield several
        undone = rows.clone()
        undone[:, members] = torch.where(free, x, rows)[:, members]
        yield undone

    def _value(self, rule: Rule, x: Tensor, rows: Tensor, name: str) -> Tensor:
        """(q,) the value of a member with which a rule holds, on the grid or the factual one."""
        value, j = rule.repair(self._cells(rows), self._cells(x), name), self._at[name]
        if j in self.encoder.observed:  # a computed one differs in the last digits
            near = nearest(value, self.encoder.observed[j])
            value = torch.where((near - value).abs() <= NEAR * near.abs(), near, value)
        return torch.where(value == x[:, j], value, self.encoder.grid.round(value, j))

    def _with(self, j: int, value: Tensor, rows: Tensor, where: Tensor) -> Tensor:
        """Rows, (..., p), with a number, (...), as feature j where it may be set."""
        if j in self.encoder.observed:
            where = where & torch.isin(value, self.encoder.observed[j])
        where = where & or_nan(value).isfinite()
        column = torch.where(where, value, rows[..., j])
        return rows.index_copy(-1, torch.tensor([j]), column[..., None])


def formula(encoder: Encoder, relation: Relation | Lookup) -> Rule:
    """The rule of a relation or lookup."""
    if isinstance(relation, Lookup):
        return _table(encoder, relation)
    if not relation.is_order:
        return (Computed if relation.formula else Sum)(relation)
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
        at, wanted = self.members.index(member), self._residual(before)
        if not at:
            return self._whole(self._number(self._total(rows) + wanted, 0))
        weight = self.relation.weights[at - 1]
        others = self._total(rows, without=at)
        return self._number((self._part(rows, 0) - wanted - others) / weight, at)

    def _residual(self, before: Cells) -> Tensor | float:
        """(q,) what factual rows leave of the number; of a definition nothing."""
        if self.relation.low == self.relation.high:
            return 0.0
        own = self._part(before, 0) - self._total(before)
        return own.where(own.isfinite(), (self.relation.low + self.relation.high) / 2.0)

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


class Computed(Sum):
    """A number is a formula of others, within bounds."""

    @lazy
    def _formula(self) -> Any:
        """What gives its values from the columns."""
        return expression(self.relation.formula, self.relation.others)[0]

    def _total(self, rows: Any, without: int = 0) -> Tensor:
        """(...) the value of the formula."""
        total: Tensor = self._formula(rows)
        return total

    def repair(self, rows: Cells, before: Cells, member: str) -> Tensor:
        """See `Sum`; of another member by the secant method, its own value where there is none."""
        if member == self.members[0]:
            return super().repair(rows, before, member)
        each = {name: rows[name] for name in self.members}
        aim, value = each[self.members[0]] - self._residual(before), each[member]
        last, off = value, self._total(each) - aim
        value = 1.01 * value + self.relation.error
        for _ in range(SECANT):
            new = self._total({**each, member: value}) - aim
            step = (value - last) * new / (new - off)
            last, off, value = value, new, value - step.where(step.isfinite(), 0.0)
        done = (self._total({**each, member: value}) - aim).abs() <= self.relation.error
        return torch.where(done, value, each[member])


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
