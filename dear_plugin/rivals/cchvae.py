"""C-CHVAE: random search among the latents around a row, in shells of growing radius.

Pawelczyk, Broelemann and Kasneci, "Learning Model-Agnostic Counterfactual Explanations for Tabular
Data", WWW 2020. Latents are drawn from a shell around the row's own and decoded given the
immutable features. The counterfactual is the nearest success in the first shell that has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.candidate_pool import CandidatePool
from dear_plugin.rivals.latent import LatentMethod, project_latents

LATENTS_A_TIME = 1 << 16


@dataclass(frozen=True)
class CCHVAEConfig:
    """The settings of C-CHVAE.

    Attributes:
        width: the width of a shell, in l1 of the latents.
        count: the largest number of shells.
        draws: the number of latents per shell.
        seed: the seed of the draws; global generators are not used.

    Example:
        >>> from dear_plugin.rivals import CCHVAEConfig
        >>> thorough = CCHVAEConfig(draws=1_000)
    """

    width: float = 0.1
    count: int = 200
    draws: int = 300
    seed: int = 0


@final
class CCHVAE(LatentMethod[CCHVAEConfig]):
    """C-CHVAE, for any model.

    All rows search the same directions, so that no result depends on the other rows of a call.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        vae: a trained `Vae`, or the design of the one that `fit` trains.
        config: the settings.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        SchemaError: the VAE was trained for another schema.

    Example:
        >>> from dear_plugin import Schema, Training
        >>> from dear_plugin.rivals import CCHVAE, VaeDesign
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = lambda rows: rows["savings"] / 60
        >>> CCHVAE(model, schema, vae=VaeDesign(training=Training(epochs=2))).fit(frame)
        CCHVAE(7 features, model function, fitted on 200 rows)
    """

    follows_margin = False

    default_config = CCHVAEConfig()

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        rng = torch.Generator().manual_seed(self.config.seed)
        for shell, _, unsolved in pool.attempts(range(self.config.count)):
            steps = self._draw(shell, rng)
            for idx, part in unsolved.parts(LATENTS_A_TIME // self.config.draws):
                z = self.vae.encode(part.case.x)[:, None] + steps
                unsolved.update(project_latents(part, self.vae, z), idx)
        return pool.proposal("no row decoded from the latents within reach is accepted")

    def _draw(self, shell: int, rng: torch.Generator) -> Tensor:
        """Steps from the centre into a shell, (c, k)."""
        size = (self.config.draws, self.vae.k)
        direction = torch.randn(size, generator=rng)
        length = (shell + torch.rand(size[0], 1, generator=rng)) * self.config.width
        return length * direction / direction.abs().sum(1, keepdim=True)
