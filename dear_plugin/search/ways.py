"""Ways: further answers on the sets of answers, for rows with fewer answers than requested.

Another way is, for its reader: another level of a category; and, where an answer counts on what
follows, the same levels with numbers so far that the action is enough by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.search.order import once, places
from dear_plugin.search.table import CHEAPER, Table


def other_ways(table: Table, firsts: Tensor) -> Tensor:
    """(q,) the cheapest answers of each other way on the sets of answers, (m,), one of a set."""
    firsts = firsts[torch.isin(firsts, table.passed)]
    best = table.prices(firsts)
    subsets = table.problem.sets.subsets
    strict = subsets != torch.arange(len(subsets))[:, None]
    part = best[:, subsets].masked_fill(~strict, torch.inf).amin(2).view(-1)
    at = table.passed[best.isfinite().view(-1)[table.pair(table.passed)]]
    # Of an action that a smaller set does as well for less, a part is not needed.
    at = at[table.price[at] < part[table.pair(at)]]
    at = torch.cat([firsts, table.sorted(at, table.price[at])])
    way, alone = _ways(table, at), at[table.by_itself(at)]
    found = torch.cat([at[once(way)], alone[once(way[table.by_itself(at)])]]).unique()
    found = found[~torch.isin(found, firsts)]
    return table.sorted(found, table.price[found])


def untried(table: Table, k: int, most: int) -> Tensor:
    """(q,) lines to vet that may be another way, of rows with fewer than k sets with answers.

    At places 0, 1, 3, 7, ... by price of each way, at most so many of a row for each answer.
    """
    answered = table.prices(table.passed).isfinite()
    few = (answered & (answered.sum(1) < k)[:, None]).view(-1)
    pair = table.pair(table.hits)
    at = table.hits[few[pair] & (table.met[table.hits] < 0.0)]
    at = at[table.margin[at] >= table.need.view(-1)[table.pair(at)]]
    known = table.passed[few[table.pair(table.passed)]]
    every = torch.cat([at, known])
    alone = table.by_itself(every)
    way = 2 * _ways(table, every)
    least = torch.full((2 * len(every) + 2,), torch.inf)
    for own in (way, way + alone):
        least.scatter_reduce_(0, own[len(at) :], table.price[known], "amin")
    limit = least[way[: len(at)] + alone[: len(at)]] * (1.0 - CHEAPER)
    some = table.price[at] < limit
    at, own = at[some], (way + alone)[: len(at)][some]
    number = torch.empty(len(table), dtype=torch.int64).index_copy(0, at, own)
    at = table.sorted(at, own)
    place = places(number[at])
    at = at[(place + 1) & place == 0]
    at = table.sorted(at, table.price[at])
    return at[places(table.row[at]) < most * k]


def _ways(table: Table, at: Tensor) -> Tensor:
    """(q,) a number for each row, set and levels of lines, (q,)."""
    problem, sets = table.problem, table.set[at]
    values, positions = table.values[at], problem.sets.positions[sets]
    amounts = problem.classifier.encoder.amounts(values, at=positions)
    levels = values.masked_fill(amounts, 0.0)
    key = torch.cat([table.pair(at)[:, None].to(levels), levels], 1)
    which: Tensor = key.unique(dim=0, return_inverse=True)[1]
    return which
