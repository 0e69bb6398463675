"""Draws: numbers of draws in; the bootstrap sample of each, and its place among people, out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

# The number of bootstrap samples that are estimated at a time, and how many times; further draws
# are other people in the same samples, so many in each, and from 0 down in the training rows.
DRAWS, TIMES, PEOPLE = 16, 2, 8


def sampled(draws: Tensor) -> Tensor:
    """(r,) the group of bootstrap samples of each draw, see `Estimate.drawn`; -1 for none."""
    group = (draws - 1) // DRAWS
    return torch.where(group < TIMES, group.clamp_min(-1), TIMES + group % TIMES)


@lru_cache(1024)
def _order(seed: int) -> Tensor:
    """(16,) the places of the samples in a random order."""
    return torch.randperm(DRAWS, generator=torch.Generator().manual_seed(seed))


def places(draws: Tensor, keys: Sequence[int]) -> Tensor:
    """(r, f) evenly spaced places in (0, 1), for each key in another order of the samples.

    Of each group of 16 draws of the same samples, other places.
    """
    group, places = (draws - 1) // DRAWS, (draws - 1) % DRAWS
    orders = [_order(key + int(group[0]) % TIMES) for key in keys]
    turned = torch.stack(orders, 1)[places] + group[:, None] // TIMES * (DRAWS // PEOPLE)
    return (turned % DRAWS + 0.5) / DRAWS
