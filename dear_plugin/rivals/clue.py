"""CLUE: descent among latents towards rows with certain predictions.

Antoran, Bhatt, Adel, Weller and Hernandez-Lobato, "Getting a CLUE: A Method for Explaining
Uncertainty Estimates", ICLR 2021: minimise over z `H(y | g(z)) + d(g(z), x)`, started from the
row's own latents. The target is not part of the loss. The counterfactual is a row along the
descent that meets it. Rows without one start again nearer to latents that the model accepts.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from dear_plugin.errors import ModelError
from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.latent import LatentDescent, Objective


@final
class Clue(LatentDescent):
    """CLUE for a single model instead of an ensemble: the entropy of its probabilities.

    Args:
        model: a torch module that classifies.
        schema: the features.
        vae: a trained `Vae`, or the design of the one that `fit` trains.
        config: the settings; without a weight it is 4 / d, as in the authors' code.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box, which has no gradient, or a regression, which has no entropy.
        SchemaError: the VAE was trained for another schema.

    Example:
        >>> from dear_plugin import Encoder, Schema, Training
        >>> from dear_plugin.rivals import Clue, VaeDesign
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = torch.nn.Linear(Encoder(schema).d, 1)  # logits
        >>> Clue(model, schema, vae=VaeDesign(training=Training(epochs=2))).fit(frame)
        Clue(7 features, model Linear, fitted on 200 rows)
    """

    follows_margin = False

    def _check_model(self) -> None:
        super()._check_model()
        if self.classifier.output == "values":
            raise ModelError("Clue lowers the entropy of a classifier; output='values' has none")

    def _propose(self, case: Case) -> Proposal:
        weight = 4.0 / self.encoder.d if self.config.weight is None else self.config.weight
        pool = self._descend(case, Objective(entropy, [torch.tensor([weight])]))
        return pool.proposal("no row along the descent of the entropy is accepted")


def entropy(case: Case, scores: Tensor) -> Tensor:
    """The entropy of the model's probabilities, (m,), from its scores, (m, classes)."""
    if scores.shape[1] == 1:
        scores = torch.cat([torch.zeros_like(scores), scores], 1)
    log_p = scores.log_softmax(1)
    return -(log_p.exp() * log_p).sum(1)
