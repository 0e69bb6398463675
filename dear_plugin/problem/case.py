"""Case: rows that need recourse, as a method sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from dear_plugin.problem.feasible import FeasibleSet
from dear_plugin.problem.target import Goal


@dataclass(frozen=True)
class Case:
    """m rows that need recourse, as a method sees them.

    Attributes:
        x: (m, p) the factual rows.
        goal: their targets.
        feasible: their admissible changes.
        slack: how far past the boundary to aim.
        rows: (m,) their positions in the frame that was asked about.
    """

    x: Tensor
    goal: Goal
    feasible: FeasibleSet
    slack: float
    rows: Tensor

    def __len__(self) -> int:
        """How many rows (m)."""
        return len(self.x)

    def select(self, rows: Tensor) -> Case:
        """Some of the rows."""
        return replace(
            self,
            x=self.x[rows],
            goal=self.goal.select(rows),
            feasible=self.feasible.select(rows),
            rows=self.rows[rows],
        )
