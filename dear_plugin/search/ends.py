"""Ends: of a range that a user has set, both ends are tried, however narrow or wide it is."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dear_plugin.search.problem import SearchProblem

# Of so many features together all combinations of ends are tried.
MOST = 5
VALUES_A_TIME = 1 << 19


def reach_out(problem: SearchProblem, rows: Tensor, feature: Tensor, values: Tensor) -> None:
    """Move the first and the last of ascending values, (m, c), out to the ends of ranges.

    Values beyond an end are snapped to it. Only where the grid stops short of it, it is missing.
    """
    if not problem.feasible.is_narrowed:
        return
    low, high, lower, upper = _ends(problem, rows, feature)
    lower, upper = lower & (low < values[:, 0]), upper & (high > values[:, -1])
    if bool((lower | upper).any()):
        values[:, 0] = torch.where(lower, low, values[:, 0])
        values[:, -1] = torch.where(upper, high, values[:, -1])


def _ends(
    problem: SearchProblem, rows: Tensor, feature: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The least and greatest value that actions may set, and which of these a range made.

    A direction makes the factual an end, which is no action; a range that is wider than what was
    observed makes none.

    Args:
        problem: who asks what.
        rows: (...) the row.
        feature: (...) the feature.
    """
    x, feasible = problem.x[rows, feature], problem.feasible
    low, high = feasible.low[rows, feature], feasible.high[rows, feature]
    return low, high, (low > 0.0) & (low != x), (high < 1.0) & (high != x)


def corners(problem: SearchProblem, asked: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The ends of what groups asked for, (n, s), may reach, where a range made one of them.

    Numbers are set to one end or the other, all combinations of the first five; what has
    categories stays as it is.
    """
    if not problem.feasible.is_narrowed:
        return
    rows, sets = asked.nonzero(as_tuple=True)
    numeric = problem.feasible.steps < 1.0
    for part in torch.arange(len(rows)).split(VALUES_A_TIME >> MOST):
        r, s = rows[part], sets[part]
        positions = problem.sets.positions[s]
        low, high, lower, upper = _ends(problem, r[:, None], positions)
        some = ((lower | upper) & numeric[positions]).any(1).nonzero()[:, 0]
        if not len(some):
            continue
        r, s, positions = r[some], s[some], positions[some]
        width = min(positions.shape[1], MOST)
        which = torch.arange(positions.shape[1]) % width
        up = (torch.arange(1 << width)[:, None] >> which) % 2 == 1
        ends = torch.where(up, high[some, None], low[some, None])
        own = problem.x[r[:, None], positions][:, None]
        yield r, s, torch.where(numeric[positions][:, None], ends, own)
