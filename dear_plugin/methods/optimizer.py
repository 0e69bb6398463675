"""Optimizer: made for each call; searches the rows of a case; answers and near misses out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from dear_plugin._progress import bar
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.evaluation.trained import Trained
from dear_plugin.models.classifier import Classifier
from dear_plugin.paper.descent import descended
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.problem.reasons import Status
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.results.proposal import ANOTHER, SEVERAL, Proposal, identity_proposal
from dear_plugin.search import (
    FeatureValues,
    Ranked,
    Search,
    SearchProblem,
    SearchRun,
)
from dear_plugin.search.criteria import margins
from dear_plugin.search.table import SearchTable

# Rows per search; cells of their tried actions, 256 MiB to 512, about as many of each set.
ROWS_A_CHUNK, CELLS_A_CHUNK, TRIED = 1024, 1 << 26, 64


@dataclass(frozen=True)
class Optimizer:
    """Searches for actions on s action sets.

    Attributes:
        sets: the s sets.
        decoders: of these and of other sets.
        classifier: the model.
        seen_pairs: the pairs of values that changes may produce; None for all.
    """

    sets: ActionSets
    decoders: Decoders
    classifier: Classifier
    seen_pairs: SeenPairs | None = None

    @classmethod
    def of(cls, sets: ActionSets, decoders: Decoders, classifier: Classifier) -> Optimizer:
        """The optimizer of some sets."""
        return cls(sets, decoders, classifier, decoders.sample.shared(_seen_pairs))

    def acting(self, acted: Tensor) -> tuple[Optimizer, Tensor]:
        """The optimizer of the sets that m rows, at least one, act on; (m,) the set of each row.

        Args:
            acted: (m, p) bool, the features that each row acts on, some of every row.
        """
        masks, sets = acted.unique(dim=0, return_inverse=True)
        members = [tuple(mask.nonzero()[:, 0].tolist()) for mask in masks]
        none = ActionSets((), (), self.sets.p)
        own = none.extended(members, self.classifier.encoder.schema.subjects)
        return replace(self, sets=own), sets

    def problem(self, case: Case) -> SearchProblem:
        """The search problem of a case."""
        return SearchProblem(
            case.x,
            case.goal,
            replace(case.feasible, seen_pairs=self.seen_pairs),
            self.sets,
            self.decoders,
            self.classifier,
            case.feasible.may_act(self.sets),
        )

    def proposals(
        self, case: Case, search: Search, trained: Trained, k: int = 1
    ) -> list[Proposal]:
        """The first k answers of every row, one proposal per rank.

        A row without an answer has the nearest miss in the first rank, with the reason; rows with
        fewer than k answers fail in later ones.

        Args:
            case: the rows.
            search: the settings.
            trained: what answers are compared with.
            k: the number of ranks.
        """
        width = self.sets.positions.shape[1] + 16
        size = max(1, min(ROWS_A_CHUNK, CELLS_A_CHUNK // (len(self.sets) * TRIED * width)))
        chunks = torch.arange(len(case)).split(size)
        parts = [
            self._searched(case.select(rows), search, trained, k)
            for rows in (bar(chunks, "searching, chunks of rows") if len(chunks) > 1 else chunks)
        ]
        return [Proposal.joined(ranks) for ranks in zip(*parts, strict=True)]

    def _searched(self, case: Case, search: Search, trained: Trained, k: int) -> list[Proposal]:
        """As `proposals`, of all rows at once."""
        problem = replace(
            self.problem(case),
            in_steps=search.in_steps,
            resampled=bool(search.min_confidence),
            indirect_weight=search.indirect_weight,
        )
        evidence, enough = trained if search.has_criteria else None, margins(case, search, trained)
        known = self.decoders.sample.shared(_multiples if search.in_steps else _training_values)
        source = partial(descended, schedule=search.schedule) if search.solver == "paper" else None
        # The line search needs no derivatives, and small operations are faster in this mode.
        with torch.inference_mode(source is None):
            answers = SearchRun(problem, search, evidence, known, case.aim, enough, source)
            ranked = answers.ranked(k)
            proposals = [self._proposal(case, answers, rank, i) for i, rank in enumerate(ranked)]
        return [proposal.clone() for proposal in proposals]

    def decoded(
        self, problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor
    ) -> Proposal:
        """The proposal of m actions.

        Args:
            problem: the search problem of n rows.
            rows: (m,) the row of each action.
            sets: (m,) the set acted on.
            values: (m, w) the new values of its features.
        """
        x, direct = problem.x[rows], problem.sets.masks[sets]
        moved, feasible = problem.decode(rows, sets, values[:, None]), problem.feasible
        reached = problem.project(moved, rows, sets)
        expected = feasible.levels.restrict(x, moved, feasible.rounded(x, moved), direct)
        distance, factual = self.classifier.encoder.distance, x[:, None]
        lost = distance(expected, factual) - distance(reached, factual)
        indirect = torch.where(direct, 0.0, lost[:, 0].clamp_min(0.0)).float()
        return Proposal(reached[:, 0], direct, indirect.sum(1), [""] * len(rows))

    def _proposal(self, case: Case, answers: SearchRun, ranked: Ranked, rank: int) -> Proposal:
        """The proposal of one rank for all rows."""
        m, table = len(case), answers.table
        excluded = table.has(table.tried.margin == -torch.inf)
        none = torch.full((m,), int(Status.NO_MORE if rank else Status.EXCLUDED))
        least = torch.full((m,), torch.nan) if answers.own is None else answers.own.float()
        proposal = replace(
            identity_proposal(case.x, torch.zeros(m, dtype=torch.bool)),
            status=none,
            tried=self._tried(case, excluded),
            least=least,
        )
        if not rank:
            proposal = replace(proposal, reasons=self._why_nothing(case, excluded, ranked))
        rows, sets = ranked.rows, table.tried.sets[ranked.at]
        kept = {
            "kind": torch.where(table.size[sets] > 1, SEVERAL, ANOTHER),
            "tried": proposal.tried[rows],
            "least": least[rows],
        }
        return proposal.merged(replace(self._explained(table, ranked.at), **kept), rows)

    def _why_nothing(self, case: Case, excluded: Tensor, ranked: Ranked) -> list[str]:
        """(n,) the reasons of rows of which no action was tried; "" for others."""
        acted, names = self.sets.masks.any(0), self.classifier.encoder.schema.names
        reasons, nothing = [""] * len(case), ~excluded
        nothing[ranked.rows] = False
        for i in nothing.nonzero()[:, 0].tolist():
            reasons[i] = case.feasible.why_nothing(i, acted, names)
        return reasons

    def _explained(self, table: SearchTable, at: Tensor) -> Proposal:
        """The proposal of tried actions, with their status and what was measured."""
        actions, problem = table.tried.part(at), table.problem
        proposal = self.decoded(problem, actions.rows, actions.sets, actions.values)
        own = problem.own(actions.rows, actions.sets)
        still = (actions.values == own).all(1)
        status = torch.zeros(len(at), dtype=torch.int64)
        status[actions.margin < table.enough[actions.rows]] = Status.LESS_MARGIN
        status[still] = Status.NO_ADVICE
        status[actions.margin < table.aim[actions.rows]] = Status.UNREACHED
        return replace(proposal, status=status, measured=actions.measured)

    def _tried(self, case: Case, excluded: Tensor) -> Tensor:
        """(n, 3) the features that may act alone, the given groups, and what is left out."""
        may_act, single = case.feasible.may_act(self.sets), self.sets.alone
        counts = (may_act & single).sum(1), (may_act & ~single).sum(1), excluded.long()
        return torch.stack(counts, 1)


def _training_values(sample: Sample) -> FeatureValues:
    return FeatureValues.of(sample.rows, sample.encoder)


def _multiples(sample: Sample) -> FeatureValues:
    return FeatureValues.of(sample.rows, sample.encoder, steps=True)


def _seen_pairs(sample: Sample) -> SeenPairs | None:
    return SeenPairs.of(sample.rows, sample.encoder)
