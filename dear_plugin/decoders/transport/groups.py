"""Groups: partitions of sets of several features by one multi-output regression tree each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.conditioning import TrainingSample

MAX_LEAVES = 48
MIN_ROWS = 100


@dataclass
class Groups:
    """Trees of the sets with more than one feature, the same in every cell.

    Attributes:
        tree: (k * s,) the tree of each slot, -1 for singletons.
        column: (t, e) the encoded column that each tree node splits on.
        cut: (t, e) the threshold of each tree node.
        child: (t, e, 2) the nodes below and above the cut; a leaf is its own child.
        leaf: (t, e) the number of each leaf.
        depth: (), the number of splits on the longest path.
    """

    tree: Tensor
    column: Tensor
    cut: Tensor
    child: Tensor
    leaf: Tensor
    depth: Tensor

    @classmethod
    def of(cls, sample: TrainingSample) -> Groups | None:
        """Grow a tree for every group; None without groups."""
        several = ~sample.sets.single
        if not bool(several.any()):
            return None
        x = sample.encoder.expand(sample.rows)
        columns = sample.sets.masks[several][:, sample.encoder.feature_of]
        trees = [_grow(x, own) for own in columns]
        tree = torch.where(several, several.cumsum(0) - 1, -1).repeat(len(sample.cells))
        column, cut, child, leaf = (_padded([t[k] for t in trees]) for k in range(4))
        return cls(tree, column, cut, child, leaf, torch.stack([t[4] for t in trees]).amax())

    def leaves(self, x: Tensor, slots: Tensor) -> Tensor:
        """(m, c) the leaves of encoded rows, (m, c, d), in the trees of slots, (m,)."""
        t = self.tree[slots][:, None]
        at = torch.zeros(x.shape[:2], dtype=torch.int64)
        for _ in range(int(self.depth)):
            value = x.gather(2, self.column[t, at][..., None])[..., 0]
            at = self.child[t, at, (value > self.cut[t, at]).long()]
        return self.leaf[t, at]


def _grow(x: Tensor, own: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """One tree from the columns of S to all others: column, cut, children, leaf, depth."""
    from sklearn.tree import DecisionTreeRegressor

    inside, outside = x[:, own], x[:, ~own]
    min_rows = min(max(MIN_ROWS, len(x) // 200), max(len(x) // 2, 1))
    regressor = DecisionTreeRegressor(
        min_samples_leaf=min_rows, max_leaf_nodes=MAX_LEAVES, random_state=0
    )
    target = outside if outside.shape[1] else inside
    # One row has no deviation.
    deviation = target.std(0, correction=min(1, len(target) - 1)).clamp_min(1e-6)
    grown = regressor.fit(inside.numpy(), (target / deviation).numpy()).tree_
    positions = own.nonzero()[:, 0]
    is_leaf = torch.from_numpy(grown.children_left.copy()) < 0
    here = torch.arange(grown.node_count)
    children = torch.stack(
        [torch.from_numpy(c.copy()) for c in (grown.children_left, grown.children_right)], 1
    )
    column = positions[torch.from_numpy(grown.feature.copy()).clamp_min(0)]
    child = torch.where(is_leaf[:, None], here[:, None], children)
    cut = torch.from_numpy(grown.threshold.copy()).float()
    return column, cut, child, is_leaf.long().cumsum(0) - 1, torch.tensor(grown.max_depth)


def _padded(parts: list[Tensor]) -> Tensor:
    """Tensors of unequal length as one, padded with zeros."""
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
