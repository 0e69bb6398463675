"""Grow: which actions on one feature more to try, by addition of what was tried.

An action on more features is expected to have the sum of the margins that its parts gain, and the
sum of their costs. Nothing is decoded for that, and decoders are fitted only of the sets whose
expected actions are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.search.actions import Candidates, first_of_each, in_order
from dear_plugin.search.table import SearchTable
from dear_plugin.search.values import candidates

# The actions of each feature, and the sets of a row.
PARTS, SETS = 8, 32
# The places of the combinations of two sets, by predicted cost, that are tried; and those of a row
# that gets no answer by them.
PLACES = torch.tensor([0, 1, 2, 4, 8, 16])
OTHERS = torch.tensor([3, *range(5, 8), *range(9, 16), *range(17, 64)])
CELLS = 1 << 22


@dataclass(frozen=True)
class Parts:
    """A few actions of each of q rows and each of b sets.

    Attributes:
        at: (q, b, c) their positions among the tried ones.
        cost: (q, b, c) their cost; infinite where there are fewer.
        gain: (q, b, c) by how much the margin grows.
    """

    at: Tensor
    cost: Tensor
    gain: Tensor

    @classmethod
    def of(cls, table: SearchTable, rows: Tensor, sets: Tensor, before: Tensor) -> Parts:
        """Of rows, (q,), and sets, (b,): actions of which none costs more and gains less.

        `before` is the margin of the factuals, (n,).
        """
        n, s = table.need.shape
        place = torch.full((n, s), -1)
        place[rows[:, None], sets] = torch.arange(len(rows) * len(sets)).view(len(rows), -1)
        owner = place.view(-1)[table.pairs()]
        at = ((owner >= 0) & table.tried.margin.isfinite()).nonzero()[:, 0]
        at = at[in_order(owner[at], table.tried.cost[at])]
        owner, margin = owner[at], table.tried.margin[at]
        order = torch.arange(len(at)) - torch.searchsorted(owner, owner)
        count = len(rows) * len(sets)
        wide = torch.full((count, int(order.max()) + 1 if len(at) else 1), -torch.inf)
        wide[owner, order] = margin
        best = torch.cat([wide.new_full((count, 1), -torch.inf), wide.cummax(1).values], 1)
        front = (wide > best[:, :-1])[owner, order].nonzero()[:, 0]
        at, owner = at[front], owner[front]
        # Evenly spread over those that gain more than all cheaper ones.
        first = torch.searchsorted(owner, torch.arange(count + 1))
        total = (first[1:] - first[:-1])[:, None]
        even = (torch.arange(PARTS) * (total - 1).clamp_min(0) / (PARTS - 1)).round().long()
        even = torch.where(total <= PARTS, torch.arange(PARTS), even)
        there = even < total
        chosen = torch.cat([at, at.new_zeros(1)])[torch.where(there, first[:-1, None] + even, -1)]
        return cls.known(table, chosen.view(len(rows), len(sets), PARTS), there, before)

    @classmethod
    def best(
        cls, table: SearchTable, rows: Tensor, size: int, before: Tensor, need: Tensor
    ) -> Parts:
        """Of rows, (q,), the most promising actions on sets of a size, each as one set."""
        n = len(table.need)
        place = torch.full((n,), -1).index_copy(0, rows, torch.arange(len(rows)))
        tried = table.tried
        at = ((place[tried.rows] >= 0) & (table.size[tried.sets] == size)).nonzero()[:, 0]
        at = at[tried.margin[at].isfinite()]
        gain = tried.margin[at] - before[tried.rows[at]]
        at = at[in_order(tried.rows[at], _key(gain, tried.cost[at], need[tried.rows[at]]))]
        owner = place[tried.rows[at]]
        some = first_of_each(owner, PARTS)
        at, owner = at[some], owner[some]
        order = torch.arange(len(at)) - torch.searchsorted(owner, owner)
        chosen = torch.full((len(rows), PARTS, 1), -1)
        chosen[owner, order, 0] = at
        return cls.known(table, chosen.clamp_min(0), chosen >= 0, before)

    @classmethod
    def known(cls, table: SearchTable, at: Tensor, there: Tensor, before: Tensor) -> Parts:
        """Tried actions at positions, (q, b, c), that are `there`, bool."""
        tried, there = table.tried, there.view(at.shape)
        gain = tried.margin[at] - before[tried.rows[at]]
        cost = tried.cost[at].masked_fill(~there, torch.inf)
        return cls(at, cost, gain.masked_fill(~there, -torch.inf))


def grow(
    table: SearchTable, rows: Tensor, size: int, features: Tensor, below: Tensor, places: Tensor
) -> tuple[Candidates, Tensor, Tensor]:
    """The actions on sets of a size to try for rows, (q,).

    Also the rows and sets, (m,) each, that are of use: an action on one of them may be no
    candidate, such as one that hardly moves a feature of no effect of its own.

    Args:
        table: what was tried, also on sets of one feature less.
        rows: (q,) the rows.
        size: the number of features.
        features: (b,) the sets of one feature each that may be combined.
        below: (n,) the price below which an answer is of use.
        places: (c,) of the combinations of each set, in the order of predicted cost.
    """
    before, found = table.before, []
    need = (table.enough if size == 2 else table.aim) - before
    # A dearer action than an answer on a part of it would be none.
    limit = torch.minimum(table.limits()[:, features], below[:, None]) * (1.0 + table.discount)
    for some in rows.split(max(1, CELLS // (len(features) * PARTS) ** 2)):
        added = Parts.of(table, some, features, before)
        base, one = added, features.expand(len(some), -1)
        if size > 2:
            base = Parts.best(table, some, size - 1, before, need)
            one = table.tried.sets[base.at[..., 0]]
        masks = table.problem.sets.masks
        fits = ~(masks[one][:, :, None] & masks[features]).any(-1)
        most = limit[some][:, None].expand(fits.shape)
        if size == 2:
            # Of each pair one order.
            fits &= features[:, None] < features
            most = torch.minimum(most, most.transpose(1, 2))
        found.append(_combined(base, added, need[some], most.where(fits, -torch.inf), places))
    first, second = (torch.cat(each) for each in zip(*found, strict=True))
    return _both(table, first, second, size)


def _combined(
    base: Parts, added: Parts, need: Tensor, most: Tensor, places: Tensor
) -> tuple[Tensor, Tensor]:
    """The positions, (m,) each, of two actions: of the base and on one more feature.

    Args:
        base: actions on a set of each of q rows.
        added: actions on a further feature.
        need: (q,) by how much the margin must grow.
        most: (q, b, b') the cost that their sum must be below.
        places: (c,) of the combinations of each set, in the order of predicted cost.
    """
    gain = base.gain[:, :, None, :, None] + added.gain[:, None, :, None]
    cost = base.cost[:, :, None, :, None] + added.cost[:, None, :, None]
    key = _key(gain, cost, need[:, None, None, None, None])
    key = key.where(cost < most[..., None, None], torch.inf).flatten(3).flatten(1, 2)
    best, which = key.sort(2)
    _, sets = best[..., 0].topk(min(SETS, best.shape[1]), 1, largest=False)
    places = places[places < key.shape[2]]
    best, which = best[..., places], which[..., places]
    sets = sets[..., None].expand(-1, -1, best.shape[2])
    best, which = best.gather(1, sets), which.gather(1, sets)
    at = best.isfinite().nonzero(as_tuple=True)
    row, sets, which = at[0], sets[at], which[at]
    b, c = added.at.shape[1:]
    return base.at[row, sets // b, which // c], added.at[row, sets % b, which % c]


def _both(
    table: SearchTable, first: Tensor, second: Tensor, size: int
) -> tuple[Candidates, Tensor, Tensor]:
    """Candidates that make both of two actions, at positions (m,) each; their rows and sets."""
    problem, tried = table.problem, table.tried
    if not len(first):
        return Candidates.none(size), first, second
    row = problem.x.new_zeros(len(first), problem.sets.p)
    for at in (second, first):
        row.scatter_(1, problem.sets.positions[tried.sets[at]], tried.values[at])
    each, s = problem.sets.members, len(problem.sets)
    pairs, which = (tried.sets[first] * s + tried.sets[second]).unique(return_inverse=True)
    members = [tuple(sorted(each[i // s] + each[i % s])) for i in pairs.tolist()]
    sets = torch.tensor(table.positions_of(members, size))[which]
    values = row.gather(1, table.problem.sets.positions[sets])
    rows = tried.rows[first]
    return candidates(table.problem, rows, sets, values[:, None]), rows, sets


def _key(gain: Tensor, cost: Tensor, need: Tensor) -> Tensor:
    """An order of combinations: by cost if the gain suffices, after these the greatest gains.

    Infinite where there is no combination.
    """
    later = 1e6 - gain.double().clamp(-1e5, 1e5)
    enough = torch.where(gain >= need, cost.double(), later)
    return torch.where(cost.isfinite() & gain.isfinite(), enough, torch.inf)
