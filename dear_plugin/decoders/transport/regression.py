"""Regression: least squares on some columns, factored once; targets in, what is left of them out.

Columns that others come after are factored once for all of these, by blocks: what all sets of the
same held features share is shared.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Of the squares of each column, whatever its scale; and of an empty one.
RIDGE, LEAST_RIDGE = 2e-9, 1e-18


class Regression:
    """Least squares on columns, (m, q), for any targets.

    Args:
        columns: the columns, (m, c), or those that come after
        before: the earlier ones.

    Attributes:
        columns: (m, q) all of them.
    """

    def __init__(self, columns: Tensor, before: Regression | None = None) -> None:
        gram = columns.T @ columns
        gram.diagonal().mul_(1.0 + RIDGE).add_(LEAST_RIDGE)
        self._before, self.columns = before, columns
        if before is not None:
            cross = before.columns.T @ columns
            self._cross = before._solve(cross)
            gram -= cross.T @ self._cross
            self.columns = torch.cat([before.columns, columns], 1)
        self._factor = torch.linalg.lu_factor(gram)

    def __call__(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """(q, t) the weights of the columns for targets, (m, t), and (m, t) what is left."""
        weights = self._solve(self.columns.T @ targets)
        return weights, targets - self.columns @ weights

    def _solve(self, right: Tensor) -> Tensor:
        """(q, t) the weights, given the products of columns and targets, (q, t)."""
        if self._before is None:
            weights: Tensor = torch.linalg.lu_solve(*self._factor, right)
            return weights
        first, last = right.split([len(self._cross), len(right) - len(self._cross)])
        last = torch.linalg.lu_solve(*self._factor, last - self._cross.T @ first)
        return torch.cat([self._before._solve(first) - self._cross @ last, last])
