"""Which sets of several features a row tries next, until it has its answers.

What follows from a sum of two tried actions is expected to be what follows from both of its parts.
The model scores the expected rows, and no decoder is fitted for that: decoders are fitted of
promising sets only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations as pairs_of
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from dear_plugin.search.problem import Asking, answered, judged, order, places
from dear_plugin.search.settings import Search
from dear_plugin.search.table import Actions, Table, part_of

# The actions of each feature, the sets of a row, and the places of a set, by predicted cost, that
# the model scores.
PARTS, SETS, PLACES = 8, 32, torch.tensor([*range(12), *range(13, 64, 4)])
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

    first: Tensor
    second: Tensor
    rank: Tensor
    place: Tensor
    promises: Tensor

    def part(self, at: Tensor) -> Sums:
        """Those at positions (q,), or where a mask, (m,) bool, is true."""
        return Sums(*(getattr(self, field.name)[at] for field in fields(self)))

    def values(self, table: Table) -> Tensor:
        """(m, p) the new values of what is acted on; else 0."""
        values = table.problem.x.new_zeros(len(self.first), table.problem.x.shape[1])
        for at in (self.second, self.first):
            values.scatter_(1, table.problem.sets.positions[table.set[at]], table.values[at])
        return values

    def members(self, table: Table) -> tuple[list[tuple[int, ...]], Tensor]:
        """The features of all sets, and (m,) the place of each sum's set in that list."""
        each, known = table.problem.sets.members, len(table.problem.sets)
        codes = table.set[self.first] * known + table.set[self.second]
        pairs, which = codes.unique(return_inverse=True)
        found = [tuple(sorted(each[i // known] + each[i % known])) for i in pairs.tolist()]
        members = list(dict.fromkeys(found))
        places_of = {member: i for i, member in enumerate(members)}
        return members, torch.tensor([places_of[member] for member in found])[which]


def offered(table: Table, rows: Tensor, single: Tensor, size: int) -> Asking[Sums]:
    """The sums on sets of a size, of rows, (n,) bool.

    Args:
        table: what was tried, also on sets of one feature less.
        rows: the rows.
        single: (b,) the sets of one feature each that may be added.
        size: the number of features.
    """
    most = max(1, CELLS // (len(single) * PARTS) ** 2)
    found = [sums(table, part, single, size) for part in rows.nonzero()[:, 0].split(most)]
    first, second = map(torch.cat, zip(*found, strict=True))
    blank = torch.zeros_like(first)
    every = Sums(first, second, blank, blank, blank.bool())
    if not len(first):
        return every
    price, margin = yield from _predicted(table, every)
    row, which = table.row[first], every.members(table)[1]
    key = _key(margin, price, table.enough[row])
    at = order(row, which, key)
    row, key, place = row[at], key[at], places((row * len(row) + which)[at])
    heads = (place == 0).nonzero()[:, 0]
    heads, rank = heads[order(row[heads], key[heads])], torch.empty_like(place)
    rank[heads] = places(row[heads])
    start = torch.arange(len(at)) - place
    return Sums(first[at], second[at], rank[start], place, key[start] < FAILS)


def _predicted(table: Table, sums: Sums) -> Asking[tuple[Tensor, Tensor]]:
    """(m,) the prices and (m,) the margins of the expected rows of sums."""
    row = table.row[sums.first]
    at, which = torch.cat([sums.first, sums.second]).unique(return_inverse=True)
    parts, sets = table.decoded(at).reached[which], table.set[at][which]
    found = yield from _expected(table, row, sets.view(2, -1), parts.chunk(2), sums.values(table))
    cost, margin, enough = found
    return torch.where(enough, cost / (1.0 + table.discount), cost), margin


def nearly_accepted(table: Table, actions: Actions, size: int) -> Asking[Tensor]:
    """(n, s) bool, the rows and sets of which an action is expected to be nearly accepted.

    Args:
        table: what was tried.
        actions: on sets of a size.
        size: the number of their features, each of which is a set, too.
    """
    problem, (row, sets, values) = table.problem, actions
    features = problem.sets.positions[sets][:, :size]
    place = {members: i for i, members in enumerate(problem.sets.members)}
    single = torch.tensor([place.get((j,), -1) for j in range(problem.x.shape[1])])
    each = [(single[features[:, i]], values[:, i : i + 1]) for i in range(size)]
    parts = [problem.decode_actions(row, one, own[:, None])[:, 0] for one, own in each]
    wanted = problem.x.new_zeros(len(row), problem.x.shape[1]).scatter_(1, features, values)
    members = torch.stack([one for one, _ in each])
    _, margin, _ = yield from _expected(table, row, members, parts, wanted)
    least = torch.lerp(table.before, table.aim, NEAR)[row]
    out, at = torch.zeros(table.need.shape, dtype=torch.bool), margin >= least
    out[row[at], sets[at]] = True
    return out


def _expected(
    table: Table, row: Tensor, sets: Tensor, parts: Sequence[Tensor], wanted: Tensor
) -> Asking[tuple[Tensor, Tensor, Tensor]]:
    """(m,) each, the cost and the margin of all parts together, and whether they alone suffice.

    Args:
        table: what was tried.
        row: (m,) the row.
        sets: (w, m) the sets of the parts.
        parts: (m, p) each, the rows that they lead to.
        wanted: (m, p) the new values of what is acted on.
    """
    problem, x = table.problem, table.problem.x[row]
    number, (moved, *others) = problem.classifier.encoder.amounts(*parts, x), parts
    for part in others:
        moved = torch.where(number, moved + part - x, torch.where(moved != x, moved, part))
    acted = problem.sets.masks[sets].any(0)
    moved = torch.where(acted, wanted, moved)[:, None]
    held = problem.held[sets].all(0) if problem.has_order else None
    least = (table.aim, table.enough) if table.discount else None
    alone = torch.where(acted, wanted, x)
    return (yield from judged(problem, row, moved, alone, acted=(acted, held), least=least))


def sums(table: Table, rows: Tensor, single: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """(m,) each, the lines of two actions of rows, (q,), by the sum of their costs and gains."""
    added = _spread(table, rows, single)
    need = (table.enough if size == 2 else table.aim)[rows] - table.before[rows]
    base = added if size == 2 else _best(table, rows, size - 1, need)
    masks, gain = table.problem.sets.masks, table.margin - table.before[table.row]
    gains, costs = (
        each[base][:, :, None, :, None] + each[added][:, None, :, None]
        for each in (gain, table.cost)
    )
    # A dearer action than an answer on a part of it would be none.
    limit = table.limits(table.passed)[rows][:, single] * (1.0 + table.discount)
    fits = ~(masks[table.set[base[..., 0]]][:, :, None] & masks[single]).any(-1)
    most = limit[:, None].expand(fits.shape)
    if size == 2:
        # Of each pair one order.
        fits &= single[:, None] < single
        most = torch.minimum(most, most.transpose(1, 2))
    there = (base >= 0)[:, :, None, :, None] & (added >= 0)[:, None, :, None]
    there &= fits[..., None, None] & (costs < most[..., None, None])
    key = _key(gains, costs, need[:, None, None, None, None]).where(there, torch.inf)
    key, which = key.flatten(3).flatten(1, 2).sort(2)
    sets = key[..., 0].topk(min(SETS, key.shape[1]), 1, largest=False).indices[..., None]
    some = PLACES[key.shape[2] > PLACES]
    key, which = (e[..., some].gather(1, sets.expand(-1, -1, len(some))) for e in (key, which))
    at = key.isfinite().nonzero(as_tuple=True)
    one, which = which[at], sets[..., 0][at[:2]]
    first = base[at[0], which // len(single), one // PARTS]
    return first, added[at[0], which % len(single), one % PARTS]


def _spread(table: Table, rows: Tensor, single: Tensor) -> Tensor:
    """(q, b, c) lines of rows, (q,), on sets, (b,); -1 where there are fewer.

    Evenly spread over those that gain more than all cheaper ones.
    """
    place = torch.full((len(table.need),), -1).index_copy(0, rows, torch.arange(len(rows)))
    column = torch.full((table.need.shape[1],), -1)
    column[single] = torch.arange(len(single))
    at = (place[table.row] >= 0) & (column[table.set] >= 0) & table.margin.isfinite()
    at = at.nonzero()[:, 0]
    out = torch.full((len(rows), len(single), PARTS), -1)
    if not len(at):
        return out
    at = table.sorted(at, table.set[at], table.cost[at])
    margin, owner = table.margin[at].double(), table.pair(at).unique_consecutive(True)[1]
    # Margins of later sets are lifted above all before: their maximum so far is that of a set.
    lifted = margin + owner * (margin.max() - margin.min() + 1.0)
    front = lifted > torch.cat([lifted[:1] - 1.0, lifted.cummax(0).values[:-1]])
    at, owner = at[front], owner[front]
    count, rank = owner.bincount()[owner], places(owner)
    slot = torch.where(count <= PARTS, rank, rank * (PARTS - 1) // (count - 1).clamp_min(1))
    out[place[table.row[at]], column[table.set[at]], slot] = at
    return out


def _best(table: Table, rows: Tensor, size: int, need: Tensor) -> Tensor:
    """(q, c, 1) the most promising lines of rows, (q,), on sets of a size; else -1."""
    place = torch.full((len(table.need),), -1).index_copy(0, rows, torch.arange(len(rows)))
    at = (place[table.row] >= 0) & (table.size[table.set] == size) & table.margin.isfinite()
    at = at.nonzero()[:, 0]
    gain = table.margin[at] - table.before[table.row[at]]
    at = table.sorted(at, _key(gain, table.cost[at], need[place[table.row[at]]]))
    at = at[places(table.row[at]) < PARTS]
    out = torch.full((len(rows), PARTS, 1), -1)
    out[place[table.row[at]], places(table.row[at]), 0] = at
    return out


def _key(gain: Tensor, cost: Tensor, need: Tensor) -> Tensor:
    """An order: by cost if the gain suffices, below 1; after these the greatest gains."""
    cost, gain = cost.double(), gain.double().clamp(-1e30, 1e30)
    return torch.where(gain >= need, cost / (1.0 + cost), 3.0 - gain / (1.0 + gain.abs()))


logger = logging.getLogger(__name__)

# The sets and places of sums that are tried first and next: of pairs, and of larger sets.
TRIED = ((6, 8), (32, 32)), ((2, 16), (6, 32))
# Of the sets of a row that promise no answer, those that are tried all the same; and of few
# features those where nothing is accepted: of more, all pairs of which another action is expected
# to be nearly accepted.
BEST, NEXT = 2, 6
# Of so few features all of those are tried, and sets of three and more: what follows from a sum
# may differ from what is expected, and decoders of more features take longer than asking the model
# first.
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

    def larger(self, row: Tensor, sets: Tensor, sums: Tensor) -> list[Actions]:
        """Actions on sets of several features, (m,), given sums, (m, p), of tried actions."""

    def others(self, wanted: Tensor) -> list[Actions]:
        """Further actions of rows and sets, (n, s) bool, where nothing is accepted."""

    def beside(self, good: Tensor, rows: Tensor, bound: Tensor) -> list[Actions]:
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
        self._single, self._given = given.single.nonzero()[:most, 0], given.members
        # The size of sets that each row has come to; sums, by size.
        self._size = torch.ones(len(table.aim), dtype=torch.int64)
        self._sums: dict[int, list[Sums]] = {}
        # Rows and sets that were tried, also where no sum was admissible.
        self._asked = table.row, table.row

    def __len__(self) -> int:
        """The number of stages: of each size from 2 on there are three."""
        return 3 * self._most - 2

    def at(self, i: int, rows: Tensor, k: int) -> list[Actions]:
        """What rows, (n,) bool, try at a stage for k answers."""
        size, step = 1 + (i + 2) // 3, (i - 1) % 3
        if size == 1:
            return self.solver.given()
        return self._others(size, rows) if step == 2 else self._larger(size, step, rows, k)

    def _larger(self, size: int, step: int, rows: Tensor, k: int) -> list[Actions]:
        """Sums on sets of a size, the most promising first, the others in a second step.

        Pairs are for rows with too few answers; more features only where nothing is accepted.
        """
        table, first = self.table, step == 0
        if len(self._single) < size or (k > 1 and (size > 2 or not first)):
            return []
        rows = rows & (table.bound(k, table.passed) == torch.inf)
        rows &= self._size < size if first else self._size == size
        # Sums are of what was tried.
        rows &= table.has(torch.arange(len(table)))
        rows = rows if size == 2 else rows & ~table.has(table.hits)
        if not bool(rows.any()):
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

    def _wanted(self, sums: Sums, rows: Tensor, size: int, step: int, k: int) -> Tensor:
        """(m,) bool, the sums that rows, (n,) bool, try in a step."""
        row, ((sets, most), *later) = self.table.row[sums.first], TRIED[size > 2]
        few = len(self._single) <= FEW
        hopes = size == 2 or few
        tried = (sums.rank < sets * k) & (sums.place < most)
        tried &= sums.promises | (hopes & (sums.rank < BEST * k))
        if not step:
            return rows[row] & tried
        ((sets, most),) = later
        nothing = ~self.table.has(self.table.hits)[row] & (sums.rank < (NEXT if few else sets))
        more = (sums.rank < sets) & (sums.place < most)
        others = hopes & ((sums.rank < BEST) | nothing)
        wanted = rows[row] & ~tried & more & (sums.promises | others)
        unsure = wanted & ~sums.promises & (sums.rank >= BEST)
        if not few and bool(unsure.any()):
            wanted[unsure] = self._nearly_accepted(sums.part(unsure), size)
        return wanted

    def _nearly_accepted(self, sums: Sums, size: int) -> Tensor:
        """(m,) bool, the sums on sets with an action that is expected to be nearly accepted."""
        table, row = self.table, self.table.row[sums.first]
        members, which = sums.members(table)
        sets = table.sets_of(members, size)[which]
        if not (others := self._others_on(row, sets)):
            return torch.ones_like(row, dtype=torch.bool)
        actions, most = table.joined(others), CELLS // (size * table.problem.x.shape[1])
        found = torch.zeros(table.need.shape, dtype=torch.bool)
        for at in torch.arange(len(actions[0])).split(max(1, most)):
            ask = nearly_accepted(table, part_of(actions, at), size)
            found |= answered(table.problem.scores, ask)
        return found[row, sets]

    def _tried(self, sums: Sums, size: int) -> list[Actions]:
        """The actions of sums, on sets that join the table, and are fitted if need be."""
        table = self.table
        if not len(sums.first):
            return []
        (members, which), values = sums.members(table), sums.values(table)
        sets = table.sets_of(members, size)[which]
        self._fit(members, size)
        row, every = self._asked
        self._asked = torch.cat([row, table.row[sums.first]]), torch.cat([every, sets])
        return self.solver.larger(table.row[sums.first], sets, values)

    def _others(self, size: int, rows: Tensor) -> list[Actions]:
        """Others on the sets of a size that rows with nothing accepted have tried."""
        table, (row, sets) = self.table, self._asked
        some = (table.size[sets] == size) & (rows & ~table.has(table.hits))[row]
        return self._others_on(row[some], sets[some]) if bool(some.any()) else []

    def _others_on(self, row: Tensor, sets: Tensor) -> list[Actions]:
        """Others of rows, (m,), on sets, (m,)."""
        wanted = torch.zeros(self.table.need.shape, dtype=torch.bool)
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
