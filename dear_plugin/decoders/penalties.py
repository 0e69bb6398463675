"""Penalties: what keeps the latents v and the features x_S apart."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

STEP = 0.1
FREQUENCIES = 32


def signs(like: Tensor, generator: torch.Generator) -> Tensor:
    """Random signs in the shape of a tensor."""
    coins = torch.randint(0, 2, like.shape, generator=generator)
    return (2 * coins - 1).to(like)


def hessian_penalty(
    g: Callable[[Tensor, Tensor], Tensor],
    v: Tensor,
    x_s: Tensor,
    mask: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """(s,) the mean squared mixed derivative `d2 g / dv dx_S` (the paper's L_H), estimated.

    `E (u' H w)^2 = ||H||_F^2` for random signs u, w; the mixed second difference of g along u and
    w gives `u' H w` (Peebles et al. 2020, "The Hessian Penalty", restricted to the block v x x_S
    as in the paper's equation 8).

    Args:
        g: (s, n, k), (s, n, d) -> (s, n, d).
        v: (s, n, k) latents.
        x_s: (s, n, d) the features of S, zero elsewhere.
        mask: (s, 1, d) which columns belong to S.
        generator: of the signs.
    """
    v_there = v + STEP * signs(v, generator)
    x_there = x_s + STEP * signs(x_s, generator) * mask
    mixed = g(v_there, x_there) - g(v_there, x_s) - g(v, x_there) + g(v, x_s)
    return (mixed / STEP**2).square().mean((1, 2))


def independence_penalty(
    v: Tensor, x_s: Tensor, mask: Tensor, generator: torch.Generator
) -> Tensor:
    """(s,) squared cross-covariance of random Fourier features of v and x_S.

    It vanishes for independent v and x_S (a kernel measure of dependence with random features).

    Args:
        v: (s, n, k) latents.
        x_s: (s, n, d) the features of S, zero elsewhere.
        mask: (s, 1, d) which columns belong to S.
        generator: of the frequencies.
    """
    a = _fourier(_standard(v), generator)
    b = _fourier(_standard(x_s) * mask, generator)
    cross = torch.bmm(a.transpose(1, 2), b) / a.shape[1]
    return cross.square().sum((1, 2))


def _standard(x: Tensor) -> Tensor:
    centred = x - x.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True) + 1e-4).sqrt()


def _fourier(x: Tensor, generator: torch.Generator) -> Tensor:
    """(s, n, f) centred cosines at random frequencies; median bandwidth of standard columns."""
    s, _, width = x.shape
    frequency = torch.randn(s, width, FREQUENCIES, generator=generator).to(x)
    phase = (2.0 * torch.pi * torch.rand(s, 1, FREQUENCIES, generator=generator)).to(x)
    waves = torch.cos(torch.baddbmm(phase, x, frequency))
    return waves - waves.mean(1, keepdim=True)
