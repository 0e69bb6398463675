"""The rules of rows, applied to all at once: which hold, and the repair of rows that break one.

Besides, no change may create a pair of values that no training row has. Pairs are those of two
categories, of a category and a tenth of a number's values, and of a level of a number (special, or
shared by many rows) and a tenth or level of another number. A decoder predicts features one by
one, so single predictions may combine into impossible rows, such as unmarried husbands. Of the
indirect changes that create unseen pairs, the one in most of them is undone, until no such pair is
left. An action that creates an impossible pair is ruled out: one that is unseen although many rows
were expected to have it.

Rows are numpy arrays, as are the rules': the rows of a search are many but small, and what torch
takes to begin an operation is several times what it takes to do one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import NEAR, Array, known, nearest, or_nan, padded
from dear_plugin.data.relations import Cells, Lookup, Relation, Rule, Stated

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
    def of(cls, encoder: Encoder, rows: Array | None = None) -> Rules:
        """The rules of a schema, which may have none, and the pairs of training rows, (n, p)."""
        schema = encoder.schema
        related = [
            each.rule(schema.features, encoder.grid) if isinstance(each, Lookup) else each
            for each in schema.relations
        ]
        stated = [each if isinstance(each, Rule) else Stated(each) for each in schema.rules]
        pairs = None if rows is None else SeenPairs.of(rows, encoder)
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
        cells, (lower, upper) = self._cells(rows), self._orders[:, some]
        out: Array = ~(cells.numbers[..., lower] > cells.numbers[..., upper])  # all orders at once
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

    def _cells(self, rows: Array) -> Cells:
        return Cells(rows, or_nan(rows), self.encoder.schema.places, self.encoder.frame)

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
        w, every, before = ends.shape[1], np.arange(len(rows)), self._cells(given[0].repeat(2, 0))
        tried, at = rows[:, None].repeat(2 * w + 2, 1), (every[:, None], ends)
        x, free, low, high = given[:, at[0], ends][..., None]
        free = free > 0.0
        for i, j in enumerate(ends.T[..., None]):
            two = np.array([i, i + w])
            some = tried[:, two].reshape(-1, rows.shape[1])
            value = self._value(k, i, ends.repeat(2, 0), some, before).reshape(-1, 2)
            value[:, 1:] = value[:, 1:].clip(low[:, i], high[:, i])
            may = (value >= low[:, i]) & (value <= high[:, i]) | (value == x[:, i])
            may = (may | [False, True]) & free[:, i] & self._may_be(value, j)
            value = np.where(may, value, tried[at[0], two, j])
            tried[at[0], i, j] = value[:, :1]
            # Those of several have what was set before.
            tried[at[0], np.arange(i + w, 2 * w), j] = value[:, 1:]
        tried[at[0], -2, ends] = np.where(free, x, rows[at][..., None])[..., 0]
        if k < 0:
            lower, upper = or_nan(tried[at[0], :, ends]).swapaxes(0, 1)
            holds = ~(lower > upper)
        else:
            holds = self.every[k].holds(self._cells(tried))
        holds[:, -1] = True
        return np.asarray(tried[every, holds.argmax(1)])

    def _value(self, k: int, i: int, ends: Array, rows: Array, before: Cells) -> Array:
        """(q,) the value of a member with which a rule holds, on the grid or the factual one.

        Of an order the factual number if it is possible beside the other one, else the nearest.
        """
        at, j, grid = np.arange(len(rows)), ends[:, i], self.encoder.grid
        own = before.rows[at, j]
        if k < 0:
            side, other = (-1.0, 1.0)[i], or_nan(rows[at, ends[:, 1 - i]])
            kept = known(own) & (own * side >= other * side)
            value = np.where(kept, own, grid.inside(other, side, j))
        else:
            name = self.encoder.schema.names[j[0]]
            value = self.every[k].repair(self._cells(rows), before, name)
        for one in self.encoder.observed.keys() & {*j.tolist()}:
            near = nearest(value, self.encoder.observed[one])
            # Computed values that differ in last digits are observed ones.
            is_near = (j == one) & (np.abs(near - value) <= NEAR * np.abs(near))
            value = np.where(is_near, near, value)
        return np.where(value == own, value, grid.round(value, j))

    def _may_be(self, values: Array, at: Any) -> Array:
        """Bool, the numbers that features, at positions, may be."""
        out = np.isfinite(values)
        for j, own in self.encoder.observed.items():
            out = out & ((at != j) | np.isin(values, own))
        return out


TENTHS = 10
# With more codes than that, too many possible pairs are absent from training rows by chance.
MOST_CODES = 4096
# A value that this share of the rows has is a level of a number; a number has so many at most.
# A pair with a level is unseen only if so many rows would have it if the numbers were independent.
LEVEL, MOST_LEVELS, EXPECTED = 0.05, 8, 20.0
# Pairs are impossible only if so many rows would have each if the features were independent, and
# chance leaves out at most this share of those of the same two features.
FEWEST, BY_CHANCE = 5.0, 0.05


@dataclass(frozen=True)
class SeenPairs:
    """Which pairs of values occur in training rows, of features in a pair that none of them has.

    Values are coded: one code per category, or per tenth of a number's training values. The levels
    of a number have codes of their own besides, in a further column.

    Attributes:
        features: (f,) the feature of each column of codes.
        sizes: (f,) int64, the number of codes of each column.
        values: (f,) of a number its deciles, ascending, or its levels, to which a first code of
            all other values is added; None for categories.
        levels: (f,) bool, the columns of levels.
        absent: (t + 1, t + 1) how many rows were expected to have a pair of codes that none has,
            fewer than `FEWEST` where chance leaves out such pairs; 0 for all other pairs. Above 0
            a pair is unseen, from `FEWEST` on it is impossible.
    """

    features: Array
    sizes: Array
    values: tuple[Any, ...]
    levels: Array
    absent: Array

    @classmethod
    def of(cls, rows: Array, encoder: Encoder) -> SeenPairs | None:
        """The pairs of training rows, (n, p), but of identifiers; None where every pair occurs."""
        every = cls._uncounted(rows, encoder)
        every = every._part((encoder.shares.numpy()[every.features] > 0.0).nonzero()[0])
        single = all(each is not None for each in every.values) and every.levels.sum() < 2
        if single or len(every.column) > MOST_CODES:
            return None
        absent = _absent(every.read(rows), every)
        some = np.unique(every.column[absent.any(1)])
        if not len(some):
            return None
        kept = np.isin(every.column, some)
        return replace(every._part(some), absent=np.pad(absent[kept][:, kept], (0, 1)))

    @classmethod
    def _uncounted(cls, rows: Array, encoder: Encoder) -> SeenPairs:
        """The codes of training rows, (n, p), without pairs."""
        cuts = np.sort(rows, 0)[(np.arange(1, TENTHS) * len(rows)) // TENTHS].T
        p, counts = encoder.p, [len(feature.categories) for feature in encoder.schema]
        found = {j: v for j in range(p) if not counts[j] and len(v := _levels(rows[:, j]))}
        values = (*(None if counts[j] else cuts[j] for j in range(p)), *found.values())
        pairs = zip(counts + [0] * len(found), values, strict=True)
        sizes = [n if v is None else 1 + len(v) for n, v in pairs]
        levels = np.arange(len(sizes)) >= p
        return cls(np.array([*range(p), *found]), np.array(sizes), values, levels, np.empty(0))

    def _part(self, some: Array) -> SeenPairs:
        """The columns at positions (g,)."""
        values = tuple(self.values[i] for i in some.tolist())
        own = self.features[some], self.sizes[some], values, self.levels[some]
        return SeenPairs(*own, self.absent)

    @lazy
    def starts(self) -> Array:
        """(f,) the first code of each column."""
        return np.cumsum(self.sizes) - self.sizes

    @lazy
    def column(self) -> Array:
        """(t,) the column of each code."""
        return np.arange(len(self.sizes)).repeat(self.sizes)

    @lazy
    def _coded(self) -> tuple[Array, Array, Array]:
        """(f,) bool, the columns of categories; deciles and levels, (g, c), of those with either.

        What is no decile is infinite, and what is no level no number.
        """
        labels = np.array([each is None for each in self.values])
        cuts, levels = (compress(self.values, at) for at in (~self.levels & ~labels, self.levels))
        return labels, padded(cuts, np.inf), padded(levels)

    def read(self, rows: Array) -> Array:
        """(..., f) the codes of rows, (..., p); t for categories that no training row has."""
        values, (labels, cuts, levels) = rows[..., self.features], self._coded
        codes, numbers = np.zeros(values.shape, dtype=np.int64), ~self.levels & ~labels
        codes[..., labels] = values[..., labels]
        codes[..., numbers] = (values[..., numbers, None] > cuts).sum(-1)
        same = values[..., self.levels, None] == levels
        codes[..., self.levels] = (same * np.arange(1, same.shape[-1] + 1)).max(-1, initial=0)
        new = (values >= self.sizes) & labels
        return np.where(new, len(self.column), codes + self.starts)

    def created(self, x: Array, reached: Array, *, unseen: bool = False) -> Array:
        """(m,) bool: rows, (m, p), with an impossible pair that the factual, (m, p), lacks.

        Or with any pair that no training row has, if `unseen`.
        """
        codes = self.read(reached)
        row, column = (codes != self.read(x)).nonzero()
        expected = self.absent[codes[row, column][:, None], codes[row]]
        pairs = expected > 0.0 if unseen else expected >= FEWEST
        out = np.zeros(len(x), dtype=bool)
        out[row[pairs.any(1)]] = True
        return out

    def repair(self, x: Array, moved: Array, acted: Array) -> Array:
        """(m, c, p) rows without indirect changes that create unseen pairs.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows to repair.
            acted: (m, p) bool, the features acted on, which are left as they are.
        """
        features, free = self.features, ~acted[:, self.features]
        changed = (moved[..., features] != x[:, None, features]) & free[:, None]
        rows, candidates = changed.any(2).nonzero()
        if not len(rows):
            return moved
        undone = self._undone(self.read(moved[rows, candidates]), self.read(x)[rows], free[rows])
        pair, column = undone.nonzero()
        if len(pair):
            moved, feature = moved.copy(), features[column]
            moved[rows[pair], candidates[pair], feature] = x[rows[pair], feature]
        return moved

    def _undone(self, codes: Array, factual: Array, free: Array) -> Array:
        """(q, f) bool, the changes of free features to undo; writes into the codes."""
        undone, at = np.zeros_like(free), np.arange(len(codes))
        while len(at):
            row, column = ((codes[at] != factual[at]) & free[at]).nonzero()
            count = np.zeros((len(at), codes.shape[1]), dtype=np.int64)
            here = at[row]
            pairs = self.absent[codes[here, column][:, None], codes[here]]
            count[row, column] = (pairs > 0.0).sum(1)
            some, worst = count.any(1), count.argmax(1)
            at = at[some]
            same = self.features == self.features[worst[some]][:, None]
            codes[at] = np.where(same, factual[at], codes[at])
            undone[at] |= same
        return undone


def _absent(found: Array, codes: SeenPairs) -> Array:
    """(t, t) the expected rows of pairs that only occur singly, see `SeenPairs.absent`.

    Args:
        found: (n, f) the codes of the training rows.
        codes: what they stand for.
    """
    which, number = codes.column, np.array([values is not None for values in codes.values])
    level, feature, number = codes.levels[which], codes.features[which], number[which]
    count = np.bincount(found.flatten(), minlength=len(which)).astype(float)
    count[codes.starts[codes.levels]] = 0.0  # other values than levels
    expected, has_level = count[:, None] * count / len(found), level[:, None] | level
    out = np.where(number[:, None] & number, has_level & (expected >= EXPECTED), ~has_level)
    out &= (expected > 0.0) & (feature[:, None] != feature)
    for one in found.T:
        out[one[:, None], found] = False
    many = expected >= FEWEST
    chance = np.where(many, np.exp(-expected), 0.0)
    absent, by_chance = (_sums(each.astype(float), which) for each in (out & many, chance))
    many &= (by_chance <= BY_CHANCE * absent)[which][:, which]
    expected = np.where(many, expected, np.minimum(expected, FEWEST / 2.0))
    return np.where(out, expected, 0.0).astype(np.float32)


def _sums(pairs: Array, which: Array) -> Array:
    """(f, f) the sums of pairs of codes, (t, t), by the features, (t,)."""
    blocks = np.eye(which.max() + 1)[which]
    return np.asarray(blocks.T @ pairs @ blocks)


def _levels(column: Array) -> Array:
    """(l,) the values that many rows of a number share, and its special ones, the commonest."""
    values, count = np.unique(column, return_counts=True)
    common = (count >= LEVEL * len(column)) | ~known(values)
    order = np.argsort(-np.where(common, count, 0), kind="stable")
    return np.asarray(values[order][: min(MOST_LEVELS, common.sum())])
