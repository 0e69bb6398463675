"""Answers: what a method computes about its results on first access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._progress import bar
from dear_plugin.problem.case import Case
from dear_plugin.results.lazy_answers import Credibility, LazyAnswers
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.spread import Spread
from dear_plugin.search.credibility import Reached
from dear_plugin.search.criteria import (
    completed,
    given,
    measures_of_rows,
    missing,
    required,
    unmet,
)
from dear_plugin.search.settings import CRITERIA

if TYPE_CHECKING:
    from dear_plugin.methods.base import RecourseMethod

# Rows whose redraws are held in memory at a time.
ROWS_REDRAWN = 1024


@dataclass(frozen=True)
class MethodAnswers(LazyAnswers):
    """The answers of a method about one of its results; picklable, as closures are not.

    Attributes:
        method: fitted.
        case: the n rows.
        frame: the same in user units.
        proposal: for them.
        success: (n,) bool, whether the decision is the wanted one.
    """

    method: RecourseMethod
    case: Case
    frame: pd.DataFrame
    proposal: Proposal
    success: Tensor

    @property
    def scores_are_probabilities(self) -> bool:
        """See `LazyAnswers`."""
        return self.case.goal.scores_are_probabilities

    @property
    def deviations(self) -> Tensor:
        """See `LazyAnswers`."""
        return self.method.trained.deviations

    def support(self, reached: Tensor, rows: Tensor) -> Tensor:
        """See `LazyAnswers`."""
        return self.method.trained.support.of(reached, self.case.goal, rows)

    def alternatives(self, k: int) -> Iterator[Recourses]:
        """See `LazyAnswers`; one at a time, as k results of many rows may not fit in memory."""
        method, case = self.method, self.case
        before = method.classifier.frame_scores(self.frame)
        accepted = case.goal.succeeds(before, lambda: method.classifier.decisions(self.frame))
        for proposal in method._alternatives(case, k):
            kept = proposal.keep_accepted(case.x, accepted)
            yield method._result_of(case, self.frame, kept, before)

    def flip_probabilities(self, position: int) -> Mapping[str, tuple[float, float]]:
        """See `LazyAnswers`."""
        return self.method._flip_probabilities(self.case, self.proposal, position)

    def credibility(self, rows: Tensor) -> Credibility:
        """See `LazyAnswers`."""
        method, success = self.method, self.success[rows]
        at = success.nonzero()[:, 0]
        case, answers = self.case.select(rows[at]), self.proposal.select(rows[at])
        found, ones = Reached(torch.arange(len(at)), answers.rows), torch.ones(len(at))
        measures = measures_of_rows(case.goal, method.trained)
        known = answers.measured[:, CRITERIA.index("plausibility")].double()
        shares = {"confidence": ones, "reliance": ones}
        shares |= method._shares_of_actions(case, answers)
        shares["plausibility"] = completed(known, measures["plausibility"], found)
        reliance = 1.0 - shares["reliance"].double()
        if not method.schema.tiers and bool((reliance > 0).any()):
            _ = method.trained.advised
        measures |= {name: given(share) for name, share in shares.items()}
        wanted = required(case.x, method._criteria, method.trained, measures)
        lacking = np.full(len(rows), "", dtype=object)
        lacking[at.numpy()] = (missing if method.search.has_criteria else unmet)(found, wanted)
        credible = success & torch.from_numpy(lacking == "")
        credible[at] &= ~answers.has_remark
        out = torch.full((3, len(rows)), torch.nan, dtype=torch.float64)
        out[:, at] = torch.stack([shares["confidence"].double(), reliance, shares["plausibility"]])
        sure, needed, plausible = out.numpy()
        return Credibility(sure, needed, plausible, credible.numpy(), lacking)

    def spread(self, rows: Tensor) -> Spread:
        """See `LazyAnswers`."""
        parts = rows.split(ROWS_REDRAWN)
        return Spread.joined(
            [
                self.method._spread(self.case.select(at), self.proposal.select(at))
                for at in bar(parts, "redraws, chunks of rows")
            ]
        )
