"""Stages: what the rows of a search try in turn, until they have their answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import combinations as pairs_of
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from dear_plugin.search.asking import answered
from dear_plugin.search.settings import Search
from dear_plugin.search.sums import CELLS, Sums, nearly_accepted, offered
from dear_plugin.search.table import Actions, Table, part_of

logger = logging.getLogger(__name__)

# The sets and places of sums that are tried first and next: of pairs, and of larger sets.
TRIED = ((6, 8), (32, 32)), ((2, 16), (6, 32))
# Of the sets of a row that promise no answer, those that are tried all the same; and those where
# nothing is accepted, if another action is expected to be nearly accepted.
BEST, NEXT = 2, 6
# Of so few features all of those are tried: what follows from a sum may differ from what is
# expected, and decoders of more features take longer than asking the model first.
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
        tried = (sums.rank < sets * k) & (sums.place < most)
        tried &= sums.promises | (sums.rank < BEST * k)
        if not step:
            return rows[row] & tried
        ((sets, most),) = later
        nothing = ~self.table.has(self.table.hits)[row] & (sums.rank < NEXT)
        more = (sums.rank < sets) & (sums.place < most)
        wanted = rows[row] & ~tried & more & (sums.promises | (sums.rank < BEST) | nothing)
        unsure = wanted & ~sums.promises & (sums.rank >= BEST)
        if len(self._single) > FEW and bool(unsure.any()):
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
