"""Waves: candidates are tried, looked at more closely and vetted, until nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dear_plugin.search.actions import Candidates, first_of_each, in_order
from dear_plugin.search.closer import back, on_lines, to_move_back
from dear_plugin.search.table import SearchTable
from dear_plugin.search.values import FeatureValues

# Actions of a row whose criteria are evaluated in each wave, for each answer that is searched for.
WAVES = (1, 4, 16, 64, 256, 256, 256)
# Waves in which actions bound others before their criteria are evaluated.
EARLY = 2
# The parts of the way back to the factual, in turn.
WAY_BACK = (8, 64)


class Waves:
    """Candidates, and the search of a table for k answers of each row with them.

    Args:
        table: what was tried.
        known: the lists of values.
        closer: whether to look between what was tried.

    Attributes:
        pool: the candidates that were not tried.
        k: the number of answers of a row that are searched for.
    """

    def __init__(self, table: SearchTable, known: FeatureValues, *, closer: bool) -> None:
        self.table, self.known, self.closer, self.k = table, known, closer, 1
        self.pool = Candidates.none(table.width)
        self._moved_back = [torch.empty(0, dtype=torch.int64) for _ in WAY_BACK]

    def put(self, *parts: Candidates) -> None:
        """Put candidates into the pool."""
        each = [part.widened(self.table.width) for part in (self.pool, *parts)]
        self.pool = Candidates.joined(each)

    def run(self, rows: Tensor, *, looks: int = 1, start: int = 0) -> None:
        """Run the waves for rows, (n,) bool; each until a wave gives it nothing new.

        Args:
            rows: the rows.
            looks: how often the first wave tries candidates and looks closer.
            start: the number of waves that are left out.
        """
        table, pool = self.table, self.pool
        mine, fresh = rows[pool.rows], rows[table.tried.rows[table.fresh]]
        others, away = pool.part(~mine), table.fresh[~fresh]
        self.pool, table.fresh = pool.part(mine), table.fresh[fresh]
        for wave, size in enumerate(WAVES[start:], start):
            busy = torch.zeros_like(rows)
            for _ in range(1 if wave else looks):
                busy |= self.tried(rows, wave)
            at = self.next(rows, size)
            table.vet(at)
            rows = rows & (busy | table.has(at))
            if not bool(rows.any()):
                break
        self.put(others)
        table.fresh = torch.cat([table.fresh, away])

    def tried(self, rows: Tensor, wave: int) -> Tensor:
        """Try candidates of the pool, and look closer; (n,) bool, the rows that have some."""
        alive = self.table.alive(self.k)
        cheap = self.pool.direct_cost < self._bound(rows, alive, wave)[self.pool.rows]
        taken, self.pool = self.pool.part(cheap), self.pool.part(~cheap)
        found = [taken, *self._beside(rows, alive, wave)]
        new = Candidates.joined([each.widened(self.table.width) for each in found])
        self.table.add(new)
        return torch.zeros_like(rows).index_fill(0, new.rows, True)

    def _beside(self, rows: Tensor, alive: Tensor, wave: int) -> Iterator[Candidates]:
        """Candidates beside what is good: answers, and what is `alive`, (q,), may become one."""
        table = self.table
        good = torch.cat([table.passed, alive])
        good = good[rows[table.tried.rows[good]]]
        if not self.closer or not len(good):
            return
        bound, step = self._bound(rows, alive, 0), wave % len(WAY_BACK)
        at = to_move_back(table, good)
        at = at[~torch.isin(at, self._moved_back[step])]
        self._moved_back[step] = torch.cat([self._moved_back[step], at])
        lines = on_lines(table, self.known, good, bound / (1.0 + table.discount))
        for new in (lines, back(table, at, WAY_BACK[step])):
            yield new.part(new.direct_cost < bound[new.rows])

    def _bound(self, rows: Tensor, alive: Tensor, wave: int) -> Tensor:
        """(n,) the cost from which on no action of a row is of use; -inf for other rows.

        In early waves `alive` actions, (q,), bound others though they are not vetted.
        """
        at = torch.cat([self.table.passed, alive if wave < EARLY else alive[:0]])
        return (self.table.bound(self.k, at) * (1.0 + self.table.discount)).where(rows, -torch.inf)

    def next(self, rows: Tensor, size: int) -> Tensor:
        """(q,) the actions of rows to vet, `size * k` of a row, the cheapest first.

        Of a set, those at places 0, 1, 3, 7, ... in the order of price: neighbouring values
        mostly meet the same criteria. Of a set with an answer, those after each quarter.
        """
        table, at = self.table, self.table.alive(self.k)
        at = at[rows[table.tried.rows[at]]]
        owner = table.tried.rows[at] * len(table.order) + table.order[table.tried.sets[at]]
        order = in_order(owner, table.tried.price[at])
        at, owner = at[order], owner[order]
        first = torch.searchsorted(owner, owner)
        place = torch.arange(len(at)) - first
        count = torch.searchsorted(owner, owner, right=True) - first
        quarter = (place + 1) * 4 // count > place * 4 // count
        solved = (table.prices(table.passed) < torch.inf).view(-1)[table.pairs(at)]
        some = at[torch.where(solved, quarter, (place + 1) & place == 0)]
        some = some[in_order(table.tried.rows[some], table.tried.price[some])]
        return some[first_of_each(table.tried.rows[some], size * self.k)]
