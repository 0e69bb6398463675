"""Growing spheres: random search around a row, in spherical layers of growing radius.

Laugel, Lesot, Marsala, Renard and Detyniecki, "Comparison-based Inverse Classification for
Interpretability in Machine Learning", IPMU 2018. A ball around the row is halved until no draw in
it succeeds. Layers of its radius are then added until a draw succeeds. The smallest changes of the
nearest success are undone while it remains a success.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.base import Baseline
from dear_plugin.rivals.candidate_pool import CandidatePool

CANDIDATES_A_TIME = 1 << 16
# Of the directions of a row that cannot change.
LEAST_NORM = 1e-9
# Directions, (c, d), and quantiles of the length, (c,).
Draws = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class GrowingSpheresConfig:
    """The settings of growing spheres.

    Attributes:
        radius: the radius of the first ball, in l2 of the encoded columns.
        halvings: the largest number of times that it is halved.
        layers: the largest number of layers.
        draws: the number of candidates per ball or layer.
        seed: the seed of the draws; global generators are not used.

    Example:
        >>> from dear_plugin.rivals import GrowingSpheresConfig
        >>> thorough = GrowingSpheresConfig(draws=1_000)
    """

    radius: float = 0.1
    halvings: int = 10
    layers: int = 100
    draws: int = 300
    seed: int = 0


@final
class GrowingSpheres(Baseline[GrowingSpheresConfig]):
    """Growing spheres, for any model.

    The spheres lie in the encoded columns that can change; a category is the greatest column of
    its block. All rows search the same directions, so that no result depends on the other rows
    of a call.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        config: the settings.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Example:
        >>> from dear_plugin import Schema
        >>> from dear_plugin.rivals import GrowingSpheres
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = GrowingSpheres(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> method.generate(frame.head(5)).actions["success"].sum()
        5
    """

    follows_margin = False

    default_config = GrowingSpheresConfig()

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        width, idx = self._empty_radius(pool), torch.arange(len(case))
        for layer, draws in enumerate(self._draws(self.config.layers), 1):
            inner = layer * width
            found = self._search(pool, idx, draws=draws, radii=(inner, inner + width))
            idx = idx[~found[idx]]
            if not len(idx):
                break
        solved = pool.solved.nonzero()[:, 0]
        for idx, part in pool.parts(CANDIDATES_A_TIME // len(self.schema), solved):
            self._update(pool, self._undone(part.case.x, pool.best[idx]), idx)
        return pool.proposal("no row drawn from the layers within reach is accepted")

    def _empty_radius(self, pool: CandidatePool) -> Tensor:
        """(m,) the radius of a ball around each row in which no draw succeeds."""
        idx = torch.arange(len(pool.case))
        radius = torch.full((len(idx),), self.config.radius)
        for draws in self._draws(self.config.halvings):
            radii = torch.zeros_like(radius), radius
            idx = idx[self._search(pool, idx, draws=draws, radii=radii)[idx]]
            radius[idx] /= 2.0
            if not len(idx):
                break
        return radius

    def _draws(self, count: int) -> Iterator[Draws]:
        """`count` times (c, d) directions and (c,) quantiles of the length, for all rows."""
        rng = torch.Generator().manual_seed(self.config.seed)
        size = (self.config.draws, self.encoder.d)
        for _ in range(count):
            yield torch.randn(size, generator=rng), torch.rand(size[0], generator=rng)

    def _search(
        self, pool: CandidatePool, idx: Tensor, *, draws: Draws, radii: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Draw between two radii, (m,) each, of q rows; (m,) bool, which of these succeed."""
        found = torch.zeros(len(pool.case), dtype=torch.bool)
        for rows, part in pool.parts(CANDIDATES_A_TIME // self.config.draws, idx):
            (low, high), inner, outer = part.bounds, radii[0][rows], radii[1][rows]
            steps = steps_between(inner, outer, draws=draws, movable=low < high)
            x = part.case.x[:, None]
            moved = self.encoder.collapse(self.encoder.expand(x) + steps, x)
            found[rows] = self._update(pool, part.project(moved), rows)
        return found

    def _update(self, pool: CandidatePool, candidates: Tensor, idx: Tensor) -> Tensor:
        """Keep the nearest success of q rows, in l2; (q,) bool, which succeed."""
        x = self.encoder.expand(pool.case.x[idx])[:, None]
        distance = (self.encoder.expand(candidates) - x).norm(dim=2)
        return pool.update(candidates, idx, loss=distance)

    def _undone(self, x: Tensor, x_cf: Tensor) -> Tensor:
        """(q, p, p) counterfactuals, (q, p), with the 1, 2, ..., p smallest changes undone."""
        rank = self.encoder.distance(x_cf, x).argsort(dim=1, stable=True).argsort(1)
        undone = rank[:, None] <= torch.arange(x.shape[1])[:, None]
        return torch.where(undone, x[:, None], x_cf[:, None])


def steps_between(inner: Tensor, outer: Tensor, *, draws: Draws, movable: Tensor) -> Tensor:
    """(m, c, d) uniform draws between two spheres, (m,) each, in the movable columns, (m, d)."""
    directions, quantiles = torch.where(movable[:, None], draws[0], 0.0), draws[1]
    power = movable.sum(1, keepdim=True).clamp_min(1)
    least = (inner / outer)[:, None] ** power
    lengths = outer[:, None] * (least + quantiles * (1.0 - least)) ** (1.0 / power)
    norms = directions.norm(dim=2).clamp_min(LEAST_NORM)
    steps: Tensor = directions * (lengths / norms)[:, :, None]
    return steps
