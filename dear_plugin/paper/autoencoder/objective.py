"""The weighted loss terms of the autoencoders on a batch.

Penalties are on the mixed derivatives of g and on the dependence of v and x_S. In these, g maps
latents (s, n, k) and the columns of S, (s, n, w), to (s, n, d). A set of fewer than w columns has
zeros in the rest; `valid`, (s, 1, w), says which columns are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from dear_plugin.paper.autoencoder.networks import Networks

# The mean over a part of the batch estimates the Hessian penalty as well, at less cost.
HESSIAN_ROWS = 64
# Dependence that the decoder itself can use weighs more than what random functions find.
WITNESS = 3.0
STEP = 0.1
PROBES = 24
WAVES = 32
X_SCALES = (1.0, 2.0, 4.0)
V_SCALES = (0.5, 1.0, 2.0)

Generate = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Objective:
    """Reconstruction and penalties, each summed over the s sets.

    Attributes:
        networks: e and g.
        sample: (s,) int64, the sample that each set is trained on.
        hessian: weight of the Hessian penalty.
        independence: weight of the two penalties on the dependence of v and x_S.
        noise: standard deviation of the noise on the latents, in units of their own, so that no
            information about x_S can hide in their last digits.
    """

    networks: Networks
    sample: Tensor
    hessian: float
    independence: float
    noise: float

    def __call__(self, x: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        """The terms of a batch of each of u samples, (u, b, 2 d), as `ColumnScaler.read` it."""
        networks = self.networks
        x = x[self.sample] if len(x) > 1 else x.expand(len(self.sample), -1, -1)
        z, inputs = x.chunk(2, 2)
        clean = networks.e(inputs)
        v, z_s = _with_noise(clean, self.noise, generator), networks.gather(z)
        output = networks.generate_scaled(v, z_s)
        terms = {"reconstruction": len(output) * mse_loss(output, z)}
        if self.hessian:
            few = v[:, :HESSIAN_ROWS], z_s[:, :HESSIAN_ROWS]
            mixed = hessian_penalty(networks.generate_scaled, *few, networks.valid, generator)
            terms["hessian"] = self.hessian * mixed.sum()
        if self.independence:
            probe = probes(networks.inputs(z_s), networks.valid, generator)
            difference = networks.generate_scaled(v.roll(1, 1), z_s) - output
            dependence = independence_penalty(clean, probe, generator).sum()
            terms["independence"] = self.independence * dependence
            witness = witness_penalty(difference, probe).sum()
            terms["witness"] = WITNESS * self.independence * witness
        return terms


def _with_noise(v: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Latents, (s, n, k), with normal noise in proportion to their spread in the batch."""
    if not noise:
        return v
    fixed = v.detach()
    spread = (fixed - fixed.mean(1, keepdim=True)).square().mean(1, keepdim=True).sqrt()
    drawn = torch.randn(v.shape, generator=generator)
    return torch.addcmul(v, drawn.to(v), spread, value=noise)


def signs(like: Tensor, generator: torch.Generator) -> Tensor:
    """Random signs in the shape of a tensor."""
    bits = torch.randint(0, 2, like.shape, generator=generator)
    return (2 * bits - 1).to(like)


def hessian_penalty(
    g: Generate, v: Tensor, x_s: Tensor, valid: Tensor, generator: torch.Generator
) -> Tensor:
    """(s,) the mean squared mixed derivative `d2 g / dv dx_S` (the paper's L_H), estimated.

    `E (u' H w)^2 = ||H||_F^2` for random signs u, w; the mixed second difference of g along u and
    w gives `u' H w` (Peebles et al. 2020, "The Hessian Penalty", restricted to the block v x x_S
    as in the paper's equation 8).

    Args:
        g: the decoder.
        v: (s, n, k) latents.
        x_s: (s, n, w) the columns of S.
        valid: (s, 1, w) which of them are the set's own.
        generator: of the signs.
    """
    v_step = v + STEP * signs(v, generator)
    x_step = x_s + STEP * signs(x_s, generator) * valid
    corners = g(torch.cat([v_step, v_step, v, v], 1), torch.cat([x_step, x_s, x_step, x_s], 1))
    both, by_v, by_x, start = corners.chunk(4, 1)
    return ((both - by_v - by_x + start) / STEP**2).square().mean((1, 2))


def probes(x_s: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
    """(s, n, q) random functions of x_S of mean 0 and variance 1: cosines of several scales.

    Args:
        x_s: (s, n, w) the columns of S.
        valid: (s, 1, w) which of them are the set's own.
        generator: of the frequencies.
    """
    # Columns that a set does not have are constant: they would only narrow the frequencies.
    own = standard(x_s) / valid.sum(2, keepdim=True).sqrt()
    return standard(_waves(own, PROBES, X_SCALES, generator))


def independence_penalty(v: Tensor, probe: Tensor, generator: torch.Generator) -> Tensor:
    """(s,) the mean squared correlation of functions of x_S with functions of v.

    The functions of v are its own columns and cosines at random frequencies. For independent v
    and x_S it is zero up to sampling error (a kernel measure of dependence, random features).

    Args:
        v: (s, n, k) latents.
        probe: (s, n, q) functions of x_S, from `probes`.
        generator: of the frequencies.
    """
    own = standard(v)
    features = torch.cat([own, _waves(own / v.shape[2] ** 0.5, WAVES, V_SCALES, generator)], 2)
    return _cross(probe, features).square().mean((1, 2))


def witness_penalty(difference: Tensor, probe: Tensor) -> Tensor:
    """(s,) the mean squared covariance of functions of x_S with the effect of another row's v.

    The functions of v are here the outputs of g: for independent v and x_S,
    `g(v', x_S) - g(v, x_S)` with the v' of another row has mean 0 at every x_S. Random functions
    alone miss dependence that a trained encoder leaves between them; this penalty is on the
    dependence that g uses, which is what enters a counterfactual.

    Args:
        difference: (s, n, d) `g(v', x_S) - g(v, x_S)`.
        probe: (s, n, q) functions of x_S, from `probes`.
    """
    return _cross(probe, difference).square().mean((1, 2))


def standard(x: Tensor) -> Tensor:
    """Columns of mean 0 and variance 1 within the batch, (s, n, a); constant ones are zero."""
    centred = x - x.mean(1, keepdim=True)
    return centred * (centred.square().mean(1, keepdim=True) + 1e-4).rsqrt()


def _cross(probe: Tensor, columns: Tensor) -> Tensor:
    """(s, q, a) covariances of centred columns, (s, n, q), with others, (s, n, a)."""
    return torch.bmm(probe.transpose(1, 2) / probe.shape[1], columns)


def _waves(x: Tensor, count: int, scales: tuple[float, ...], generator: torch.Generator) -> Tensor:
    """(s, n, count) cosines along random directions, with frequencies of several scales."""
    s, _, width = x.shape
    scale = torch.tensor(scales).repeat(-(-count // len(scales)))[:count]
    frequency = torch.randn(s, width, count, generator=generator) * scale
    phase = 2.0 * torch.pi * torch.rand(s, 1, count, generator=generator)
    return torch.cos(torch.baddbmm(phase.to(x), x, frequency.to(x)))
