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
from itertools import compress
from typing import Any

import numpy as np

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import known, padded
from dear_plugin.data.relations import Array

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

    features: Array
    sizes: Array
    values: tuple[Any, ...]
    levels: Array
    absent: Array

    @classmethod
    def of(cls, rows: Array, encoder: Encoder) -> SeenPairs | None:
        """The pairs of training rows, (n, p), but of identifiers; None where every pair occurs."""
        every = cls._uncounted(rows, encoder)
        every = every._part((encoder.shares.numpy()[every.features] > 0.0).nonzero()[0])
        single = all(each is not None for each in every.values) and every.levels.sum() < 2
        if single or len(every.column) > MOST_CODES:
            return None
        absent = _absent(every.read(rows), every)
        some = np.unique(every.column[absent.any(1)])
        if not len(some):
            return None
        kept = np.isin(every.column, some)
        return replace(every._part(some), absent=np.pad(absent[kept][:, kept], (0, 1)))

    @classmethod
    def _uncounted(cls, rows: Array, encoder: Encoder) -> SeenPairs:
        """The codes of training rows, (n, p), without pairs."""
        cuts = np.sort(rows, 0)[(np.arange(1, TENTHS) * len(rows)) // TENTHS].T
        p, counts = encoder.p, [len(feature.categories) for feature in encoder.schema]
        found = {j: v for j in range(p) if not counts[j] and len(v := _levels(rows[:, j]))}
        values = (*(None if counts[j] else cuts[j] for j in range(p)), *found.values())
        pairs = zip(counts + [0] * len(found), values, strict=True)
        sizes = [n if v is None else 1 + len(v) for n, v in pairs]
        levels = np.arange(len(sizes)) >= p
        return cls(np.array([*range(p), *found]), np.array(sizes), values, levels, np.empty(0))

    def _part(self, some: Array) -> SeenPairs:
        """The columns at positions (g,)."""
        values = tuple(self.values[i] for i in some.tolist())
        own = self.features[some], self.sizes[some], values, self.levels[some]
        return SeenPairs(*own, self.absent)

    @lazy
    def starts(self) -> Array:
        """(f,) the first code of each column."""
        return np.cumsum(self.sizes) - self.sizes

    @lazy
    def column(self) -> Array:
        """(t,) the column of each code."""
        return np.arange(len(self.sizes)).repeat(self.sizes)

    @lazy
    def _coded(self) -> tuple[Array, Array, Array]:
        """(f,) bool, the columns of categories; deciles and levels, (g, c), of those with either.

        What is no decile is infinite, and what is no level no number.
        """
        labels = np.array([each is None for each in self.values])
        cuts, levels = (compress(self.values, at) for at in (~self.levels & ~labels, self.levels))
        return labels, padded(cuts, np.inf), padded(levels)

    def read(self, rows: Array) -> Array:
        """(..., f) the codes of rows, (..., p); t for categories that no training row has."""
        values, (labels, cuts, levels) = rows[..., self.features], self._coded
        codes, numbers = np.zeros(values.shape, dtype=np.int64), ~self.levels & ~labels
        codes[..., labels] = values[..., labels]
        codes[..., numbers] = (values[..., numbers, None] > cuts).sum(-1)
        same = values[..., self.levels, None] == levels
        codes[..., self.levels] = (same * np.arange(1, same.shape[-1] + 1)).max(-1, initial=0)
        new = (values >= self.sizes) & labels
        return np.where(new, len(self.column), codes + self.starts)

    def created(self, x: Array, reached: Array, *, unseen: bool = False) -> Array:
        """(m,) bool: rows, (m, p), with an impossible pair that the factual, (m, p), lacks.

        Or with any pair that no training row has, if `unseen`.
        """
        codes = self.read(reached)
        row, column = (codes != self.read(x)).nonzero()
        expected = self.absent[codes[row, column][:, None], codes[row]]
        pairs = expected > 0.0 if unseen else expected >= FEWEST
        out = np.zeros(len(x), dtype=bool)
        out[row[pairs.any(1)]] = True
        return out

    def repair(self, x: Array, moved: Array, acted: Array) -> Array:
        """(m, c, p) rows without indirect changes that create unseen pairs.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows to repair.
            acted: (m, p) bool, the features acted on, which are left as they are.
        """
        features, free = self.features, ~acted[:, self.features]
        changed = (moved[..., features] != x[:, None, features]) & free[:, None]
        rows, candidates = changed.any(2).nonzero()
        if not len(rows):
            return moved
        undone = self._undone(self.read(moved[rows, candidates]), self.read(x)[rows], free[rows])
        pair, column = undone.nonzero()
        if len(pair):
            moved, feature = moved.copy(), features[column]
            moved[rows[pair], candidates[pair], feature] = x[rows[pair], feature]
        return moved

    def _undone(self, codes: Array, factual: Array, free: Array) -> Array:
        """(q, f) bool, the changes of free features to undo; writes into the codes."""
        undone, at = np.zeros_like(free), np.arange(len(codes))
        while len(at):
            row, column = ((codes[at] != factual[at]) & free[at]).nonzero()
            count = np.zeros((len(at), codes.shape[1]), dtype=np.int64)
            here = at[row]
            pairs = self.absent[codes[here, column][:, None], codes[here]]
            count[row, column] = (pairs > 0.0).sum(1)
            some, worst = count.any(1), count.argmax(1)
            at = at[some]
            same = self.features == self.features[worst[some]][:, None]
            codes[at] = np.where(same, factual[at], codes[at])
            undone[at] |= same
        return undone


def _absent(found: Array, codes: SeenPairs) -> Array:
    """(t, t) the expected rows of pairs that only occur singly, see `SeenPairs.absent`.

    Args:
        found: (n, f) the codes of the training rows.
        codes: what they stand for.
    """
    which, number = codes.column, np.array([values is not None for values in codes.values])
    level, feature, number = codes.levels[which], codes.features[which], number[which]
    count = np.bincount(found.flatten(), minlength=len(which)).astype(float)
    count[codes.starts[codes.levels]] = 0.0  # other values than levels
    expected, has_level = count[:, None] * count / len(found), level[:, None] | level
    out = np.where(number[:, None] & number, has_level & (expected >= EXPECTED), ~has_level)
    out &= (expected > 0.0) & (feature[:, None] != feature)
    for one in found.T:
        out[one[:, None], found] = False
    many = expected >= FEWEST
    chance = np.where(many, np.exp(-expected), 0.0)
    absent, by_chance = (_sums(each.astype(float), which) for each in (out & many, chance))
    many &= (by_chance <= BY_CHANCE * absent)[which][:, which]
    expected = np.where(many, expected, np.minimum(expected, FEWEST / 2.0))
    return np.where(out, expected, 0.0).astype(np.float32)


def _sums(pairs: Array, which: Array) -> Array:
    """(f, f) the sums of pairs of codes, (t, t), by the features, (t,)."""
    blocks = np.eye(which.max() + 1)[which]
    return np.asarray(blocks.T @ pairs @ blocks)


def _levels(column: Array) -> Array:
    """(l,) the values that many rows of a number share, and its special ones, the commonest."""
    values, count = np.unique(column, return_counts=True)
    common = (count >= LEVEL * len(column)) | ~known(values)
    order = np.argsort(-np.where(common, count, 0), kind="stable")
    return np.asarray(values[order][: min(MOST_LEVELS, common.sum())])
