"""LargerSets: pairs and larger sets of features, fitted for rows that no given set solves.

All pairs come first. For rows that no pair solves, features are added one at a time (greedy
forward selection): from the attempt with the largest margin, the search over single features
adds the one that brings the row nearest to the target while the features acted on before keep
their new values. That search composes decoders of single features, which counts their common
effects twice: where it succeeds, a decoder is fitted on these features jointly, and only a
success under this decoder is an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.progress import bar
from dear_plugin.methods.optimizer import Optimizer, rows_by_set
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.problem.feasible import FeasibleSet
from dear_plugin.results.proposal import Proposal
from dear_plugin.search import Evidence, Search
from dear_plugin.search.incumbent import TOLERANCE

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LargerSets:
    """Pairs and larger sets of the features that may be acted on alone.

    Attributes:
        single: the given sets.
        coarse: values of a numeric feature tried first.
    """

    single: Optimizer
    coarse: int

    @lazy
    def pair_sets(self) -> ActionSets | None:
        """All pairs of the first features that may be acted on alone; None if there are none."""
        sets, schema = self.single.sets, self.single.encoder.schema
        known = {frozenset(m) for m in sets.members}
        names = [schema.names[m[0]] for m in sets.members if len(m) == 1]
        paired = combinations(names[: self.single.decoders.decoder.pair_features], 2)
        pairs = [p for p in paired if frozenset(schema.index(p)) not in known]
        return ActionSets.of(schema, pairs) if pairs else None

    def optimizer_of(self, members: tuple[int, ...]) -> Optimizer:
        """The optimizer of a pair or a larger set, by the positions of its features."""
        known = () if self.pair_sets is None else self.pair_sets.members
        is_pair = frozenset(members) in map(frozenset, known)
        return self.pairs if is_pair and self.pairs is not None else self.larger(members)

    @lazy
    def pairs(self) -> Optimizer | None:
        """The optimizer of all pairs; None if there are none."""
        if self.pair_sets is None:
            return None
        count = len(self.pair_sets)
        logger.info("fitting %d pairs of features for rows that no single one solves", count)
        return self._of(self.pair_sets)

    def proposal(
        self, case: Case, proposal: Proposal, search: Search, evidence: Evidence | None
    ) -> Proposal:
        """A proposal in which pairs or larger sets replace the rows that they solve.

        Args:
            case: the rows.
            proposal: their proposal from the given sets.
            search: the search settings.
            evidence: as in `Optimizer.proposal`.
        """
        incomplete = proposal.incomplete.nonzero()[:, 0]
        first, second = proposal, None
        if len(incomplete) and search.largest_set > 1 and self.pairs is not None:
            second = self.pairs.proposal(case.select(incomplete), search, evidence)
            proposal = _with_better(first, second, incomplete)
        failed = proposal.failed.nonzero()[:, 0]
        if not len(failed) or search.largest_set < 3:
            return proposal
        attempts = [first.select(failed)]
        if second is not None:
            attempts.append(second.select(proposal.failed[incomplete].nonzero()[:, 0]))
        start, acted = self._start(case.select(failed), attempts)
        for guide in (self.single, self.single.direct_only):
            part = case.select(failed), proposal.select(failed)
            last = self._add_features(*part, (start, acted), guide, search, evidence)
            proposal = _with_solved(proposal, last, failed)
            rest = last.failed.nonzero()[:, 0]
            failed, start, acted = failed[rest], start[rest], acted[rest]
            if not len(failed):
                break
        return proposal

    def _add_features(
        self,
        case: Case,
        proposal: Proposal,
        start: tuple[Tensor, Tensor],
        guide: Optimizer,
        search: Search,
        evidence: Evidence | None,
    ) -> Proposal:
        """A proposal of failures in which larger sets replace the rows that they solve.

        Args:
            case: the rows.
            proposal: their failures.
            start: where to start, and the features acted on there, see `_start`.
            guide: its search over single features chooses the feature to add.
            search: the search settings.
            evidence: as in `Optimizer.proposal`.
        """
        (here, acted), single = (each.clone() for each in start), guide.sets.single
        # Rows with a single actionable feature have nothing to add.
        several = (case.feasible.may_act(guide.sets) & single).sum(1) > 1
        open_rows = several.nonzero()[:, 0]
        while len(open_rows := open_rows[acted[open_rows].sum(1) < search.largest_set]):
            part, now = case.select(open_rows), (here[open_rows], acted[open_rows])
            fixed = replace(part, x=now[0], feasible=_fixed(part.feasible, *now))
            step = guide.proposal(fixed, search, only=single)
            here[open_rows], acted[open_rows] = step.rows, now[1] | step.direct
            extended = step.direct.any(1)
            tried = list(rows_by_set(acted, open_rows[extended & ~step.failed]))
            for members, rows in bar(tried, "trying larger sets of features"):
                found = self.larger(members).proposal(
                    case.select(rows), search, evidence, starts=here[rows][:, list(members)]
                )
                proposal, here[rows] = _with_solved(proposal, found, rows), found.rows
            open_rows = open_rows[extended & proposal.failed[open_rows]]
        return proposal

    def _start(self, case: Case, attempts: Sequence[Proposal]) -> tuple[Tensor, Tensor]:
        """Where the selection starts, (n, p), and the features acted on there, (n, p) bool.

        That is the attempt with the largest margin among those that act only on features that
        may be acted on alone; else the factual.
        """
        sets = self.single.sets
        alone = sets.masks[sets.single].any(0)
        here, acted = case.x.clone(), torch.zeros(case.x.shape, dtype=torch.bool)
        most = torch.full((len(case),), -torch.inf)
        for proposal in attempts:
            margin = self._margin(case, proposal.rows)
            tolerance = torch.where(most.isfinite(), TOLERANCE * most.abs(), 0.0)
            better = (margin > most + tolerance) & ~(proposal.direct & ~alone).any(1)
            most = torch.where(better, margin, most)
            here = torch.where(better[:, None], proposal.rows, here)
            changed = proposal.direct & (proposal.rows != case.x)
            acted = torch.where(better[:, None], changed, acted)
        return here, acted

    def _margin(self, case: Case, rows: Tensor) -> Tensor:
        return case.goal.margin(self.single.classifier.scores(rows, keep_off_grid=True)).float()

    def larger(self, members: tuple[int, ...]) -> Optimizer:
        """The optimizer of one larger set."""
        names = tuple(self.single.encoder.schema.names[j] for j in members)
        return self._of(ActionSets.of(self.single.encoder.schema, [names]))

    def _of(self, sets: ActionSets) -> Optimizer:
        single = self.single
        single.decoders.fit(sets.members)
        return Optimizer.of(sets, single.decoders, single.classifier, self.coarse)


def _with_better(proposal: Proposal, part: Proposal, rows: Tensor) -> Proposal:
    """A proposal in which a part replaces those of some rows, (m,) ascending, that it improves.

    A recourse is better than none, and a complete one than an incomplete one.
    """
    better = (~part.incomplete | (proposal.failed[rows] & ~part.failed)).nonzero()[:, 0]
    return proposal.merged(part.select(better), rows[better])


def _with_solved(proposal: Proposal, part: Proposal, rows: Tensor) -> Proposal:
    """A proposal in which a part replaces those of some rows, (m,) ascending, that it solves."""
    solved = (~part.failed).nonzero()[:, 0]
    return proposal.merged(part.select(solved), rows[solved])


def _fixed(feasible: FeasibleSet, here: Tensor, acted: Tensor) -> FeasibleSet:
    """A feasible set in which the features acted on, (n, p) bool, keep their values, (n, p)."""
    return replace(
        feasible,
        floor=torch.where(acted, here, feasible.floor),
        ceiling=torch.where(acted, here, feasible.ceiling),
        not_actionable=feasible.not_actionable | acted,
    )
