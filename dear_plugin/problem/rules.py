"""The rules of rows, applied to all at once: which hold, and the repair of rows that break one.

Rows are numpy arrays, as are the rules': the rows of a search are many but small, and what torch
takes to begin an operation is several times what it takes to do one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import NEAR, SPECIAL
from dear_plugin.data.relations import Array, Cells, Lookup, Relation, Rule, Stated
from dear_plugin.problem.seen_pairs import SeenPairs

# The repair of one rule may break another.
ROUNDS = 4


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
    def hold(self, rows: Array, some: Array | None = None) -> Array:
        """(..., r) bool: which rules, of all or some, hold in rows, (..., p), or lack a value."""
        some = np.arange(len(self.every)) if some is None else some
        lower, upper = self._orders[:, some]
        out = _in_order(rows[..., lower], rows[..., upper])  # all orders at once
        cells = self._cells(rows)
        for i in (~self._is_order[some]).nonzero()[0].tolist():
            out[..., i] = self.every[some[i]].holds(cells)
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
        out, given = reached.reshape(-1, p).copy(), np.stack([x, free, low, high])
        required = np.broadcast_to(required, (m, c, len(self.every))).reshape(
            m * c, len(self.every)
        )
        at, owner = np.arange(m * c), np.arange(m).repeat(c)
        for _ in range(ROUNDS):
            rows, needed = out[at], required[at]
            for k, own in self._computed:
                self._compute(k, own, rows, needed, owner[at], given)
            broken = needed[:, some] & ~self.hold(rows, some)
            again = broken.any(1)
            if again.any():
                each = given[:, owner[at[again]]]
                rows[again] = self._in_turn(broken[again], rows[again], each)
            out[at] = rows
            at = at[again]
            if not len(at):
                break
        return out.reshape(m, c, p)

    def _compute(
        self, k: int, own: int, rows: Array, needed: Array, owner: Array, given: Array
    ) -> None:
        """Set a number, in rows, (q, p), to the one value that a definition gives it.

        Beside it there may be others that are as near, up to rounding errors.

        Args:
            k: the position of the definition.
            own: that of the number, one of its members.
            rows: (q, p) the rows.
            needed: (q, r) bool, the rules that they must keep.
            owner: (q,) the position of the factual row.
            given: (4, m, p) of all factual rows; see `_repaired`.
        """
        x, free, low, high = given[0], given[1] > 0.0, *given[2:]
        name, (first, *others) = self.encoder.schema.names[own], self._ends[k]
        others = others if own == first else [first]
        some = needed[:, k] & free[owner, own]
        some &= (rows[:, others] != x[owner[:, None], others]).any(1)
        some &= ~free[owner, first] if own != first else True
        at = some.nonzero()[0]
        if not len(at):
            return
        owner, cells = owner[at], self._cells(rows[at])
        value = self.every[k].repair(cells, self._cells(x[owner]), name)
        value = self.encoder.grid.round(value, own)
        known = (value >= low[owner, own]) & (value <= high[owner, own])
        known &= np.isfinite(cells[name]) & self._may_be(value, own)
        rows[at[known], own] = value[known]

    @lazy
    def _computed(self) -> list[tuple[int, int]]:
        """Definitions, with the number that others determine: of two, either."""
        found = []
        for k, rule in enumerate(self.every):
            if isinstance(rule, Relation) and rule.is_definition and rule.forces:
                first, *others = self._ends[k]
                found += [(k, j) for j in [first, *(others if len(others) == 1 else [])]]
        return found

    @lazy
    def _ends(self) -> list[list[int]]:
        """The positions of the members of each rule, of an order the lower one first."""
        places, pairs = self.encoder.schema.places, zip(self.every, self._is_order, strict=True)
        members = [rule.members[::-1] if is_order else rule.members for rule, is_order in pairs]
        return [[places[name] for name in names] for names in members]

    @lazy
    def _settable(self) -> Array:
        """(s,) the rules with members that may be set."""
        return np.array([k for k, own in enumerate(self._ends) if own], dtype=np.int64)

    @lazy
    def _is_order(self) -> Array:
        """(r,) bool, the orders of two numbers."""
        each = [isinstance(rule, Relation) and rule.is_order for rule in self.every]
        return np.array(each, dtype=bool)

    @lazy
    def _orders(self) -> Array:
        """(2, r) the positions of the lower and upper numbers of orders; 0 for other rules."""
        each = [
            own if order else [0, 0] for own, order in zip(self._ends, self._is_order, strict=True)
        ]
        return np.array(each, dtype=np.int64).reshape(-1, 2).T

    @lazy
    def _cells(self) -> Callable[[Array], Cells]:
        return partial(Cells, at=self.encoder.schema.places, as_frame=self.encoder.frame)

    def _in_turn(self, left: Array, rows: Array, given: Array) -> Array:
        """Rows, (q, p), of which each has its broken rules, (q, s) bool, repaired in turn.

        All rows at once, each by the next of its own rules that is still broken.
        """
        some, at, now = self._settable, np.arange(len(rows)), left
        while len(at):
            which = now.argmax(1)
            turn = some[which]
            # All orders at once, as -1.
            kind = np.where(self._is_order[turn], -1, turn)
            for k in set(kind.tolist()):
                here = kind == k
                mine = at[here]
                ends = self._orders.T[turn[here]] if k < 0 else [self._ends[k]] * len(mine)
                rows[mine] = self._repaired(k, np.array(ends), rows[mine], given[:, mine])
            left = left & (np.arange(len(some)) > which[:, None])
            now, on = np.zeros_like(left), left.any(0)
            now[:, on] = left[:, on] & ~self.hold(rows[at], some[on])
            again = now.any(1)
            at, left, now = at[again], left[again], now[again]
        return rows

    def _repaired(self, k: int, ends: Array, rows: Array, given: Array) -> Array:
        """Rows, (q, p), that break a rule, with the first of some tries in which it holds.

        Tried are one free member set; several, to their ends; none moved; else a row stays.

        Args:
            k: the position of the rule; -1 for orders, of which each row has another.
            ends: (q, w) the features that are its members.
            rows: (q, p) the rows.
            given: (4, q, p) the factual rows, 1 where features are free, else 0, and their least
                and greatest values.
        """
        w, every, two_x = ends.shape[1], np.arange(len(rows)), given[0].repeat(2, 0)
        tried, at = rows[:, None].repeat(2 * w + 2, 1), (every[:, None], ends)
        x, free, low, high = given[:, at[0], ends][..., None]
        free = free > 0.0
        for i, j in enumerate(ends.T[..., None]):
            two = np.array([i, i + w])
            some = tried[:, two].reshape(-1, rows.shape[1])
            value = self._value(k, i, ends.repeat(2, 0), some, two_x).reshape(-1, 2)
            value[:, 1:] = value[:, 1:].clip(low[:, i], high[:, i])
            may = (value >= low[:, i]) & (value <= high[:, i]) | (value == x[:, i])
            may = (may | [False, True]) & free[:, i] & self._may_be(value, j)
            value = np.where(may, value, tried[at[0], two, j])
            tried[at[0], i, j] = value[:, :1]
            # Those of several have what was set before.
            tried[at[0], np.arange(i + w, 2 * w), j] = value[:, 1:]
        tried[at[0], -2, ends] = np.where(free, x, rows[at][..., None])[..., 0]
        if k < 0:
            lower, upper = tried[at[0], :, ends].swapaxes(0, 1)
            holds = _in_order(lower, upper)
        else:
            holds = self.every[k].holds(self._cells(tried))
        holds[:, -1] = True
        return np.asarray(tried[every, holds.argmax(1)])

    def _value(self, k: int, i: int, ends: Array, rows: Array, x: Array) -> Array:
        """(q,) the value of a member with which a rule holds, on the grid or the factual one.

        Of an order the factual number if it is possible beside the other one, else the nearest.
        """
        at, j, grid = np.arange(len(rows)), ends[:, i], self.encoder.grid
        own = x[at, j]
        if k < 0:
            side, other = (-1.0, 1.0)[i], rows[at, ends[:, 1 - i]]
            known, other = own > SPECIAL, np.where(other <= SPECIAL, np.nan, other)
            kept = known & (own * side >= other * side)
            value = np.where(kept, own, grid.inside(other, side, j))
        else:
            name = self.encoder.schema.names[j[0]]
            value = self.every[k].repair(self._cells(rows), self._cells(x), name)
        for one, observed in self._observed.items():
            near = observed[np.searchsorted((observed[1:] + observed[:-1]) / 2.0, value)]
            # Computed values that differ in last digits are observed ones.
            is_near = (j == one) & (np.abs(near - value) <= NEAR * np.abs(near))
            value = np.where(is_near, near, value)
        return np.where(value == own, value, grid.round(value, j))

    def _may_be(self, values: Array, at: Any) -> Array:
        """Bool, the numbers that features, at positions, may be."""
        out = np.isfinite(values) & (values > SPECIAL)
        for j, known in self._observed.items():
            out = out & ((at != j) | np.isin(values, known))
        return out

    @lazy
    def _observed(self) -> dict[int, Array]:
        """The only values, ascending, of the features that take no others."""
        return {j: known.numpy() for j, known in self.encoder.observed.items()}


def _in_order(lower: Array, upper: Array) -> Array:
    """Bool, where numbers are at most others, or these are not known."""
    out: Array = ~((lower > upper) & (upper > SPECIAL))
    return out
