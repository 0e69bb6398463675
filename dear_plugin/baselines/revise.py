"""REVISE: descent among the latents of a generative model.

Joshi, Koyejo, Vijitbenjaronk, Kim and Ghosh, "Towards Realistic Individual Recourse and Actionable
Explanations in Black-Box Decision Making Systems", arXiv 1907.09615: minimise over z
`loss(f(g(z)), y') + lambda ||x - g(z)||_1`, started from the row's own latents.
"""

from __future__ import annotations

from typing import final

from torch import Tensor
from torch.nn.functional import softplus

from dear_plugin.baselines.base import require_gradient
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.baselines.latent import LatentConfig, LatentMethod, descend
from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal


@final
class Revise(LatentMethod[LatentConfig]):
    """REVISE; the decoder is conditioned on the immutable features, which stay.

    Args:
        model: a torch module.
        schema: the features.
        vae: a trained one, or the design of the one that `fit` trains.
        config: the settings.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box has no gradient.
        SchemaError: a VAE trained for another schema.
    """

    def _default_config(self) -> LatentConfig:
        return LatentConfig()

    def _validate_model(self) -> None:
        require_gradient(self)

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        descend(pool, self.vae, target_loss, self.config)
        return pool.proposal("no row along the descent among latents reaches the target")


def target_loss(case: Case, scores: Tensor) -> Tensor:
    """The logistic loss of the margin of the target, (m,)."""
    return softplus(-case.goal.margin(scores))
