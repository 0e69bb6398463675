"""Belief: the conditional distributions that counts in bins of x_S give reason to believe in.

Features that show no association with x_S have one distribution in every bin, exactly. Of the
others, at each split of their values, the log-odds of the left side are those of a person's cell
(people alike in what is given) plus what the bin adds, which all cells have in common: many small
cells tell as much about it as a large one. What a bin adds is shrunk as far as the evidence asks.
Where the rows of one cell contradict it, that cell goes its own way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.decoders.shrinkage import LEAST_SPREAD, credible, walked
from dear_plugin.decoders.splits import Splits
from dear_plugin.decoders.supports import Supports

ENTRIES_A_BATCH = 1 << 20
ROUNDS, BALANCES = 5, 3
# Log-odds are not told apart beyond this, and move by so much a round at most.
MOST, STEP = 14.0, 4.0
# A row is taken to tell at least this part of what one of the whole sample tells.
LEAST_TOLD = 0.05


@dataclass(frozen=True)
class Counted:
    """What was counted for one set.

    Attributes:
        counts: (k, b, t) how many rows of each cell, but of none within it, and of each bin hold
            each value.
        ordered: whether the bins are those of a number, in order.
    """

    counts: Tensor
    ordered: bool


@dataclass(frozen=True)
class Belief:
    """How counts are read.

    Attributes:
        splits: of all values.
        within: (k, k) double, 1 where the second cell lies within the first, which is everyone.
        alone: (k, q) the share on the left of each split, of the rows of no cell within.
        whole: (k, q) the same of all rows of a cell.
        told: (s, p) bool, which features have to do with what each set acts on.
    """

    splits: Splits
    within: Tensor
    alone: Tensor
    whole: Tensor
    told: Tensor

    @classmethod
    def of(cls, total: Tensor, within: Tensor, supports: Supports, told: Tensor) -> Belief:
        """Split the values.

        Args:
            total: (k, t) how many rows of each cell, but of none within it, hold each value.
            within: as above.
            supports: the values of each feature.
            told: as above.
        """
        splits = Splits.of(total.sum(0), supports)
        everyone = _shares(splits, total.sum(0, keepdim=True), None)
        alone, whole = (_shares(splits, some, everyone) for some in (total, within @ total))
        return cls(splits, within, alone, whole, told)

    def shares(self, which: int, counted: Counted) -> Tensor:
        """(k, b, t) P(x_j = value | bin, cell) for one set."""
        b = counted.counts.shape[1]
        left = self.whole[:, None].repeat(1, b, 1)
        told = self.told[which][self.splits.feature].nonzero()[:, 0]
        for at in told.split(max(1, ENTRIES_A_BATCH // (b * len(left)))):
            some, counts = self.splits.some(at), counted.counts
            here, came = (each.double() for each in some.counts(counts))
            added = _added(here, came, self.alone[:, at], counted.ordered)
            whole = torch.einsum("ck,kbq->cbq", self.within, came)
            base = _logit(self.whole[:, at])
            for turn in range(2 * BALANCES if len(left) > 1 else BALANCES):
                base = _balanced(base, added, whole, self.whole[:, at])
                if turn == BALANCES - 1 and len(left) > 1:
                    now = torch.sigmoid(base[:, None] + added)
                    added = added + _own(here, came, now, counted.ordered)
            left[..., at] = torch.sigmoid(base[:, None] + added)
        return self.splits.shares(left).float()


def _added(left: Tensor, came: Tensor, share: Tensor, ordered: bool) -> Tensor:
    """(b, q) what bins add to the log-odds of cells.

    Args:
        left: (k, b, q) rows on the left side.
        came: (k, b, q) rows in all.
        share: (k, q) the share of each cell.
        ordered: whether bins are in order.
    """
    base, added = _logit(share), torch.zeros_like(left[0])
    least = LEAST_TOLD * torch.einsum("kbq,kq->bq", came, share * (1.0 - share))
    for _ in range(ROUNDS):
        now = torch.sigmoid(base[:, None] + added)
        off = (left - came * now).sum(0)
        weight = (came * now * (1.0 - now)).sum(0).maximum(least)
        seen = added + (off / weight.clamp_min(1e-9)).clamp_(-STEP, STEP)
        added = walked(seen, weight) if ordered else _apart(seen, weight)
        base = _balanced(base, added, came, share)
    return added.clamp_(-MOST, MOST)


def _own(left: Tensor, came: Tensor, now: Tensor, ordered: bool) -> Tensor:
    """(k, b, q) what bins add in single cells beyond what they add everywhere: mostly nothing.

    Args:
        left: (k, b, q) rows on the left side.
        came: (k, b, q) rows in all.
        now: (k, b, q) the share that is believed so far.
        ordered: whether bins are in order.
    """
    weight = came * now * (1.0 - now)
    seen = ((left - came * now) / weight.clamp_min(1e-9)).clamp_(-STEP, STEP)
    free = (weight > 0.0).sum(1).double() - 1.0
    beyond = (weight * seen.square()).sum(1) > free + LEAST_SPREAD * (2.0 * free).clamp_min(
        0.0
    ).sqrt()
    cell, split = beyond.nonzero(as_tuple=True)
    out = torch.zeros_like(now)
    if len(cell):
        seen, weight = seen[cell, :, split].T, weight[cell, :, split].T
        own = walked(seen, weight) if ordered else _apart(seen, weight)
        out[cell, :, split] = own.T
    return out.clamp_(-MOST, MOST)


def _apart(seen: Tensor, weight: Tensor) -> Tensor:
    """(b, q) what bins without an order add, shrunk."""
    mean = (seen * weight).sum(0) / weight.sum(0).clamp_min(1e-9)
    return credible(seen, weight, mean, torch.ones_like(mean))


def _balanced(base: Tensor, added: Tensor, came: Tensor, share: Tensor) -> Tensor:
    """(k, q) log-odds of cells, a step nearer to those that make their shares come true.

    Args:
        base: (k, q) log-odds.
        added: (b, q) or (k, b, q) what bins add.
        came: (k, b, q) rows.
        share: (k, q) the shares.
    """
    now = torch.sigmoid(base[:, None] + added)
    weight = (came * now * (1.0 - now)).sum(1).clamp_min(1e-9)
    off = came.sum(1) * share - (came * now).sum(1)
    return (base + (off / weight).clamp_(-STEP, STEP)).clamp_(-2 * MOST, 2 * MOST)


def _logit(share: Tensor) -> Tensor:
    return torch.logit(share, 1e-6)


def _shares(splits: Splits, total: Tensor, everyone: Tensor | None) -> Tensor:
    """(k, q) the share on the left of each split, of counts (k, t); that of few is near all's."""
    left, came = splits.counts(total)
    seen = left / came.clamp_min(1e-9)
    if everyone is None:
        return torch.where(came > 0, seen, 0.5)
    mean = everyone[0]
    return credible(seen, came, mean, mean * (1.0 - mean)) if len(total) > 1 else everyone
