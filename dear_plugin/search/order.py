"""Order: columns of keys in; positions of what they sort, and of the first of equal ones, out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def order(*keys: Tensor) -> Tensor:
    """(m,) the positions in the order of keys, (m,) each, the first of which counts most."""
    return torch.from_numpy(np.lexsort([key.numpy() for key in keys[::-1]]))


def once(*keys: Tensor) -> Tensor:
    """(q,) ascending, the positions of the first of those with equal keys, (m,) each."""
    at = order(*keys)
    new = torch.zeros(len(at), dtype=torch.bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[at[1:]] != key[at[:-1]]
    return at[new].sort().values


def places(owner: Tensor) -> Tensor:
    """(m,) the place of each among those of its owner, which stand together, (m,)."""
    new = torch.ones(len(owner), dtype=torch.bool)
    new[1:] = owner[1:] != owner[:-1]
    at = torch.arange(len(owner))
    return at - torch.where(new, at, 0).cummax(0).values
