"""Remainder: people move by what g changes and otherwise stay who they are."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.autoencoder.networks import Networks

# The tie of people as they are shown: the likelier outcome.
MIDDLE = 0.5
LEAST_SHARE = 1e-3


def moved(networks: Networks, x: Tensor, made: Tensor, ties: Tensor) -> Tensor:
    """`x + g(v, a) - g(v, x_S)`, categories by their probabilities, (m, c, p).

    Args:
        networks: e and g.
        x: (m, 1, p) where people are.
        made: (m, 1 + c, d) g at their own x_S and at the c others.
        ties: (m, 1, p) a number in [0, 1) each.
    """
    encoder = networks.encoder
    features = encoder.schema.features
    first = made[..., list(encoder.starts)]
    out = _shifted(networks, x, first[:, 1:] - first[:, :1], ties)
    binary = [j for j, f in enumerate(features) if f.kind is Kind.BINARY]
    second = first[..., binary]
    shares = torch.stack([1.0 - second, second], -1)
    out[..., binary] = coupled(x[..., binary], shares, ties[..., binary])
    for j in encoder.blocks.nonzero()[:, 0].tolist():
        block = made[..., encoder.starts[j] :][..., : features[j].columns]
        out[..., j] = coupled(x[..., j], block, ties[..., j])
    return out


def coupled(own: Tensor, shares: Tensor, tie: Tensor) -> Tensor:
    """Categories by maximal coupling between a person's old probabilities and each new ones.

    A category is kept with probability min(1, new / old), else exchanged for one that gained, in
    proportion to the gains. In the middle: kept unless its probability more than halves, else
    exchanged for the one that gained most.

    Args:
        own: (m, 1, ...) the categories.
        shares: (m, 1 + c, ..., l) the old and the c new probabilities of l categories.
        tie: (m, 1, ...) a number in [0, 1) each.

    Returns:
        (m, c, ...).
    """
    shares = shares.clamp(LEAST_SHARE, 1.0)
    start, there = shares[:, :1], shares[:, 1:]
    at = own.long()[..., None]
    kept = (there.gather(-1, at.expand(*there.shape[:-1], 1)) / start.gather(-1, at))[..., 0]
    gain = (there - start).clamp_min(0.0)
    heap = gain.cumsum(-1) / gain.sum(-1, keepdim=True).clamp_min(1e-9)
    drawn = (tie - kept) / (1.0 - kept).clamp_min(1e-9)
    random = (heap < drawn[..., None]).sum(-1).clamp_max(gain.shape[-1] - 1)
    other = torch.where(tie == MIDDLE, gain.argmax(-1), random)
    return torch.where(kept >= tie, own, other.to(own.dtype))


def within_bounds(reached: Tensor, x: Tensor) -> Tensor:
    """Scaled values between 0 and 1, or no farther out than people were, (...)."""
    return torch.clamp(reached, x.clamp_max(0.0), x.clamp_min(1.0))


def _shifted(networks: Networks, x: Tensor, shift: Tensor, ties: Tensor) -> Tensor:
    """Numbers moved by (m, c, p): in whole steps by their tie, off an atom by a leap or not."""
    encoder, gauge = networks.encoder, networks.gauge
    starts = list(encoder.starts)
    stuck = x == gauge.atom[starts]
    steps = torch.where(stuck, gauge.leap[starts], encoder.units.steps)
    drawn = (shift / steps + ties - MIDDLE).round() * steps
    # As shown, what moves by degrees is left to be rounded with everything else.
    shift = torch.where(stuck | (ties != MIDDLE), drawn, shift)
    return within_bounds(x + shift, x)
