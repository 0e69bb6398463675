"""The rules of rows, applied to all at once: which hold, and the repair of rows that break one.

Rows are numpy arrays, as are the rules': the rows of a search are many but small, and what torch
takes to begin an operation is several times what it takes to do one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import NEAR, SPECIAL
from dear_plugin.data.relations import Array, Cells, Lookup, Relation, Rule, Stated
from dear_plugin.problem.seen_pairs import SeenPairs

# The repair of one rule may break another.
ROUNDS = 4
# (q, p) each: the factual rows, which features are free, and their least and greatest values.
Given = tuple[Array, Array, Array, Array]


@dataclass(frozen=True)
class Rules:
    """The r rules of a schema in their order: its relations and lookups, then the user's.

    Attributes:
        encoder: of the rows.
        every: the rules.
        pairs: which pairs of values changes may create; None allows all.
    """

    encoder: Encoder
    every: tuple[Rule, ...]
    pairs: SeenPairs | None = None

    @classmethod
    def of(cls, encoder: Encoder, pairs: SeenPairs | None = None) -> Rules:
        """The rules of a schema, which may have none."""
        schema = encoder.schema
        related = [
            each.rule(schema.features, encoder.grid) if isinstance(each, Lookup) else each
            for each in schema.relations
        ]
        stated = [each if isinstance(each, Rule) else Stated(each) for each in schema.rules]
        return cls(encoder, (*related, *stated), pairs)

    def __len__(self) -> int:
        """The number of rules (r)."""
        return len(self.every)

    @lazy
    def forces(self) -> Array:
        """(r,) bool, the rules that an action alone must keep, too."""
        return np.array([rule.forces for rule in self.every], dtype=bool)

    @property
    def names(self) -> list[str]:
        """(r,) what messages call the rules."""
        return [rule.text for rule in self.every]

    @np.errstate(all="ignore")
    def hold(self, rows: Array, some: Array | slice = slice(None)) -> Array:
        """(..., r) bool: which rules, of all or some, hold in rows, (..., p), or lack a value."""
        lower, upper = self._orders[:, some]
        out: Array = ~(rows[..., lower] > _or_nan(rows[..., upper]))  # all orders at once
        cells = self._cells(rows)
        for i in (~self._is_order[some]).nonzero()[0].tolist():
            out[..., i] = self.every[np.arange(len(self))[some][i]].holds(cells)
        return out

    @np.errstate(all="ignore")
    def repair(
        self, x: Array, reached: Array, free: Array, low: Array, high: Array, required: Array
    ) -> Array:
        """(m, c, p) rows of which free features are set so that broken rules hold again.

        The rules come in their order, up to `ROUNDS` times, as one may break another. What a row
        becomes depends on that row alone. What changes here is forced by the action.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the rows to repair.
            free: (m, p) bool, features that are not acted on.
            low: (m, p) the least value of the features.
            high: (m, p) the greatest one.
            required: (m, c or 1, r) bool, the rules that rows must keep.
        """
        (m, c, p), some = reached.shape, self._settable
        if not len(some):
            return reached
        out, given = reached.reshape(-1, p).copy(), (x, free, low, high)
        required = np.broadcast_to(required, (m, c, len(self))).reshape(-1, len(self))
        at, owner = np.arange(m * c), np.arange(m).repeat(c)
        for _ in range(ROUNDS):
            rows, needed = out[at], required[at]
            for k, own, others in self._computed:
                self._compute(k, own, others, rows, needed[:, k], owner[at], given)
            broken = needed[:, some] & ~self.hold(rows, some)
            again = broken.any(1)
            if again.any():
                each = tuple(part[owner[at[again]]] for part in given)
                rows[again] = self._in_turn(broken[again], rows[again], each)
            out[at] = rows
            at = at[again]
            if not len(at):
                break
        return out.reshape(m, c, p)

    def _compute(
        self,
        k: int,
        own: int,
        others: list[int],
        rows: Array,
        needed: Array,
        owner: Array,
        given: Given,
    ) -> None:
        """Set a number, in rows, (q, p), to the one value that a definition gives it.

        Beside it there may be others that are as near, up to rounding errors.

        Args:
            k: the position of the definition.
            own: that of the number.
            others: those of what determines it.
            rows: (q, p) the rows.
            needed: (q,) bool, those that must keep the definition.
            owner: (q,) the position of the factual row.
            given: of all factual rows.
        """
        x, free, low, high = given
        name, first = self.encoder.schema.names[own], self._members[k][0]
        some = needed & free[owner, own]
        some &= (rows[:, others] != x[owner[:, None], others]).any(1)
        some &= ~free[owner, first] if own != first else True
        at = some.nonzero()[0]
        if not len(at):
            return
        owner, cells = owner[at], self._cells(rows[at])
        value = self.encoder.grid.round(
            self.every[k].repair(cells, self._cells(x[owner]), name), own
        )
        known = (value >= low[owner, own]) & (value <= high[owner, own])
        known &= np.isfinite(cells[name]) & self._may_be(value, own)
        rows[at[known], own] = value[known]

    @lazy
    def _computed(self) -> list[tuple[int, int, list[int]]]:
        """Definitions of numbers, with what others determine, and these: of two, either."""
        found = []
        for k, rule in enumerate(self.every):
            if isinstance(rule, Relation) and rule.is_definition and rule.forces:
                first, *others = self._members[k]
                found.append((k, first, others))
                found += [(k, others[0], [first])] * (len(others) == 1)
        return found

    @lazy
    def _members(self) -> list[list[int]]:
        """The positions of the members of each rule."""
        places = self.encoder.schema.places
        return [[places[name] for name in rule.members] for rule in self.every]

    @lazy
    def _settable(self) -> Array:
        """(s,) the rules with members that may be set."""
        return np.array([k for k, own in enumerate(self._members) if own], dtype=np.int64)

    @lazy
    def _is_order(self) -> Array:
        """(r,) bool, the orders of two numbers."""
        each = [isinstance(rule, Relation) and rule.is_order for rule in self.every]
        return np.array(each, dtype=bool)

    @lazy
    def _orders(self) -> Array:
        """(2, r) the positions of the lower and upper numbers of orders; 0 for other rules."""
        pairs = zip(self._members, self._is_order, strict=True)
        each = [own[::-1] if is_order else [0, 0] for own, is_order in pairs]
        return np.array(each, dtype=np.int64).reshape(-1, 2).T

    def _cells(self, rows: Array) -> Cells:
        return Cells(rows, self.encoder.schema.places, self.encoder.frame)

    def _in_turn(self, left: Array, rows: Array, given: Given) -> Array:
        """Rows, (q, p), of which each has its broken rules, (q, s) bool, repaired in turn.

        All rows at once, each by the next of its own rules that is still broken.
        """
        some, at, now = self._settable, np.arange(len(rows)), left
        while len(at):
            which = now.argmax(1)
            next_ = some[which]
            is_order = self._is_order[next_]
            for k in [*compress([-1], [is_order.any()]), *set(next_[~is_order].tolist())]:
                mine = at[is_order if k < 0 else next_ == k]
                each = rows[mine], tuple(part[mine] for part in given)
                if k < 0:
                    rows[mine] = self._ordered(self._orders[:, next_[is_order]].T, *each)
                else:
                    rows[mine] = self._repaired(k, *each)
            left = left & (np.arange(len(some)) > which[:, None])
            now = left & ~self.hold(rows[at], some)
            again = now.any(1)
            at, left, now = at[again], left[again], now[again]
        return rows

    def _repaired(self, k: int, rows: Array, given: Given) -> Array:
        """Rows, (q, p), that break a rule, with the first of some tries in which it holds.

        Tried are one free member set; several, to their ends; none moved; else a row stays.
        """
        (x, free, low, high), members, rule = given, self._members[k], self.every[k]
        tried = rows[:, None].repeat(2 * len(members) + 2, 1)
        for i, j in enumerate(members):
            name, more = rule.members[i], i + len(members)
            value = self._value(rule, x, rows, name, j)
            fits = ((value >= low[:, j]) & (value <= high[:, j])) | (value == x[:, j])
            self._set(tried[:, i, j], value, fits & free[:, j], j)
            value = self._value(rule, x, tried[:, more], name, j)
            value = np.clip(value, low[:, j], high[:, j])
            self._set(tried[:, more, j], value, free[:, j], j)
            tried[:, more + 1 : -2, j] = tried[:, more, None, j]
        tried[:, -2, members] = np.where(free, x, rows)[:, members]
        holds = rule.holds(self._cells(tried))
        holds[:, -1] = True
        chosen: Array = tried[np.arange(len(rows)), holds.argmax(1)]
        return chosen

    def _value(self, rule: Rule, x: Array, rows: Array, name: str, j: int) -> Array:
        """(q,) the value of a member with which a rule holds, on the grid or the factual one."""
        value = self._near(np.asarray(rule.repair(self._cells(rows), self._cells(x), name)), j)
        return np.where(value == x[:, j], value, self.encoder.grid.round(value, j))

    def _set(self, column: Array, value: Array, where: Array, j: int) -> None:
        """Set a column, (q,), to a number as feature j where it may be set."""
        where = where & self._may_be(value, j)
        column[where] = value[where]

    def _ordered(self, ends: Array, rows: Array, given: Given) -> Array:
        """Rows, (q, p), that break an order each, of numbers at (q, 2); see `_repaired`."""
        x, here, free, low, high = (
            np.take_along_axis(each, ends, 1) for each in (given[0], rows, *given[1:])
        )
        value = self._kept(x, here[:, ::-1], ends)
        fits = ((value >= low) & (value <= high)) | (value == x)
        one = np.where(self._may_be(value, ends) & fits & free, value, here)
        value = np.clip(value, low, high)
        first = np.where(self._may_be(value, ends) & free, value, here)[:, :1]
        value = np.clip(self._kept(x[:, 1:], first, ends[:, 1:]), low[:, 1:], high[:, 1:])
        last = np.where(self._may_be(value, ends[:, 1:]) & free[:, 1:], value, here[:, 1:])
        lower = np.concatenate([one[:, :1], here[:, :1], first, first], 1)
        upper = np.concatenate([here[:, 1:], one[:, 1:], here[:, 1:], last], 1)
        others = [np.where(free, x, here)[:, None], here[:, None]]
        tried = np.concatenate([np.stack([lower, upper], 2), *others], 1)
        lower, upper = np.moveaxis(_or_nan(tried), 2, 0)
        holds = ~(lower > upper)
        holds[:, -1] = True
        found = tried[np.arange(len(rows)), holds.argmax(1)]
        rows = rows.copy()
        np.put_along_axis(rows, ends, found, 1)
        return rows

    def _kept(self, own: Array, other: Array, ends: Array) -> Array:
        """(q, w) the factual numbers if they are possible beside the others, else the nearest.

        The last of two is the upper number of an order, as is one.
        """
        side = np.array([-1.0, 1.0])[-own.shape[1] :]
        inward = self._near(self.encoder.grid.inside(_or_nan(other), side, ends), ends)
        own, other = _or_nan(own), _or_nan(other)
        return np.where(own * side >= other * side, own, inward)

    def _near(self, values: Array, at: Any) -> Array:
        """Values of features, of which computed ones that differ in last digits are observed."""
        for j, known in self._observed.items():
            middle = np.searchsorted((known[1:] + known[:-1]) / 2.0, values)
            near = known[middle]
            is_near = (at == j) & (np.abs(near - values) <= NEAR * np.abs(near))
            values = np.where(is_near, near, values)
        return values

    def _may_be(self, values: Array, at: Any) -> Array:
        """Bool, the numbers that features, at positions, may be."""
        out = np.isfinite(_or_nan(values))
        for j, known in self._observed.items():
            out = out & ((at != j) | np.isin(values, known))
        return out

    @lazy
    def _observed(self) -> dict[int, Array]:
        """The only values, ascending, of the features that take no others."""
        return {j: known.numpy() for j, known in self.encoder.observed.items()}


def _or_nan(rows: Array) -> Array:
    """Row values, NaN where a number is missing or coded."""
    return np.where(rows <= SPECIAL, np.nan, rows)
