"""Smooth: atom-free features move by a location and keep the person's own remainder.

`g_j(v, a) = m_j(a) + Q_j(v | a)`: m_j is piecewise linear in x_S, Q_j the quantiles of its
residuals in a few bins of x_S. What is given takes a part of the location that does not move, and
ranks are those of the residuals.
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
from dear_plugin.decoders.transport.bins import Partition, mixing, ordered
from dear_plugin.decoders.transport.conditioning import Crowd
from dear_plugin.decoders.transport.locations import (
    Location,
    Planes,
    by_level,
    by_number,
    winsorised,
)
from dear_plugin.decoders.transport.lookup import padded, pick, places
from dear_plugin.decoders.transport.nodes import Nodes, nearest
from dear_plugin.decoders.transport.supports import Supports

RESIDUAL_BINS = 4
LEAST_ROWS = 50
# Of the weights of groups at a time: 16 MiB.
CELLS = 1 << 22
# Into so many groups residuals are put to see whether bins differ in them.
GROUPS = 5


@dataclass
class Smooth:
    """The atom-free features at the nodes of everyone's slots.

    Attributes:
        features: (f,) which features they are.
        centre: (f, g) the location m_j at each node; zero for groups.
        spread: (f, q, g) the residual quantiles Q_j at each node.
        beside: (s, b, f) double, the weights of what is given.
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
        cls, crowd: Crowd, supports: Supports, parts: list[Partition], ranks: int, told: Tensor
    ) -> Smooth | None:
        """Fit every set's locations and residuals; None when every feature has an atom.

        Args:
            crowd: the training rows.
            supports: which features are smooth.
            parts: the bins and nodes of each set.
            ranks: how many standings to tell apart.
            told: (s, p) bool, which features have to do with each set.
        """
        features = supports.smooth.nonzero()[:, 0]
        if not len(features):
            return None
        y, fitter = crowd.rows[:, features], Fitter.of(crowd, features, told[:, features])
        g = sum(len(part.nodes) for part in parts)
        centre, spread = torch.empty(len(features), g), torch.empty(len(features), ranks, g)
        beside, end = [], 0
        for which, part in enumerate(parts):
            here = slice(end, end := end + len(part.nodes))
            location, bins, mix = fitter.fit(which, part)
            centre[:, here] = location.at_grid
            spread[..., here] = residual_quantiles(y - location.at_rows, bins, mix, ranks)
            beside.append(location.beside)
        weights = torch.stack(fitter.weights) if fitter.weights else torch.empty(0, 0, 0)
        return cls(features, centre, spread, torch.stack(beside), weights, fitter.planes)

    def ranks_of(
        self, rows: Tensor, basis: Tensor, nodes: Nodes, left: Tensor, weight: Tensor
    ) -> Tensor:
        """(n, s, f) the rank of each row's residual among people with its x_S.

        Args:
            rows: (n, p) rows.
            basis: (n, b) what is given, as it was regressed on.
            nodes: the grids.
            left: (n, s) the node left of the own x_S.
            weight: (n, s) the weight of the next one.
        """
        (n, s), (f, g) = left.shape, self.centre.shape
        at = torch.arange(f, dtype=torch.int32) * g + left[..., None]
        level = torch.lerp(*_around(self._centre, at), weight[..., None])
        if basis.shape[1]:
            level += torch.einsum("nb,sbf->nsf", basis, self.beside).float()
        if self.planes is not None:
            own = rows[:, nodes.positions].view(n * s, 1, -1)
            every = torch.arange(s).repeat(n)
            level += self.located(torch.zeros(n * s, 1, f), own, every, nodes).view(n, s, f)
        residual = rows[:, None, self.features] - level
        q = self.spread.shape[1]
        base = torch.arange(f, dtype=torch.int32) * (q * g) + nearest(left, weight)[..., None]
        return places(self.spread, base, g, q, residual).float() / q

    def reached(self, v: Tensor, left: Tensor, weight: Tensor) -> Tensor:
        """(m, c, f) the values at standings (m, p) between nodes (m, c), without groups' part."""
        _, q, g = self.spread.shape
        rank = (v[:, self.features] * q).int()
        at = (self._lines + rank) * g + left.T[..., None]
        return torch.lerp(*_around(self._inverse, at), weight.T[..., None]).transpose(0, 1)

    def located(self, level: Tensor, values: Tensor, sets: Tensor, nodes: Nodes) -> Tensor:
        """(m, c, f) levels plus the locations of groups at x_S = values, (m, c, w)."""
        if self.planes is None or nodes.groups is None:
            return level
        tree = nodes.groups.tree[sets]
        several, out = (tree >= 0).nonzero()[:, 0], level.clone()
        # Weights side by side, one copy for each action, would be the largest tensor of all.
        for part in several.split(max(1, CELLS // self.weights[0].numel())):
            wide = nodes.wide(values[part], sets[part])
            plane = torch.bmm(self.planes.basis(wide), self.weights[tree[part]])
            out.index_add_(0, part, plane)
        return out

    @lazy
    def _inverse(self) -> Tensor:
        """(f * q * g + 1,) the values at each standing and node."""
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
    """What all sets' locations are fitted on.

    Attributes:
        crowd: the training rows.
        x: (n, d) the same, encoded.
        y: (n, f) the atom-free features.
        inner: (n, f) the same, winsorised.
        told: (s, f) bool, which of them have to do with each set.
        planes: what the locations of groups are linear in.
        weights: those of the groups fitted so far, (e, f) each.
    """

    crowd: Crowd
    x: Tensor
    y: Tensor
    inner: Tensor
    told: Tensor
    planes: Planes | None
    weights: list[Tensor]

    @classmethod
    def of(
        cls, crowd: Crowd, features: Tensor, told: Tensor, planes: Planes | None = None
    ) -> Fitter:
        """Prepare what does not depend on the set; what planes are linear in may be known."""
        groups = not bool(crowd.sets.single.all())
        x, y = crowd.encoder.expand(crowd.rows), crowd.rows[:, features]
        if planes is None and groups:
            planes = Planes.of(x, crowd.encoder)
        return cls(crowd, x, y, winsorised(y), told, planes, [])

    def fit(self, which: int, part: Partition) -> tuple[Location, list[Tensor], Tensor]:
        """One set's location, the rows of its residual bins and what those weigh at its nodes."""
        crowd, (first, *more) = self.crowd, self.crowd.sets.members[which]
        linked = self.told[which]
        if self.planes is not None and more:
            own = crowd.sets.masks[which][crowd.encoder.feature_of]
            location, weights = self.planes.fit(self.x, own, self.y, crowd.beside, linked)
            self.weights.append(weights)
        elif crowd.encoder.schema.features[first].kind is Kind.NUMERIC:
            column = crowd.rows[:, first]
            a, nodes = fill_special(column, column), fill_special(part.nodes, column)
            location = by_number(a, nodes, self.inner, crowd.beside, linked)
            return location, *_quantile_bins(a, nodes)
        else:
            location = by_level(part.bins, len(part.nodes), self.inner, crowd.beside, linked)
        return location, *_level_bins(part.bins, len(part.nodes))


def _around(table: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """Entries of a padded table at some places, and those at the next nodes."""
    # The very last node has no other beside it, which weighs nothing there.
    return pick(table, at), pick(table, at + 1)


def residual_quantiles(residual: Tensor, bins: list[Tensor], mix: Tensor, ranks: int) -> Tensor:
    """(f, q, g) residual quantiles, mixed over bins; everyone's where bins are alike."""
    differ = _differ(bins, residual)
    quantiles = torch.stack([_quantiles(residual[b], ranks) for b in bins])
    quantiles = torch.where(differ[:, None], quantiles, _quantiles(residual, ranks))
    return torch.einsum("gb,bfq->fqg", mix, quantiles)


def _differ(bins: list[Tensor], residual: Tensor) -> Tensor:
    """(f,) bool, whether residuals, (n, f), lie otherwise in some bins."""
    n, f = residual.shape
    rank = torch.from_numpy(np.argsort(np.argsort(residual.T.numpy(), kind="stable")))
    group = (rank * GROUPS).div_(n, rounding_mode="floor")
    shift = torch.arange(f)[:, None] * GROUPS
    counts = [torch.bincount((group[:, b] + shift).flatten(), minlength=f * GROUPS) for b in bins]
    return associated([torch.stack(counts).view(1, -1, f, GROUPS).transpose(1, 2)], 1)[0]


def _quantile_bins(a: Tensor, grid: Tensor) -> tuple[list[Tensor], Tensor]:
    """Rows of up to four quantile bins, and what each weighs at each node, (g, b)."""
    count = max(1, min(RESIDUAL_BINS, len(a) // LEAST_ROWS))
    bins = list(a.argsort(stable=True).tensor_split(count))
    return bins, mixing(grid, torch.stack([a[b].mean() for b in bins]))


def _level_bins(level: Tensor, count: int) -> tuple[list[Tensor], Tensor]:
    """Rows of each level that has enough of them; the others share everyone's residuals."""
    sizes = torch.bincount(level, minlength=count)
    enough = sizes >= LEAST_ROWS
    own = level.argsort(stable=True).split(sizes.tolist())
    bins = [torch.arange(len(level)), *(own[i] for i in enough.nonzero()[:, 0].tolist())]
    column = torch.where(enough, enough.cumsum(0), 0)
    return bins, torch.nn.functional.one_hot(column, len(bins)).float()


def _quantiles(residual: Tensor, ranks: int) -> Tensor:
    """(f, q) the quantiles of residuals, (n, f), at the middles of the standings."""
    at = (torch.arange(ranks) + 0.5) / ranks * (len(residual) - 1)
    sort = ordered(residual.T)
    low, high = sort[:, at.floor().long()], sort[:, at.ceil().long()]
    return torch.lerp(low, high, at.frac().to(low.dtype))
