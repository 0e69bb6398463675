"""Gradients: of the model at feasible rows, straight through the rounding; proximal steps."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.data.encoder import Encoder

# The least squared norm of a gradient, which bounds the length of a step.
LEAST_SQUARE = 1e-6


def straight_through(pool: CandidatePool, soft: Tensor) -> tuple[Tensor, Tensor]:
    """The feasible rows, (m, p), nearest to encoded ones, (m, d), and these rows encoded.

    The second has the value of the rounded rows and the gradient of the soft ones (a
    straight-through estimator): the descent sees the rows that a user would get.
    """
    encoder = pool.classifier.encoder
    inside = torch.clamp(soft.detach(), *pool.bounds)
    rows = pool.project(encoder.collapse(inside)[:, None])[:, 0]
    return rows, soft + (encoder.expand(rows) - soft).detach()


def margin_gradients(pool: CandidatePool, encoded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, (m, classes), margins, (m,), and gradients of these, (m, d), at rows, (m, d)."""
    with torch.enable_grad():
        at = encoded.detach().requires_grad_(True)
        scores = pool.classifier.differentiable(at)
        margin = pool.case.goal.margin(scores)
        (gradient,) = torch.autograd.grad(margin.sum(), at)
    return scores.detach(), margin.detach().float(), gradient


def block_tangents(encoder: Encoder) -> Tensor:
    """(d, d) the projection of gradients onto one-hot blocks whose columns add up to 1."""
    feature = encoder.feature_of
    together = (feature[:, None] == feature) & encoder.blocks[feature]
    return torch.eye(encoder.d) - together / together.sum(1).clamp_min(1)


def squared_norm(gradient: Tensor) -> Tensor:
    """(m, 1) of gradients, (m, d), and at least `LEAST_SQUARE`."""
    return gradient.square().sum(1, keepdim=True).clamp_min(LEAST_SQUARE)


def soft_threshold(change: Tensor, shrink: Tensor) -> Tensor:
    """Changes, (m, d), after a proximal step of an l1 cost: nearer to zero by `shrink`, (m, d)."""
    return change.sign() * (change.abs() - shrink).clamp_min(0.0)
