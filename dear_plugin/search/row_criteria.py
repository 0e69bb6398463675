"""RowCriteria: the criteria of a search that any method can meet, as a requirement of its case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.problem.case import Requirement
from dear_plugin.search.credibility import Evidence, Queries
from dear_plugin.search.criteria import TOLERANCE, CriterionResult, of_rows, scored
from dear_plugin.search.settings import Search


@dataclass(frozen=True)
class Counterfactuals:
    """m counterfactuals, however they were found.

    Attributes:
        rows: (m,) the row.
        reached: (m, p) the counterfactual.
    """

    rows: Tensor
    reached: Tensor

    def __len__(self) -> int:
        """The number of counterfactuals (m)."""
        return len(self.rows)

    def part(self, at: Tensor) -> Counterfactuals:
        """Those at positions (q,)."""
        return Counterfactuals(self.rows[at], self.reached[at])


RowCriterion = Callable[[Counterfactuals], CriterionResult]


@dataclass(frozen=True)
class RowCriteria(Requirement):
    """Plausibility and support, as a search requires them.

    Attributes:
        queries: the rows of a call and their targets.
        search: the required values.
        evidence: what answers are compared with.
        wanted: the criteria.
        least: (n,) the required plausibility of the rows of the call.
        at: (m,) the positions of these m rows among those of the call.
    """

    queries: Queries
    search: Search
    evidence: Evidence
    wanted: Mapping[str, RowCriterion]
    least: Tensor
    at: Tensor

    @classmethod
    def of(cls, queries: Queries, search: Search, evidence: Evidence) -> RowCriteria | None:
        """The criteria of the rows of a call; None where a search has none of them."""
        wanted = of_rows(queries, search, evidence)
        if not wanted:
            return None
        every, least = torch.arange(len(queries.x)), torch.zeros(len(queries.x))
        if search.min_plausibility:
            least = evidence.plausibility.of(queries.x).clamp_max(search.min_plausibility)
        return cls(queries, search, evidence, wanted, least, every)

    def met(self, reached: Tensor, rows: Tensor) -> Tensor:
        """As of `Requirement`."""
        found = Counterfactuals(self.at[rows], reached)
        return scored(found, self.wanted)[0] == torch.inf

    def mask(self, reached: Tensor) -> Tensor:
        """As of `Requirement`."""
        mask = torch.ones(len(self.at), len(reached), dtype=torch.bool)
        if self.search.min_plausibility:
            share = self.evidence.plausibility.of(reached)
            mask &= share >= self.least[self.at][:, None] - TOLERANCE
        if self.search.min_support is not None:
            some = mask.any(0).nonzero()[:, 0]
            share = self.evidence.support.of_each(reached[some], self.queries.goal, self.at)
            mask[:, some] &= share >= self.search.min_support - TOLERANCE
        return mask

    def select(self, rows: Tensor) -> RowCriteria:
        """As of `Requirement`."""
        return replace(self, at=self.at[rows])
