"""Wider: sets of several features, learned when a row needs them that no given set solves.

First all pairs. For rows that no pair solves, one feature more at a time (greedy forward
selection): from the attempt that comes closest, the search over single features says which one
takes the row nearest to the target when what is acted on already stays where it is. That search
composes decoders of single features, which counts what they share twice: where it succeeds, a
decoder is learned for exactly these features together, and only what succeeds with that one is an
answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders import Decoder
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.problem.feasible import FeasibleSet
from dear_plugin.results.proposal import Proposal
from dear_plugin.search import Evidence, Search
from dear_plugin.search.incumbent import TOLERANCE

logger = logging.getLogger(__name__)

# Of so many rows larger sets are learned.
ROWS = 10_000
# Float32 cells of the decoders of larger sets that are kept: 64 MiB, and as much for lookups.
CELLS = 1 << 24


@dataclass(frozen=True)
class LargerSets:
    """Pairs and larger sets of the features that may be acted on alone.

    What is learned depends on the training rows and the set alone, never on who asks or on which
    other sets were asked for.

    Attributes:
        rows: (n, p) the training rows.
        single: the sets asked for, with a decoder for each.
        clone_unfitted: an unfitted decoder.
        coarse: values of a numeric feature tried first.
        learned: the larger sets learned so far, by their features; the latest last.
    """

    rows: Tensor
    single: Optimizer
    clone_unfitted: Decoder
    coarse: int
    learned: dict[tuple[int, ...], Optimizer] = field(default_factory=dict)

    def asking(self, single: Optimizer) -> LargerSets:
        """The same for another model: what was learned is about the rows alone."""
        model = single.classifier
        other = replace(self, single=single, learned=_asking(self.learned, model))
        if (pairs := self.__dict__.get("pairs")) is not None:
            other.__dict__["pairs"] = pairs.asking(model)
        return other

    @lazy
    def pair_sets(self) -> ActionSets | None:
        """All pairs of the first features that may be acted on alone; None where there is none."""
        sets, schema = self.single.sets, self.single.encoder.schema
        known = {frozenset(m) for m in sets.members}
        names = [schema.names[m[0]] for m in sets.members if len(m) == 1]
        paired = combinations(names[: self.clone_unfitted.pair_features], 2)
        pairs = [p for p in paired if frozenset(schema.index(p)) not in known]
        return ActionSets.of(schema, pairs) if pairs else None

    def is_pair(self, members: tuple[int, ...]) -> bool:
        """Whether features, by their positions, are one of the pairs."""
        known = () if self.pair_sets is None else self.pair_sets.members
        return frozenset(members) in map(frozenset, known)

    @lazy
    def pairs(self) -> Optimizer | None:
        """The pairs, learned when they are first looked at."""
        if self.pair_sets is None:
            return None
        count = len(self.pair_sets)
        logger.info("learning %d pairs of features for rows that no single one solves", count)
        return self._learn(self.pair_sets)

    def proposal(
        self, case: Case, proposal: Proposal, search: Search, evidence: Evidence | None
    ) -> Proposal:
        """A plan with those rows replaced that pairs or larger sets solve.

        Args:
            case: the rows.
            proposal: what is proposed for them.
            search: how to search.
            evidence: as in `Moves.plan`.
        """
        wanting = proposal.wanting.nonzero()[:, 0]
        second = None
        if len(wanting) and search.largest_set > 1 and self.pairs is not None:
            second = self.pairs.proposal(case.select(wanting), search, evidence)
            first, proposal = proposal, _better(proposal, second, wanting)
        failed = proposal.failed.nonzero()[:, 0]
        attempts = [proposal.select(failed)]
        if second is not None:
            lost = proposal.failed[wanting].nonzero()[:, 0]
            attempts = [first.select(failed), second.select(lost)]
        if not len(failed) or search.largest_set < 3:
            return proposal
        here, acted = self._closest(case.select(failed), attempts)
        for guide in (self.single, self.single.still):
            if not len(failed):
                break
            part = case.select(failed)
            last = self._grown(
                part, proposal.select(failed), (here, acted), guide, search, evidence
            )
            proposal = _solved(proposal, last, failed)
            lost = last.failed.nonzero()[:, 0]
            failed, here, acted = failed[lost], here[lost], acted[lost]
        return proposal

    def _grown(
        self,
        case: Case,
        proposal: Proposal,
        start: tuple[Tensor, Tensor],
        guide: Optimizer,
        search: Search,
        evidence: Evidence | None,
    ) -> Proposal:
        """A plan of failures with those rows replaced that larger sets solve.

        Args:
            case: the rows.
            proposal: what is proposed for them.
            start: where to go on from and what is acted on already, see `_closest`.
            guide: says which feature is added.
            search: how to search.
            evidence: as in `Moves.plan`.
        """
        (here, acted), single = (each.clone() for each in start), guide.sets.single
        # Nothing can be added to the only feature.
        several = (case.feasible.may_act(guide.sets) & single).sum(1) > 1
        open_rows = several.nonzero()[:, 0]
        while len(open_rows := open_rows[acted[open_rows].sum(1) < search.largest_set]):
            part, now = case.select(open_rows), (here[open_rows], acted[open_rows])
            held = replace(part, x=now[0], feasible=_held(part.feasible, *now))
            step = guide.proposal(held, search, only=single)
            here[open_rows], acted[open_rows] = step.rows, now[1] | step.direct
            going = step.direct.any(1)
            for members, rows in _by_set(acted, open_rows[going & ~step.failed]):
                found = self.larger(members).proposal(
                    case.select(rows), search, evidence, starts=here[rows][:, list(members)]
                )
                proposal, here[rows] = _solved(proposal, found, rows), found.rows
            open_rows = open_rows[going & proposal.failed[open_rows]]
        return proposal

    def _closest(self, case: Case, attempts: Sequence[Proposal]) -> tuple[Tensor, Tensor]:
        """Where to go on from, (n, p), and what is acted on already, (n, p) bool.

        It is the attempt that comes closest to the target of those that act on nothing but
        features that may be acted on alone; else the factual.
        """
        sets = self.single.sets
        alone = sets.masks[sets.single].any(0)
        here, acted = case.x.clone(), torch.zeros(case.x.shape, dtype=torch.bool)
        most = torch.full((len(case),), -torch.inf)
        for proposal in attempts:
            margin = self._margin(case, proposal.rows)
            hair = torch.where(most.isfinite(), TOLERANCE * most.abs(), 0.0)
            better = (margin > most + hair) & ~(proposal.direct & ~alone).any(1)
            most = torch.where(better, margin, most)
            here = torch.where(better[:, None], proposal.rows, here)
            changed = proposal.direct & (proposal.rows != case.x)
            acted = torch.where(better[:, None], changed, acted)
        return here, acted

    def _margin(self, case: Case, rows: Tensor) -> Tensor:
        return case.goal.margin(self.single.classifier.scores(rows, keep_off_grid=True)).float()

    def larger(self, members: tuple[int, ...]) -> Optimizer:
        """One larger set, learned where it is not kept."""
        optimizer = self.learned.pop(members, None)
        if optimizer is None:
            schema = self.single.encoder.schema
            names = tuple(schema.names[j] for j in members)
            logger.info("learning %s together for rows that no pair solves", " + ".join(names))
            optimizer = self._learn(ActionSets.of(schema, [names]))
        self.learned[members] = optimizer
        size = sum(tensor.numel() for tensor in optimizer.decoder.tensors().values())
        for old in list(self.learned)[: -max(1, CELLS // max(size, 1))]:
            self.learned.pop(old, None)
        return optimizer

    def _learn(self, sets: ActionSets) -> Optimizer:
        rng = torch.Generator().manual_seed(0)
        some = self.rows[torch.randperm(len(self.rows), generator=rng)[:ROWS]]
        # What is learned outlives the call, and a tensor made in that mode is of little use.
        with torch.inference_mode(False):
            return Optimizer.learned(
                some,
                sets,
                self.clone_unfitted.clone_unfitted(),
                self.single.classifier,
                self.coarse,
            )


def _asking(
    learned: dict[tuple[int, ...], Optimizer], model: Classifier
) -> dict[tuple[int, ...], Optimizer]:
    return {key: optimizer.asking(model) for key, optimizer in list(learned.items())}


def _better(proposal: Proposal, part: Proposal, rows: Tensor) -> Proposal:
    """A plan with those of some rows, (m,) ascending, replaced for which a part of them is better.

    A recourse is better than none, and one that lacks nothing than one that does.
    """
    better = (~part.wanting | (proposal.failed[rows] & ~part.failed)).nonzero()[:, 0]
    return proposal.merged(part.select(better), rows[better])


def _solved(proposal: Proposal, part: Proposal, rows: Tensor) -> Proposal:
    """A plan with those of some rows, (m,) ascending, replaced that a part of them solves."""
    solved = (~part.failed).nonzero()[:, 0]
    return proposal.merged(part.select(solved), rows[solved])


def _held(feasible: FeasibleSet, here: Tensor, acted: Tensor) -> FeasibleSet:
    """Limits within which what is acted on already, (n, p) bool, stays where it is, (n, p)."""
    return replace(
        feasible,
        floor=torch.where(acted, here, feasible.floor),
        ceiling=torch.where(acted, here, feasible.ceiling),
        not_actionable=feasible.not_actionable | acted,
    )


def _by_set(acted: Tensor, rows: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Some rows, (m,) ascending, by the features that they act on, (n, p) bool."""
    if not len(rows):
        return
    masks, which = acted[rows].unique(dim=0, return_inverse=True)
    for i, mask in enumerate(masks):
        yield tuple(mask.nonzero()[:, 0].tolist()), rows[which == i]
