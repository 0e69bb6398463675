"""SeenPairs: no indirect change may create a pair of values that no training row has.

Pairs are those of two categories, and of a category and a tenth of a number's values. A decoder
predicts features one by one, so single predictions may combine into impossible rows, such as
unmarried husbands. Of the changes that create unseen pairs, the one in most of them is undone,
until no such pair is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind

TENTHS = 10
# With more codes than that, too many possible pairs are absent from training rows by chance.
MOST_CODES = 4096


@dataclass(frozen=True)
class SeenPairs:
    """Which pairs of values occur in training rows.

    Every feature has codes: one per category, or one per tenth of a number's training values.

    Attributes:
        features: (f,) the features that take part in an unseen pair.
        starts: (f,) int64, the first code of each.
        cuts: (f, 9) the deciles of numbers, ascending; infinite for categories.
        numbers: which of the f features are numbers.
        unseen: (t, t) bool, the pairs of codes that no training row has.
    """

    features: Tensor
    starts: Tensor
    cuts: Tensor
    numbers: tuple[int, ...]
    unseen: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder) -> SeenPairs | None:
        """The pairs of training rows, (n, p); None where every pair occurs."""
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

    def _codes(self, values: Tensor) -> Tensor:
        """(n, f) the codes of the features' values, (n, f)."""
        out = values.long()
        for j in self.numbers:
            out[:, j] = torch.bucketize(values[:, j].contiguous(), self.cuts[j])
        return out.add_(self.starts)

    def repair(self, x: Tensor, moved: Tensor, acted: Tensor) -> Tensor:
        """(m, c, p) rows without indirect changes that create unseen pairs.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows to repair.
            acted: (m, p) bool, the features acted on, which are left as they are.
        """
        free, here = ~acted[:, self.features], x[:, self.features]
        changed = moved.new_zeros(moved.shape[:2], dtype=torch.bool)
        for j, feature in enumerate(self.features.tolist()):
            changed |= (moved[..., feature] != here[:, j, None]) & free[:, j, None]
        rows, candidates = changed.nonzero(as_tuple=True)
        if not len(rows):
            return moved
        factual, free = self._codes(here)[rows], free[rows]
        undone = self._undone(self.codes(moved[rows, candidates]), factual, free)
        at = undone.any(1).nonzero()[:, 0]
        if len(at):
            pair, feature = undone[at].nonzero(as_tuple=True)
            pair, column = at[pair], self.features[feature]
            moved = moved.clone()
            moved[rows[pair], candidates[pair], column] = x[rows[pair], column]
        return moved

    def _undone(self, codes: Tensor, factual: Tensor, free: Tensor) -> Tensor:
        """(q, f) bool, the changes of free features to undo; writes into the codes."""
        undone = torch.zeros_like(free)
        at = torch.arange(len(codes))
        while len(at):
            row, feature = ((codes[at] != factual[at]) & free[at]).nonzero(as_tuple=True)
            count = torch.zeros(len(at), codes.shape[1], dtype=torch.int64)
            here = at[row]
            count[row, feature] = self.unseen[codes[here, feature][:, None], codes[here]].sum(1)
            most, worst = count.max(1)
            at, worst = at[most > 0], worst[most > 0]
            codes[at, worst] = factual[at, worst]
            undone[at, worst] = True
        return undone


def _unseen(codes: Tensor, sizes: Tensor, number: Tensor) -> Tensor:
    """(t, t) bool, the pairs of codes, (n, p), that occur singly but never together."""
    feature = torch.arange(len(sizes)).repeat_interleave(sizes)
    occurs = torch.zeros(len(feature), dtype=torch.bool)
    occurs[codes] = True
    out = occurs[:, None] & occurs & (feature[:, None] != feature)
    out &= ~(number[feature][:, None] & number[feature])
    for column in codes.T:
        out[column[:, None], codes] = False
    return out


def _tenths(rows: Tensor, number: Tensor) -> Tensor:
    """(p, 9) the deciles of numbers; infinite for categories."""
    ranks = (torch.arange(1, TENTHS) * len(rows)) // TENTHS
    cuts = rows.sort(0).values[ranks].T.contiguous()
    return torch.where(number[:, None], cuts, torch.inf)
