"""Ranks: which tried actions are answers and alternatives of a row, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.search.actions import Entries, first_of, greatest
from dear_plugin.search.table import SearchTable

# Why an action is an answer, in the order of ranks: it has rank 0 already, it meets all criteria,
# it is the best accepted action of a set of a row without such an answer, or it comes nearest.
GIVEN, CREDIBLE, ACCEPTED, NEAREST = range(4)
# Relative rounding error of a margin, larger than that of a float32 model.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Ranked(Entries):
    """The actions of one rank, for some of the rows.

    Attributes:
        at: (m,) the position of each among the tried actions.
    """

    at: Tensor


def ranked(table: SearchTable, k: int, first: Ranked | None = None) -> list[Ranked]:
    """The first k actions of every row: answers, else accepted ones or the nearest miss.

    Answers are ordered by size of set and price, others by score first. Each acts on another
    set of features, and has another outcome.

    Args:
        table: what was tried.
        k: the number of ranks.
        first: those of rank 0, if they are known.
    """
    kinds = {
        GIVEN: table.passed[:0] if first is None else first.at,
        CREDIBLE: _counting(table, table.cheapest(table.passed)),
        ACCEPTED: _counting(table, best(table)),
        NEAREST: nearest(table),
    }
    at = torch.cat(list(kinds.values()))
    kind = torch.cat([torch.full_like(some, name) for name, some in kinds.items()])
    part = table.tried.part(at)
    score = torch.where(kind == NEAREST, part.margin.double(), part.met)
    score = torch.where(kind >= ACCEPTED, -score, 0.0)
    columns = table.order[part.sets], part.price, table.size[part.sets], score, kind, part.rows
    order = torch.from_numpy(np.lexsort([column.numpy() for column in columns]))
    if k > 1:
        order = order[_distinct(table, at[order])]
    rows = part.rows[order]
    place = torch.arange(len(order)) - torch.searchsorted(rows, rows)
    each = (place == rank for rank in range(k))
    return [Ranked(rows[mask], at[order][mask]) for mask in each]


def best(table: SearchTable) -> Tensor:
    """(q,) of rows without an answer, the best accepted action of each set.

    It has the best score, then the least price.
    """
    at = table.hits[~table.has(table.passed)[table.tried.rows[table.hits]]]
    score, pairs = table.tried.met[at], table.pairs(at)
    return table.cheapest(at[score == greatest(score, pairs, table.need.numel(), -1.0)[pairs]])


def nearest(table: SearchTable) -> Tensor:
    """(q,) the first of the largest margins of each row of which nothing is accepted.

    Margins that differ by rounding only are equal.
    """
    at = (~table.has(table.hits)[table.tried.rows]).nonzero()[:, 0]
    rows, margin = table.tried.rows[at], table.tried.margin[at]
    top = greatest(margin, rows, len(table.need), -torch.inf)[rows]
    some = at[(margin >= top - TOLERANCE * top.abs()) & top.isfinite()]
    return first_of(some, table.tried.rows[some], len(table.need))


def _distinct(table: SearchTable, at: Tensor) -> Tensor:
    """(q,) ascending, the positions of ordered actions, (m,), that differ from those before.

    Each changes features that no other does together, and has an outcome of its own.
    """
    part, problem = table.tried.part(at), table.problem
    # What is held at its value while others act is not changed.
    moved = part.values != problem.own(part.rows, part.sets)
    changed = torch.zeros(len(at), problem.sets.p)
    changed.scatter_reduce_(1, problem.sets.positions[part.sets], moved.float(), "amax")
    rows = part.rows[:, None].float()
    own = _is_first(torch.cat([rows, changed], 1).numpy())
    kept = torch.from_numpy(np.flatnonzero(own))
    reached = torch.cat([rows[kept], table.decoded(at[kept]).reached], 1).numpy()
    return kept[torch.from_numpy(_is_first(reached))]


def _is_first(keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(m,) bool, the first of equal keys, (m, c)."""
    out = np.zeros(len(keys), dtype=bool)
    out[np.unique(keys, axis=0, return_index=True)[1]] = True
    return out


def _counting(table: SearchTable, at: Tensor) -> Tensor:
    """(q,) those of actions, (m,), at most one of a row and set, of which no part does as well.

    A set counts only if it is cheaper than what is known of a set of some of its features and
    meets as many criteria.
    """
    shape, pairs = table.need.shape, table.pairs(at)
    price, met = torch.full((2, table.need.numel()), torch.inf, dtype=torch.float64)
    price[pairs], met[pairs] = table.tried.price[at].double(), table.tried.met[at].floor()
    subsets = table.problem.sets.subsets
    price, met = price.view(shape), met.view(shape)
    better = (price[:, subsets] < price[..., None]) & (met[:, subsets] >= met[..., None])
    return at[~better.any(2).view(-1)[pairs]]
