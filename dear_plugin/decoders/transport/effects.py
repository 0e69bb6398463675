"""Effects: shrunk effects of bins and cells on the log-odds of the splits of values.

In: counts of rows on both sides of each split, by cell and bin; out: the share on the left side.
The log-odds are the sum of an effect of the cell and an effect of the bin; see `Posterior`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.decoders.transport.shrinkage import (
    between_variance,
    chi_square_bound,
    shrunk,
    smoothed_walk,
    step_variance,
)

ROUNDS, NEWTON_STEPS = 5, 3
# Log-odds effects are clamped to this range, and change by so much a step at most.
MAX_EFFECT, MAX_STEP = 14.0, 4.0
# The smallest weight of a row, relative to its weight at the overall share.
MIN_WEIGHT = 0.05


class SplitCounts(NamedTuple):
    """The counts at some splits for one set.

    Attributes:
        left: (k, b, q) rows on the left side.
        total: (k, b, q) rows on both sides.
        own_share: (k, q) as in `Posterior`, of these splits.
        cell_share: (k, q) likewise.
        ordered: whether the bins are in order.
    """

    left: Tensor
    total: Tensor
    own_share: Tensor
    cell_share: Tensor
    ordered: bool


def solve(counts: SplitCounts, within: Tensor) -> Tensor:
    """(k, b, q) the share on the left of splits.

    Args:
        counts: the counts.
        within: (k, k) as in `Posterior`.
    """
    share, several = counts.cell_share, len(counts.cell_share) > 1
    effects = _bin_effects(counts)
    rows = torch.einsum("ck,kbq->cbq", within.to(share.dtype), counts.total)
    base = _logit(share)
    for step in range(2 * NEWTON_STEPS if several else NEWTON_STEPS):
        base = _newton_step(base, effects, rows, share)
        if step == NEWTON_STEPS - 1 and several:
            now = torch.sigmoid(base[:, None] + effects)
            effects = effects + _own_effects(counts, now)
    return torch.sigmoid(base[:, None] + effects)


def _bin_effects(counts: SplitCounts) -> Tensor:
    """(b, q) the effects of bins on the log-odds that all cells share."""
    left, total, share, ordered = counts.left, counts.total, counts.own_share, counts.ordered
    base, effects = _logit(share), torch.zeros_like(left[0])
    min_weight = MIN_WEIGHT * torch.einsum("kbq,kq->bq", total, share * (1.0 - share))
    for _ in range(ROUNDS):
        now = torch.sigmoid(base[:, None] + effects)
        error = (left - total * now).sum(0)
        weight = (total * now * (1.0 - now)).sum(0).maximum(min_weight)
        raw = effects + (error / weight.clamp_min(1e-9)).clamp_(-MAX_STEP, MAX_STEP)
        effects = _shrunk_effects(raw, weight, ordered)
        base = _newton_step(base, effects, total, share)
    return effects.clamp_(-MAX_EFFECT, MAX_EFFECT)


def _own_effects(counts: SplitCounts, now: Tensor) -> Tensor:
    """(k, b, q) effects of bins in single cells beyond the shared ones: zero in most cells.

    Args:
        counts: the counts.
        now: (k, b, q) the shares by shared effects.
    """
    total = counts.total
    weight = total * now * (1.0 - now)
    raw = ((counts.left - total * now) / weight.clamp_min(1e-9)).clamp_(-MAX_STEP, MAX_STEP)
    cell, split = _deviating(raw, weight)
    out = torch.zeros_like(now)
    if not len(cell):
        return out
    raw, weight = raw[cell, :, split].T, weight[cell, :, split].T
    out[cell, :, split] = _shrunk_effects(raw, weight, counts.ordered).T
    return out.clamp_(-MAX_EFFECT, MAX_EFFECT)


def _deviating(raw: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The cells and splits whose counts contradict the shared effects, by a chi-square test."""
    freedom = (weight > 0.0).sum(1).double() - 1.0
    deviating = (weight * raw.square()).sum(1) > chi_square_bound(freedom)
    cell, split = deviating.nonzero(as_tuple=True)
    return cell, split


def _shrunk_effects(raw: Tensor, weight: Tensor, ordered: bool) -> Tensor:
    """(b, q) shrunk effects of bins."""
    if ordered:
        return smoothed_walk(raw, weight, step_variance(raw, weight))
    mean = (raw * weight).sum(0) / weight.sum(0).clamp_min(1e-9)
    one = torch.ones_like(mean)
    variance = between_variance(raw, weight, mean, one)
    return shrunk(raw, weight, mean, one, variance).to(raw.dtype)


def _newton_step(base: Tensor, effects: Tensor, rows: Tensor, share: Tensor) -> Tensor:
    """(k, q) log-odds of cells after a Newton step towards the shares of cells.

    Args:
        base: (k, q) log-odds.
        effects: (b, q) or (k, b, q) the effects of bins.
        rows: (k, b, q) the number of rows.
        share: (k, q) the shares of cells.
    """
    now = torch.sigmoid(base[:, None] + effects)
    weight = (rows * now * (1.0 - now)).sum(1).clamp_min(1e-9)
    error = rows.sum(1) * share - (rows * now).sum(1)
    step = (error / weight).clamp_(-MAX_STEP, MAX_STEP)
    return (base + step).clamp_(-2 * MAX_EFFECT, 2 * MAX_EFFECT)


def _logit(share: Tensor) -> Tensor:
    return torch.logit(share, 1e-6)
