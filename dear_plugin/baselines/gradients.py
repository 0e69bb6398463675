"""Gradients: the model's slope at the rows that people would get, rounding included."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.baselines.candidate_pool import CandidatePool


def rounded(pool: CandidatePool, soft: Tensor) -> tuple[Tensor, Tensor]:
    """The admissible rows, (m, p), nearest to encoded ones, (m, d), and they encoded.

    The second has the value of the rounded rows and the gradient of the soft ones: what is
    descended is what people would get, and a category can be left through its middle.
    """
    encoder = pool.classifier.encoder
    between = torch.clamp(soft.detach(), *pool.ends)
    rows = pool.project(encoder.collapse(between)[:, None])[:, 0]
    return rows, soft + (encoder.expand(rows) - soft).detach()


def slopes(pool: CandidatePool, shown: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, (m, classes), margins, (m,), and their slopes, (m, d), at encoded rows, (m, d)."""
    with torch.enable_grad():
        place = shown.detach().requires_grad_(True)
        scores = pool.classifier.differentiable(place)
        margin = pool.case.goal.margin(scores)
        (slope,) = torch.autograd.grad(margin.sum(), place)
    return scores.detach(), margin.detach().float(), slope
