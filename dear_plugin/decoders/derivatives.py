"""Derivatives of g, exact by autograd."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dear_plugin.decoders.stack import Generate


def mixed_derivatives(g: Generate, v: Tensor, x_s: Tensor, valid: Tensor) -> Tensor:
    """(w, k, s, n, d) `d2 g / dv dx_S`, zero for columns that a set has not.

    Args:
        g: (s, n, k), (s, n, w) -> (s, n, d).
        v: (s, n, k) latents.
        x_s: (s, n, w) the columns of S.
        valid: (s, 1, w) which of them are the set's own.
    """
    by_x = torch.eye(x_s.shape[2]).to(x_s)[:, None, None] * valid
    by_v = torch.eye(v.shape[2]).to(v)

    def mixed(w: Tensor, u: Tensor) -> Tensor:
        return along(lambda there: along(lambda a: g(there, a), x_s, w), v, u)

    return torch.stack([torch.stack([mixed(w, u) for u in by_v]) for w in by_x])


def column_tangents(mask: Tensor) -> Tensor:
    """(w, s, 1, d) unit directions: the i-th column of every set, zero where it has fewer."""
    order = mask.cumsum(2) * mask
    return torch.stack([(order == i + 1).float() for i in range(int(mask.sum(2).max()))])


def along(f: Callable[[Tensor], Tensor], at: Tensor, direction: Tensor) -> Tensor:
    """The derivative of f at a point along a direction."""
    out: Tensor = torch.func.jvp(f, (at,), (direction.expand(at.shape),))[1]
    return out
