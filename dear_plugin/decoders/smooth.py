"""Smooth: atom-free features move by a location and keep the person's own remainder.

`g_j(v, a) = m_j(a) + Q_j(v | a)`: m_j is piecewise linear in x_S (least squares on winsorised
values), Q_j the quantiles of its residuals in a few bins of x_S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.nodes import Nodes
from dear_plugin.decoders.supports import Supports

RESIDUAL_BINS = 4
LEAST_ROWS = 50
WINSOR = 0.005


@dataclass
class Smooth:
    """The atom-free features at every node.

    Attributes:
        features: (f,) which features they are.
        centre: (s, f, g) the location m_j at each node.
        spread: (s, f, q, g) the residual quantiles Q_j at each node.
    """

    features: Tensor
    centre: Tensor
    spread: Tensor

    @classmethod
    def of(cls, rows: Tensor, supports: Supports, nodes: Nodes, ranks: int) -> Smooth | None:
        """Fit every set's locations and residuals; None when every feature has an atom."""
        features = supports.smooth.nonzero()[:, 0]
        if not len(features):
            return None
        parts = [_fit(rows, features, nodes, i, ranks) for i in range(len(nodes.sizes))]
        return cls(features, *(torch.stack(part) for part in zip(*parts, strict=True)))

    @property
    def inverse(self) -> Tensor:
        """(s, f, q, g) the values at each standing and node."""
        return self.centre[:, :, None] + self.spread

    def standing(self, rows: Tensor, nodes: Nodes, left: Tensor, weight: Tensor) -> Tensor:
        """(n, s, f) the rank of each row's residual among people with its x_S.

        Args:
            rows: (n, p) rows.
            nodes: the grids.
            left: (n, s) the node left of the own x_S.
            weight: (n, s) the weight of the next one.
        """
        s, f, q, g = self.spread.shape
        at = (torch.arange(s)[:, None] * f + torch.arange(f)) * g
        after = (left + 1).clamp_max(g - 1)
        low, high = (self.centre.take(at + k[..., None]) for k in (left, after))
        level = torch.lerp(low, high, weight[..., None]).view(-1, 1, f)
        own = rows[:, nodes.positions].view(len(level), 1, -1)
        level = nodes.located(level, own, torch.arange(s).repeat(len(rows)))
        residual = rows[:, None, self.features] - level.view(len(rows), s, f)
        nearest = (left + (weight > 0.5))[..., None]
        return _rank(self.spread.transpose(2, 3).reshape(s * f * g, q), residual, at + nearest)


def _rank(spread: Tensor, residual: Tensor, at: Tensor) -> Tensor:
    """The share of row `at` of some sorted quantiles that lies below a residual, any shape."""
    rows, q = spread.shape
    # One search serves all tables: each is shifted to a stretch of its own.
    low, high = float(spread.min()) - 1.0, float(spread.max()) + 1.0
    shift = torch.arange(rows, dtype=torch.float64) * (high - low)
    keys = (spread.double() + shift[:, None]).flatten()
    inside = residual.double().clamp(low, high) + shift[at]
    return ((torch.searchsorted(keys, inside) - at * q).float() / q).clamp_(0.0, 1.0)


def _fit(
    rows: Tensor, features: Tensor, nodes: Nodes, which: int, ranks: int
) -> tuple[Tensor, Tensor]:
    """One set's locations (f, g) and residual quantiles (f, q, g)."""
    y, grid = rows[:, features], nodes.grid[which]
    if nodes.groups is not None and nodes.groups.tree[which] >= 0:
        return _fit_group(rows, y, nodes, which, ranks)
    a, discrete = rows[:, nodes.positions[which, 0]], bool(nodes.discrete[which])
    location = _Location.of(_Levels(int(nodes.sizes[which])) if discrete else _Hinges.of(a), a, y)
    bins, mix = _level_bins(a, grid) if discrete else _quantile_bins(a, grid)
    return location(grid).T, _spread(y - location(a), bins, mix, ranks)


def _fit_group(
    rows: Tensor, y: Tensor, nodes: Nodes, which: int, ranks: int
) -> tuple[Tensor, Tensor]:
    """As `_fit`; a group's location depends on more than its leaf and is added later."""
    grid, sets = nodes.grid[which], torch.full((len(rows),), which)
    values = rows[:, None, nodes.positions[which]]
    nothing = torch.zeros(len(rows), 1, y.shape[1])
    residual = y - nodes.located(nothing, values, sets)[:, 0]
    leaf, _ = nodes.locate(values, sets)
    return torch.zeros(y.shape[1], len(grid)), _spread(
        residual, *_level_bins(leaf[:, 0].float(), grid), ranks
    )


def _spread(residual: Tensor, bins: list[Tensor], mix: Tensor, ranks: int) -> Tensor:
    """(f, q, g) residual quantiles, mixed over bins."""
    quantiles = torch.stack([_quantiles(residual[b], ranks) for b in bins])
    return torch.einsum("gb,bqf->fqg", mix, quantiles)


@dataclass
class _Location:
    """`m_j(a)` for all atom-free features j."""

    basis: Callable[[Tensor], Tensor]
    weights: Tensor
    mean: Tensor

    @classmethod
    def of(cls, basis: Callable[[Tensor], Tensor], a: Tensor, y: Tensor) -> _Location:
        """Least squares on winsorised values; a whisper of ridge keeps empty columns harmless."""
        inner = _winsor(y).double()
        design, mean = basis(a), inner.mean(0)
        gram = design.T @ design
        gram.diagonal().add_(1e-9 * len(a))
        return cls(basis, torch.linalg.solve(gram, design.T @ (inner - mean)), mean)

    def __call__(self, a: Tensor) -> Tensor:
        """(n,) values of x_S -> (n, f)."""
        return (self.basis(a) @ self.weights + self.mean).float()


class _Levels:
    """One indicator per category."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, a: Tensor) -> Tensor:
        """(n,) categories -> (n, count)."""
        return torch.nn.functional.one_hot(a.long(), self.count).double()


class _Hinges:
    """A line with two kinks, extended linearly: four parameters."""

    def __init__(self, kinks: Tensor) -> None:
        self.kinks = kinks

    @classmethod
    def of(cls, a: Tensor) -> _Hinges:
        """Kinks at the terciles."""
        ordered = a.double().sort().values
        inner = ordered[[len(a) // 3, (2 * len(a)) // 3]].unique()
        return cls(inner[(inner > ordered[0]) & (inner < ordered[-1])])

    def __call__(self, a: Tensor) -> Tensor:
        """(n,) values -> (n, 2 + kinks)."""
        wide = a.double()[:, None]
        return torch.cat([torch.ones_like(wide), wide, (wide - self.kinks).clamp_min(0.0)], 1)


def _winsor(y: Tensor) -> Tensor:
    """(n, f) values with the outer 0.5 % pulled in."""
    ordered = y.sort(0).values
    cut = int(WINSOR * (len(y) - 1))
    return torch.minimum(torch.maximum(y, ordered[cut]), ordered[len(y) - 1 - cut])


def _quantile_bins(a: Tensor, grid: Tensor) -> tuple[list[Tensor], Tensor]:
    """Rows of up to four quantile bins, and what each weighs at each node, (g, b)."""
    count = max(1, min(RESIDUAL_BINS, len(a) // LEAST_ROWS))
    bins = list(a.argsort().tensor_split(count))
    centres = torch.stack([a[b].mean() for b in bins])
    right = torch.searchsorted(centres, grid).clamp(0, count - 1)
    left = (right - 1).clamp_min(0)
    span = (centres[right] - centres[left]).clamp_min(1e-12)
    weight = torch.where(right > left, (grid - centres[left]) / span, 1.0).clamp(0.0, 1.0)
    mix = torch.zeros(len(grid), count)
    mix.scatter_add_(1, left[:, None], (1.0 - weight)[:, None])
    mix.scatter_add_(1, right[:, None], weight[:, None])
    return bins, mix


def _level_bins(a: Tensor, grid: Tensor) -> tuple[list[Tensor], Tensor]:
    """Rows of each category that has enough of them; the others share everyone's residuals."""
    own = [torch.nonzero(a == level)[:, 0] for level in grid]
    bins, mix = [torch.arange(len(a))], torch.zeros(len(grid), 1 + len(grid))
    for i, rows in enumerate(own):
        enough = len(rows) >= LEAST_ROWS
        mix[i, len(bins) if enough else 0] = 1.0
        bins += [rows] if enough else []
    return bins, mix[:, : len(bins)]


def _quantiles(residual: Tensor, ranks: int) -> Tensor:
    """(q, f) the quantiles of residuals, (n, f), at the middles of the standings."""
    at = (torch.arange(ranks) + 0.5) / ranks * (len(residual) - 1)
    ordered = residual.sort(0).values
    low = ordered[at.floor().long()]
    high = ordered[at.ceil().long()]
    return torch.lerp(low, high, at.frac()[:, None].to(low.dtype))
