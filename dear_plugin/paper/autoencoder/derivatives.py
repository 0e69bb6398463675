"""First and second derivatives of g along x_S and v, exact by autograd.

`dg / dx_S` and `dg / dv` are those of Proposition 1 and Lemma 1. Networks are of one set here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin.paper.autoencoder.networks import Networks

RIDGE = 1e-8


def jacobians(networks: Networks, x: Tensor, train: Tensor) -> tuple[Tensor, Tensor]:
    """`dg / dx_S` and `dg / dv . dv / dx_S`, (n, d, q) each.

    Args:
        networks: e and g.
        x: (n, d) encoded rows, where to take them.
        train: (m, d) encoded training rows; `dv / dx_S` is the least-squares slope over them.
    """
    with torch.no_grad():
        v, columns = networks.latents(x), networks.columns[0]
        slopes = _regression_slopes(networks.latents(train)[0], train[:, columns])
    by_x = one_hot(columns, x.shape[1]).to(x)
    given = directional_derivatives(lambda a: networks.generate(v, a), x, by_x)
    entangled = directional_derivatives(lambda u: networks.generate(u, x), v, slopes)
    return given[0], entangled[0]


def latent_jacobians(networks: Networks, x: Tensor) -> Tensor:
    """(n, d, k) `dg / dv` at encoded rows, (n, d)."""
    with torch.no_grad():
        v = networks.latents(x)
    by_v = torch.eye(networks.k).to(v)
    return directional_derivatives(lambda u: networks.generate(u, x), v, by_v)[0]


def entanglement(networks: Networks, x: Tensor) -> Tensor:
    """(n,) mean |d2 g / dv dx_S| over outputs, latents and columns of S, at (n, d)."""
    columns = networks.columns[0]

    def g(v: Tensor, x_s: Tensor) -> Tensor:
        """The generated rows, (n, d)."""
        return networks.generate(v, x.index_copy(1, columns, x_s))

    mixed = mixed_derivatives(g, networks.latents(x), x[:, columns])
    return mixed.abs().mean((0, 1, 2, 4))


def mixed_derivatives(g: Callable[[Tensor, Tensor], Tensor], v: Tensor, x_s: Tensor) -> Tensor:
    """(q, k, ..., d) `d2 g / dv dx_S` of g: (..., k), (..., q) -> (..., d)."""
    by_x, by_v = torch.eye(x_s.shape[-1]).to(x_s), torch.eye(v.shape[-1]).to(v)
    with torch.enable_grad():
        v, x_s = v.detach().requires_grad_(), x_s.detach().requires_grad_()
        slopes = derivatives(g(v, x_s), x_s, by_x)
        mixed = [torch.stack(derivatives(slope, v, by_v)).detach() for slope in slopes]
    return torch.stack(mixed)


def directional_derivatives(
    f: Callable[[Tensor], Tensor], at: Tensor, directions: Tensor
) -> Tensor:
    """The derivatives of f at a point along q directions, (..., d, q)."""
    with torch.enable_grad():
        at = at.detach().requires_grad_()
        return torch.stack(derivatives(f(at), at, directions), -1).detach()


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
            pulled, weight, direction.expand(at.shape), create_graph=True, materialize_grads=True
        )[0]
        for direction in directions
    ]


def _regression_slopes(v: Tensor, x_s: Tensor) -> Tensor:
    """(q, k) the least-squares slope of v, (m, k), on the columns of S, (m, q)."""
    a, b = x_s - x_s.mean(0), v - v.mean(0)
    gram, cross = a.T @ a / len(a), a.T @ b / len(a)
    slopes: Tensor = torch.linalg.solve(gram + RIDGE * torch.eye(len(gram)).to(gram), cross)
    return slopes
