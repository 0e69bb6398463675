"""Leaves: those of a regression tree; columns in, the leaf of each row out."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_LEAVES = 48


class Leaves:
    """The leaves of one tree for all targets.

    Args:
        x: (n, q) columns.
        targets: (n, t) what the tree predicts.
        min_rows: the least rows of a leaf.
        most: the largest number of leaves.
    """

    def __init__(self, x: Tensor, targets: Tensor, min_rows: int, most: int = MAX_LEAVES) -> None:
        from sklearn.tree import DecisionTreeRegressor

        regressor = DecisionTreeRegressor(
            min_samples_leaf=max(min_rows, 1), max_leaf_nodes=most, random_state=0
        )
        inputs = x.float().contiguous().numpy()
        self._tree = regressor.fit(inputs, targets.numpy(), check_input=False).tree_
        self._leaf = torch.from_numpy(self._tree.children_left < 0).cumsum(0) - 1

    def __len__(self) -> int:
        """The number of leaves."""
        return int(self._tree.n_leaves)

    def __call__(self, x: Tensor) -> Tensor:
        """(m,) int64, the leaf of each row, (m, q)."""
        return self._leaf[self._tree.apply(x.float().numpy())]
