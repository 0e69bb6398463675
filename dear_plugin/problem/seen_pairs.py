"""SeenPairs: no change may create a pair of values that no training row has.

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

from dear_plugin.data.columns import FLOAT_STEP
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.labels import NEW
from dear_plugin.data.special_values import is_special

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
    """Which pairs of values occur in training rows.

    Every feature has codes: one per category, or one per tenth of a number's training values. The
    levels of a number have codes of their own besides, as of a further feature.

    Attributes:
        features: (f,) the features that take part in an unseen pair; one with levels may be twice.
        starts: (f,) int64, the first code of each.
        cuts: (f, 9) the deciles of numbers, ascending; infinite for categories.
        numbers: which of the f features have tenths.
        levels: which of the f features have levels, and (l,) their values; the first code of these
            is that of all other values.
        unseen: (t + 1, t + 1) bool, the pairs of codes that no training row has. The last code is
            that of every category that no training row has: none of its pairs is unseen.
        impossible: (t + 1, t + 1) bool, the unseen pairs that are not absent by chance.
    """

    features: Tensor
    starts: Tensor
    cuts: Tensor
    numbers: tuple[int, ...]
    levels: dict[int, Tensor]
    unseen: Tensor
    impossible: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder) -> SeenPairs | None:
        """The pairs of training rows, (n, p); None where every pair occurs."""
        number = encoder.is_number
        categories = torch.tensor([len(f.categories) for f in encoder.schema])
        found = {j: _levels(rows[:, j]) for j in number.nonzero()[:, 0].tolist()}
        found = {j: values for j, values in found.items() if len(values)}
        more = torch.tensor([1 + len(values) for values in found.values()], dtype=torch.int64)
        sizes = torch.cat([torch.where(number, TENTHS, categories.clamp_min(1)), more])
        if (bool(number.all()) and len(found) < 2) or int(sizes.sum()) > MOST_CODES:
            return None
        p, every = len(number), torch.arange(len(sizes))
        column = torch.cat([every[:p], torch.tensor(list(found), dtype=torch.int64)])
        has_levels = every >= p
        levels = {p + i: values for i, values in enumerate(found.values())}
        tenths = number[column] & ~has_levels
        whole = cls._empty(column, sizes, _tenths(rows, number)[column], tenths, levels)
        unseen, impossible = _unseen(whole.codes(rows), sizes, column, number[column], has_levels)
        some = torch.isin(every, every.repeat_interleave(sizes)[unseen.any(1)])
        if not bool(some.any()):
            return None
        kept, at = some.repeat_interleave(sizes), some.nonzero()[:, 0]
        levels = {i: levels[j] for i, j in enumerate(at.tolist()) if j in levels}
        part = cls._empty(column[at], sizes[at], whole.cuts[at], tenths[at], levels)
        unseen, impossible = (pad(p[kept][:, kept], (0, 1, 0, 1)) for p in (unseen, impossible))
        return replace(part, unseen=unseen, impossible=impossible)

    @classmethod
    def _empty(
        cls,
        features: Tensor,
        sizes: Tensor,
        cuts: Tensor,
        tenths: Tensor,
        levels: dict[int, Tensor],
    ) -> SeenPairs:
        numbers = tuple(tenths.nonzero()[:, 0].tolist())
        none = torch.empty(0)
        return cls(features, sizes.cumsum(0) - sizes, cuts, numbers, levels, none, none)

    def codes(self, rows: Tensor) -> Tensor:
        """(n, f) the codes of rows, (n, p)."""
        return self._codes(rows[:, self.features])

    def _codes(self, values: Tensor) -> Tensor:
        """(n, f) the codes of the features' values, (n, f)."""
        out, new = values.long(), values >= NEW
        for j in self.numbers:
            out[:, j] = torch.bucketize(values[:, j].contiguous(), self.cuts[j])
        for j, levels in self.levels.items():
            same = (values[:, j, None] - levels).abs() <= FLOAT_STEP
            out[:, j] = torch.where(same.any(1), same.long().argmax(1) + 1, 0)
        new[:, [*self.numbers, *self.levels]] = False
        return out.add_(self.starts).masked_fill_(new, len(self.unseen) - 1)

    def created(self, x: Tensor, reached: Tensor) -> Tensor:
        """(m,) bool: rows, (m, p), with an impossible pair that the factual, (m, p), lacks."""
        codes = self.codes(reached)
        row, feature = (codes != self.codes(x)).nonzero(as_tuple=True)
        pairs = self.impossible[codes[row, feature][:, None], codes[row]]
        return torch.zeros(len(x), dtype=torch.bool).index_fill(0, row[pairs.any(1)], True)

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
            same = self.features == self.features[worst][:, None]
            codes[at] = torch.where(same, factual[at], codes[at])
            undone[at] |= same
        return undone


def _unseen(
    codes: Tensor, sizes: Tensor, column: Tensor, number: Tensor, has_levels: Tensor
) -> tuple[Tensor, Tensor]:
    """(t, t) bool each: pairs of codes, (n, f), that only occur singly; of these, impossible ones.

    Args:
        codes: of the training rows.
        sizes: (f,) the number of codes.
        column: (f,) the feature.
        number: (f,) bool, numbers.
        has_levels: (f,) bool, the levels of numbers.
    """
    starts = sizes.cumsum(0) - sizes
    feature, number, level = (
        each.repeat_interleave(sizes) for each in (column, number, has_levels)
    )
    count = torch.bincount(codes.flatten(), minlength=len(feature)).double()
    count[starts[has_levels]] = 0.0  # other values than levels
    out = (count[:, None] > 0.0) & (count > 0.0) & (feature[:, None] != feature)
    levels = (level[:, None] | level) & number[:, None] & number
    expected = count[:, None] * count / len(codes)
    out &= torch.where(levels, expected >= EXPECTED, ~number[:, None] | ~number)
    out &= levels | ~(level[:, None] | level)
    for one in codes.T:
        out[one[:, None], codes] = False
    many, which = expected >= FEWEST, torch.arange(len(sizes)).repeat_interleave(sizes)
    chance = torch.where(many, (-expected).exp(), 0.0)
    absent, by_chance = (_sums(each.float(), which) for each in (out & many, chance))
    return out, out & many & (by_chance <= BY_CHANCE * absent)[which][:, which]


def _sums(pairs: Tensor, which: Tensor) -> Tensor:
    """(f, f) the sums of pairs of codes, (t, t), by the features, (t,)."""
    blocks = torch.nn.functional.one_hot(which).float()
    return blocks.T @ pairs @ blocks


def _levels(column: Tensor) -> Tensor:
    """(l,) the values that many rows of a number share, and its special ones, the commonest."""
    values, count = column.unique(return_counts=True)
    common = (count >= LEVEL * len(column)) | is_special(values)
    order = torch.where(common, count, 0).argsort(descending=True, stable=True)
    levels: Tensor = values[order][: min(MOST_LEVELS, int(common.sum()))]
    return levels


def _tenths(rows: Tensor, number: Tensor) -> Tensor:
    """(p, 9) the deciles of numbers; infinite for categories."""
    ranks = (torch.arange(1, TENTHS) * len(rows)) // TENTHS
    cuts = rows.sort(0).values[ranks].T.contiguous()
    return torch.where(number[:, None], cuts, torch.inf)
