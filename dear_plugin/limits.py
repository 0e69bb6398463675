"""Limits: the admissible rows A_d of the paper's problem, exactly, for n people."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.lazy import lazy


@dataclass(frozen=True)
class Limits:
    """The admissible changes of n rows.

    Attributes:
        low: (n, p) least value an action may reach.
        high: (n, p) greatest value an action may reach.
        floor: (n, p) least value a row may take: `low`, or the factual where that is lower.
        ceiling: (n, p) greatest value a row may take; `floor = ceiling = x` where frozen.
        barred: (n, p) bool, features that may not be acted on.
        allowed: (n, d) bool, which categories may be taken; None when all may.
        starts: (p,) int64, the first encoded column of each feature.
        blocks: (p,) bool, features of m > 2 categories.
        steps: (p,) float, the size of one unit of precision; values move in whole steps.
        origins: (p,) double, how far the user's zero lies below the scaled one.
        off: (n, p) how far the factual rows lie past the nearest whole step, for people whose
            numbers are finer than the precision; None where nobody's are.
        ends: the least and greatest value in user units, (n, p) double each, which a scaled
            float32 cannot name exactly.
    """

    low: Tensor
    high: Tensor
    floor: Tensor
    ceiling: Tensor
    barred: Tensor
    allowed: Tensor | None
    starts: Tensor
    blocks: Tensor
    steps: Tensor
    origins: Tensor
    off: Tensor | None
    ends: tuple[Tensor, Tensor]

    @lazy
    def inside(self) -> bool:
        """Whether anything ends before what was observed does: by a range, or by a direction."""
        return bool((self.low > 0.0).any()) or bool((self.high < 1.0).any())

    def select(self, rows: Tensor) -> Limits:
        """The limits of some rows."""
        allowed, off = (None if each is None else each[rows] for each in (self.allowed, self.off))
        return replace(
            self,
            low=self.low[rows],
            high=self.high[rows],
            floor=self.floor[rows],
            ceiling=self.ceiling[rows],
            barred=self.barred[rows],
            allowed=allowed,
            off=off,
            ends=(_picked(self.ends[0], rows), _picked(self.ends[1], rows)),
        )

    def may_act(self, sets: ActionSets) -> Tensor:
        """(n, s) bool: which sets have no barred feature, and one with a value it may take."""
        room, barred = (self.low <= self.high)[:, sets.positions], self.barred[:, sets.positions]
        return room.any(2) & ~barred.any(2)

    def admits(self, values: Tensor, feature: Tensor, rows: Tensor) -> Tensor:
        """Whether an action may set a feature to a value.

        Args:
            values: (m, c) row values.
            feature: (m,) the feature.
            rows: (m,) the row.
        """
        low, high = self.low[rows, feature], self.high[rows, feature]
        fine = (values >= low[:, None] - 1e-7) & (values <= high[:, None] + 1e-7)
        if self.allowed is None:
            return fine
        level = torch.where(self.blocks[feature][:, None], values, 0.0).long()
        column = self.starts[feature][:, None] + level
        return fine & self.allowed[rows[:, None], column]

    def snap(self, values: Tensor, feature: Tensor, rows: Tensor) -> Tensor:
        """Values an action may set a number to: inside its ends, in whole steps.

        Args:
            values: (m, c) row values.
            feature: (m,) the feature.
            rows: (m,) the row.
        """
        low, high = self.low[rows, feature][:, None], self.high[rows, feature][:, None]
        step, origin = self.steps[feature].double()[:, None], self.origins[feature][:, None]
        inside = torch.clamp(values, low, high).double()
        whole = inside.add_(origin).div_(step).round_().mul_(step).sub_(origin).float()
        return whole.clamp_(low, high)

    def rounded(self, x: Tensor, moved: Tensor, rows: Tensor) -> Tensor:
        """Changes in whole steps, (m, c, p); what moves comes to lie on one.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) where they would go.
            rows: (m,) which row of the limits each belongs to.
        """
        here, steps = x[:, None], self.steps.expand(x.shape).contiguous()[:, None]
        whole = (moved - here).div_(steps).round_()
        if self.off is None:
            return whole.mul_(steps).add_(here)
        base = here - self.off[rows][:, None]
        on = (moved - base).div_(steps).round_().mul_(steps).add_(base)
        return torch.where(whole == 0.0, here, on)

    def project(self, x: Tensor, moved: Tensor, rows: Tensor) -> Tensor:
        """The nearest admissible rows: A_d of the paper, exactly.

        Changes are rounded to whole steps, clipped to ranges and directions; what is frozen is
        x bit for bit; a category that is not allowed is not taken.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) where the decoder would take them.
            rows: (m,) which row of the limits each belongs to.
        """
        out = self.rounded(x, moved, rows)
        floor, ceiling = (each.index_select(0, rows) for each in (self.floor, self.ceiling))
        out.clamp_(floor[:, None], ceiling[:, None])
        if self.allowed is None:
            return out
        column = self.starts + torch.where(self.blocks, out, 0.0).long()
        fine = self.allowed[rows].gather(1, column.flatten(1)).view(out.shape)
        return torch.where(fine, out, x[:, None])


def _picked(ends: Tensor, rows: Tensor) -> Tensor:
    """Some rows of ends, (n, p); what is the same for all of them stays in memory once."""
    return ends[rows] if ends.is_contiguous() else ends[:1].expand(len(rows), -1)
