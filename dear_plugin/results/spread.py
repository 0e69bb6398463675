"""Spread: how far the indirect changes of answers agree over redraws of the decoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special

# Of the redraws; what lies beyond them is not told.
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Spread:
    """Where redraws of the decoder take m rows, feature by feature, in row units.

    Attributes:
        low: (m, p) how far a number moves at its 10th percentile over the redraws, or in the
            answer where that is less; 0 of categories.
        high: (m, p) the same at the 90th percentile, or in the answer where that is more.
        moved: (m, p) int64, in how many redraws a feature ends up elsewhere than it was.
        count: how many redraws there are; 0 where nothing is redrawn.
    """

    low: Tensor
    high: Tensor
    moved: Tensor
    count: int

    @classmethod
    def none(cls, x: Tensor, rows: Tensor, numbers: Tensor) -> Spread:
        """Of answers that nothing is redrawn for.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            numbers: (p,) bool, which features are numbers.
        """
        step = _steps(x, rows[:, None], numbers)[:, 0]
        return cls(step, step.clone(), torch.zeros(x.shape, dtype=torch.int64), 0)

    @classmethod
    def of(cls, x: Tensor, rows: Tensor, redrawn: Tensor, numbers: Tensor) -> Spread:
        """Of answers and what becomes of them under r redraws.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            redrawn: (m, r, p) where the redraws take them.
            numbers: (p,) bool, which features are numbers.
        """
        count, own = redrawn.shape[1], _steps(x, rows[:, None], numbers)[:, 0]
        steps = _steps(x, redrawn, numbers).sort(1).values
        first, last = math.floor(LOW * (count - 1)), math.ceil(HIGH * (count - 1))
        low, high = torch.minimum(steps[:, first], own), torch.maximum(steps[:, last], own)
        return cls(low, high, (redrawn != x[:, None]).sum(1), count)

    @classmethod
    def joined(cls, parts: Sequence[Spread]) -> Spread:
        """Those of consecutive chunks as one."""
        low, high, moved = (
            torch.cat([getattr(part, name) for part in parts]) for name in ("low", "high", "moved")
        )
        return cls(low, high, moved, max(part.count for part in parts))

    def put(self, at: Tensor, part: Spread) -> Spread:
        """This one, with some rows, (q,), replaced by those of another."""
        return Spread(
            self.low.index_copy(0, at, part.low),
            self.high.index_copy(0, at, part.high),
            self.moved.index_copy(0, at, part.moved),
            max(self.count, part.count),
        )


def _steps(x: Tensor, rows: Tensor, numbers: Tensor) -> Tensor:
    """(m, r, p) how far numbers move; 0 of categories, and from or to a special level."""
    here = x[:, None]
    amount = numbers & ~is_special(here) & ~is_special(rows)
    return torch.where(amount, rows - here, 0.0)
