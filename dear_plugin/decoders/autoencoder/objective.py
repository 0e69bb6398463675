"""Objective: the weighted loss terms of the autoencoders on a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from dear_plugin.decoders.autoencoder.networks import Networks
from dear_plugin.decoders.autoencoder.penalties import (
    hessian_penalty,
    independence_penalty,
    probes,
    witness_penalty,
)

# The mean over a part of the batch estimates the Hessian penalty as well, at less cost.
HESSIAN_ROWS = 64
# Dependence that the decoder itself can use weighs more than what random functions find.
WITNESS = 3.0


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
