"""Objective: what autoencoders are trained for, the weighted terms of a batch."""

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

# An average over a part of the batch estimates the Hessian penalty as well, at less cost.
HESSIAN_ROWS = 64
# What the decoder itself would read from v weighs more than what random functions read.
WITNESS = 3.0


@dataclass(frozen=True)
class Objective:
    """Reconstruction and penalties, each summed over the sets.

    Attributes:
        networks: e and g.
        hessian: weight of the Hessian penalty.
        independence: weight of the two penalties on v and x_S.
        noise: what is added to the latents, in their own standard deviations: no information
            about x_S can hide in their last digits.
    """

    networks: Networks
    hessian: float
    independence: float
    noise: float

    def __call__(self, x: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        """The terms of a batch of encoded rows, (b, d), or (e, b, d) of each member's own rows."""
        networks, s = self.networks, len(self.networks.sets)
        if x.ndim == 3:
            x = x[:, None].expand(-1, s, -1, -1).flatten(0, 1)
        wide = networks.gauge.scale(x).expand(len(networks.mask), *x.shape[-2:])
        clear = networks.latents(x)
        v, z_s = _blurred(clear, self.noise, generator), networks.pick(wide)
        made = networks.core(v, z_s)
        terms = {"reconstruction": len(made) * mse_loss(made, wide)}
        if self.hessian:
            few = v[:, :HESSIAN_ROWS], z_s[:, :HESSIAN_ROWS]
            mixed = hessian_penalty(networks.core, *few, networks.valid, generator)
            terms["hessian"] = self.hessian * mixed.sum()
        if self.independence:
            probe = probes(networks.seen(z_s), networks.valid, generator)
            gap = networks.core(v.roll(1, 1), z_s) - made
            found = independence_penalty(clear, probe, generator).sum()
            told = witness_penalty(gap, probe).sum()
            terms["independence"] = self.independence * found
            terms["witness"] = WITNESS * self.independence * told
        return terms


def _blurred(v: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Latents (s, n, k) with normal noise, a share of their spread in the batch."""
    if not noise:
        return v
    here = v.detach()
    spread = (here - here.mean(1, keepdim=True)).square().mean(1, keepdim=True).sqrt()
    rng = torch.randn(v.shape, generator=generator)
    return torch.addcmul(v, rng.to(v), spread, value=noise)
