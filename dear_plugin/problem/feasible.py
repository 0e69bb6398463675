"""Limits: the admissible rows A_d of the paper's problem, exactly, for n people."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.special_values import SpecialLevels, is_special
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.rules import Rules

# What rounding may add to a scaled float32.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class FeasibleSet:
    """The admissible changes of n rows.

    Attributes:
        low: (n, p) least value an action may reach.
        high: (n, p) greatest value an action may reach.
        floor: (n, p) least value a row may take: `low`, or the factual where that is lower.
        ceiling: (n, p) greatest value a row may take; `floor = ceiling = x` where frozen.
        not_actionable: (n, p) bool, features that may not be acted on.
        allowed: (n, d) bool, which categories may be taken; None when all may.
        starts: (p,) int64, the first encoded column of each feature.
        blocks: (p,) bool, features of m > 2 categories.
        steps: (p,) float, the size of one unit of precision; values move in whole steps.
        offsets: (p,) double, how far the user's zero lies below the scaled one.
        off: (n, p) how far the factual rows lie past the nearest whole step, for people whose
            numbers are finer than the precision; None where nobody's are.
        user_bounds: the least and greatest value in user units, (n, p) double each, which a scaled
            float32 cannot name exactly.
        levels: where rows may be missing or special; None where they never are.
        rules: what must hold between columns; None for nothing.
        asked: (n, q + r) bool, which orders and rules are asked of each row: those that the
            factual keeps; None without rules.
    """

    low: Tensor
    high: Tensor
    floor: Tensor
    ceiling: Tensor
    not_actionable: Tensor
    allowed: Tensor | None
    starts: Tensor
    blocks: Tensor
    steps: Tensor
    offsets: Tensor
    off: Tensor | None
    user_bounds: tuple[Tensor, Tensor]
    levels: SpecialLevels | None = None
    rules: Rules | None = None
    asked: Tensor | None = None

    @lazy
    def inside(self) -> bool:
        """Whether anything ends before what was observed does: by a range, or by a direction."""
        return bool((self.low > 0.0).any()) or bool((self.high < 1.0).any())

    def select(self, rows: Tensor) -> FeasibleSet:
        """The limits of some rows."""
        some = self.allowed, self.off, self.asked
        allowed, off, asked = (None if each is None else each[rows] for each in some)
        return replace(
            self,
            low=self.low[rows],
            high=self.high[rows],
            floor=self.floor[rows],
            ceiling=self.ceiling[rows],
            not_actionable=self.not_actionable[rows],
            allowed=allowed,
            off=off,
            asked=asked,
            user_bounds=(_picked(self.user_bounds[0], rows), _picked(self.user_bounds[1], rows)),
        )

    def may_act(self, sets: ActionSets) -> Tensor:
        """(n, s) bool: which sets have no barred feature, and one with a value it may take."""
        room, not_actionable = (
            (self.low <= self.high)[:, sets.positions],
            self.not_actionable[:, sets.positions],
        )
        return room.any(2) & ~not_actionable.any(2)

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
        step, origin = self.steps[feature].double()[:, None], self.offsets[feature][:, None]
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
        here, steps = self._on_values(x)[:, None], self.steps.expand(x.shape).contiguous()[:, None]
        whole = (moved - here).div_(steps).round_()
        if self.off is None:
            return whole.mul_(steps).add_(here)
        base = here - self.off[rows][:, None]
        on = (moved - base).div_(steps).round_().mul_(steps).add_(base)
        return torch.where(whole == 0.0, here, on)

    def project(self, x: Tensor, moved: Tensor, rows: Tensor) -> Tensor:
        """The nearest admissible rows: A_d of the paper, exactly.

        Changes are rounded to whole steps, clipped to ranges and directions; what is frozen is
        x bit for bit; a category that is not allowed is not taken, nor a number that is still
        outside a range in which x is not, nor is a special level entered or left where the schema
        does not let an action do so.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) where the decoder would take them.
            rows: (m,) which row of the limits each belongs to.
        """
        out = self.rounded(x, moved, rows)
        floor, ceiling = (each.index_select(0, rows) for each in (self.floor, self.ceiling))
        out.clamp_(floor[:, None], ceiling[:, None])
        if bool(self._strays.any()):
            at = self._strays[rows].nonzero()[:, 0]
            out[at] = self._landed(x[at], out[at], rows[at])
        if self.levels is not None:
            out = self.levels.restrict(x, moved, out)
        if self.allowed is None:
            return out
        column = self.starts + torch.where(self.blocks, out, 0.0).long()
        fine = self.allowed[rows].gather(1, column.flatten(1)).view(out.shape)
        return torch.where(fine, out, x[:, None])

    def mend(self, x: Tensor, reached: Tensor, acted: Tensor, rows: Tensor) -> Tensor:
        """Rows, (m, c, p), whose indirect changes keep the orders between columns.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) where actions take them.
            acted: (m, p) bool, the features acted on.
            rows: (m,) which row of the limits each belongs to.
        """
        if self.rules is None or not len(self.rules.lower):
            return reached
        low = torch.maximum(self.floor, self.low).index_select(0, rows)
        high = torch.minimum(self.ceiling, self.high).index_select(0, rows)
        return self.rules.mend(x, reached, ~acted, (low, high))

    def satisfies_rules(self, reached: Tensor, rows: Tensor) -> Tensor:
        """(m,) bool: whether rows, (m, p), keep the rules asked of these rows, (m,)."""
        if self.rules is None or self.asked is None:
            return torch.ones(len(reached), dtype=torch.bool)
        return (self.rules.kept(reached) | ~self.asked[rows]).all(1)

    def broken_text(self, reached: Tensor, rows: Tensor) -> list[str]:
        """What rows of the limits, (m,), break of what is asked of them, in words.

        Args:
            reached: (n, p) where all rows go.
            rows: (m,) which of them.
        """
        if self.rules is None or self.asked is None:
            return [""] * len(rows)
        return self.rules.broken_text(reached[rows], self.asked[rows])

    def _on_values(self, x: Tensor) -> Tensor:
        """Rows, (m, p), with the user's zero where a number is missing or special."""
        if self.levels is None:
            return x
        special = is_special(x) & (self.levels.counts > 0)
        return torch.where(special, -self.offsets.float(), x)

    @lazy
    def _strays(self) -> Tensor:
        """(n,) bool, rows with a factual value outside what an action may reach."""
        return ((self.floor < self.low) | (self.ceiling > self.high)).any(1)

    def _landed(self, x: Tensor, moved: Tensor, rows: Tensor) -> Tensor:
        """Changes, (m, c, p), of which those that lie outside what may be reached are undone."""
        low, high = self.low[rows][:, None], self.high[rows][:, None]
        inside = (moved >= low - TOLERANCE) & (moved <= high + TOLERANCE) & (moved != x[:, None])
        return torch.where(inside, moved.clamp(low, high), x[:, None])


def _picked(ends: Tensor, rows: Tensor) -> Tensor:
    """Some rows of ends, (n, p); what is the same for all of them stays in memory once."""
    return ends[rows] if ends.is_contiguous() else ends[:1].expand(len(rows), -1)
