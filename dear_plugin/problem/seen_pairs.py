"""Possible: an indirect change never makes a pair of values that no training row has.

Pairs are those of two categories, and of a category and a tenth of a number. Features are decoded
one by one, so single people may be told to become what nobody is: husbands who never married. Of
the changes that make such a pair, the one that makes most of them is left undone, until none is
left: people rather keep a value of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind

TENTHS = 10
# Of more categories than that, pairs are too many to be told from those that merely were not met.
MOST_CODES = 4096


@dataclass(frozen=True)
class SeenPairs:
    """Which pairs of values training rows have.

    Every feature has codes: a category each, or a tenth of the rows each.

    Attributes:
        features: (f,) the features that have a part in a pair which no row has.
        starts: (f,) int64, the first code of each.
        cuts: (f, 9) where each number is cut, sorted; infinite for categories.
        numbers: which of the f are numbers.
        unseen: (t, t) bool, the pairs of codes that no row has.
    """

    features: Tensor
    starts: Tensor
    cuts: Tensor
    numbers: tuple[int, ...]
    unseen: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder) -> SeenPairs | None:
        """Note the pairs of training rows, (n, p); None where every pair was met."""
        number = torch.tensor([f.kind is Kind.NUMERIC for f in encoder.schema])
        levels = torch.tensor([len(f.categories) for f in encoder.schema])
        sizes = torch.where(number, TENTHS, levels.clamp_min(1))
        if bool(number.all()) or int(sizes.sum()) > MOST_CODES:
            return None
        every = torch.arange(len(sizes))
        whole = cls._empty(every, sizes, _tenths(rows, number), number)
        unseen = _unseen(whole.codes(rows), sizes, number)
        features = every.repeat_interleave(sizes)[unseen.any(1)].unique()
        if not len(features):
            return None
        kept = torch.isin(every, features).repeat_interleave(sizes)
        some = cls._empty(features, sizes[features], whole.cuts[features], number[features])
        return replace(some, unseen=unseen[kept][:, kept])

    @classmethod
    def _empty(cls, features: Tensor, sizes: Tensor, cuts: Tensor, number: Tensor) -> SeenPairs:
        numbers = tuple(number.nonzero()[:, 0].tolist())
        starts = sizes.cumsum(0) - sizes
        return cls(features, starts, cuts, numbers, torch.empty(0))

    def codes(self, rows: Tensor) -> Tensor:
        """(n, f) the codes of rows, (n, p)."""
        return self._codes(rows[:, self.features])

    def _codes(self, own: Tensor) -> Tensor:
        """(n, f) the codes of what rows have of the features, (n, f)."""
        out = own.long()
        for j in self.numbers:
            out[:, j] = torch.bucketize(own[:, j].contiguous(), self.cuts[j])
        return out.add_(self.starts)

    def mended(self, x: Tensor, moved: Tensor, direct: Tensor) -> Tensor:
        """Where people end up, (m, c, p), without pairs that nobody has.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) where they would end up.
            direct: (m, p) bool, what they act on: it stays as it is.
        """
        free, here = ~direct[:, self.features], x[:, self.features]
        changed = moved.new_zeros(moved.shape[:2], dtype=torch.bool)
        for j, feature in enumerate(self.features.tolist()):
            changed |= (moved[..., feature] != here[:, j, None]) & free[:, j, None]
        who, where = changed.nonzero(as_tuple=True)
        if not len(who):
            return moved
        own, free = self._codes(here)[who], free[who]
        codes = self.codes(moved[who, where])
        undone = self._undone(codes, own, free)
        at = undone.any(1).nonzero()[:, 0]
        if len(at):
            pair, feature = undone[at].nonzero(as_tuple=True)
            pair, column = at[pair], self.features[feature]
            moved = moved.clone()
            moved[who[pair], where[pair], column] = x[who[pair], column]
        return moved

    def _undone(self, codes: Tensor, own: Tensor, free: Tensor) -> Tensor:
        """(q, f) bool, which changes are to be left undone.

        Args:
            codes: (q, f) the codes of rows; written into.
            own: (q, f) those of the people.
            free: (q, f) bool, what they do not act on.
        """
        undone = torch.zeros_like(free)
        at = torch.arange(len(codes))
        while len(at):
            row, feature = ((codes[at] != own[at]) & free[at]).nonzero(as_tuple=True)
            bad = torch.zeros(len(at), codes.shape[1], dtype=torch.int64)
            here = at[row]
            bad[row, feature] = self.unseen[codes[here, feature][:, None], codes[here]].sum(1)
            most, worst = bad.max(1)
            at, worst = at[most > 0], worst[most > 0]
            codes[at, worst] = own[at, worst]
            undone[at, worst] = True
        return undone


def _unseen(codes: Tensor, sizes: Tensor, number: Tensor) -> Tensor:
    """(t, t) bool, the pairs of codes, (n, p), that no row has though it has either."""
    feature = torch.arange(len(sizes)).repeat_interleave(sizes)
    held = torch.zeros(len(feature), dtype=torch.bool)
    held[codes] = True
    out = held[:, None] & held & (feature[:, None] != feature)
    out &= ~(number[feature][:, None] & number[feature])
    for own in codes.T:
        out[own[:, None], codes] = False
    return out


def _tenths(rows: Tensor, number: Tensor) -> Tensor:
    """(p, 9) the deciles of numbers; infinite for categories."""
    ranks = (torch.arange(1, TENTHS) * len(rows)) // TENTHS
    cuts = rows.sort(0).values[ranks].T.contiguous()
    return torch.where(number[:, None], cuts, torch.inf)
