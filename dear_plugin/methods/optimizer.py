"""Optimizer: action sets with a fitted decoder and candidate values; cases in, proposals out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import Decoders, Sample, Still
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.wording import ZERO_ACTION, unreached
from dear_plugin.search import (
    CandidateGrids,
    Evidence,
    Incumbents,
    Search,
    SearchProblem,
    choose,
    descent_search,
    group_search,
    line_search,
    start_search,
)


@dataclass(frozen=True)
class Optimizer:
    """Searches for actions on s action sets.

    Attributes:
        sets: the s sets.
        decoders: of these and of other sets.
        grids: the candidate values.
        classifier: the model.
        seen_pairs: the pairs of values that indirect changes may produce; None for all.
    """

    sets: ActionSets
    decoders: Decoders
    grids: CandidateGrids
    classifier: Classifier
    seen_pairs: SeenPairs | None = None

    @classmethod
    def of(
        cls, sets: ActionSets, decoders: Decoders, classifier: Classifier, coarse: int
    ) -> Optimizer:
        """The optimizer of some sets, with candidate values from their training rows."""
        sample = decoders.fit_of(sets.members[0]).sample
        grids = CandidateGrids.of(sample.rows, sample.encoder, sets, coarse)
        return cls(sets, decoders, grids, classifier, sample.shared(_seen_pairs))

    @property
    def encoder(self) -> Encoder:
        """The encoder of the model."""
        return self.classifier.encoder

    @lazy
    def direct_only(self) -> Optimizer:
        """The same sets without indirect changes."""
        decoders = Decoders(Still(), self.decoders.sample, self.sets.members)
        return replace(self, decoders=decoders, seen_pairs=None)

    def index_of(self, members: tuple[int, ...]) -> int | None:
        """The position among `sets` of a set, given by its features' positions; None if absent."""
        known = [frozenset(m) for m in self.sets.members]
        wanted = frozenset(members)
        return known.index(wanted) if wanted in known else None

    def problem(self, case: Case, only: Tensor | None = None) -> SearchProblem:
        """The search problem of a case; `only`, (s,) bool, restricts the sets."""
        may = case.feasible.may_act(self.sets)
        return SearchProblem(
            case.x,
            case.goal,
            case.feasible,
            self.sets,
            self.decoders,
            self.classifier,
            may if only is None else may & only,
            self.seen_pairs,
        )

    def find(
        self,
        problem: SearchProblem,
        search: Search,
        prune: bool = True,
        starts: Tensor | None = None,
        limit: Tensor | None = None,
    ) -> Incumbents:
        """The cheapest success of every row and set.

        Args:
            problem: the search problem of n rows.
            search: the search settings.
            prune: skip actions that cannot become the cheapest of their row.
            starts: (n, w) values of the only set that are tried first.
            limit: (n,) successes that cost more than this are not searched for.
        """
        found = Incumbents.none(problem, limit)
        if starts is not None:
            with torch.inference_mode():
                start_search(problem, self.grids, starts, search, found)
        if search.solver == "paper":
            descent_search(problem, search, found)
            return found
        # `proposal` enters this mode itself; the search for alternatives does not.
        with torch.inference_mode():
            line_search(problem, self.grids, search, found, prune)
            group_search(problem, self.grids, search, found, prune)
        return found

    def proposal(
        self,
        case: Case,
        search: Search,
        evidence: Evidence | None = None,
        *,
        only: Tensor | None = None,
        starts: Tensor | None = None,
    ) -> Proposal:
        """The cheapest success of every row; with evidence, the cheapest that meets the criteria.

        Args:
            case: the rows.
            search: the search settings, and the criteria of an answer.
            evidence: what the criteria compare answers with; None takes the cheapest.
            only: (s,) bool, the sets that may be acted on; None for all.
            starts: as in `find`.
        """
        problem = self.problem(case, only)
        # The line search needs no derivatives, and small operations are faster in this mode.
        with torch.inference_mode(search.solver == "line"):
            proposal = self._search(problem, search, evidence, starts)
        return proposal.clone()

    def _search(
        self,
        problem: SearchProblem,
        search: Search,
        evidence: Evidence | None,
        starts: Tensor | None,
    ) -> Proposal:
        found = self.find(problem, search, starts=starts)
        if evidence is None:
            least, at = found.cost.min(1)
            sets = torch.where(least.isfinite(), at, -1)
            values = found.values[torch.arange(len(problem)), at]
            return self._completed(problem, search, found, sets, values)
        if search.min_confidence:
            problem = replace(problem, redrawn=True)
        known = [found.successes]
        if search.prefer_alone or search.max_reliance < 1.0:
            known.append(self._find_direct_only(problem, search, found).successes)
        choice, notes = choose(problem, self.grids, known, search, evidence)
        proposal = self._completed(problem, search, found, choice.sets, choice.values)
        return replace(proposal, notes=notes)

    def _find_direct_only(
        self, problem: SearchProblem, search: Search, found: Incumbents
    ) -> Incumbents:
        """Successes without indirect changes that cost at most `prefer_alone` more than others."""
        optimizer = self.direct_only
        alone = replace(problem, decoders=optimizer.decoders, seen_pairs=None, encoded={})
        limit = None
        if search.max_reliance == 1.0:
            limit = found.cost.amin(1) * (1.0 + search.prefer_alone)
        return optimizer.find(alone, replace(search, solver="line"), limit=limit)

    def decoded(
        self,
        problem: SearchProblem,
        rows: Tensor,
        sets: Tensor,
        values: Tensor,
        reasons: Sequence[str],
    ) -> Proposal:
        """The proposal of m actions.

        Args:
            problem: the search problem of n rows.
            rows: (m,) the row of each action.
            sets: (m,) the set acted on, -1 for no action.
            values: (m, w) the new values of its features.
            reasons: (m,) why there is no recourse; "" where there is one.
        """
        acting, x = sets >= 0, problem.x[rows]
        which = sets.clamp_min(0)
        moved, reached = problem.decode_actions(rows, which, values[:, None])
        expected, factual = problem.feasible.rounded(x, moved, rows), x[:, None]
        distance = self.encoder.distance
        lost = distance(expected, factual) - distance(reached, factual)
        direct = self.sets.masks[which] & acting[:, None]
        indirect = torch.where(direct, 0.0, lost[:, 0].clamp_min(0.0))
        return Proposal(
            torch.where(acting[:, None], reached[:, 0], x),
            direct,
            torch.where(acting, indirect.sum(1), 0.0),
            reasons,
        )

    def _completed(
        self,
        problem: SearchProblem,
        search: Search,
        found: Incumbents,
        sets: Tensor,
        values: Tensor,
    ) -> Proposal:
        """The proposal of successes; other rows get their nearest miss and a reason."""
        failed = sets < 0
        values = torch.where(failed[:, None], found.tried_values, values)
        labels, single = self.sets.labels, self.sets.single
        acted, names = self.sets.masks.any(0), self.encoder.schema.names
        reasons = [""] * len(sets)
        for i in failed.nonzero()[:, 0].tolist():
            which, may = int(found.tried_set[i]), problem.actionable[i]
            alone, together = int((may & single).sum()), int((may & ~single).sum())
            reasons[i] = (
                problem.feasible.why_nothing(i, acted, names)
                if which < 0
                else f"{unreached(alone, together, search.largest_set)};"
                f" acting on {labels[which]} comes closest"
            )
        every, chosen = torch.arange(len(sets)), torch.where(failed, found.tried_set, sets)
        proposal = self.decoded(problem, every, chosen, values, reasons)
        acts = problem.acts(every, sets.clamp_min(0), values[:, None])[:, 0] | failed
        if bool(acts.all()):
            return proposal
        return replace(proposal, notes=["" if done else ZERO_ACTION for done in acts.tolist()])


def _seen_pairs(sample: Sample) -> SeenPairs | None:
    return SeenPairs.of(sample.rows, sample.encoder)


def rows_by_set(acted: Tensor, rows: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """The sets of features that rows act on, each with its rows; no set is empty.

    Args:
        acted: (n, p) bool, the features that each row acts on.
        rows: (m,) ascending, the rows to group.

    Yields:
        The positions of the features, ascending, and (q,) the rows, ascending.
    """
    if not len(rows):
        return
    masks, which = acted[rows].unique(dim=0, return_inverse=True)
    for i, mask in enumerate(masks):
        if members := tuple(mask.nonzero()[:, 0].tolist()):
            yield members, rows[which == i]
