"""Lemma 1, the parts of Proposition 1, Proposition 2 and its corollary, and the alignment.

All are in scaled units.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def direct_action(m: Tensor, w: Tensor, weight: float) -> Tensor:
    """Proposition 2: `d_S = m / (lambda + ||w||^2) w`.

    Args:
        m: (...) the difference between the target score and the score, `s - f(x)`.
        w: (..., d) `Y^T grad f(x)`, the score's derivative along x_S.
        weight: lambda, the trade-off between score and cost.

    Returns:
        (..., d).
    """
    return (m / (weight + w.square().sum(-1)))[..., None] * w


def recourse_action(m: Tensor, w: Tensor, jacobian: Tensor, weight: float) -> Tensor:
    """The corollary: `delta = Y d_S`, the change of all features to first order.

    Args:
        m: (n,) the difference between the target score and the score.
        w: (n, q) `Y^T grad f(x)` on the q columns of S.
        jacobian: (n, d, q) `Y = dg / dx_S`.
        weight: lambda.

    Returns:
        (n, d).
    """
    change: Tensor = torch.einsum("ndq,nq->nd", jacobian, direct_action(m, w, weight))
    return change


def latent_cost(by_latent: Tensor, by_x: Tensor, d_v: Tensor, d_s: Tensor) -> Tensor:
    """Lemma 1: the squared l2 cost, to first order, of a change of v and x_S, (n,).

    `||J_v d_v + J_S d_S||^2`. At `d_v = 0` it is the cost of an action at fixed latents; at
    `d_v = dv / dx_S d_S` it is that of Proposition 1, direct and indirect cost together.

    Args:
        by_latent: (n, d, k) `dg / dv`.
        by_x: (n, d, q) `dg / dx_S`.
        d_v: (n, k) the change of the latents.
        d_s: (n, q) the action.
    """
    moved: Tensor = torch.einsum("ndk,nk->nd", by_latent, d_v)
    moved = moved + torch.einsum("ndq,nq->nd", by_x, d_s)
    return moved.square().sum(1)


@dataclass(frozen=True)
class Parts:
    """The four parts of Proposition 1's Jacobians, for n rows and q columns of S.

    Attributes:
        own: (d,) bool, the columns of S.
        given: (n, d, q) `dg / dx_S` at fixed v: the identity mapping on S, the elasticity off it.
        entangled: (n, d, q) `dg / dv dv / dx_S`: the change due to v's dependence on x_S, where
            `dv / dx_S` is one least-squares slope over all training rows.
    """

    own: Tensor
    given: Tensor
    entangled: Tensor

    @property
    def identity(self) -> Tensor:
        """(n, q, q) `dg_S / dx_S`."""
        return self.given[:, self.own]

    @property
    def elasticity(self) -> Tensor:
        """(n, d - q, q) `dg_Sc / dx_S`."""
        return self.given[:, ~self.own]

    @property
    def direct_entanglement(self) -> Tensor:
        """(n, q, q) the entangled part on S."""
        return self.entangled[:, self.own]

    @property
    def indirect_entanglement(self) -> Tensor:
        """(n, d - q, q) the entangled part on the other columns."""
        return self.entangled[:, ~self.own]

    def costs(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """Direct and indirect squared l2 cost to first order, (n,) each.

        Args:
            action: (n, q) d_S.
        """
        moved: Tensor = torch.einsum("ndq,nq->nd", self.given + self.entangled, action)
        moved = moved.square()
        return moved[:, self.own].sum(1), moved[:, ~self.own].sum(1)


def alignment(jacobian: Tensor, gradient: Tensor) -> Tensor:
    """Cosine of the decoder's Jacobian and the model's gradient, (n,): the paper's guide to S.

    Args:
        jacobian: (n, d, q) `Y`.
        gradient: (n, d) `grad f(x)`.
    """
    slope = torch.einsum("ndq,nd->nq", jacobian, gradient)
    size = jacobian.flatten(1).norm(dim=1) * gradient.norm(dim=1)
    cosine: Tensor = slope.norm(dim=1) / size.clamp_min(1e-12)
    return cosine
