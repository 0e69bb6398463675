"""Remainder: rows plus the change of g, `x + g(v, a) - g(v, x_S)`, (m, p) -> (m, c, p)."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.autoencoder.networks import Networks

# The tie without a random draw, which gives the likelier outcome.
MIDDLE = 0.5
LEAST_PROBABILITY = 1e-3


def add_change(networks: Networks, x: Tensor, outputs: Tensor, ties: Tensor) -> Tensor:
    """`x + g(v, a) - g(v, x_S)`, categories by their probabilities, (m, c, p).

    Args:
        networks: e and g of the set.
        x: (m, 1, p) the factual rows.
        outputs: (m, 1 + c, d) g at their own x_S and at the c others.
        ties: (m, 1, p) a number in [0, 1) each.
    """
    encoder = networks.encoder
    features = encoder.schema.features
    first = outputs[..., list(encoder.starts)]
    out = _shift_numbers(networks, x, first[:, 1:] - first[:, :1], ties)
    binary = [j for j, f in enumerate(features) if f.kind is Kind.BINARY]
    second = first[..., binary]
    probabilities = torch.stack([1.0 - second, second], -1)
    out[..., binary] = maximal_coupling(x[..., binary], probabilities, ties[..., binary])
    for j in encoder.blocks.nonzero()[:, 0].tolist():
        block = outputs[..., encoder.starts[j] :][..., : features[j].columns]
        out[..., j] = maximal_coupling(x[..., j], block, ties[..., j])
    return out


def maximal_coupling(own: Tensor, probabilities: Tensor, tie: Tensor) -> Tensor:
    """Categories by maximal coupling between the old probabilities and each of the new ones.

    A category is kept with probability min(1, new / old), else exchanged for one that gained, in
    proportion to the gains. At the middle tie: kept unless its probability more than halves, else
    exchanged for the one that gained most.

    Args:
        own: (m, 1, ...) the categories.
        probabilities: (m, 1 + c, ..., l) the old and the c new ones of l categories.
        tie: (m, 1, ...) a number in [0, 1) each.

    Returns:
        (m, c, ...).
    """
    probabilities = probabilities.clamp(LEAST_PROBABILITY, 1.0)
    old, new = probabilities[:, :1], probabilities[:, 1:]
    index = own.long()[..., None]
    kept = (new.gather(-1, index.expand(*new.shape[:-1], 1)) / old.gather(-1, index))[..., 0]
    gain = (new - old).clamp_min(0.0)
    cumulative = gain.cumsum(-1) / gain.sum(-1, keepdim=True).clamp_min(1e-9)
    position = (tie - kept) / (1.0 - kept).clamp_min(1e-9)
    drawn = (cumulative < position[..., None]).sum(-1).clamp_max(gain.shape[-1] - 1)
    other = torch.where(tie == MIDDLE, gain.argmax(-1), drawn)
    return torch.where(kept >= tie, own, other.to(own.dtype))


def within_bounds(reached: Tensor, x: Tensor) -> Tensor:
    """Scaled values between 0 and 1, or no farther outside than the factual, (...)."""
    return torch.clamp(reached, x.clamp_max(0.0), x.clamp_min(1.0))


def _shift_numbers(networks: Networks, x: Tensor, shift: Tensor, ties: Tensor) -> Tensor:
    """Rows, (m, 1, p), shifted by (m, c, p): off an atom by its mean jump or not at all.

    With a drawn tie, other numbers move in whole steps, rounded at random; without one they are
    left to be rounded with everything else.
    """
    encoder, scaler = networks.encoder, networks.gauge
    starts = list(encoder.starts)
    at_atom = x == scaler.atom[..., starts]
    steps = torch.where(at_atom, scaler.leap[..., starts], encoder.units.steps)
    whole = (shift / steps + ties - MIDDLE).round() * steps
    shift = torch.where(at_atom | (ties != MIDDLE), whole, shift)
    return within_bounds(x + shift, x)
