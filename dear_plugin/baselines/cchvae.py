"""C-CHVAE: random search among the latents around a person, in ever wider shells.

Pawelczyk, Broelemann and Kasneci, "Learning Model-Agnostic Counterfactual Explanations for Tabular
Data", WWW 2020: latents are drawn from a shell around the person's own, decoded given what cannot
change, and of the first shell with a success the one nearest to the person is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.baselines.latent import LatentMethod, tried
from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal

LATENTS_A_TIME = 1 << 16


@dataclass(frozen=True)
class CCHVAEConfig:
    """How to search around a person.

    Attributes:
        width: of a shell, in l1 of the latents.
        count: how many shells at most.
        draws: latents a shell.
        seed: of the draws; nothing global is seeded.
    """

    width: float = 0.1
    count: int = 200
    draws: int = 300
    seed: int = 0


@final
class CCHVAE(LatentMethod[CCHVAEConfig]):
    """C-CHVAE; it takes any model.

    Everybody tries the same directions, so that nobody's answer depends on who else asks.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        vae: a trained one, or how `fit` should train one.
        config: how to search.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        SchemaError: a VAE trained for another schema.
    """

    def _default_config(self) -> CCHVAEConfig:
        return CCHVAEConfig()

    def _validate_model(self) -> None:
        """Any model will do."""

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        rng = torch.Generator().manual_seed(self.config.seed)
        for shell in range(self.config.count):
            steps = self._draw(shell, rng)
            looking = (~pool.solved).nonzero()[:, 0]
            if not len(looking):
                break
            for who in looking.split(max(1, LATENTS_A_TIME // self.config.draws)):
                self._try(pool, who, steps)
        return pool.proposal("no person within reach of the latents is accepted")

    def _draw(self, shell: int, rng: torch.Generator) -> Tensor:
        """Steps into a shell, (c, k)."""
        size = (self.config.draws, self.vae.k)
        direction = torch.randn(size, generator=rng)
        length = (shell + torch.rand(size[0], 1, generator=rng)) * self.config.width
        return length * direction / direction.abs().sum(1, keepdim=True)

    def _try(self, pool: CandidatePool, who: Tensor, steps: Tensor) -> None:
        """Note where some people, (q,), get by some steps, (c, k)."""
        part = CandidatePool.of(pool.case.select(who), self.classifier)
        z = self.vae.encode(part.case.x)[:, None] + steps
        pool.update(tried(part, self.vae, z), who)
