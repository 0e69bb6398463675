"""Jacobians: exact derivatives of g along x_S and v, as Proposition 1 and Lemma 1 have them."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.decoders.autoencoder.derivatives import column_tangents, directional_derivative
from dear_plugin.decoders.autoencoder.networks import Networks

RIDGE = 1e-8


def jacobians(networks: Networks, x: Tensor, train: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each set, `dg / dx_S` and `dg / dv . dv / dx_S`, (n, d, q) each.

    Args:
        networks: e and g, of one member.
        x: (n, d) encoded rows, where to take them.
        train: (m, d) encoded training rows; `dv / dx_S` is the least-squares slope over them.
    """
    s = len(networks.mask)
    wide, base = x.expand(s, *x.shape), train.expand(s, *train.shape)
    with torch.no_grad():
        v, x_s = networks.latents(wide), wide * networks.mask
        slopes = _regression_slopes(networks.latents(base), base * networks.mask)
    given, entangled = [], []
    for tangent in column_tangents(networks.mask).to(x):
        given.append(directional_derivative(lambda a: networks.generate(v, a), x_s, tangent))
        # The columns of S select the slope along this tangent.
        slope = torch.bmm(tangent, slopes)
        along_v = directional_derivative(lambda u: networks.generate(u, x_s), v, slope)
        entangled.append(along_v)
    columns = networks.mask[:, 0].sum(1).int().tolist()
    both = zip(torch.stack(given, 3), torch.stack(entangled, 3), columns, strict=True)
    return [(by_x[..., :q], by_v[..., :q]) for by_x, by_v, q in both]


def latent_jacobians(networks: Networks, x: Tensor) -> Tensor:
    """(s, n, d, k) `dg / dv` at encoded rows, (n, d), of one member."""
    wide = x.expand(len(networks.mask), *x.shape)
    with torch.no_grad():
        v, x_s = networks.latents(wide), wide * networks.mask
    tangents = torch.eye(v.shape[2]).to(v)
    columns = [
        directional_derivative(lambda u: networks.generate(u, x_s), v, tangent.expand(v.shape))
        for tangent in tangents
    ]
    return torch.stack(columns, 3)


def mean_jacobians(members: list[list[tuple[Tensor, Tensor]]]) -> list[tuple[Tensor, Tensor]]:
    """The Jacobians of the members' mean, set by set."""
    return [
        (
            torch.stack([given for given, _ in same]).mean(0),
            torch.stack([entangled for _, entangled in same]).mean(0),
        )
        for same in zip(*members, strict=True)
    ]


def _regression_slopes(v: Tensor, x_s: Tensor) -> Tensor:
    """(s, d, k) the least-squares slope of v on the columns of S, zero off them."""
    a = x_s - x_s.mean(1, keepdim=True)
    b = v - v.mean(1, keepdim=True)
    gram = torch.bmm(a.transpose(1, 2), a) / a.shape[1]
    cross = torch.bmm(a.transpose(1, 2), b) / a.shape[1]
    # Columns off S are zero throughout: the ridge leaves their slope at zero.
    slopes: Tensor = torch.linalg.solve(gram + RIDGE * torch.eye(a.shape[2]), cross)
    return slopes
