"""Robustness: acceptance of answers by retrained models, and under inexact actions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dear_plugin.benchmark.metrics.decision import Accepts, Floats, solved, where
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.target import Target
from dear_plugin.results.recourses import Recourses

SIGMA = 0.01
DRAWS = 20


def still_accepted(recourses: Recourses, models: Sequence[Accepts]) -> Floats:
    """(n,) the share of other models that accept each answer.

    Source: validity under model change, as in ROAR (Upadhyay et al. 2021).

    Args:
        recourses: the answers.
        models: the same model, retrained on bootstrap samples of its training rows.
    """
    accepted = np.stack([accepts(recourses.counterfactuals) for accepts in models])
    return where(solved(recourses), accepted.mean(0))


def invalidated(
    recourses: Recourses, classifier: Classifier, *, sigma: float = SIGMA, seed: int = 0
) -> Floats:
    """(n,) the share of noisy counterfactuals that are rejected.

    Normal noise is added to every scaled number of the counterfactual: the recourse invalidation
    rate of PROBE (Pawelczyk et al. 2023), over `DRAWS` draws. It is 1/2 for an answer exactly on
    a linear boundary.

    Args:
        recourses: the answers.
        classifier: the model.
        sigma: the standard deviation, in units of the features' observed ranges.
        seed: of the draws.
    """
    rng = torch.Generator().manual_seed(seed)
    numbers = torch.tensor([not f.categories for f in recourses.encoder.schema])
    rows = recourses.proposal.rows
    noise = sigma * torch.randn(DRAWS, *rows.shape, generator=rng) * numbers
    scores = classifier.scores((rows + noise).flatten(0, 1))
    goal = Target.of_class(1).resolve(len(scores), classifier.classes)
    refused = ~goal.accepts(scores).view(DRAWS, len(rows))
    return where(solved(recourses), refused.double().mean(0).numpy())
