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

from dear_plugin.baselines.candidate_pool import Trial
from dear_plugin.baselines.latent import LatentMethod, tried
from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Plan

LATENTS_A_TIME = 1 << 16


@dataclass(frozen=True)
class Shells:
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
class CCHVAE(LatentMethod[Shells]):
    """C-CHVAE; it takes any model.

    Everybody tries the same directions, so that nobody's answer depends on who else asks.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        vae: a trained one, or how `fit` should train one.
        how: how to search.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        SchemaError: a VAE trained for another schema.
    """

    def _usual(self) -> Shells:
        return Shells()

    def _admit(self) -> None:
        """Any model will do."""

    def _propose(self, case: Case) -> Plan:
        trial = Trial.of(case, self.classifier)
        chance = torch.Generator().manual_seed(self.how.seed)
        for shell in range(self.how.count):
            steps = self._draw(shell, chance)
            looking = (~trial.solved).nonzero()[:, 0]
            if not len(looking):
                break
            for who in looking.split(max(1, LATENTS_A_TIME // self.how.draws)):
                self._try(trial, who, steps)
        return trial.plan("no person within reach of the latents is accepted")

    def _draw(self, shell: int, chance: torch.Generator) -> Tensor:
        """Steps into a shell, (c, k)."""
        size = (self.how.draws, self.vae.k)
        direction = torch.randn(size, generator=chance)
        length = (shell + torch.rand(size[0], 1, generator=chance)) * self.how.width
        return length * direction / direction.abs().sum(1, keepdim=True)

    def _try(self, trial: Trial, who: Tensor, steps: Tensor) -> None:
        """Note where some people, (q,), get by some steps, (c, k)."""
        part = Trial.of(trial.case.select(who), self.classifier)
        z = self.vae.encode(part.case.x)[:, None] + steps
        trial.note(tried(part, self.vae, z), who)
