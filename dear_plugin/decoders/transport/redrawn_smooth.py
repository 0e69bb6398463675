"""Redrawn smooth: the redraws of atom-free features; locations and residuals are refitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.bins import Partition
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.lookup import count_below, padded, pick
from dear_plugin.decoders.transport.nodes import Nodes
from dear_plugin.decoders.transport.smooth import Fitter, Smooth, residual_quantiles


@dataclass(frozen=True)
class RedrawnSmooth:
    """Some redraws of the atom-free features of one set.

    Attributes:
        features: (f,) the features that may move.
        centre: (r * f * g + 1,) their locations at the nodes.
        spread: (r * f * q * g,) their residual quantiles there.
        level: (r * f * q * g + 1,) the sum of both.
        covariate_weights: (r, b, f) double.
        weights: (r, e, f) double, the locations of a group; empty for a singleton.
        shape: f, q and g.
    """

    features: Tensor
    centre: Tensor
    spread: Tensor
    level: Tensor
    covariate_weights: Tensor
    weights: Tensor
    shape: tuple[int, int, int]

    @classmethod
    def of(
        cls,
        smooth: Smooth,
        samples: Iterable[tuple[TrainingSample, Partition]],
        linked: Tensor,
        pull: float,
    ) -> RedrawnSmooth:
        """Refit one set.

        Args:
            smooth: the fit of this set, from `of_set`.
            samples: the rows of each redraw, with this set only; their bins and nodes.
            linked: (p,) bool, which features are associated with it.
            pull: the weight of the refit; 1 minus it is that of the fit.
        """
        own = linked[smooth.features].nonzero()[:, 0]
        fits = [_refitted(smooth, *sample, linked, pull) for sample in samples]
        centre = torch.stack([fit.centre[own] for fit in fits])
        spread = torch.stack([fit.spread[own] for fit in fits])
        level = padded(centre[:, :, None] + spread)
        covariate_weights = torch.stack([fit.beside[0][:, own] for fit in fits])
        weights = torch.cat([fit.weights for fit in fits]).double()
        weights = weights[..., own] if len(weights) else weights
        shape = spread.shape[1], spread.shape[2], spread.shape[3]
        features = smooth.features[own]
        return cls(
            features, padded(centre), spread.flatten(), level, covariate_weights, weights, shape
        )

    @property
    def entries(self) -> int:
        """The number of entries in memory."""
        return self.centre.numel() + 2 * self.spread.numel()

    def move(
        self,
        x: Tensor,
        basis: tuple[Tensor, Tensor | None],
        at: tuple[Tensor, Tensor],
        which: Tensor,
        out: Tensor,
    ) -> None:
        """Write the atom-free features of out, (m, r, p).

        Args:
            x: (m, p) the factual rows.
            basis: (m, b) the covariates, and (m, 2, e) what groups are linear in, before and
                after the action.
            at: (m, 2) the node left of x_S before and after, int32, and the weight of the next.
            which: (r,) the redraws.
            out: the rows to write to.
        """
        (left, weight), (f, q, g) = at, self.shape
        base = (which[:, None] * f + torch.arange(f)).int()
        own, there = left[:, :1, None], left[:, 1:, None]
        own_weight, there_weight = weight[:, :1, None], weight[:, 1:, None]
        centre = _lerp(self.centre, base * g + own, own_weight)
        covariates = (basis[0][:, None, :, None] * self.covariate_weights[which]).sum(2).float()
        plane = self._planes(basis[1], which)
        residual = x[:, None, self.features] - (centre + covariates + plane[:, 0])
        line = base * (q * g)
        first = line + own + (own_weight > 0.5)
        rank = count_below(self.spread, first, g, q, residual).clamp_max_(q - 1)
        line = line + rank * g
        before = _lerp(self.level, line + own, own_weight) + plane[:, 0]
        after = _lerp(self.level, line + there, there_weight) + plane[:, 1]
        same = ((own == there) & (own_weight == there_weight)) & (plane[:, 0] == plane[:, 1])
        moved = x[:, None, self.features] + torch.where(same, 0.0, after - before)
        out[..., self.features] = moved

    def _planes(self, basis: Tensor | None, which: Tensor) -> Tensor:
        """(m, 2, r, f) the locations of a group, (1, 2, 1, 1) zeros of a singleton."""
        if basis is None:
            return torch.zeros(1, 2, 1, 1)
        # One product at a time: the sum of a row is then the same in batches of any size.
        some = self.weights[which].permute(1, 0, 2)
        out = basis.new_zeros(*basis.shape[:2], *some.shape[1:], dtype=torch.float64)
        for column, weights in zip(basis.double().unbind(2), some, strict=True):
            out += column[..., None, None] * weights
        return out.float()


def of_set(smooth: Smooth, nodes: Nodes, i: int) -> Smooth:
    """The fit of set i."""
    end = int(nodes.sizes[: i + 1].sum())
    here = slice(end - int(nodes.sizes[i]), end)
    tree = -1 if nodes.groups is None else int(nodes.groups.tree[i])
    weights = smooth.weights[tree : tree + 1] if tree >= 0 else smooth.weights[:0]
    beside = smooth.beside[i : i + 1]
    at_nodes = smooth.centre[:, here], smooth.spread[..., here]
    return Smooth(smooth.features, *at_nodes, beside, weights, smooth.planes)


def _refitted(
    smooth: Smooth, sample: TrainingSample, part: Partition, linked: Tensor, pull: float
) -> Smooth:
    """The fit of one set, moved by `pull` towards a fit of other rows."""
    features, (_, ranks, _) = smooth.features, smooth.spread.shape
    fitter = Fitter.of(sample, features, linked[None, features], smooth.planes)
    location, bins, mix = fitter.fit(0, part)
    spread = residual_quantiles(fitter.y - location.at_rows, bins, mix, ranks)
    weights = smooth.weights
    if fitter.weights:
        weights = torch.lerp(weights, torch.stack(fitter.weights), pull)
    return Smooth(
        features,
        torch.lerp(smooth.centre, location.at_grid.expand_as(smooth.centre), pull),
        torch.lerp(smooth.spread, spread, pull),
        torch.lerp(smooth.beside, location.covariate_weights[None], pull),
        weights,
        smooth.planes,
    )


def _lerp(table: Tensor, at: Tensor, weight: Tensor) -> Tensor:
    """Entries of a padded table, interpolated to the next ones by weight."""
    low = pick(table, at)
    return low + weight * (pick(table, at + 1) - low)
