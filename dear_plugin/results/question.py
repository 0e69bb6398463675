"""Question: a call, the method and the rows; what answers are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._progress import bar
from dear_plugin.data.columns import patch
from dear_plugin.data.encoder import Encoder
from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.case import Case
from dear_plugin.problem.reasons import Status
from dear_plugin.results.proposal import Batch, Proposal, identity_proposal
from dear_plugin.results.spread import Spread, spread
from dear_plugin.search.credibility import ROUNDING, Reached
from dear_plugin.search.criteria import (
    TOLERANCE,
    Criterion,
    Measure,
    least_values,
    margins,
    measures_of_rows,
    scored,
)
from dear_plugin.search.settings import CRITERIA, Search

# Rows whose resamples are held in memory at a time.
ROWS_RESAMPLED = 1024


class Method(Protocol):
    """What a result asks the method that made it."""

    encoder: Encoder
    search: Search
    in_threads: bool

    @property
    def _acts(self) -> Tensor: ...

    @property
    def trained(self) -> Trained:
        """The training rows."""

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, as plain values."""

    def _converted(self, frame: pd.DataFrame) -> pd.DataFrame: ...

    def _alternatives(
        self, case: Case, k: int, attempt: Attempt | None = None
    ) -> Sequence[Proposal]: ...


@dataclass(frozen=True)
class Credibility(Batch):
    """What m answers are worth, by the criteria of a search in their order.

    Attributes:
        measured: (m, c) double, the measured values, one minus the value for reliance; NaN where
            there is no answer, or where the criterion is not evaluated.
        least: (m, c) double, the required values; NaN where none is.
        margin: (m,) double, how far past the boundary the score is.
        least_margin: (m,) double, the required one; NaN where none is, or where nothing is done.
        credible: (m,) bool, whether there is an answer that has them, and the margin.
    """

    measured: Tensor
    least: Tensor
    margin: Tensor
    least_margin: Tensor
    credible: Tensor

    @property
    def lacks(self) -> Tensor:
        """(m, c) bool, the criteria that are not met."""
        return self.measured < self.least - TOLERANCE

    @property
    def near(self) -> Tensor:
        """(m,) bool, answers with less than the required margin."""
        return self.margin < self.least_margin * (1.0 - ROUNDING)


@dataclass
class Attempt:
    """A search of some rows, which alternatives continue.

    Attributes:
        first: the result of the first answers; None before.
        more: at most one function, which gives the first k answers of every row by rank, and
            continues with what it tried; a caller takes it out meanwhile.
    """

    first: Any = None
    more: list[Callable[[int], list[Proposal]]] = field(default_factory=list)


@dataclass(frozen=True)
class Question(Batch):
    """n rows, the method that gives recourse, and what the model says of the rows.

    Attributes:
        method: fitted.
        case: the n rows; those that cannot be read are zero, and no method sees them.
        frame: the same in user units.
        scores: (n, c) their scores, NaN for those that cannot be read.
        accepted: (n,) bool, whether the model's decision is the wanted one.
        unreadable: (n,) why a row cannot be read; "" where it can.
        n_jobs: the number of threads that search the rows, as in joblib.
        attempts: what was searched, by how far past the boundary; no part of a pickle.
    """

    method: Method
    case: Case
    frame: pd.DataFrame
    scores: Tensor
    accepted: Tensor
    unreadable: npt.NDArray[np.object_]
    n_jobs: int = 1
    attempts: dict[float, Attempt] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """What was searched is searched again."""
        return {**vars(self), "attempts": {}}

    def select(self, idx: Tensor) -> Self:
        """The question of the rows at positions (q,)."""
        return replace(super().select(idx), attempts={})

    @property
    def may_act(self) -> Tensor:
        """(n, p) bool, what a row may act on: a choice of the method, and of its limits."""
        return self.method._acts & ~self.case.feasible.limits.not_actionable

    @property
    def readable(self) -> Tensor:
        """(q,) the positions of the rows that can be read."""
        return torch.from_numpy(np.flatnonzero(self.unreadable == ""))

    @property
    def unchanged(self) -> Proposal:
        """The proposal that changes nothing; rows that cannot be read have failed."""
        return replace(identity_proposal(self.case.x, self.accepted), reasons=self.unreadable)

    def over_all(self, part: Proposal) -> Proposal:
        """A proposal for the rows that can be read as one for all rows."""
        whole = replace(self.unchanged, searched=part.searched)
        return part if len(self.readable) == len(self.case) else whole.merged(part, self.readable)

    def score(self, scores: Tensor) -> npt.NDArray[np.float64]:
        """(n,) the reported score of each row, given the model's, (n, c); NaN if unreadable."""
        out, at = np.full(len(self.case), np.nan), self.readable
        out[at.numpy()] = self.case.goal.select(at).score(scores[at]).double().numpy()
        return out

    def accepts_alone(self, rows: Tensor) -> Tensor:
        """(n,) bool, whether the user's model accepts rows, (n, p), that have an action alone."""
        every = torch.arange(len(self.case))
        after, seen = patch(self.method.encoder, self.frame, self.case.x, rows=rows)
        lawful = self.case.feasible.keeps_rules(seen, every, alone=True)
        return self.decided(after, seen, every)[1] & lawful

    def repaired(self, rows: Tensor, direct: Tensor, told: Tensor | bool = False) -> Tensor:
        """(n, p) the same rows, of which is set what actions, and what is told, force.

        Args:
            rows: (n, p) with the actions in place.
            direct: (n, p) bool, what is acted on.
            told: (n, p) bool, what else stays as it is.
        """
        still, order = direct.clone(), self.method.encoder.schema.causal_order
        for acted in still.unique(dim=0) if order.is_stated else ():
            held = list(order.held(acted.nonzero()[:, 0].tolist()))
            still[:, held] |= (direct == acted).all(1)[:, None]
        every, still = torch.arange(len(self.case)), still | torch.as_tensor(told)
        feasible, x = self.case.feasible, self.case.x
        return feasible.repair(x, rows[:, None], still, every, forced=True)[:, 0]

    def decided(self, frame: pd.DataFrame, seen: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(m, c) scores and (m,) bool, the wanted decision, of a frame of rows at positions."""
        classifier = self.method.trained.classifier
        scores, goal = classifier.frame_scores(frame, seen), self.case.goal.select(rows)
        return scores, goal.succeeds(scores, lambda: classifier.decisions(frame))

    def support(self, reached: Tensor, idx: Tensor) -> Tensor:
        """(m,) the support of rows, (m, p), at positions, (m,)."""
        return self.method.trained.support(reached, self.case.goal, idx)

    def consistency(self, proposal: Proposal, idx: Tensor) -> Tensor:
        """(m, p) double, the consistency of what answers at positions, (m,), act on; else 1."""
        x, rows, acted = self.case.x[idx], proposal.rows[idx], proposal.direct[idx]
        return self.method.trained.consistency.of(x, rows, acted, self.case.goal, idx)

    def spread(self, proposal: Proposal) -> Spread:
        """What becomes of the answers under resamples."""
        parts = torch.arange(len(self.case)).split(ROWS_RESAMPLED)
        return Spread.joined(
            [
                spread(self.case.select(at), proposal.select(at), self.method.trained)
                for at in bar(parts, "resamples, chunks of rows")
            ]
        )

    def credibility(
        self, proposal: Proposal, success: Tensor, scores: Tensor, spread: Spread
    ) -> Credibility:
        """What the answers of a proposal of any origin are worth.

        Args:
            proposal: of the rows.
            success: (n,) bool, where there are answers.
            scores: (n, c) of the rows with them.
            spread: of the proposal.
        """
        rows, trained = success.nonzero()[:, 0], self.method.trained
        search = self.method.search if self.method.search.has_criteria else Search()
        # What the search has measured is not evaluated again; its confidence is of resamples by
        # which it chose, in whose place are others.
        order, known = self.method.encoder.schema.causal_order, proposal.measured[rows].double()
        # With an order of causes, what follows is an effect of the action.
        gain = torch.ones_like(spread.gain) if order.is_stated else spread.gain
        for name, column in (
            ("gain", gain),
            ("reliance", 1.0 - spread.reliance),
            ("confidence", spread.confidence),
        ):
            known[:, CRITERIA.index(name)] = column[rows]
        measures: dict[str, Measure] = {
            **measures_of_rows(self.case.goal, trained),
            "consistency": lambda found: (self.consistency(proposal, found.rows).amin(1), 0.0, {}),
        }
        evaluated = {"plausibility", "consistency", "agreement"} | search.required.keys()
        # All are evaluated: of none a value is required here.
        none = torch.full((len(self.case),), -torch.inf)
        wanted = {
            name: Criterion(each, none) for name, each in measures.items() if name in evaluated
        }
        measured, least = torch.full((2, len(self.case), len(CRITERIA)), torch.nan).double()
        measured[rows] = scored(Reached(rows, proposal.rows[rows]), wanted, known)[2]
        own = proposal.least[rows].double()
        new = own.isnan()
        own = own.masked_scatter(new, trained.plausibility(self.case.x[rows[new]]).double())
        for name, column in least_values(search, own).items():
            least[rows, CRITERIA.index(name)] = column.double()
        if not order.is_stated and bool((spread.reliance[rows] > 0.0).any()):
            _ = trained.advised
        enough = self._asked_margin.masked_fill(~success | proposal.accepted, torch.nan)
        good = success & ~proposal.failed & (proposal.status != Status.NO_ADVICE)
        worth = Credibility(measured, least, self.case.goal.margin(scores).double(), enough, good)
        return replace(worth, credible=good & ~worth.near & ~worth.lacks.any(1))

    @property
    def _asked_margin(self) -> Tensor:
        """(n,) double, the margin that the method's search asks for; NaN where it does not."""
        if not self.method.search.margin:
            return torch.full((len(self.case),), torch.nan).double()
        return margins(self.case, self.method.search, self.method.trained).double()
