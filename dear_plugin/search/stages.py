"""Stages: what the rows of a search try in turn, until they have their answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import combinations as pairs_of
from typing import TypeAlias

import torch
from torch import Tensor

from dear_plugin.search.asking import answered
from dear_plugin.search.sums import Sums, offered
from dear_plugin.search.table import Actions, Table, part_of
from dear_plugin.search.values import FeatureValues, admitted, combinations, singles

logger = logging.getLogger(__name__)

# Combinations of a given set, and of a set where nothing is accepted.
FEW, MANY = 32, 256
# The sets and places of sums that are tried first and next: of pairs, and of larger sets.
TRIED = ((6, 8), (32, 32)), ((2, 16), (6, 32))
# Of the sets of a row that promise no answer, those that are tried all the same, and then those
# where nothing is accepted.
BEST, NEXT = 2, 6

# What gives the candidates in place of lists of values: the rows, sets and values, (m, w), of a
# problem, given the least margins and how much more an answer needs.
Source: TypeAlias = Callable[..., Actions]


class Stages:
    """The stages of a search: single features; sums on larger sets, and combinations on these.

    Args:
        table: what was tried.
        known: the lists of values.
        max_features: the largest number of features acted on together.
        source: what gives the only candidates; None for lists of values.
    """

    def __init__(
        self, table: Table, known: FeatureValues, *, max_features: int, source: Source | None
    ) -> None:
        self.table, self.source, self._known = table, source, known
        self._steps = [(1, 0), *((n, i) for n in range(2, max_features + 1) for i in range(3))]
        given, most = table.problem.sets, table.problem.decoders.decoder.pair_features
        self._single, self._given = given.single.nonzero()[:most, 0], given.members
        # The size of sets that each row has come to; sums, by size; rows and sets that were tried,
        # also where no value was admissible.
        self._size = torch.ones(len(table.aim), dtype=torch.int64)
        self._sums: dict[int, list[Sums]] = {}
        self._asked = table.row, table.row
        # Values of single features that are tried where they may be cheaper.
        self._later = table.nothing

    def __len__(self) -> int:
        """The number of stages."""
        return len(self._steps)

    def at(self, i: int, rows: Tensor, k: int) -> list[Actions]:
        """What rows, (n,) bool, try at a stage for k answers."""
        size, step = self._steps[i]
        if size == 1:
            return self._singles()
        return self._combined(size, rows) if step == 2 else self._larger(size, step, rows, k)

    def _singles(self) -> list[Actions]:
        """Values of single features, and some combinations on given sets of several."""
        problem = self.table.problem
        if self.source is not None:
            return self._from_source(problem.actionable)
        asked, (every, first) = problem.actionable, singles(problem, self._known)
        # Where criteria say which actions count, a cheaper one does not make others needless.
        first |= not self.table.takes_all
        self._later = part_of(every, ~first)
        return [part_of(every, first), combinations(problem, self._known, asked, FEW)]

    def rest(self, rows: Tensor, bound: Tensor) -> Actions:
        """The values of single features not tried yet, of rows, (n,) bool, below a bound, (n,)."""
        later, row = self._later, self._later[0]
        at = rows[row] & (self.table.direct_cost(later) < bound[row])
        self._later = part_of(later, ~at)
        return part_of(later, at)

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
        return [action for sums in some for action in self._both(sums, size)]

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
        return rows[row] & ~tried & more & (sums.promises | (sums.rank < BEST) | nothing)

    def _both(self, sums: Sums, size: int) -> list[Actions]:
        """The actions of sums, on sets that join the table, and are fitted if need be."""
        table = self.table
        if not len(sums.first):
            return []
        (members, which), values = sums.members(table), sums.values(table)
        sets, row = table.sets_of(members, size)[which], table.row[sums.first]
        self._fit(members, size)
        known, every = self._asked
        self._asked = torch.cat([known, row]), torch.cat([every, sets])
        if self.source is not None:
            asked = torch.zeros(table.need.shape, dtype=torch.bool)
            asked[row, sets] = True
            return self._from_source(asked)
        values = values.gather(1, table.problem.sets.positions[sets])
        return [admitted(table.problem, row, sets, values[:, None])]

    def _combined(self, size: int, rows: Tensor) -> list[Actions]:
        """Combinations on the sets of a size that rows with nothing accepted have tried.

        Margins do not always add up: a model with steps has none to add.
        """
        table, (row, sets) = self.table, self._asked
        some = (table.size[sets] == size) & (rows & ~table.has(table.hits))[row]
        if self.source is not None or not bool(some.any()):
            return []
        asked = torch.zeros(table.need.shape, dtype=torch.bool)
        asked[row[some], sets[some]] = True
        return [combinations(table.problem, self._known, asked, MANY)]

    def _fit(self, members: Sequence[tuple[int, ...]], size: int) -> None:
        """Fit the decoders of new sets, if they are trained together: of pairs always all."""
        decoders = self.table.problem.decoders
        logger.info("trying %d sets of features for rows that no given set solves", len(members))
        if not decoders.decoder.joint:
            return
        if size == 2:
            # They depend on each other.
            each = [self._given[i] for i in self._single.tolist()]
            members = [tuple(sorted(one + other)) for one, other in pairs_of(each, 2)]
        decoders.fit([each for each in members if each not in self._given])

    def _from_source(self, asked: Tensor) -> list[Actions]:
        """What a source gives for sets, (n, s) bool."""
        table, problem = self.table, self.table.problem
        decoder, schema = problem.decoders.decoder, problem.classifier.encoder.schema
        parts = [len(decoder.parts(schema, members)) for members in problem.sets.members]
        # Several parts are decoded one after another, which no source follows.
        asked = asked & problem.actionable & (torch.tensor(parts) == 1)
        if self.source is None or not bool(asked.any()):
            return []
        part = problem.only(asked)
        row, sets, values = self.source(part, least=table.aim, more=table.enough - table.aim)
        # An action of size zero succeeds where the decoder's reconstruction is accepted.
        some = (values != part.own(row, sets)).any(1) | table.takes_all
        sets = table.sets_of(part.sets.members, 1)[sets]
        return [part_of((row, sets, values), some)]
