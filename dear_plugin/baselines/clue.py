"""CLUE: descent among latents towards people of whom the model is certain.

Antoran, Bhatt, Adel, Weller and Hernandez-Lobato, "Getting a CLUE: A Method for Explaining
Uncertainty Estimates", ICLR 2021: minimise over z `H(y | g(z)) + d(g(z), x)`, started from the
person's own latents. Nothing in it asks for the wanted class: a counterfactual is a row on the way
that has it, and whom it does not help starts again nearer to a place where the model agrees.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from dear_plugin.baselines.base import need_gradient
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.baselines.latent import LatentConfig, LatentMethod, descend
from dear_plugin.errors import ModelError
from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal


@final
class Clue(LatentMethod[LatentConfig]):
    """CLUE for one model rather than an ensemble: the entropy is that of its probabilities.

    Args:
        model: a torch module that classifies.
        schema: the features.
        vae: a trained one, or how `fit` should train one.
        config: how to descend; the weight is 4 / d unless given, as by the method's authors.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box has no gradient, a value no entropy.
        SchemaError: a VAE trained for another schema.
    """

    def _default_config(self) -> LatentConfig:
        return LatentConfig(weight=4.0 / self.encoder.d)

    def _validate_model(self) -> None:
        need_gradient(self)
        if self.classifier.output == "values":
            raise ModelError("Clue lowers the entropy of a classifier; output='values' has none")

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        descend(pool, self.vae, entropy, self.config)
        return pool.proposal("on the way to certainty the model never agrees")


def entropy(case: Case, scores: Tensor) -> Tensor:
    """Of the model's probabilities, (m,), from its scores, (m, classes)."""
    if scores.shape[1] == 1:
        scores = torch.cat([torch.zeros_like(scores), scores], 1)
    log_p = scores.log_softmax(1)
    return -(log_p.exp() * log_p).sum(1)
