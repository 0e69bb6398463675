"""Answers: for every row, the cheapest actions that pass all criteria, on different sets.

A feature is a list of values (`values`). Everything that is tried goes into one table of rows and
sets, the list of which grows (`table`), and stays there while a call is answered: k answers
continue the search for one. One decode and one call of the model give an action its cost and its
margin; of what has the margin a second call tells whether the action alone has it, too: its
*price* is then the cost divided by 1.25 (`Search.prefer_alone`), else the cost. The criteria are
more expensive, and are evaluated of few actions: these are *vetted*, by what `Search.stricter`
asks. An action that fails the confidence raises the margin that the next ones of its set need.

    for each level:                  the given sets; pairs; one feature more, up to `max_features`
        pool += candidates           places of each list, of groups spread combinations as well;
                                     then sums of two tried actions (`grow`)
        for each wave:               1, 4, 16, 64, 256, 256, 256
            try                      what is in the pool and below the row's bound; of one number
                                     between a tried value and the next, if that one is good; of
                                     several features on the way back to the factual (`closer`)
            vet                      as many actions of a row as the wave has times k, of each set
                                     at places 0, 1, 3, 7, ... in the order of price
        larger sets, none accepted:  well spread combinations, and the waves again
    vet                              of rows without an answer, what is accepted by too small a
                                     margin: the nearest is what they get

The bound of a row is the k-th least price of its answers, one of a set, and in the first two waves
of what may become one: if these fail the criteria, the bound rises, and dearer candidates, which
wait in the pool, are tried. *Good* is what is an answer or may become one. A row takes part in a
level's waves until one gives it nothing new. Pairs are for rows with fewer than k answers, more
features for rows of which nothing is accepted; where there are fewer than k, k are not given.

An action of several features that still passes without one of them is none, see
`SearchTable.drop_needless`: what is left of it, on a smaller set and judged by the resamples that
are reported, is the answer. So every answer is minimal, and a set counts only if it is cheaper
than the answers on its parts. `Search(solver="paper")` has candidates of its own, its `source`.

Whatever is chosen depends on the row alone: a batch gives the answers of its rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations as pairs_of

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.evaluation.trained import Trained
from dear_plugin.search.actions import Candidates, first_of_each, in_order
from dear_plugin.search.criteria import criteria
from dear_plugin.search.grow import OTHERS, PLACES, grow
from dear_plugin.search.problem import SMALLEST, SearchProblem
from dear_plugin.search.ranks import Ranked, best, ranked
from dear_plugin.search.settings import Search
from dear_plugin.search.table import SearchTable, Wanted
from dear_plugin.search.values import FIRST, NEXT, FeatureValues, combinations, of_singles
from dear_plugin.search.waves import Waves

logger = logging.getLogger(__name__)

# How often the first wave looks closer at single features.
LOOKS = 4
# The first wave of further combinations of a row: others are vetted already.
LATE = 2
# Combinations of a given set, and of a set where nothing is accepted.
FEW, MANY = 32, 256
# Actions that are accepted by too small a margin: of a row without an answer.
NEARER = 16

# What gives the candidates in place of lists of values: the rows, sets and values, (m, w), of a
# problem, given the least margins and how much more an answer needs.
Source = Callable[..., tuple[Tensor, Tensor, Tensor]]


@dataclass
class Answers:
    """The search of n rows.

    Attributes:
        problem: the rows and the given sets.
        search: the settings.
        evidence: what the criteria compare answers with; None for no criteria.
        known: the lists of values.
        accepted: (n,) the least margin of a success.
        enough: (n,) the least margin of an answer.
        source: what gives the only candidates; None for lists of values.
        own: (n,) the plausibility of the factuals; None for no criteria.
        table: what was tried.
    """

    problem: SearchProblem
    search: Search
    evidence: Trained | None
    known: FeatureValues
    accepted: Tensor
    enough: Tensor
    source: Source | None = None

    def __post_init__(self) -> None:
        """Nothing is searched yet."""
        self.own: Tensor | None
        asked: Callable[[SearchProblem], tuple[Wanted, Wanted]] = _none
        self.own, x = None, self.problem.x
        if self.evidence is not None:
            self.own = self.evidence.plausibility.of(x)
            # Not bound to the answers: a circle would keep the table in memory.
            asked = partial(_both, search=self.search, evidence=self.evidence, own=self.own)
        self.table = SearchTable(
            self.problem, asked, self.accepted, self.enough, self.search.prefer_alone
        )
        self.waves = Waves(self.table, self.known, closer=self.source is None)
        self._grown = torch.zeros(len(x), dtype=torch.bool)

    def ranked(self, k: int = 1) -> list[Ranked]:
        """The first k answers of every row, one table per rank; a nearest miss has rank 0."""
        if self.source is None:
            self._first()
        else:
            self._from_source(self.problem)
            self.waves.run(self._every)
        first = self._continued(1)
        return first if k == 1 else self._continued(k, first[0])

    def _first(self) -> None:
        """The given sets: a few values, and many where these are not too dear."""
        problem, every = self.problem, self._every
        self.waves.put(*of_singles(problem, self.known, problem.actionable, FIRST))
        self.waves.put(combinations(problem, self.known, problem.actionable, FEW))
        self.waves.tried(every, 0)
        self.waves.put(*of_singles(problem, self.known, problem.actionable, NEXT))
        self.waves.run(every, looks=LOOKS)

    def _continued(self, k: int, first: Ranked | None = None) -> list[Ranked]:
        """The first k answers of every row: all levels."""
        table, self.waves.k = self.table, k
        if k > 1:
            self.waves.run(self._every)
        rows = (table.bound(k, table.passed) == torch.inf) & ~self._grown
        self._grown |= rows
        for size in range(2, self.search.max_features + 1):
            self._grow(rows, size, PLACES)
            if size == 2 and k == 1:
                self._grow(rows, size, OTHERS)
            rows = rows & ~table.has(table.hits)
        self._settle()
        return ranked(table, k, first)

    def _grow(self, rows: Tensor, size: int, places: Tensor) -> None:
        """Search sets of one feature more, for rows, (n,) bool."""
        table = self.table
        if not bool(rows.any()) or len(self.features) < size or not len(table.tried):
            return
        below = table.bound(self.waves.k, table.passed)
        every = rows.nonzero()[:, 0]
        found, mine, sets = grow(table, every, size, self.features, below, places)
        asked = torch.zeros(table.need.shape, dtype=torch.bool)
        asked[mine, sets] = True
        if places is OTHERS:
            # Of a row with an answer, only those on the same set.
            asked &= (below == torch.inf)[:, None] | (table.prices(table.passed) < torch.inf)
            found = found.part(asked[found.rows, found.sets])
        if not bool(asked.any()):
            return
        self._fit(asked, size)
        if self.source is not None:
            self._from_source(table.problem.only(asked))
        else:
            self.waves.put(found)
        self.waves.run(rows, start=LATE if places is OTHERS else 0)
        # Margins do not always add up: a model with steps has none to add.
        asked &= ~table.has(table.hits)[:, None]
        if self.source is None and bool(asked.any()):
            self.waves.put(combinations(table.problem, self.known, asked, MANY))
            self.waves.run(asked.any(1))

    def _fit(self, asked: Tensor, size: int) -> None:
        """Fit the decoders of new sets, (n, s) bool, if they are trained together."""
        decoders, members = self.problem.decoders, self.table.problem.sets.members
        which = asked.any(0).nonzero()[:, 0].tolist()
        logger.info("trying %d sets of features for rows that no given set solves", len(which))
        wanted = [members[i] for i in which]
        if size == 2:
            # They depend on each other: always all of them.
            each = [members[i] for i in self.features.tolist()]
            wanted = [tuple(sorted(one + other)) for one, other in pairs_of(each, 2)]
        if decoders.decoder.joint:
            decoders.fit([s for s in wanted if s not in self.problem.sets.members])

    @property
    def _every(self) -> Tensor:
        return torch.ones(len(self.problem), dtype=torch.bool)

    @lazy
    def features(self) -> Tensor:
        """(b,) the given sets of one feature that are combined to pairs."""
        most = self.problem.decoders.decoder.pair_features
        return self.problem.sets.alone.nonzero()[:most, 0]

    def _from_source(self, problem: SearchProblem) -> None:
        """Put the candidates of a source on the sets of a problem into the pool."""
        if self.source is None:
            return
        decoder, schema = problem.decoders.decoder, problem.classifier.encoder.schema
        parts = [len(decoder.parts(schema, members)) for members in problem.sets.members]
        # The parts of several tiers are decoded one after another, which no source follows.
        asked = problem.actionable & (torch.tensor(parts) == 1)
        if not bool(asked.any()):
            return
        problem = problem.only(asked)
        more = self.enough - self.accepted
        rows, sets, values = self.source(problem, least=self.accepted, more=more)
        which = torch.tensor(self.table.positions_of(problem.sets.members, 1))
        # An action of size zero succeeds where the decoder's reconstruction is accepted.
        moved = ((values - problem.own(rows, sets)).abs() > SMALLEST).any(1)
        new = Candidates(rows, which[sets], values, torch.zeros(len(rows)))
        self.waves.put(new.part(moved | (self.evidence is None)))

    def _settle(self) -> None:
        """Vet what is accepted by too small a margin; what is proposed needs each change."""
        table, k = self.table, self.waves.k
        need, table.need = table.need, self.accepted[:, None].expand(table.need.shape).clone()
        table.score(self.waves.next(~table.has(table.passed), NEARER))
        table.need = need
        for _ in range(table.width):
            at = best(table)
            at = at[in_order(table.tried.rows[at], -table.tried.score[at])]
            if not len(table.drop_needless(at[first_of_each(table.tried.rows[at], k)])):
                return


def _both(
    problem: SearchProblem, *, search: Search, evidence: Trained, own: Tensor
) -> tuple[Wanted, Wanted]:
    """What a search asks of answers, and what is reported of them."""
    return (
        criteria(problem, search, evidence, own),
        criteria(problem, search, evidence, own, reported=True),
    )


def _none(problem: SearchProblem) -> tuple[Wanted, Wanted]:
    return {}, {}
