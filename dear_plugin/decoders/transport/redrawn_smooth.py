"""Remade: the redraws of atom-free features, whose locations and residuals are fitted again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.transport.bins import Partition
from dear_plugin.decoders.transport.conditioning import Crowd
from dear_plugin.decoders.transport.lookup import padded, pick, places
from dear_plugin.decoders.transport.nodes import Nodes
from dear_plugin.decoders.transport.smooth import Fitter, Smooth, residual_quantiles


@dataclass(frozen=True)
class RedrawnSmooth:
    """Some redraws of the atom-free features of one set.

    Attributes:
        features: (f,) those that may move.
        centre: (r * f * g + 1,) their locations at the nodes.
        spread: (r * f * q * g,) their residual quantiles there.
        level: (r * f * q * g + 1,) both added up.
        beside: (r, b, f) double, the weights of what is given.
        weights: (r, e, f) double, the locations of a group; none of a singleton.
        shape: f, q and g.
    """

    features: Tensor
    centre: Tensor
    spread: Tensor
    level: Tensor
    beside: Tensor
    weights: Tensor
    shape: tuple[int, int, int]

    @classmethod
    def of(
        cls,
        smooth: Smooth,
        samples: Iterable[tuple[Crowd, Partition]],
        told: Tensor,
        pull: float,
    ) -> RedrawnSmooth:
        """Fit one set again.

        Args:
            smooth: what was fitted of this one set.
            samples: the rows of each redraw, who may act on this set only; their bins and nodes.
            told: (p,) bool, which features have to do with it.
            pull: how far to go from what was fitted to what the rows of a redraw say.
        """
        own = told[smooth.features].nonzero()[:, 0]
        fits = [_again(smooth, *sample, told, pull) for sample in samples]
        centre = torch.stack([fit.centre[own] for fit in fits])
        spread = torch.stack([fit.spread[own] for fit in fits])
        level = padded(centre[:, :, None] + spread)
        beside = torch.stack([fit.beside[0][:, own] for fit in fits])
        # A singleton has none of its own.
        weights = torch.cat([fit.weights for fit in fits]).double()
        weights = weights[..., own] if len(weights) else weights
        _, f, q, g = spread.shape
        features = smooth.features[own]
        return cls(features, padded(centre), spread.flatten(), level, beside, weights, (f, q, g))

    @property
    def cells(self) -> int:
        """How many entries are kept."""
        return self.centre.numel() + 2 * self.spread.numel()

    def move(
        self,
        x: Tensor,
        basis: tuple[Tensor, Tensor | None],
        at: tuple[Tensor, Tensor],
        which: Tensor,
        out: Tensor,
    ) -> None:
        """Move the atom-free features of out, (m, r, p).

        Args:
            x: (m, p) the factual rows.
            basis: (m, b) what is given, and (m, 2, e) what groups are linear in, at both places.
            at: (m, 2) the node left of each place, int32, and the weight of the next one.
            which: (r,) the redraws.
            out: what is moved.
        """
        (left, weight), (f, q, g) = at, self.shape
        base = (which[:, None] * f + torch.arange(f)).int()
        own, there = left[:, :1, None], left[:, 1:, None]
        ahead, beyond = weight[:, :1, None], weight[:, 1:, None]
        centre = _lerp(self.centre, base * g + own, ahead)
        beside = (basis[0][:, None, :, None] * self.beside[which]).sum(2).float()
        plane = self._planes(basis[1], which)
        here = centre + beside + plane[:, 0]
        residual = x[:, None, self.features] - here
        line = base * (q * g)
        rank = places(self.spread, line + own + (ahead > 0.5), g, q, residual).clamp_max_(q - 1)
        line = line + rank * g
        before = _lerp(self.level, line + own, ahead) + plane[:, 0]
        after = _lerp(self.level, line + there, beyond) + plane[:, 1]
        stays = ((own == there) & (ahead == beyond)) & (plane[:, 0] == plane[:, 1])
        moved = x[:, None, self.features] + torch.where(stays, 0.0, after - before)
        out[..., self.features] = moved

    def _planes(self, basis: Tensor | None, which: Tensor) -> Tensor:
        """(m, 2, r, f) the locations of a group, (1, 2, 1, 1) zeros of a singleton."""
        if basis is None:
            return torch.zeros(1, 2, 1, 1)
        # One product for each entry: sums of single rows come out as those of many do.
        some = self.weights[which].permute(1, 0, 2)
        out = basis.new_zeros(*basis.shape[:2], *some.shape[1:], dtype=torch.float64)
        for column, weights in zip(basis.double().unbind(2), some, strict=True):
            out += column[..., None, None] * weights
        return out.float()


def of_set(smooth: Smooth, nodes: Nodes, one: int) -> Smooth:
    """What was fitted of one set."""
    end = int(nodes.sizes[: one + 1].sum())
    here = slice(end - int(nodes.sizes[one]), end)
    tree = -1 if nodes.groups is None else int(nodes.groups.tree[one])
    weights = smooth.weights[tree : tree + 1] if tree >= 0 else smooth.weights[:0]
    beside = smooth.beside[one : one + 1]
    at_nodes = smooth.centre[:, here], smooth.spread[..., here]
    return Smooth(smooth.features, *at_nodes, beside, weights, smooth.planes)


def _again(smooth: Smooth, crowd: Crowd, part: Partition, told: Tensor, pull: float) -> Smooth:
    """What was fitted of one set, as other rows have it."""
    features, (_, ranks, _) = smooth.features, smooth.spread.shape
    fitter = Fitter.of(crowd, features, told[None, features], smooth.planes)
    location, bins, mix = fitter.fit(0, part)
    spread = residual_quantiles(fitter.y - location.at_rows, bins, mix, ranks)
    weights = smooth.weights
    if fitter.weights:
        weights = torch.lerp(weights, torch.stack(fitter.weights), pull)
    return Smooth(
        features,
        torch.lerp(smooth.centre, location.at_grid.expand_as(smooth.centre), pull),
        torch.lerp(smooth.spread, spread, pull),
        torch.lerp(smooth.beside, location.beside[None], pull),
        weights,
        smooth.planes,
    )


def _lerp(table: Tensor, at: Tensor, weight: Tensor) -> Tensor:
    """Entries of a padded table at some places, and those at the next ones, by weight."""
    low = pick(table, at)
    return low + weight * (pick(table, at + 1) - low)
