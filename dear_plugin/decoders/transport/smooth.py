"""Smooth: the conditional distributions of atom-free features: a location plus residuals.

`g_j(v, a) = m_j(a) + Q_j(v | a)`: m_j is piecewise linear in x_S, Q_j are the quantiles of its
residuals in a few bins of x_S. A row keeps the distance from its own quantile. The covariates have
a part in the location that is held fixed; ranks are those of the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import fill_special
from dear_plugin.decoders.transport.association import associated
from dear_plugin.decoders.transport.bins import Partition, node_weights, sorted_values
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.locations import (
    Location,
    Planes,
    category_location,
    numeric_location,
    winsorised,
)
from dear_plugin.decoders.transport.lookup import count_below, padded, pick
from dear_plugin.decoders.transport.nodes import Nodes, nearest
from dear_plugin.decoders.transport.supports import Supports

RESIDUAL_BINS = 4
MIN_ROWS = 50
# Entries of the weights of groups in memory at a time: 16 MiB.
ENTRIES_A_CHUNK = 1 << 22
# The number of groups of residuals in the test whether bins differ.
GROUPS = 5


@dataclass
class Smooth:
    """The atom-free features at the nodes of cell 0, which has all rows.

    Attributes:
        features: (f,) the features.
        centre: (f, g) the location m_j at each node; zero for groups.
        spread: (f, q, g) the residual quantiles Q_j at each node.
        beside: (s, b, f) double, the weights of the covariates.
        weights: (t, e, f) the locations of groups.
        planes: what those are linear in; None without groups.
    """

    features: Tensor
    centre: Tensor
    spread: Tensor
    beside: Tensor
    weights: Tensor
    planes: Planes | None

    @classmethod
    def of(
        cls,
        sample: TrainingSample,
        supports: Supports,
        parts: list[Partition],
        ranks: int,
        linked: Tensor,
    ) -> Smooth | None:
        """Fit every set's locations and residuals; None if every feature has an atom.

        Args:
            sample: the training rows.
            supports: which features are smooth.
            parts: the bins and nodes of each set.
            ranks: the number of quantiles.
            linked: (s, p) bool, which features are associated with each set.
        """
        features = supports.smooth.nonzero()[:, 0]
        if not len(features):
            return None
        y, fitter = sample.rows[:, features], Fitter.of(sample, features, linked[:, features])
        g = sum(len(part.nodes) for part in parts)
        centre, spread = torch.empty(len(features), g), torch.empty(len(features), ranks, g)
        beside, end = [], 0
        for i, part in enumerate(parts):
            here = slice(end, end := end + len(part.nodes))
            location, bins, mix = fitter.fit(i, part)
            centre[:, here] = location.at_grid
            spread[..., here] = residual_quantiles(y - location.at_rows, bins, mix, ranks)
            beside.append(location.covariate_weights)
        weights = torch.stack(fitter.weights) if fitter.weights else torch.empty(0, 0, 0)
        return cls(features, centre, spread, torch.stack(beside), weights, fitter.planes)

    def ranks_of(
        self, rows: Tensor, basis: Tensor, nodes: Nodes, left: Tensor, weight: Tensor
    ) -> Tensor:
        """(n, s, f) the rank of each row's residual at its own x_S.

        Args:
            rows: (n, p) rows.
            basis: (n, b) their covariates.
            nodes: the grids.
            left: (n, s) the node left of the own x_S.
            weight: (n, s) the weight of the next one.
        """
        (n, s), (f, g) = left.shape, self.centre.shape
        at = torch.arange(f, dtype=torch.int32) * g + left[..., None]
        level = torch.lerp(*_neighbours(self._centre, at), weight[..., None])
        if basis.shape[1]:
            level += torch.einsum("nb,sbf->nsf", basis, self.beside).float()
        if self.planes is not None:
            own = rows[:, nodes.positions].view(n * s, 1, -1)
            every = torch.arange(s).repeat(n)
            level += self.add_planes(torch.zeros(n * s, 1, f), own, every, nodes).view(n, s, f)
        residual = rows[:, None, self.features] - level
        q = self.spread.shape[1]
        base = torch.arange(f, dtype=torch.int32) * (q * g) + nearest(left, weight)[..., None]
        return count_below(self.spread, base, g, q, residual).float() / q

    def quantiles(self, v: Tensor, left: Tensor, weight: Tensor) -> Tensor:
        """(m, c, f) the values at ranks (m, p) between nodes (m, c), without planes of groups."""
        _, q, g = self.spread.shape
        rank = (v[:, self.features] * q).int()
        at = (self._lines + rank) * g + left.T[..., None]
        return torch.lerp(*_neighbours(self._inverse, at), weight.T[..., None]).transpose(0, 1)

    def add_planes(self, level: Tensor, values: Tensor, sets: Tensor, nodes: Nodes) -> Tensor:
        """(m, c, f) levels plus the locations of groups at x_S = values, (m, c, w)."""
        if self.planes is None or nodes.groups is None:
            return level
        tree = nodes.groups.tree[sets]
        several, out = (tree >= 0).nonzero()[:, 0], level.clone()
        # One copy of the weights for each row would be the largest tensor of all.
        for part in several.split(max(1, ENTRIES_A_CHUNK // self.weights[0].numel())):
            x = nodes.expand(values[part], sets[part])
            plane = torch.bmm(self.planes.basis(x), self.weights[tree[part]])
            out.index_add_(0, part, plane)
        return out

    @lazy
    def _inverse(self) -> Tensor:
        """(f * q * g + 1,) the values at each rank and node."""
        return padded(self.centre[:, None] + self.spread)

    @lazy
    def _lines(self) -> Tensor:
        """(f,) int32, the first of each feature's lines in `spread`."""
        f, q, _ = self.spread.shape
        return torch.arange(0, f * q, q, dtype=torch.int32)

    @lazy
    def _centre(self) -> Tensor:
        """(f * g + 1,) the locations at each node."""
        return padded(self.centre)


@dataclass
class Fitter:
    """Fits the locations of one set after another.

    Attributes:
        sample: the training rows.
        x: (n, d) the same, encoded.
        y: (n, f) the atom-free features.
        inner: (n, f) the same, winsorised.
        linked: (s, f) bool, which of them are associated with each set.
        planes: what the locations of groups are linear in.
        weights: those of the groups fitted so far, (e, f) each.
    """

    sample: TrainingSample
    x: Tensor
    y: Tensor
    inner: Tensor
    linked: Tensor
    planes: Planes | None
    weights: list[Tensor]

    @classmethod
    def of(
        cls,
        sample: TrainingSample,
        features: Tensor,
        linked: Tensor,
        planes: Planes | None = None,
    ) -> Fitter:
        """Prepare what does not depend on the set; planes may be known."""
        groups = not bool(sample.sets.single.all())
        x, y = sample.encoder.expand(sample.rows), sample.rows[:, features]
        if planes is None and groups:
            planes = Planes.of(x, sample.encoder)
        return cls(sample, x, y, winsorised(y), linked, planes, [])

    def fit(self, i: int, part: Partition) -> tuple[Location, list[Tensor], Tensor]:
        """The location of set i, the rows of its residual bins and their weights at its nodes."""
        sample, (first, *more) = self.sample, self.sample.sets.members[i]
        linked, covariates = self.linked[i], sample.covariates
        if self.planes is not None and more:
            own = sample.sets.masks[i][sample.encoder.feature_of]
            location, weights = self.planes.fit(self.x, own, self.y, covariates, linked)
            self.weights.append(weights)
        elif sample.encoder.schema.features[first].kind is Kind.NUMERIC:
            column = sample.rows[:, first]
            a, nodes = fill_special(column, column), fill_special(part.nodes, column)
            location = numeric_location(a, nodes, self.inner, covariates, linked)
            return location, *_quantile_bins(a, nodes)
        else:
            count = len(part.nodes)
            location = category_location(part.bins, count, self.inner, covariates, linked)
        return location, *_level_bins(part.bins, len(part.nodes))


def _neighbours(table: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """Entries of a padded table, and those at the next nodes."""
    # The entry after the last node is another one's; its weight is zero there.
    return pick(table, at), pick(table, at + 1)


def residual_quantiles(residual: Tensor, bins: list[Tensor], mix: Tensor, ranks: int) -> Tensor:
    """(f, q, g) residual quantiles, mixed over bins; those of all rows where bins are alike."""
    differ = _differ(bins, residual)
    quantiles = torch.stack([_quantiles(residual[b], ranks) for b in bins])
    quantiles = torch.where(differ[:, None], quantiles, _quantiles(residual, ranks))
    return torch.einsum("gb,bfq->fqg", mix, quantiles)


def _differ(bins: list[Tensor], residual: Tensor) -> Tensor:
    """(f,) bool, whether the distribution of residuals, (n, f), differs between bins."""
    n, f = residual.shape
    rank = torch.from_numpy(np.argsort(np.argsort(residual.T.numpy(), kind="stable")))
    group = (rank * GROUPS).div_(n, rounding_mode="floor")
    shift = torch.arange(f)[:, None] * GROUPS
    counts = [torch.bincount((group[:, b] + shift).flatten(), minlength=f * GROUPS) for b in bins]
    return associated([torch.stack(counts).view(1, -1, f, GROUPS).transpose(1, 2)], 1)[0]


def _quantile_bins(a: Tensor, grid: Tensor) -> tuple[list[Tensor], Tensor]:
    """The rows of up to four quantile bins, and the weight of each at each node, (g, b)."""
    count = max(1, min(RESIDUAL_BINS, len(a) // MIN_ROWS))
    bins = list(a.argsort(stable=True).tensor_split(count))
    return bins, node_weights(grid, torch.stack([a[b].mean() for b in bins]))


def _level_bins(level: Tensor, count: int) -> tuple[list[Tensor], Tensor]:
    """The rows of each level with at least `MIN_ROWS`; the other levels use all rows."""
    sizes = torch.bincount(level, minlength=count)
    enough = sizes >= MIN_ROWS
    own = level.argsort(stable=True).split(sizes.tolist())
    bins = [torch.arange(len(level)), *(own[i] for i in enough.nonzero()[:, 0].tolist())]
    column = torch.where(enough, enough.cumsum(0), 0)
    return bins, torch.nn.functional.one_hot(column, len(bins)).float()


def _quantiles(residual: Tensor, ranks: int) -> Tensor:
    """(f, q) the quantiles of residuals, (n, f), at evenly spaced ranks."""
    at = (torch.arange(ranks) + 0.5) / ranks * (len(residual) - 1)
    sort = sorted_values(residual.T)
    low, high = sort[:, at.floor().long()], sort[:, at.ceil().long()]
    return torch.lerp(low, high, at.frac().to(low.dtype))
