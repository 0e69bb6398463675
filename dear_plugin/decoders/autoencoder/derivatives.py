"""Derivatives: of g along directions, once and twice, exact by autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from dear_plugin.decoders.autoencoder.stack import Generate


def mixed_derivatives(g: Generate, v: Tensor, x_s: Tensor, valid: Tensor) -> Tensor:
    """(w, k, s, n, d) `d2 g / dv dx_S`, zero for columns that a set does not have.

    Args:
        g: (s, n, k), (s, n, w) -> (s, n, d).
        v: (s, n, k) latents.
        x_s: (s, n, w) the columns of S.
        valid: (s, 1, w) which of them are the set's own.
    """
    by_x = torch.eye(x_s.shape[2]).to(x_s)[:, None, None] * valid
    by_v = torch.eye(v.shape[2]).to(v)
    with torch.enable_grad():
        v, x_s = v.detach().requires_grad_(), x_s.detach().requires_grad_()
        slopes = derivatives(g(v, x_s), x_s, by_x)
        mixed = [torch.stack(derivatives(slope, v, by_v)).detach() for slope in slopes]
    return torch.stack(mixed)


def column_tangents(mask: Tensor) -> Tensor:
    """(w, s, 1, d) unit directions: the i-th column of every set, zero where it has fewer."""
    order = mask.cumsum(2) * mask
    return torch.stack([(order == i + 1).float() for i in range(int(mask.sum(2).max()))])


def directional_derivative(f: Callable[[Tensor], Tensor], at: Tensor, direction: Tensor) -> Tensor:
    """The derivative of f at a point along a direction."""
    with torch.enable_grad():
        at = at.detach().requires_grad_()
        return derivatives(f(at), at, [direction])[0].detach()


def derivatives(out: Tensor, at: Tensor, directions: Iterable[Tensor]) -> list[Tensor]:
    """The derivatives of an output by its input, along directions, differentiable again.

    Backward through backward: torch's forward mode warns of a deprecation of its own.

    Args:
        out: (..., d) the output.
        at: (..., k) the input that it was computed from.
        directions: each of a shape that broadcasts to that of `at`.
    """
    weight, pulled = torch.ones_like(out, requires_grad=True), torch.zeros(())
    if out.requires_grad:
        (pulled,) = torch.autograd.grad(out, at, weight, create_graph=True, materialize_grads=True)
    if not pulled.requires_grad:  # it does not depend on `at`
        return [torch.zeros_like(out) for _ in directions]
    return [
        torch.autograd.grad(
            pulled,
            weight,
            direction.expand(at.shape),
            create_graph=True,
            materialize_grads=True,
        )[0]
        for direction in directions
    ]
