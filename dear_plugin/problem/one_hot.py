"""OneHot: the groups of a schema; rows and actions in, those with exactly one 1 in a group out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.groups import Group


@dataclass(frozen=True)
class OneHot:
    """Groups of binary features, of which a row that has exactly one 1 keeps exactly one.

    Attributes:
        members: the positions of the features of each group.
        group: (p,) int64, the group of each feature; -1 for none.
    """

    members: tuple[Tensor, ...]
    group: Tensor

    @classmethod
    def of(cls, groups: Sequence[Group], p: int) -> OneHot:
        """The groups of a schema of p features."""
        members, group = tuple(torch.tensor(each.members) for each in groups), torch.full((p,), -1)
        for i, positions in enumerate(members):
            group[positions] = i
        return cls(members, group)

    def kept(self, rows: Tensor) -> Tensor:
        """(m, g) bool, the groups of which exactly one feature of rows, (m, p), is 1."""
        sums = [rows[:, at].sum(1) == 1.0 for at in self.members]
        return torch.stack(sums, 1) if sums else rows.new_empty(len(rows), 0, dtype=torch.bool)

    def broken(self, rows: Tensor) -> Tensor:
        """(m, p) bool, the features of groups of which none or several are 1 in rows, (m, p)."""
        out = torch.zeros_like(rows, dtype=torch.bool)
        for at, kept in zip(self.members, self.kept(rows).T, strict=True):
            out[:, at] = ~kept[:, None]
        return out

    def repair(self, x: Tensor, moved: Tensor, bounds: tuple[Tensor, Tensor]) -> Tensor:
        """(m, c, p) rows with one 1 in each group of which x has one.

        Where only one feature of a group becomes 1, the others become 0; else nothing changes.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows to repair.
            bounds: (m, p) each, the least and greatest values.
        """
        for at in self.members:
            own, new, (low, high) = (
                x[:, None, at],
                moved[..., at],
                (b[:, None, at] for b in bounds),
            )
            wrong = (own.sum(-1) == 1.0) & (new.sum(-1) != 1.0)
            if bool(wrong.any()):
                entered = ((new == 1.0) & (own == 0.0)).to(new)
                fits = (entered >= low) & (entered <= high)
                level = (entered.sum(-1) == 1.0) & fits.all(-1)
                kept = torch.where(level[..., None], entered, own)
                moved = moved.index_copy(-1, at, torch.where(wrong[..., None], kept, new))
        return moved

    def holds(self, values: Tensor, own: Tensor, positions: Tensor) -> Tensor:
        """(m, c) bool: actions, (m, c, w), with one 1 in each group, or that leave it as it is.

        Args:
            values: the new values of features.
            own: (m, w) the factual ones.
            positions: (m, w) the features; repeated ones count once.
        """
        out = torch.ones(values.shape[:2], dtype=torch.bool)
        for inside in self._inside(positions):
            total = (values * inside).sum(2)
            same = ((values == own[:, None]) | ~inside).all(2)
            out &= (total == 1.0) | same
        return out

    def together(self, changed: Tensor, positions: Tensor) -> Tensor:
        """(m, c, w) bool: what is changed, or belongs to a group of which something is changed.

        Args:
            changed: (m, c, w) bool.
            positions: (m, w) the features.
        """
        for inside in self._inside(positions):
            changed = changed | ((changed & inside).any(2, keepdim=True) & inside)
        return changed

    def leveled(self, values: Tensor, weights: Tensor, positions: Tensor) -> Tensor:
        """Actions, (s, c, w), in which the feature of a group with the largest weight is 1.

        Args:
            values: the new values of features.
            weights: (c, w) those of each.
            positions: (s, w) the features.
        """
        for inside in self._inside(positions):
            largest = torch.where(inside, weights, -1.0).argmax(2, keepdim=True)
            level = torch.zeros_like(values).scatter(2, largest, 1.0)
            values = torch.where(inside, level, values)
        return values

    def _inside(self, positions: Tensor) -> Iterator[Tensor]:
        """(m, 1, w) bool of each group that is acted on, its features among positions, (m, w)."""
        first = torch.ones_like(positions, dtype=torch.bool)
        first[:, 1:] = positions[:, 1:] != positions[:, :1]
        which = torch.where(first, self.group[positions], -1)
        for i in which.unique().tolist():
            if i >= 0:
                yield (which == i)[:, None]
