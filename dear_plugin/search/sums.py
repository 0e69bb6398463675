"""Which sets of several features a row tries next, until it has its answers.

What follows from a sum of two tried actions is expected to be what follows from both of its parts.
The model scores the expected rows, and no decoder is fitted for that: decoders are fitted of
promising sets only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations as pairs_of
from typing import ClassVar, Protocol

import numpy as np

from dear_plugin.data.numbers import Array
from dear_plugin.search.problem import Asking, Judged, answered, arrays, judged, tensors
from dear_plugin.search.settings import Search
from dear_plugin.search.table import Actions, Table, order, part_of, places, rows_of

# The actions of each feature, the sets of a row, and the places of a set, by predicted cost, that
# the model scores.
PARTS, SETS, PLACES = 8, 32, np.array([*range(12), *range(13, 64, 4)])
CELLS = 1 << 22
# Keys from here on are those of sums that promise no answer.
FAILS = 1.0
# The share of the way from the factual's margin to the least of a success, from which on an
# action is nearly accepted.
NEAR = 0.75


@dataclass(frozen=True)
class Sums:
    """m sums of two actions of a row.

    Attributes:
        first: (m,) the line of one action.
        second: (m,) the line of the other.
        rank: (m,) the place of the set among those of the row, the most promising first.
        place: (m,) the place of the sum among those of its set.
        promises: (m,) bool, whether the best sum of the set is expected to be an answer.
    """

    first: Array
    second: Array
    rank: Array
    place: Array
    promises: Array

    def part(self, at: Array) -> Sums:
        """Those at positions (q,), or where a mask, (m,) bool, is true."""
        return Sums(*[column[at] for column in vars(self).values()])

    def values(self, table: Table) -> Array:
        """(m, p) the new values of what is acted on; else 0."""
        values = np.zeros((len(self.first), table.problem.cells.shape[1]))
        for at in (self.second, self.first):
            positions = table.problem.positions[table.set[at]]
            np.put_along_axis(values, positions, table.values[at], 1)
        return values

    def members(self, table: Table) -> tuple[list[tuple[int, ...]], Array]:
        """The features of all sets, and (m,) the place of each sum's set in that list."""
        each, known = table.problem.sets.members, len(table.problem.sets)
        codes = table.set[self.first] * known + table.set[self.second]
        pairs, which = np.unique(codes, return_inverse=True)
        found = [tuple(sorted(each[i // known] + each[i % known])) for i in pairs.tolist()]
        members = list(dict.fromkeys(found))
        places_of = {member: i for i, member in enumerate(members)}
        return members, np.array([places_of[member] for member in found], np.int64)[which]


def offered(table: Table, rows: Array, single: Array, size: int) -> Asking[Sums]:
    """The sums on sets of a size, of rows, (n,) bool.

    Args:
        table: what was tried, also on sets of one feature less.
        rows: the rows.
        single: (b,) the sets of one feature each that may be added.
        size: the number of features.
    """
    most, at = max(1, CELLS // (len(single) * PARTS) ** 2), np.flatnonzero(rows)
    parts = (at[start : start + most] for start in range(0, len(at), most))
    found = [sums(table, part, single, size) for part in parts]
    first, second = map(np.concatenate, zip(*found, strict=True))
    blank = np.zeros_like(first)
    every = Sums(first, second, blank, blank, blank > 0)
    if not len(first):
        return every
    price, margin = yield from _predicted(table, every)
    row, which = table.row[first], every.members(table)[1]
    key = _key(margin, price, table.enough[row])
    at = order(row, which, key)
    row, key, place = row[at], key[at], places((row * len(row) + which)[at])
    heads, rank = np.flatnonzero(place == 0), np.empty_like(place)
    heads = heads[order(row[heads], key[heads])]
    rank[heads] = places(row[heads])
    start = np.arange(len(at)) - place
    return Sums(first[at], second[at], rank[start], place, key[start] < FAILS)


def _predicted(table: Table, sums: Sums) -> Asking[tuple[Array, Array]]:
    """(m,) the prices and (m,) the margins of the expected rows of sums."""
    both = np.stack([sums.first, sums.second])
    at, which = np.unique(both, return_inverse=True)
    (reached,) = arrays(table.decoded(at).reached)
    parts = reached[which.reshape(both.shape)]
    wanted = sums.values(table)
    found = yield from _expected(table, table.row[sums.first], table.set[both], parts, wanted)
    cost, margin, enough = found
    return np.where(enough, cost / (1.0 + table.discount), cost), margin


def nearly_accepted(table: Table, actions: Actions) -> Asking[Array]:
    """(n, s) bool, the rows and pairs of which an action is expected to be nearly accepted.

    Args:
        table: what was tried.
        actions: on pairs of features, each of which is a set, too.
    """
    problem, (row, sets, values) = table.problem, actions
    features, values = problem.positions[sets, :2], values[:, :2]
    place = {members: i for i, members in enumerate(problem.sets.members)}
    single = np.array([place.get((j,), -1) for j in range(problem.cells.shape[1])])
    members, wanted = single[features].T, np.zeros((len(row), len(single)))
    np.put_along_axis(wanted, features, values, 1)
    each = tensors(np.tile(row, 2), members.reshape(-1), values.T.reshape(-1, 1, 1))
    (parts,) = arrays(problem.decode_actions(*each)[:, 0])
    parts = parts.reshape(2, len(row), -1)
    _, margin, _ = yield from _expected(table, row, members, parts, wanted)
    least = table.aim - (table.aim - table.before) * (1.0 - NEAR)
    out, at = np.zeros(table.need.shape, dtype=bool), margin >= least[row]
    out[row[at], sets[at]] = True
    return out


def _expected(
    table: Table, row: Array, sets: Array, parts: Array, wanted: Array
) -> Asking[Judged]:
    """(m,) each, the cost and the margin of all parts together, and whether they alone suffice.

    Args:
        table: what was tried.
        row: (m,) the row.
        sets: (w, m) the sets of the parts.
        parts: (w, m, p) the rows that they lead to.
        wanted: (m, p) the new values of what is acted on.
    """
    problem, x = table.problem, table.problem.cells[row]
    number, (moved, *others) = problem.features.amounts(*parts, x), parts
    for part in others:
        moved = np.where(number, moved + part - x, np.where(moved != x, moved, part))
    mask = problem.masks[sets].any(0)
    held = problem.held[tensors(sets)].all(0) if problem.has_order else None
    least = (table.aim, table.enough) if table.discount else None
    alone = np.where(mask, wanted, x)
    acted, decoded = tensors(mask, np.where(mask, wanted, moved)[:, None])
    return (yield from judged(problem, row, decoded, alone, acted=(acted, held), least=least))


def sums(table: Table, rows: Array, single: Array, size: int) -> tuple[Array, Array]:
    """(m,) each, the lines of two actions of rows, (q,), by the sum of their costs and gains."""
    added = _front(table, rows, single)
    need = (table.enough if size == 2 else table.aim)[rows] - table.before[rows]
    base = added if size == 2 else _best(table, rows, size - 1, need)
    masks, gain = table.problem.masks, table.margin - table.before[table.row]
    gains, costs = (
        each[base][:, :, None, :, None] + each[added][:, None, :, None]
        for each in (gain, table.cost)
    )
    # A dearer action than an answer on a part of it would be none.
    limit = table.limits(table.passed)[rows][:, single] * (1.0 + table.discount)
    fits = ~(masks[table.set[base[..., 0]]][:, :, None] & masks[single]).any(-1)
    most = np.broadcast_to(limit[:, None], fits.shape)
    if size == 2:
        # Of each pair one order.
        fits &= single[:, None] < single
        most = np.minimum(most, most.swapaxes(1, 2))
    there = (base >= 0)[:, :, None, :, None] & (added >= 0)[:, None, :, None]
    there &= fits[..., None, None] & (costs < most[..., None, None])
    key = np.where(there, _key(gains, costs, need[:, None, None, None, None]), np.inf)
    key = key.reshape(len(rows), -1, key.shape[3] * key.shape[4])
    which = key.argsort(2, kind="stable")[..., PLACES[key.shape[2] > PLACES]]
    sets = key.min(2).argsort(1, kind="stable")[:, :SETS]
    which = np.take_along_axis(which, sets[..., None], 1)
    key = np.take_along_axis(np.take_along_axis(key, sets[..., None], 1), which, 2)
    at = np.isfinite(key).nonzero()
    one, which = which[at], sets[at[:2]]
    first = base[at[0], which // len(single), one // PARTS]
    return first, added[at[0], which % len(single), one % PARTS]


def _front(table: Table, rows: Array, single: Array) -> Array:
    """(q, b, c) lines of rows, (q,), on sets, (b,); -1 where there are fewer.

    Evenly spread over those that gain more than all cheaper ones.
    """
    place, column = (np.full(count, -1) for count in table.need.shape)
    place[rows], column[single] = np.arange(len(rows)), np.arange(len(single))
    at = (place[table.row] >= 0) & (column[table.set] >= 0) & np.isfinite(table.margin)
    at = np.flatnonzero(at)
    out = np.full((len(rows), len(single), PARTS), -1)
    if not len(at):
        return out
    at = table.sorted(at, table.set[at], table.cost[at])
    margin, owner = table.margin[at].astype(float), table.pair[at]
    owner = np.unique(owner, return_inverse=True)[1]
    # Margins of later sets are lifted above all before: their maximum so far is that of a set.
    lifted = margin + owner * (margin.max() - margin.min() + 1.0)
    front = lifted > np.concatenate([lifted[:1] - 1.0, np.maximum.accumulate(lifted)[:-1]])
    at, owner = at[front], owner[front]
    count, rank = np.bincount(owner)[owner], places(owner)
    slot = np.where(count <= PARTS, rank, rank * (PARTS - 1) // np.maximum(count - 1, 1))
    out[place[table.row[at]], column[table.set[at]], slot] = at
    return out


def _best(table: Table, rows: Array, size: int, need: Array) -> Array:
    """(q, c, 1) the most promising lines of rows, (q,), on sets of a size; else -1."""
    place = np.full(len(table.need), -1)
    place[rows] = np.arange(len(rows))
    at = (place[table.row] >= 0) & (table.size[table.set] == size) & np.isfinite(table.margin)
    at = np.flatnonzero(at)
    gain = table.margin[at] - table.before[table.row[at]]
    at = table.sorted(at, _key(gain, table.cost[at], need[place[table.row[at]]]))
    rank = places(table.row[at])
    at, rank = at[rank < PARTS], rank[rank < PARTS]
    out = np.full((len(rows), PARTS, 1), -1)
    out[place[table.row[at]], rank, 0] = at
    return out


def _key(gain: Array, cost: Array, need: Array) -> Array:
    """An order: by cost if the gain suffices, below 1; after these the greatest gains."""
    cost, gain = cost.astype(float), np.clip(gain.astype(float), -1e30, 1e30)
    with np.errstate(invalid="ignore"):
        return np.where(gain >= need, cost / (1.0 + cost), 3.0 - gain / (1.0 + np.abs(gain)))


logger = logging.getLogger(__name__)

# The sets and places of sums that are tried first and next: of pairs, and of larger sets.
TRIED = ((6, 8), (32, 32)), ((2, 16), (6, 32))
# Of the sets of a row that promise no answer, those that are tried all the same; and those where
# nothing is accepted, of few features. Of more, all pairs of which another action is expected to
# be nearly accepted.
BEST, NEXT = 2, 6
# Of so few features all sets are tried that a scan of every value would solve: what follows from a
# sum may differ from what is expected (tests/behaviour/test_exhaustive.py).
FEW = 6


class Solver(Protocol):
    """What gives the actions that a search tries of a table.

    Attributes:
        derives: whether it needs derivatives of the model and the decoder.
    """

    derives: ClassVar[bool]

    def __init__(self, table: Table, search: Search) -> None: ...

    def given(self) -> list[Actions]:
        """Actions on the given sets."""

    def larger(self, row: Array, sets: Array, sums: Array) -> list[Actions]:
        """Actions on sets of several features, (m,), given sums, (m, p), of tried actions."""

    def others(self, wanted: Array) -> list[Actions]:
        """Further actions of rows and sets, (n, s) bool, where nothing is accepted."""

    def beside(self, good: Array, rows: Array, bound: Array) -> list[Actions]:
        """Actions beside good lines, (q,), of rows, (n,) bool, that may cost less than a bound."""


class Stages:
    """The stages of a search: given sets; sums on larger sets, and others on these.

    Args:
        table: what was tried.
        solver: what gives the actions.
        max_features: the largest number of features acted on together.
    """

    def __init__(self, table: Table, solver: Solver, max_features: int) -> None:
        self.table, self.solver, self._most = table, solver, max_features
        given, most = table.problem.sets, table.problem.decoders.decoder.pair_features
        self._single = np.flatnonzero(table.problem.single)[:most]
        self._given = given.members
        # The size of sets that each row has come to; sums, by size.
        self._size = np.ones(len(table.aim), dtype=np.int64)
        self._sums: dict[int, list[Sums]] = {}
        # Rows and sets that were tried, also where no sum was admissible.
        self._evaluated = table.row, table.row

    def __len__(self) -> int:
        """The number of stages: of each size from 2 on there are three."""
        return 3 * self._most - 2

    def at(self, i: int, rows: Array, k: int) -> list[Actions]:
        """What rows, (n,) bool, try at a stage for k answers."""
        size, step = 1 + (i + 2) // 3, (i - 1) % 3
        if size == 1:
            return self.solver.given()
        return self._others(size, rows) if step == 2 else self._larger(size, step, rows, k)

    def _larger(self, size: int, step: int, rows: Array, k: int) -> list[Actions]:
        """Sums on sets of a size, the most promising first, the others in a second step.

        Pairs are for rows with too few answers; more features only where nothing is accepted.
        """
        table, first = self.table, step == 0
        if len(self._single) < size or (k > 1 and (size > 2 or not first)):
            return []
        rows = rows & (table.bound(k, table.passed) == np.inf)
        rows &= self._size < size if first else self._size == size
        # Sums are of what was tried.
        rows &= rows_of(table.row, len(rows))
        rows = rows if size == 2 else rows & ~table.has(table.hits)
        if not rows.any():
            return []
        if first:
            self._size[rows] = size
            ask = offered(table, rows, self._single, size)
            found = [answered(table.problem.scores, ask)]
            self._sums.setdefault(size, []).extend(found)
        else:
            found = self._sums.get(size, [])
        some = [sums.part(self._wanted(sums, rows, size, step, k)) for sums in found]
        return [action for sums in some for action in self._tried(sums, size)]

    def _wanted(self, sums: Sums, rows: Array, size: int, step: int, k: int) -> Array:
        """(m,) bool, the sums that rows, (n,) bool, try in a step."""
        row, ((sets, most), *later) = self.table.row[sums.first], TRIED[size > 2]
        few = len(self._single) <= FEW
        hopes = size == 2 or few
        tried: Array = rows[row] & (sums.rank < sets * k) & (sums.place < most)
        tried &= sums.promises | (hopes & (sums.rank < BEST * k))
        if not step:
            return tried
        ((sets, most),) = later
        nothing = ~self.table.has(self.table.hits)[row] & (sums.rank < (NEXT if few else sets))
        wanted: Array = rows[row] & ~tried & (sums.rank < sets) & (sums.place < most)
        wanted &= sums.promises | (hopes & ((sums.rank < BEST) | nothing))
        unsure = wanted & ~sums.promises & (sums.rank >= BEST)
        if not few and unsure.any():
            wanted[unsure] = self._nearly_accepted(sums.part(unsure))
        return wanted

    def _nearly_accepted(self, sums: Sums) -> Array:
        """(m,) bool, the sums on sets with an action that is expected to be nearly accepted."""
        table, row = self.table, self.table.row[sums.first]
        members, which = sums.members(table)
        sets = table.sets_of(members, 2)[which]
        if not (others := self._others_on(row, sets)):
            return np.ones_like(row, dtype=bool)
        actions = table.joined(others)
        most = max(1, CELLS // (2 * table.problem.cells.shape[1]))
        found = np.zeros(table.need.shape, dtype=bool)
        for start in range(0, len(actions[0]), most):
            part = part_of(actions, slice(start, start + most))
            found |= answered(table.problem.scores, nearly_accepted(table, part))
        return np.asarray(found[row, sets])

    def _tried(self, sums: Sums, size: int) -> list[Actions]:
        """The actions of sums, on sets that join the table, and are fitted if need be."""
        table = self.table
        if not len(sums.first):
            return []
        (members, which), values = sums.members(table), sums.values(table)
        sets = table.sets_of(members, size)[which]
        self._fit(members, size)
        row, every = self._evaluated
        evaluated = np.concatenate([row, table.row[sums.first]]), np.concatenate([every, sets])
        self._evaluated = evaluated
        return self.solver.larger(table.row[sums.first], sets, values)

    def _others(self, size: int, rows: Array) -> list[Actions]:
        """Others on the sets of a size that rows with nothing accepted have tried."""
        table, (row, sets) = self.table, self._evaluated
        some = (table.size[sets] == size) & (rows & ~table.has(table.hits))[row]
        return self._others_on(row[some], sets[some]) if some.any() else []

    def _others_on(self, row: Array, sets: Array) -> list[Actions]:
        """Others of rows, (m,), on sets, (m,)."""
        wanted = np.zeros(self.table.need.shape, dtype=bool)
        wanted[row, sets] = True
        return self.solver.others(wanted)

    def _fit(self, members: Sequence[tuple[int, ...]], size: int) -> None:
        """Fit the decoders of new sets, if they are trained together: of pairs always all."""
        decoders = self.table.problem.decoders
        logger.info("trying %d sets of features for rows with too few answers", len(members))
        if not decoders.decoder.joint:
            return
        if size == 2:
            # They depend on each other.
            each = [self._given[i] for i in self._single.tolist()]
            members = [tuple(sorted(one + other)) for one, other in pairs_of(each, 2)]
        decoders.fit([each for each in members if each not in self._given])
