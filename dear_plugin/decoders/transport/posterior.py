"""Belief: the conditional distributions that counts in bins of x_S give reason to believe in.

Features that show no association with x_S have one distribution in every bin, exactly. Of the
others, at each split of their values, the log-odds of the left side are those of a person's cell
(people alike in what is given) plus what the bin adds, which all cells have in common: many small
cells tell as much about it as a large one. What a bin adds is shrunk as far as the evidence asks.
Where the rows of one cell contradict it, that cell goes its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dear_plugin.decoders.transport.shrinkage import (
    LEAST_SPREAD,
    credible,
    pace,
    paced,
    spread,
    trusted,
)
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.value_tree import ValueTree

ENTRIES_A_BATCH = 1 << 20
ROUNDS, BALANCES = 5, 3
# And of counts like others, begun where those led to.
ROUNDS_AGAIN, BALANCES_AGAIN = 2, 2
# Log-odds are not told apart beyond this, and move by so much a round at most.
MOST, STEP = 14.0, 4.0
# A row is taken to tell at least this part of what one of the whole sample tells.
LEAST_TOLD = 0.05


@dataclass(frozen=True)
class Counts:
    """What was counted for one set.

    Attributes:
        counts: (k, b, t) how many rows of each cell, but of none within it, and of each bin hold
            each value.
        ordered: whether the bins are those of a number, in order.
    """

    counts: Tensor
    ordered: bool


@dataclass(frozen=True)
class Posterior:
    """How counts are read.

    Attributes:
        splits: of all values.
        within: (k, k) double, 1 where the second cell lies within the first, which is everyone.
        alone: (k, q) the share on the left of each split, of the rows of no cell within.
        whole: (k, q) the same of all rows of a cell.
        told: (s, p) bool, which features have to do with what each set acts on.
    """

    splits: ValueTree
    within: Tensor
    alone: Tensor
    whole: Tensor
    told: Tensor

    @classmethod
    def of(cls, total: Tensor, within: Tensor, supports: Supports, told: Tensor) -> Posterior:
        """Split the values.

        Args:
            total: (k, t) how many rows of each cell, but of none within it, hold each value.
            within: as above.
            supports: the values of each feature.
            told: as above.
        """
        splits = ValueTree.of(total.sum(0), supports)
        everyone = _shares(splits, total.sum(0, keepdim=True), None)
        alone, whole = (_shares(splits, some, everyone) for some in (total, within @ total))
        return cls(splits, within, alone, whole, told)

    def shares(self, which: int, counted: Counts) -> Tensor:
        """(k, b, t) P(x_j = value | bin, cell) for one set."""
        b = counted.counts.shape[1]
        left = self.whole[:, None].repeat(1, b, 1)
        told = self.told[which][self.splits.feature].nonzero()[:, 0]
        for at in told.split(max(1, ENTRIES_A_BATCH // (b * len(left)))):
            here, came = (each.double() for each in self.splits.some(at).counts(counted.counts))
            counts = _Counts(here, came, self.alone[:, at], self.whole[:, at], counted.ordered)
            left[..., at] = self._left(counts, None)[0]
        return self.splits.shares(left).float()

    def redrawn(self, which: int, counted: Counts, drawn: Tensor) -> Tensor:
        """(r, k, b, t) what `shares` would say of redraws of the counts, (r, k, b, t).

        How far bins are believed is found out anew. Where values are split, which cells go their
        own way and which features have to do with the set stays as the data have it: the shares
        of other features are as they were.
        """
        r, k, b, _ = drawn.shape
        left = self.whole[:, None].float().repeat(r, 1, b, 1)
        told = self.told[which][self.splits.feature].nonzero()[:, 0]
        data, others = (self.splits.upto(each) for each in (counted.counts, drawn))
        for at in told.split(max(1, ENTRIES_A_BATCH // (b * k * r))):
            some = self.splits.some(at)
            here, came = (each.double() for each in some.between(data))
            counts = _Counts(here, came, self.alone[:, at], self.whole[:, at], counted.ordered)
            start = self._left(counts, None)[1].repeated(r)
            # Redraws lie side by side, as splits do: what is done to splits is done to all.
            here, came = (
                each.permute(1, 2, 0, 3).reshape(k, b, -1) for each in some.between(others)
            )
            counts = _Counts(here, came, *self._sides(here.sum(1), came.sum(1)), counted.ordered)
            made = self._left(counts, start)[0]
            left[..., at] = made.view(k, b, r, -1).permute(2, 0, 1, 3)
        return self.splits.shares(left)

    def _sides(self, here: Tensor, came: Tensor) -> tuple[Tensor, Tensor]:
        """What `alone` and `whole` are of rows, (k, q), on the left side of splits and in all."""
        everyone = _share_of(here.sum(0, keepdim=True), came.sum(0, keepdim=True), None)
        within = self.within.to(here.dtype)
        alone, whole = (here, came), (within @ here, within @ came)
        return _share_of(*alone, everyone), _share_of(*whole, everyone)

    def _left(self, counts: _Counts, start: _Start | None) -> tuple[Tensor, _Start]:
        """(k, b, q) the share on the left of splits, and where to begin with counts like these."""
        whole, cells, again = counts.whole, len(counts.whole), start is not None
        bins = _added(counts, start)
        rows = torch.einsum("ck,kbq->cbq", self.within.to(whole.dtype), counts.came)
        base, added = _logit(whole) if start is None else start.base, bins
        own = _Own.none() if start is None else start.own
        turns = BALANCES_AGAIN if again else BALANCES
        for turn in range(2 * turns if cells > 1 else turns):
            base = _balanced(base, added, rows, whole)
            if turn == turns - 1 and cells > 1:
                now = torch.sigmoid(base[:, None] + added)
                more, own = _own(counts, now, own if again else None)
                added = added + more
        return torch.sigmoid(base[:, None] + added), _Start(bins, base, own)


class _Counts(NamedTuple):
    """What is known of some splits for one set.

    Attributes:
        left: (k, b, q) rows on the left side.
        came: (k, b, q) rows in all.
        alone: (k, q) as in `Posterior`, of these splits.
        whole: (k, q) likewise.
        ordered: whether bins are in order.
    """

    left: Tensor
    came: Tensor
    alone: Tensor
    whole: Tensor
    ordered: bool


class _Own(NamedTuple):
    """Where cells go their own way.

    Attributes:
        cell: (z,) which they are.
        split: (z,) at which split.
        trust: (z,) how far their bins are believed: the variance of a step from one to the next,
            or that between them.
    """

    cell: Tensor
    split: Tensor
    trust: Tensor

    @classmethod
    def none(cls) -> _Own:
        """Nowhere."""
        nobody = torch.empty(0, dtype=torch.int64)
        return cls(nobody, nobody, torch.empty(0))


class _Start(NamedTuple):
    """Where to begin: what counts like these led to.

    Attributes:
        added: (b, q) what bins add.
        base: (k, q) log-odds of cells.
        own: where cells go their own way.
    """

    added: Tensor
    base: Tensor
    own: _Own

    def repeated(self, r: int) -> _Start:
        """The same for r redraws side by side, in single precision."""
        q = self.base.shape[1]
        added, base = (each.float().repeat(1, r) for each in (self.added, self.base))
        split = (self.own.split + q * torch.arange(r)[:, None]).flatten()
        own = _Own(self.own.cell.repeat(r), split, self.own.trust.float().repeat(r))
        return _Start(added, base, own)


def _added(counts: _Counts, start: _Start | None) -> Tensor:
    """(b, q) what bins add to the log-odds of cells."""
    left, came, share, ordered = counts.left, counts.came, counts.alone, counts.ordered
    base, added = _logit(share), torch.zeros_like(left[0])
    trust: Tensor | None = None
    if start is not None:
        base, added = _balanced(start.base, start.added, came, share), start.added
    least = LEAST_TOLD * torch.einsum("kbq,kq->bq", came, share * (1.0 - share))
    for _ in range(ROUNDS if start is None else ROUNDS_AGAIN):
        now = torch.sigmoid(base[:, None] + added)
        off = (left - came * now).sum(0)
        weight = (came * now * (1.0 - now)).sum(0).maximum(least)
        seen = added + (off / weight.clamp_min(1e-9)).clamp_(-STEP, STEP)
        added, believed = _believed(seen, weight, ordered, trust)
        # Begun where counts like these led to, the first round knows already.
        trust = None if start is None else believed
        base = _balanced(base, added, came, share)
    return added.clamp_(-MOST, MOST)


def _own(counts: _Counts, now: Tensor, own: _Own | None) -> tuple[Tensor, _Own]:
    """(k, b, q) what bins add in single cells beyond what they add everywhere: mostly nothing.

    Args:
        counts: what was counted.
        now: (k, b, q) the share that is believed so far.
        own: where cells go their own way; None finds out.
    """
    came = counts.came
    weight = came * now * (1.0 - now)
    seen = ((counts.left - came * now) / weight.clamp_min(1e-9)).clamp_(-STEP, STEP)
    cell, split = _beyond(seen, weight) if own is None else own[:2]
    out = torch.zeros_like(now)
    if not len(cell):
        return out, _Own.none()
    seen, weight = seen[cell, :, split].T, weight[cell, :, split].T
    added, trust = _believed(seen, weight, counts.ordered, None if own is None else own.trust)
    out[cell, :, split] = added.T
    return out.clamp_(-MOST, MOST), _Own(cell, split, trust)


def _beyond(seen: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Which cells contradict, at which splits, what bins add everywhere."""
    free = (weight > 0.0).sum(1).double() - 1.0
    beyond = (weight * seen.square()).sum(1) > free + LEAST_SPREAD * (2.0 * free).clamp_min(
        0.0
    ).sqrt()
    cell, split = beyond.nonzero(as_tuple=True)
    return cell, split


def _believed(
    seen: Tensor, weight: Tensor, ordered: bool, trust: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(b, q) what bins add, shrunk, and how far they are believed, (q,), if that is not known."""
    if ordered:
        trust = pace(seen, weight) if trust is None else trust
        return paced(seen, weight, trust), trust
    mean = (seen * weight).sum(0) / weight.sum(0).clamp_min(1e-9)
    trust = spread(seen, weight, mean, torch.ones_like(mean)) if trust is None else trust
    return trusted(seen, weight, mean, torch.ones_like(mean), trust).to(seen.dtype), trust


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


def _shares(splits: ValueTree, total: Tensor, everyone: Tensor | None) -> Tensor:
    """(k, q) the share on the left of each split, of counts (k, t); that of few is near all's."""
    return _share_of(*splits.counts(total), everyone)


def _share_of(left: Tensor, came: Tensor, everyone: Tensor | None) -> Tensor:
    """(k, q) the share of rows, (k, q), on the left side; that of few is near everyone's."""
    seen = left / came.clamp_min(1e-9)
    if everyone is None:
        return torch.where(came > 0, seen, 0.5)
    mean = everyone[0]
    if len(seen) == 1:
        return everyone
    return credible(seen, came, mean, mean * (1.0 - mean)).to(left.dtype)
