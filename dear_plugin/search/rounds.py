"""Rounds: actions are tried and lines vetted together; what is not needed is left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as fewer

import torch
from torch import Tensor

from dear_plugin.search.asking import answered, together
from dear_plugin.search.table import Actions, Table


class Rounds:
    """The rounds of a search.

    An answer on several features is doubted: the actions without one of its changes are tried,
    and what is left is judged by what is reported of it. If it does as well, it takes its place.

    Args:
        table: what was tried.
    """

    def __init__(self, table: Table) -> None:
        self.table, self._none = table, table.row
        # Lines whose parts are tried next; pairs of lines and of their parts to judge.
        self._doubted, self._judged = self._none, (self._none, self._none)

    def run(self, new: Sequence[Actions] = (), vets: Tensor | None = None) -> None:
        """Try actions and vet lines, (q,), with one call of the model if they are few."""
        table, vets = self.table, self._none if vets is None else vets
        # Parts of pairs are tried at once: those of larger sets need further decoders.
        some = torch.cat([vets[self.count(vets) == 2], self._doubted])
        doubted, (judged, part) = self._doubted, self._judged
        whole, left = self._parts(some)
        vetting = table.vetting(vets, table.wanted), table.vetting(part, table.reported)
        trying = table.trying(table.joined([*new, left]))
        asks = together([*vetting, table.factual(), trying])
        vetted, reported, *_ = answered(table.problem.scores, asks)
        table.meets(judged[table.met[part] >= table.met[judged].floor()], 0.0)
        self._judged = self._as_good(whole, torch.cat([vetted, doubted]))
        again = torch.cat([reported, vetted[self.count(vetted) > 2]])
        self.doubt(again[(table.met[again] == torch.inf) & (self.count(again) > 1)])

    def doubt(self, at: Tensor) -> None:
        """Lines, (q,), on several features whose parts are tried next."""
        self._doubted = at

    @property
    def open(self) -> Tensor:
        """(q,) the lines whose changes are not known to be needed."""
        return torch.cat([self._doubted, self._judged[0]])

    def at_work(self, vets: Tensor, new: Sequence[Actions]) -> Tensor:
        """(n,) bool, the rows with something to do in a round."""
        busy = self.table.has(torch.cat([vets, self.open]))
        return busy.index_fill(0, torch.cat([self._none, *(part[0] for part in new)]), True)

    def count(self, at: Tensor) -> Tensor:
        """(q,) the number of features of lines."""
        size: Tensor = self.table.problem.sets.masks.sum(1)[self.table.set[at]]
        return size

    def _as_good(self, whole: Tensor, some: Tensor) -> tuple[Tensor, Tensor]:
        """Those of lines, (m,), among some, whose part has the margin, too; and these parts.

        The parts are the last lines of the table.
        """
        table = self.table
        part, rows = torch.arange(len(table) - len(whole), len(table)), table.row[whole]
        enough = table.margin[whole] >= table.enough[rows]
        kept = table.margin[part] >= table.enough[rows].where(enough, table.aim[rows])
        kept &= torch.isin(whole, some)
        return whole[kept], part[kept]

    def _parts(self, at: Tensor) -> tuple[Tensor, Actions]:
        """(m,) lines of several features, each once for each of these; the actions without it."""
        table, wholes, found = self.table, [self._none], []
        for i in table.set[at].unique().tolist():
            members = table.problem.sets.members[i]
            some, small = at[table.set[at] == i], min(len(members) - 1, int(table.size[i]))
            for kept in map(list, fewer(range(len(members)), len(members) - 1)):
                sets = table.sets_of([tuple(members[c] for c in kept)], small).expand(len(some))
                wholes.append(some)
                found.append((table.row[some], sets, table.values[some][:, kept]))
        return torch.cat(wholes), table.joined(found)
