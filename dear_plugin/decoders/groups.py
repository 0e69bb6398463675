"""Groups: sets of several features, cut by one multi-output regression tree each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.encoding import Encoder

MOST_LEAVES = 48
LEAST_ROWS = 100
KINKS = 2


@dataclass
class Groups:
    """Trees and locations of the sets with more than one feature.

    Attributes:
        tree: (s,) which tree a set has, -1 for singletons.
        column: (t, e) the encoded column each tree node splits on.
        cut: (t, e) where it splits.
        child: (t, e, 2) the nodes below and above the cut; a leaf is its own child.
        leaf: (t, e) the number of each leaf.
        depth: (), how many splits lie on the longest path.
        kinks: (d, 2) where the locations of each column bend.
        weights: (t, b, f) the locations of the atom-free features on `hinges`.
    """

    tree: Tensor
    column: Tensor
    cut: Tensor
    child: Tensor
    leaf: Tensor
    depth: Tensor
    kinks: Tensor
    weights: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder, sets: ActionSets, smooth: Tensor) -> Groups | None:
        """Grow a tree for every group of training rows, (n, p); None without groups.

        Args:
            rows: the training rows.
            encoder: the gate.
            sets: all sets.
            smooth: (f,) the atom-free features.
        """
        several = (~sets.single).nonzero()[:, 0]
        if not len(several):
            return None
        x = encoder.expand(rows)
        columns = sets.masks[:, encoder.feature_of]
        trees = [_grow(x, columns[i]) for i in several.tolist()]
        tree = torch.full((len(sets),), -1)
        tree[several] = torch.arange(len(several))
        kinks = _kinks(x)
        basis = hinges(x, kinks)
        weights = [_locate(basis, rows[:, smooth], columns[i]) for i in several.tolist()]
        column, cut, child, leaf = (_padded([t[k] for t in trees]) for k in range(4))
        depth = torch.stack([t[4] for t in trees]).amax()
        return cls(tree, column, cut, child, leaf, depth, kinks, torch.stack(weights))

    def leaves(self, x: Tensor, sets: Tensor) -> Tensor:
        """(m, c) the leaf of encoded rows, (m, c, d), whose sets (m,) are groups."""
        t = self.tree[sets][:, None]
        at = torch.zeros(x.shape[:2], dtype=torch.int64)
        for _ in range(int(self.depth)):
            value = x.gather(2, self.column[t, at][..., None])[..., 0]
            at = self.child[t, at, (value > self.cut[t, at]).long()]
        return self.leaf[t, at]

    def location(self, x: Tensor, sets: Tensor) -> Tensor:
        """(m, c, f) `m_j(x_S)` of the atom-free features at encoded rows (m, c, d)."""
        return torch.bmm(hinges(x, self.kinks), self.weights[self.tree[sets]])


def hinges(x: Tensor, kinks: Tensor) -> Tensor:
    """(..., b) a constant, every column, and its excess over each kink; x is (..., d)."""
    bent = [(x - kinks[:, i]).clamp_min(0.0) for i in range(kinks.shape[1])]
    return torch.cat([torch.ones_like(x[..., :1]), x, *bent], -1)


def _kinks(x: Tensor) -> Tensor:
    """(d, 2) terciles of every column."""
    ordered = x.sort(0).values
    at = [(len(x) * (i + 1)) // (KINKS + 1) for i in range(KINKS)]
    return torch.stack([ordered[i] for i in at], 1)


def _locate(basis: Tensor, y: Tensor, columns: Tensor) -> Tensor:
    """(b, f) least squares on the columns of one set, zero elsewhere."""
    used = torch.cat([torch.ones(1, dtype=torch.bool), columns.repeat(1 + KINKS)])
    design, target = basis[:, used].double(), y.double()
    gram = design.T @ design
    gram.diagonal().add_(1e-6 * len(design))
    weights = torch.zeros(basis.shape[1], y.shape[1])
    weights[used] = torch.linalg.solve(gram, design.T @ target).float()
    return weights


def _grow(x: Tensor, own: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """One tree on the columns of S for all others: column, cut, children, leaf, depth."""
    from sklearn.tree import DecisionTreeRegressor

    inside, outside = x[:, own], x[:, ~own]
    least = min(max(LEAST_ROWS, len(x) // 200), max(len(x) // 2, 1))
    grower = DecisionTreeRegressor(
        min_samples_leaf=least, max_leaf_nodes=MOST_LEAVES, random_state=0
    )
    target = outside if outside.shape[1] else inside
    grown = grower.fit(inside.numpy(), (target / target.std(0).clamp_min(1e-6)).numpy()).tree_
    places = own.nonzero()[:, 0]
    is_leaf = torch.from_numpy(grown.children_left.copy()) < 0
    here = torch.arange(grown.node_count)
    children = torch.stack(
        [torch.from_numpy(c.copy()) for c in (grown.children_left, grown.children_right)], 1
    )
    column = places[torch.from_numpy(grown.feature.copy()).clamp_min(0)]
    child = torch.where(is_leaf[:, None], here[:, None], children)
    cut = torch.from_numpy(grown.threshold.copy()).float()
    return column, cut, child, is_leaf.long().cumsum(0) - 1, torch.tensor(grown.max_depth)


def _padded(parts: list[Tensor]) -> Tensor:
    """Tensors of unequal length as one, zeros behind."""
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
