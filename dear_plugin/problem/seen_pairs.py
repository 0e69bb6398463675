"""A rule: no change may create a pair of values that no training row has.

Pairs are those of two categories, of a category and a tenth of a number's values, and of a level
of a number (special, or shared by many rows) and a tenth or level of another number. A decoder
predicts features one by one, so single predictions may combine into impossible rows, such
as unmarried husbands. Of the indirect changes that create unseen pairs, the one in most of them
is undone, until no such pair is left. An action that creates an impossible pair is ruled out: one
that is unseen although many rows were expected to have it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.labels import NEW
from dear_plugin.data.numbers import known

TENTHS = 10
# With more codes than that, too many possible pairs are absent from training rows by chance.
MOST_CODES = 4096
# A value that this share of the rows has is a level of a number; a number has so many at most.
# A pair with a level is unseen only if so many rows would have it if the numbers were independent.
LEVEL, MOST_LEVELS, EXPECTED = 0.05, 8, 20.0
# Pairs are impossible only if so many rows would have each if the features were independent, and
# chance leaves out at most this share of those of the same two features.
FEWEST, BY_CHANCE = 5.0, 0.05


@dataclass(frozen=True)
class SeenPairs:
    """Which pairs of values occur in training rows, of features in a pair that none of them has.

    Values are coded: one code per category, or per tenth of a number's training values. The levels
    of a number have codes of their own besides, in a further column.

    Attributes:
        features: (f,) the feature of each column of codes.
        sizes: (f,) int64, the number of codes of each column.
        values: (f,) of a number its deciles, ascending, or its levels, to which a first code of
            all other values is added; None for categories.
        levels: (f,) bool, the columns of levels.
        absent: (t + 1, t + 1) how many rows were expected to have a pair of codes that none has,
            fewer than `FEWEST` where chance leaves out such pairs; 0 for all other pairs. Above 0
            a pair is unseen, from `FEWEST` on it is impossible.
    """

    features: Tensor
    sizes: Tensor
    values: tuple[Tensor | None, ...]
    levels: Tensor
    absent: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder) -> SeenPairs | None:
        """The pairs of training rows, (n, p), but of identifiers; None where every pair occurs."""
        every = cls._uncounted(rows, encoder)
        every = every._part((encoder.shares[every.features] > 0.0).nonzero()[:, 0])
        single = all(each is not None for each in every.values) and int(every.levels.sum()) < 2
        if single or len(every.column) > MOST_CODES:
            return None
        absent = _absent(every.read(rows), every)
        some = every.column[absent.any(1)].unique()
        if not len(some):
            return None
        kept = torch.isin(every.column, some)
        return replace(every._part(some), absent=pad(absent[kept][:, kept], (0, 1, 0, 1)))

    @classmethod
    def _uncounted(cls, rows: Tensor, encoder: Encoder) -> SeenPairs:
        """The codes of training rows, (n, p), without pairs."""
        ranks = (torch.arange(1, TENTHS) * len(rows)) // TENTHS
        cuts = rows.sort(0).values[ranks].T.contiguous()
        p, counts = encoder.p, [len(feature.categories) for feature in encoder.schema]
        found = {j: v for j in range(p) if not counts[j] and len(v := _levels(rows[:, j]))}
        values = (*(None if counts[j] else cuts[j] for j in range(p)), *found.values())
        pairs = zip(counts + [0] * len(found), values, strict=True)
        sizes = [n if v is None else 1 + len(v) for n, v in pairs]
        features, levels = torch.tensor([*range(p), *found]), torch.arange(len(sizes)) >= p
        return cls(features, torch.tensor(sizes), values, levels, torch.empty(0))

    def _part(self, some: Tensor) -> SeenPairs:
        """The columns at positions (g,)."""
        values = tuple(self.values[i] for i in some.tolist())
        own = self.features[some], self.sizes[some], values, self.levels[some]
        return SeenPairs(*own, self.absent)

    @lazy
    def starts(self) -> Tensor:
        """(f,) the first code of each column."""
        return self.sizes.cumsum(0) - self.sizes

    @lazy
    def column(self) -> Tensor:
        """(t,) the column of each code."""
        return torch.arange(len(self.sizes)).repeat_interleave(self.sizes)

    def read(self, rows: Tensor) -> Tensor:
        """(n, f) the codes of rows, (n, p); t for categories that no training row has."""
        values = rows[:, self.features]
        out, new = values.long(), values >= NEW
        for j, own in enumerate(self.values):
            if own is not None:
                column, new[:, j] = values[:, j].contiguous(), False
                of = _level_of if bool(self.levels[j]) else torch.bucketize
                out[:, j] = of(column, own)
        return out.add_(self.starts).masked_fill_(new, len(self.column))

    def created(self, x: Tensor, reached: Tensor, *, unseen: bool = False) -> Tensor:
        """(m,) bool: rows, (m, p), with an impossible pair that the factual, (m, p), lacks.

        Or with any pair that no training row has, if `unseen`.
        """
        codes = self.read(reached)
        row, column = (codes != self.read(x)).nonzero(as_tuple=True)
        expected = self.absent[codes[row, column][:, None], codes[row]]
        pairs = expected > 0.0 if unseen else expected >= FEWEST
        return torch.zeros(len(x), dtype=torch.bool).index_fill(0, row[pairs.any(1)], True)

    def repair(self, x: Tensor, moved: Tensor, acted: Tensor) -> Tensor:
        """(m, c, p) rows without indirect changes that create unseen pairs.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows to repair.
            acted: (m, p) bool, the features acted on, which are left as they are.
        """
        features = self.features
        free, changed = ~acted[:, features], moved.new_zeros(moved.shape[:2], dtype=torch.bool)
        for j, feature in enumerate(features.tolist()):
            changed |= (moved[..., feature] != x[:, None, feature]) & free[:, j, None]
        rows, candidates = changed.nonzero(as_tuple=True)
        if not len(rows):
            return moved
        factual = self.read(x)[rows]
        undone = self._undone(self.read(moved[rows, candidates]), factual, free[rows])
        pair, column = undone.nonzero(as_tuple=True)
        if len(pair):
            moved, feature = moved.clone(), features[column]
            moved[rows[pair], candidates[pair], feature] = x[rows[pair], feature]
        return moved

    def _undone(self, codes: Tensor, factual: Tensor, free: Tensor) -> Tensor:
        """(q, f) bool, the changes of free features to undo; writes into the codes."""
        undone, at = torch.zeros_like(free), torch.arange(len(codes))
        features = self.features
        while len(at):
            row, column = ((codes[at] != factual[at]) & free[at]).nonzero(as_tuple=True)
            count = torch.zeros(len(at), codes.shape[1], dtype=torch.int64)
            here = at[row]
            pairs = self.absent[codes[here, column][:, None], codes[here]]
            count[row, column] = (pairs > 0.0).sum(1)
            most, worst = count.max(1)
            at, worst = at[most > 0], worst[most > 0]
            same = features == features[worst][:, None]
            codes[at] = torch.where(same, factual[at], codes[at])
            undone[at] |= same
        return undone


def _absent(found: Tensor, codes: SeenPairs) -> Tensor:
    """(t, t) the expected rows of pairs that only occur singly, see `SeenPairs.absent`.

    Args:
        found: (n, f) the codes of the training rows.
        codes: what they stand for.
    """
    which, number = codes.column, torch.tensor([values is not None for values in codes.values])
    level, feature, number = codes.levels[which], codes.features[which], number[which]
    count = torch.bincount(found.flatten(), minlength=len(which)).double()
    count[codes.starts[codes.levels]] = 0.0  # other values than levels
    expected, has_level = count[:, None] * count / len(found), level[:, None] | level
    out = torch.where(number[:, None] & number, has_level & (expected >= EXPECTED), ~has_level)
    out &= (expected > 0.0) & (feature[:, None] != feature)
    for one in found.T:
        out[one[:, None], found] = False
    many = expected >= FEWEST
    chance = torch.where(many, (-expected).exp(), 0.0)
    absent, by_chance = (_sums(each.float(), which) for each in (out & many, chance))
    many &= (by_chance <= BY_CHANCE * absent)[which][:, which]
    expected = torch.where(many, expected, expected.clamp_max(FEWEST / 2.0))
    return torch.where(out, expected, 0.0).float()


def _sums(pairs: Tensor, which: Tensor) -> Tensor:
    """(f, f) the sums of pairs of codes, (t, t), by the features, (t,)."""
    blocks = torch.nn.functional.one_hot(which).float()
    return blocks.T @ pairs @ blocks


def _levels(column: Tensor) -> Tensor:
    """(l,) the values that many rows of a number share, and its special ones, the commonest."""
    values, count = column.unique(return_counts=True)
    common = (count >= LEVEL * len(column)) | ~known(values)
    order = torch.where(common, count, 0).argsort(descending=True, stable=True)
    levels: Tensor = values[order][: min(MOST_LEVELS, int(common.sum()))]
    return levels


def _level_of(column: Tensor, levels: Tensor) -> Tensor:
    """(n,) the position, from 1, of the level that each value is; 0 for none."""
    same = column[:, None] == levels
    return torch.where(same.any(1), same.long().argmax(1) + 1, 0)
