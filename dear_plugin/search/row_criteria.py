"""RowCriteria: the criteria of a search that any method can meet, as a requirement of its case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.problem.case import Case, Requirement
from dear_plugin.problem.goals import Goal
from dear_plugin.search.credibility import Evidence, Reached
from dear_plugin.search.criteria import TOLERANCE, Criterion, criteria_of_rows, scored
from dear_plugin.search.settings import Search


@dataclass(frozen=True)
class RowCriteria(Requirement):
    """Plausibility and support, as a search requires them.

    Attributes:
        goal: the targets of the rows of a call.
        evidence: what answers are compared with.
        wanted: the criteria of these rows.
        at: (m,) the positions of m of them.
    """

    goal: Goal
    evidence: Evidence
    wanted: Mapping[str, Criterion]
    at: Tensor

    @classmethod
    def of(cls, case: Case, search: Search, evidence: Evidence) -> RowCriteria | None:
        """The criteria of the rows of a call; None where a search has none of them."""
        wanted = criteria_of_rows(case.x, case.goal, search, evidence)
        return cls(case.goal, evidence, wanted, torch.arange(len(case))) if wanted else None

    def met(self, reached: Tensor, rows: Tensor) -> Tensor:
        """See `Requirement`."""
        return scored(Reached(self.at[rows], reached), self.wanted)[0] == torch.inf

    def mask(self, reached: Tensor) -> Tensor:
        """See `Requirement`."""
        mask = torch.ones(len(self.at), len(reached), dtype=torch.bool)
        least = {name: each.least[self.at, None] - TOLERANCE for name, each in self.wanted.items()}
        if "plausibility" in least:
            mask &= self.evidence.plausibility.of(reached) >= least["plausibility"]
        if "support" in least:
            some = mask.any(0).nonzero()[:, 0]
            share = self.evidence.support.of_each(reached[some], self.goal, self.at)
            mask[:, some] &= share >= least["support"]
        return mask

    def select(self, rows: Tensor) -> RowCriteria:
        """See `Requirement`."""
        return replace(self, at=self.at[rows])
