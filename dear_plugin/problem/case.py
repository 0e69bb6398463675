"""Case: the rows that a recourse method solves, with their targets and feasible sets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from dear_plugin.problem.feasible import FeasibleSet
from dear_plugin.problem.target import Goal


@dataclass(frozen=True)
class Case:
    """m rows that a recourse method solves.

    Attributes:
        x: (m, p) the factual rows.
        goal: the targets of the rows.
        feasible: the feasible sets of the rows.
        slack: the least margin that a search accepts.
        rows: (m,) positions of the rows in the user's frame.
    """

    x: Tensor
    goal: Goal
    feasible: FeasibleSet
    slack: float
    rows: Tensor

    def __len__(self) -> int:
        """The number of rows (m)."""
        return len(self.x)

    def select(self, rows: Tensor) -> Case:
        """The case of the rows at positions (q,)."""
        return replace(
            self,
            x=self.x[rows],
            goal=self.goal.select(rows),
            feasible=self.feasible.select(rows),
            rows=self.rows[rows],
        )
