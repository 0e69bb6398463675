"""RowCriteria: the criteria of a search that any method can meet, as a requirement of its case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.problem.case import Case, Requirement
from dear_plugin.search.credibility import Evidence, Reached
from dear_plugin.search.criteria import TOLERANCE, Criterion, measures_of_rows, required, scored
from dear_plugin.search.settings import Search


@dataclass(frozen=True)
class RowCriteria(Requirement):
    """What a search requires of counterfactuals, however they were found.

    Attributes:
        wanted: the criteria of the rows of a call.
        at: (m,) the positions of m of them.
    """

    wanted: Mapping[str, Criterion]
    at: Tensor

    @classmethod
    def of(cls, case: Case, search: Search, evidence: Evidence) -> RowCriteria | None:
        """The criteria of the rows of a call; None where a search has none of them."""
        wanted = required(case.x, search, evidence, measures_of_rows(case.goal, evidence))
        return cls(wanted, torch.arange(len(case))) if wanted else None

    def met(self, reached: Tensor, rows: Tensor) -> Tensor:
        """See `Requirement`."""
        return scored(Reached(self.at[rows], reached), self.wanted)[0] == torch.inf

    def mask(self, reached: Tensor) -> Tensor:
        """See `Requirement`."""
        mask = torch.ones(len(self.at), len(reached), dtype=torch.bool)
        for criterion in self.wanted.values():
            some = mask.any(0).nonzero()[:, 0]
            pairs = Reached(self.at[:, None].expand(-1, len(some)), reached[some])
            least = criterion.least[self.at, None] - TOLERANCE
            mask[:, some] &= criterion.measure(pairs)[0] >= least
        return mask

    def select(self, rows: Tensor) -> RowCriteria:
        """See `Requirement`."""
        return replace(self, at=self.at[rows])
