"""Sums: pairs of tried actions in; those that promise an answer on more features out.

What follows from a sum is expected to be what follows from both of its parts. The model scores the
expected rows, and no decoder is fitted for that: decoders are fitted of promising sets only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from dear_plugin.search.asking import Asking
from dear_plugin.search.order import order, places
from dear_plugin.search.outcomes import judged
from dear_plugin.search.table import Actions, Table

# The actions of each feature, the sets of a row, and the places of a set, by predicted cost, that
# the model scores.
PARTS, SETS, PLACES = 8, 32, torch.tensor([*range(12), *range(13, 64, 4)])
CELLS = 1 << 22
# Keys from here on are those of sums that promise no answer.
FAILS = 8e5
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
    reached = problem.feasible.project(x, moved, row, acted, held)[:, 0]
    still = acted, acted if held is None else acted | held
    least = (table.aim, table.enough) if table.discount else None
    alone = torch.where(acted, wanted, x)
    return (yield from judged(problem, row, reached, alone, still=still, least=least))


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
    """An order: by cost if the gain suffices, after these the greatest gains."""
    return torch.where(gain >= need, cost.double(), 1e6 - gain.double().clamp(-1e5, 1e5))
