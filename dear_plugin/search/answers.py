"""Answers: the stages of a search, and the ranked answers of every row.

A row is searched over the given sets; if these give no credible answer, over pairs of features;
and if nothing is accepted, over larger sets, to which one feature after another is added.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.search.actions import Actions, in_order
from dear_plugin.search.candidates import (
    Block,
    FeatureValues,
    candidate_blocks,
    combinations_of,
    dense_block,
)
from dear_plugin.search.combining import PARTS as PARTS_OF_ONE
from dear_plugin.search.combining import Combinations, Parts, one_more, pairs_of
from dear_plugin.search.criteria import criteria
from dear_plugin.search.descent import descended
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.ranks import Ranked, ranked, try_larger
from dear_plugin.search.rounds import search_rounds, settle
from dear_plugin.search.settings import Search
from dear_plugin.search.stage import Stage

logger = logging.getLogger(__name__)

# Combinations of a pair or a larger set that are tried where nothing is accepted.
MANY = 256


@dataclass
class Answers:
    """The stages of the search of n rows.

    Attributes:
        problem: the rows and the given sets.
        search: the settings.
        evidence: what the criteria compare answers with; None for no criteria.
        known: the values of the features in the training rows.
        accepted: (n,) the least margin of a success.
        required_margin: (n,) how much more margin an answer needs.
        stages: (q,) the rows of a stage, and the stage.
        own: (n,) the plausibility of the factuals; None for no criteria.
    """

    problem: SearchProblem
    search: Search
    evidence: Trained | None
    known: FeatureValues
    accepted: Tensor
    required_margin: Tensor

    def __post_init__(self) -> None:
        """Nothing is searched yet."""
        self.stages: list[tuple[Tensor, Stage]] = []
        self.own: Tensor | None = None
        if self.evidence is not None:
            self.own = self.evidence.plausibility.of(self.problem.x)

    def ranked(self, k: int = 1) -> list[Ranked]:
        """The first k answers of every row, one table per rank; a nearest miss has rank 0."""
        self._search(1)
        first = ranked(self.stages, 1)[0]
        if k == 1:
            return [first]
        self._search(k)
        return ranked(self.stages, k, first)

    def _search(self, k: int) -> None:
        """Search the stages until each row has k answers.

        The given sets are searched on; pairs and larger sets are searched again.
        """
        if not self.stages:
            every = torch.arange(len(self.problem))
            self.stages.append((every, self._stage(every, self.problem, None, k)))
        given = self.stages[0][1]
        given.k = k
        search_rounds(given, further=self._is_line)
        unsolved = given.problem.actionable & ~self._accepted_rows()[:, None]
        if self._is_line and (dense := dense_block(given.problem, self.known, unsolved)):
            # Narrow intervals of success may lie between the values tried so far.
            given.blocks.append(dense)
            search_rounds(given)
        rows = given.open_rows.nonzero()[:, 0]
        if self.search.max_features > 1 and len(rows):
            self._search_combined(rows, given, k)
        for _, stage in self.stages:
            settle(stage)
            if k > 1:
                try_larger(stage)

    def _search_combined(self, rows: Tensor, given: Stage, k: int) -> None:
        """Search pairs, then larger sets where nothing is accepted."""
        if self.pairs is None:
            return
        problem = given.problem.select(rows)
        tried = _of_rows(given.tried, rows, len(self.problem))
        scores = problem.classifier.scores(problem.x, keep_off_grid=True)
        before = problem.goal.margin(scores).float()
        accepted, required = self.accepted[rows], self.required_margin[rows]
        parts = Parts.of(problem, tried, before, PARTS_OF_ONE)
        need = accepted + required - before
        found = pairs_of(problem, parts, self.pairs, need)
        size = 2
        while found is not None:
            stage = self._stage(rows, problem.with_sets(found.sets), found, k)
            search_rounds(stage, further=self._is_line)
            self.stages.append((rows, stage))
            open_rows = self._accepted_rows().logical_not()[rows]
            if self._is_line and bool(open_rows.any()):
                # Margins do not always add up: a model with steps has none to add.
                at, sets = (stage.problem.actionable & open_rows[:, None]).nonzero(as_tuple=True)
                stage.blocks.append(combinations_of(stage.problem, self.known, at, sets, MANY))
                search_rounds(stage)
                open_rows = self._accepted_rows().logical_not()[rows]
            size += 1
            if size > self.search.max_features or not bool(open_rows.any()):
                return
            again = stage.tried.part(open_rows[stage.tried.rows])
            base = found.sets, again
            found = one_more(problem, parts, base, before, accepted - before)

    def _stage(
        self, rows: Tensor, problem: SearchProblem, found: Combinations | None, k: int
    ) -> Stage:
        """The stage of rows, (q,), over the sets of a problem; `found` are its candidates."""
        wanted = {}
        if self.evidence is not None and self.own is not None:
            wanted = criteria(problem, self.search, self.evidence, self.own[rows])
        accepted, required = self.accepted[rows], self.required_margin[rows]
        discount = self.search.prefer_alone
        if found is not None:
            self._fit(found.sets)
            asked = torch.zeros_like(problem.actionable)
            asked[found.rows, found.which] = True
            problem = replace(problem, actionable=problem.actionable & asked)
        if self.search.solver == "paper":
            blocks = [_block(problem, *descended(problem, self.search.schedule, accepted))]
            # An action of size zero succeeds where the decoder's reconstruction is accepted.
            blocks[0].untried |= self.evidence is None
        elif found is None:
            blocks = list(candidate_blocks(problem, self.known))
        else:
            blocks = [_block(problem, found.rows, found.which, found.values)]
        return Stage(problem, blocks, wanted, accepted, required, discount, k)

    def _fit(self, sets: ActionSets) -> None:
        """Fit the decoders of new sets."""
        decoders, wanted = self.problem.decoders, sets.members
        if decoders.decoder.joint and self.pairs is not None and len(sets.names[0]) == 2:
            # Trained together, they depend on each other: always all of them.
            wanted = self.pairs.members
        logger.info("trying %d sets of features for rows that no given set solves", len(wanted))
        decoders.fit(wanted)

    @lazy
    def pairs(self) -> ActionSets | None:
        """All pairs of the first features that may be acted on alone; None if there are none."""
        sets, names = self.problem.sets, {}
        alone = [at for at in zip(sets.names, sets.members, strict=True) if len(at[0]) == 1]
        some = alone[: self.problem.decoders.decoder.pair_features]
        for (one, first), (other, second) in combinations(some, 2):
            names[tuple(sorted((*first, *second)))] = (*one, *other)
        new = [pair for pair in names if frozenset(pair) not in set(map(frozenset, sets.members))]
        if not new:
            return None
        return ActionSets(tuple(names[pair] for pair in new), tuple(new), sets.p)

    @property
    def _is_line(self) -> bool:
        return self.search.solver == "line"

    def _accepted_rows(self) -> Tensor:
        """(n,) bool, rows with an accepted action."""
        out = torch.zeros(len(self.problem), dtype=torch.bool)
        for rows, stage in self.stages:
            some = stage.tried.rows[stage.tried.margin >= stage.accepted[stage.tried.rows]]
            out[rows[some]] = True
        return out


def _block(problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor) -> Block:
    """Actions, rows (m,), sets (m,) and values (m, w), as candidates."""
    order = in_order(rows, sets)
    return Block.of(problem, rows[order], sets[order], values[order, None])


def _of_rows(tried: Actions, rows: Tensor, n: int) -> Actions:
    """The actions of rows, (q,) ascending, numbered by their positions there."""
    place = torch.full((n,), -1)
    place[rows] = torch.arange(len(rows))
    part = tried.part(place[tried.rows] >= 0)
    return replace(part, rows=place[part.rows])
