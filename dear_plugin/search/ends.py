"""Range ends: candidates at the ends of user ranges, which training values may not contain."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dear_plugin.search.problem import SearchProblem

# All combinations of ends are tried for this many features of a group.
MOST = 5
VALUES_A_TIME = 1 << 19


def extend_to_ends(problem: SearchProblem, rows: Tensor, feature: Tensor, values: Tensor) -> None:
    """Move the first and last of ascending values, (m, c), in place to ends that lie outside.

    Values outside a range are snapped to its end, so only ends outside the values are missing.
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
    """The least and greatest value that actions may set, and bool, which are ends of a range.

    A bound at the factual comes from a direction and is no action. A bound at 0 or 1 comes from
    the observed values.

    Args:
        problem: the search problem.
        rows: (...) the row.
        feature: (...) the feature.
    """
    x, feasible = problem.x[rows, feature], problem.feasible
    low, high = feasible.low[rows, feature], feasible.high[rows, feature]
    return low, high, (low > 0.0) & (low != x), (high < 1.0) & (high != x)


def corners(problem: SearchProblem, pairs: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Combinations of bounds of groups in pairs, (n, s) bool, that have an end of a range.

    Numbers are set to their lower or upper bound, in all combinations of the first five; discrete
    features keep their value.
    """
    if not problem.feasible.is_narrowed:
        return
    rows, sets = pairs.nonzero(as_tuple=True)
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
