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
# For redraws, which start from the solution for the data.
WARM_ROUNDS, WARM_NEWTON_STEPS = 2, 2
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


class _OwnEffects(NamedTuple):
    """The cells and splits with effects of bins of their own.

    Attributes:
        cell: (z,) the cells.
        split: (z,) the splits.
        variance: (z,) of a step from one bin to the next, or between bins without an order.
    """

    cell: Tensor
    split: Tensor
    variance: Tensor

    @classmethod
    def none(cls) -> _OwnEffects:
        """Those of no cell."""
        empty = torch.empty(0, dtype=torch.int64)
        return cls(empty, empty, torch.empty(0))


class Solution(NamedTuple):
    """The solution for some splits; a starting point for similar counts.

    Attributes:
        bins: (b, q) effects of bins.
        base: (k, q) log-odds of cells.
        own: the cells with effects of their own.
    """

    bins: Tensor
    base: Tensor
    own: _OwnEffects

    def repeated(self, r: int) -> Solution:
        """The same for the splits of r redraws, (r * q), in single precision."""
        q = self.base.shape[1]
        bins, base = (each.float().repeat(1, r) for each in (self.bins, self.base))
        split = (self.own.split + q * torch.arange(r)[:, None]).flatten()
        own = _OwnEffects(self.own.cell.repeat(r), split, self.own.variance.float().repeat(r))
        return Solution(bins, base, own)


def solve(
    counts: SplitCounts, within: Tensor, start: Solution | None = None
) -> tuple[Tensor, Solution]:
    """(k, b, q) the share on the left of splits, and the solution it is computed from.

    Args:
        counts: the counts.
        within: (k, k) as in `Posterior`.
        start: the solution for similar counts.
    """
    share, several = counts.cell_share, len(counts.cell_share) > 1
    bins = _bin_effects(counts, start)
    rows = torch.einsum("ck,kbq->cbq", within.to(share.dtype), counts.total)
    base, effects = _logit(share) if start is None else start.base, bins
    own = _OwnEffects.none() if start is None else start.own
    steps = NEWTON_STEPS if start is None else WARM_NEWTON_STEPS
    for step in range(2 * steps if several else steps):
        base = _newton_step(base, effects, rows, share)
        if step == steps - 1 and several:
            now = torch.sigmoid(base[:, None] + effects)
            more, own = _own_effects(counts, now, None if start is None else own)
            effects = effects + more
    return torch.sigmoid(base[:, None] + effects), Solution(bins, base, own)


def _bin_effects(counts: SplitCounts, start: Solution | None) -> Tensor:
    """(b, q) the effects of bins on the log-odds that all cells share."""
    left, total, share, ordered = counts.left, counts.total, counts.own_share, counts.ordered
    base, effects = _logit(share), torch.zeros_like(left[0])
    variance: Tensor | None = None
    if start is not None:
        base, effects = _newton_step(start.base, start.bins, total, share), start.bins
    min_weight = MIN_WEIGHT * torch.einsum("kbq,kq->bq", total, share * (1.0 - share))
    for _ in range(ROUNDS if start is None else WARM_ROUNDS):
        now = torch.sigmoid(base[:, None] + effects)
        error = (left - total * now).sum(0)
        weight = (total * now * (1.0 - now)).sum(0).maximum(min_weight)
        raw = effects + (error / weight.clamp_min(1e-9)).clamp_(-MAX_STEP, MAX_STEP)
        effects, found = _shrunk_effects(raw, weight, ordered, variance)
        # With a starting point, the variance of the first round is kept.
        variance = None if start is None else found
        base = _newton_step(base, effects, total, share)
    return effects.clamp_(-MAX_EFFECT, MAX_EFFECT)


def _own_effects(
    counts: SplitCounts, now: Tensor, own: _OwnEffects | None
) -> tuple[Tensor, _OwnEffects]:
    """(k, b, q) effects of bins in single cells beyond the shared ones: zero in most cells.

    Args:
        counts: the counts.
        now: (k, b, q) the shares by shared effects.
        own: the cells with effects of their own; None selects them.
    """
    total = counts.total
    weight = total * now * (1.0 - now)
    raw = ((counts.left - total * now) / weight.clamp_min(1e-9)).clamp_(-MAX_STEP, MAX_STEP)
    cell, split = _deviating(raw, weight) if own is None else own[:2]
    out = torch.zeros_like(now)
    if not len(cell):
        return out, _OwnEffects.none()
    raw, weight = raw[cell, :, split].T, weight[cell, :, split].T
    known = None if own is None else own.variance
    effects, variance = _shrunk_effects(raw, weight, counts.ordered, known)
    out[cell, :, split] = effects.T
    return out.clamp_(-MAX_EFFECT, MAX_EFFECT), _OwnEffects(cell, split, variance)


def _deviating(raw: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The cells and splits whose counts contradict the shared effects, by a chi-square test."""
    freedom = (weight > 0.0).sum(1).double() - 1.0
    deviating = (weight * raw.square()).sum(1) > chi_square_bound(freedom)
    cell, split = deviating.nonzero(as_tuple=True)
    return cell, split


def _shrunk_effects(
    raw: Tensor, weight: Tensor, ordered: bool, variance: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(b, q) shrunk effects of bins and their variance, (q,), estimated if it is None."""
    if ordered:
        variance = step_variance(raw, weight) if variance is None else variance
        return smoothed_walk(raw, weight, variance), variance
    mean = (raw * weight).sum(0) / weight.sum(0).clamp_min(1e-9)
    one = torch.ones_like(mean)
    variance = between_variance(raw, weight, mean, one) if variance is None else variance
    return shrunk(raw, weight, mean, one, variance).to(raw.dtype), variance


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
