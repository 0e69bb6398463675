"""Rows plus the change of g, `x + g(v, a) - g(v, x_S)`, (m, p) -> (m, c, p)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dear_plugin.decoders.protocol import MIDDLE, maximal_coupling
from dear_plugin.paper.autoencoder.networks import Networks

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
    first = outputs[..., list(encoder.starts)]
    out = _shift_numbers(networks, x, first[:, 1:] - first[:, :1], ties)
    for j in encoder.labelled.nonzero()[:, 0].tolist():
        start = encoder.starts[j]
        shares = outputs[..., start : start + encoder.features[j].columns]
        if not encoder.blocks[j]:
            shares = torch.cat([1.0 - shares, shares], -1)
        out[..., j] = _categories(x[..., j], shares, ties[..., j])
    return out


def _categories(own: Tensor, shares: Tensor, tie: Tensor) -> Tensor:
    """(m, c) categories, given those of rows, (m, 1), and the old and c new shares, (m, 1 + c, t).

    The outputs of a network need not be probabilities; see `maximal_coupling` for `tie`, (m, 1).
    """
    lines = np.arange(shares.shape[:2].numel()).reshape(shares.shape[:2])
    here, there = (each.ravel() for each in np.broadcast_arrays(lines[:, :1], lines[:, 1:]))
    code, tie = (each.expand(-1, shares.shape[1] - 1).flatten() for each in (own.long(), tie))
    table = shares.detach().clamp(LEAST_PROBABILITY, 1.0).flatten(0, 1).numpy()
    reached = maximal_coupling(table, here, there, code.numpy(), tie.numpy())
    return torch.from_numpy(reached).view(len(own), -1).to(own.dtype)


def _shift_numbers(networks: Networks, x: Tensor, shift: Tensor, ties: Tensor) -> Tensor:
    """Rows, (m, 1, p), shifted by scaled (m, c, p): off an atom by its mean jump or not at all.

    With a drawn tie, other numbers move in whole steps, rounded at random; without one they are
    left to be rounded with everything else. They end among the observed values, or no farther
    outside than the row.
    """
    encoder, scaler = networks.encoder, networks.scaler
    starts = list(encoder.starts)
    at_atom = encoder.expand(x)[..., starts] == scaler.atom[..., starts]
    even = torch.from_numpy(encoder.grid.step) / encoder.width
    steps = torch.where(at_atom, scaler.jump[..., starts], even)
    whole = (shift / steps + ties - MIDDLE).round() * steps
    shift = torch.where((steps > 0.0) & (at_atom | (ties != MIDDLE)), whole, shift)
    low, high = torch.minimum(x, encoder.low), torch.maximum(x, encoder.high)
    return torch.clamp(x + shift * encoder.width, low, high)
