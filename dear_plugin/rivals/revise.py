"""REVISE: descent among the latents of a generative model.

Joshi, Koyejo, Vijitbenjaronk, Kim and Ghosh, "Towards Realistic Individual Recourse and Actionable
Explanations in Black-Box Decision Making Systems", arXiv 1907.09615: minimise over z
`loss(f(g(z)), y') + lambda ||x - g(z)||_1`, started from the row's own latents. The largest lambda
with a success gives the cheapest counterfactual, so several are tried at once.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dear_plugin.methods.base import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.latent import LatentDescent, Objective

# The lambdas of the search: for all rows, then for those without a success.
WEIGHTS = (
    (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    (0.001, 0.002, 0.004, 0.008, 0.016, 0.03, 0.06, 0.12),
)


@final
class Revise(LatentDescent):
    """REVISE; the decoder is conditioned on the immutable features, which stay.

    Args:
        model: a torch module.
        schema: the features.
        vae: a trained `Vae`, or the design of the one that `fit` trains.
        config: the settings; without a weight, several are tried, and the cheapest success is the
            counterfactual.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box has no gradient.
        SchemaError: the VAE was trained for another schema.

    Example:
        >>> from dear_plugin import Encoder, Schema, Training
        >>> from dear_plugin.rivals import Revise, VaeDesign
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = torch.nn.Linear(Encoder(schema).d, 1)  # logits
        >>> Revise(model, schema, vae=VaeDesign(training=Training(epochs=2))).fit(frame)
        Revise(7 features, model Linear, fitted on 200 rows)
    """

    def _propose(self, case: Case) -> Proposal:
        given = self.config.weight
        weights = WEIGHTS if given is None else ((given,),)
        objective = Objective(target_loss, [torch.tensor(each) for each in weights], given is None)
        pool = self._descend(case, objective)
        return pool.proposal("no row along the descent among latents reaches the target")


def target_loss(case: Case, scores: Tensor) -> Tensor:
    """The logistic loss of the margin of the target, (m,), past the aim."""
    return softplus(case.aim - case.goal.margin(scores))
