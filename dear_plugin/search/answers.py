"""Answers: which tried actions are answers and alternatives of a row, and in which order."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.search.order import once, places
from dear_plugin.search.table import Table
from dear_plugin.search.ways import other_ways

# Relative rounding error of a margin, larger than that of a float32 model.
TOLERANCE = 1e-5


def ranked(table: Table, k: int, first: Tensor | None = None) -> list[Tensor]:
    """The lines of the first k answers of every row that has so many, (q,) of each rank.

    Answers are ordered by size of set and price. A row without one has its accepted actions, one
    of a set, by the criteria that they meet; or the nearest miss. Each acts on another set of
    features, and has another outcome; then come other ways on the same sets (`ways`).

    Args:
        table: what was tried.
        k: the number of ranks.
        first: those of rank 0, if they are known.
    """
    hits, given = table.hits, table.hits[:0] if first is None else first
    others = hits[~table.has(table.passed)[table.row[hits]]]
    at = torch.cat([table.passed, others, nearest(table)])
    met, size = table.met[at].clamp_max(1e6), table.size[table.set[at]]
    # Of answers size comes first; of others the criteria that they meet.
    score = torch.where(met < 1e6, -met, -1e6)
    at = table.sorted(at, score, size, table.price[at])
    at = _counting(table, at[once(table.pair(at))])
    at = torch.cat([given, at[~torch.isin(at, given)]])
    at = at[table.row[at].argsort(stable=True)]
    if k > 1:
        at = at[once(*_changed(table, at).T)]
        at = torch.cat([at, other_ways(table, at)])
        at = at[table.row[at].argsort(stable=True)]
        at = at[once(table.row[at], *table.decoded(at).reached.T)]
    place = places(table.row[at])
    return [at[place == rank] for rank in range(k)]


def best(table: Table, k: int) -> Tensor:
    """(q,) the best accepted lines, of k sets of each row without an answer."""
    at = table.hits[~table.has(table.passed)[table.row[table.hits]]]
    at = table.sorted(at, -table.met[at], table.price[at])
    at = at[once(table.pair(at))]
    return at[places(table.row[at]) < k]


def nearest(table: Table) -> Tensor:
    """(q,) the first of the largest margins of each row of which nothing is accepted.

    Margins that differ by rounding only are equal.
    """
    at = (~table.has(table.hits)[table.row] & table.margin.isfinite()).nonzero()[:, 0]
    at = at[table.row[at].argsort(stable=True)]
    none = torch.full((len(table.need),), -torch.inf)
    top = none.scatter_reduce(0, table.row[at], table.margin[at], "amax")[table.row[at]]
    at = at[table.margin[at] >= top - TOLERANCE * top.abs()]
    return at[places(table.row[at]) == 0]


def _counting(table: Table, at: Tensor) -> Tensor:
    """(q,) those of lines, (m,), at most one of a row and set, of which no part does as well.

    A set counts only if it is cheaper than what is known of a set of some of its features and
    meets as many criteria.
    """
    shape, pair, subsets = table.need.shape, table.pair(at), table.problem.sets.subsets
    price, met = torch.full((2, table.need.numel()), torch.inf, dtype=torch.float64)
    price[pair], met[pair] = table.price[at].double(), table.met[at].floor()
    price, met = price.view(shape), met.view(shape)
    better = (price[:, subsets] < price[..., None]) & (met[:, subsets] >= met[..., None])
    return at[~better.any(2).view(-1)[pair]]


def _changed(table: Table, at: Tensor) -> Tensor:
    """(q, 1 + p) the row of lines, and which features change: what is held does not."""
    positions = table.problem.sets.positions[table.set[at]]
    moved = (table.values[at] != table.problem.own(table.row[at], table.set[at])).double()
    changed = torch.zeros(len(at), table.problem.x.shape[1]).double()
    changed.scatter_reduce_(1, positions, moved, "amax")
    return torch.cat([table.row[at, None], changed], 1)
