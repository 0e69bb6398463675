"""Rounds: actions are tried and lines vetted together; what is not needed is left out.

An answer on several features is doubted: the actions without one of its changes are tried, and
what is left is judged by what is reported of it. If it does as well, it takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

from dear_plugin.search.asking import answered, together
from dear_plugin.search.table import Actions, Table


def advance(table: Table, vets: Tensor, new: Sequence[Actions] = ()) -> None:
    """Try actions and vet lines, (q,), with one call of the model if they are few."""
    # Parts of pairs are tried at once: those of larger sets need further decoders.
    whole, left = _parts(table, vets[table.count(vets) == 2])
    trying = table.trying(table.joined([*new, left]))
    asks = together([table.vetting(vets, table.wanted), table.factual(), trying])
    vetted, *_ = answered(table.problem.scores, asks)
    doubt(table, torch.cat([_discarding(table, whole, vetted), vetted[table.count(vetted) > 2]]))


def doubt(table: Table, at: Tensor) -> None:
    """Discard lines on several features, (q,), without one of which they would do as well."""
    while len(at):
        whole, left = _parts(table, at)
        answered(table.problem.scores, table.trying(left))
        at = _discarding(table, whole, at)


def _discarding(table: Table, whole: Tensor, some: Tensor) -> Tensor:
    """Discard lines, (m,), among some, of which a part does as well; (q,) answers to doubt next.

    The parts are the last lines of the table, and must have the margin, too.
    """
    part, rows = torch.arange(len(table) - len(whole), len(table)), table.row[whole]
    enough = table.margin[whole] >= table.enough[rows]
    kept = table.margin[part] >= table.enough[rows].where(enough, table.aim[rows])
    kept &= torch.isin(whole, some)
    whole, part = whole[kept], part[kept]
    reported = answered(table.problem.scores, table.vetting(part, table.reported))
    table.meets(whole[table.met[part] >= table.met[whole].floor()], 0.0)
    return reported[table.count(reported) > 1]


def _parts(table: Table, at: Tensor) -> tuple[Tensor, Actions]:
    """(m,) lines of several features, each once for each of these; the actions without it."""
    wholes, found = [at[:0]], []
    for i in table.set[at].unique().tolist():
        members, some = table.problem.sets.members[i], at[table.set[at] == i]
        small = min(len(members) - 1, int(table.size[i]))
        for kept in map(list, combinations(range(len(members)), small and len(members) - 1)):
            sets = table.sets_of([tuple(members[c] for c in kept)], small).expand(len(some))
            wholes.append(some)
            found.append((table.row[some], sets, table.values[some][:, kept]))
    return torch.cat(wholes), table.joined(found)
