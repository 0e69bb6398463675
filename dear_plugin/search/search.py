"""One search: for every row, up to k actions of low cost that meet all criteria.

A candidate gives new values to the features of one set. To *try* it costs one decode and one call
of the model, which give its cost and margin. It is *accepted* from the margin `aim` on. From
`enough` on, a second call gives the margin without indirect changes: if this is at least
`aim`, the *price* is the cost / (1 + `Search.prefer_alone`), in all other cases the cost. To
*vet* an accepted action is to evaluate the criteria of `Search.stricter`. An *answer* is vetted,
meets all criteria and has the margin `enough`. Where confidence or agreement falls short, further
actions of the same row and set need a larger margin to be vetted (`SearchTable.need`). Tried
actions are kept in `table`, candidates that were not tried in the pool of `waves`.

    1. given sets   16 values of each number, all categories; of sets of several features 32
                    combinations and points on the way to them: tried once. Then 128 values and
                    neighbours of the factual, and waves, the first of which tries four times
    2. pairs        of rows with fewer than k answers: sums of two tried actions on given single
                    features, the first `pair_features`; of each set some, by predicted cost;
                    waves. If k = 1, more such sums (of a row with an answer, on its sets), waves
    3. 3, 4, ...    up to `max_features`, of rows with nothing accepted: a tried action on one
                    feature less, plus one on a given single feature; waves
       after each   of 2 and 3, of rows with nothing accepted: 256 combinations per set, waves
    4. settle       of rows without an answer, vet accepted actions with too small a margin

For k > 1 all steps run with k = 1. Then waves with k take what is left in the pool and unvetted,
and steps 2 to 4 follow, where 2 and 3 leave out the rows that had them.

There are at most seven waves, of size 1, 4, 16, 64, 256, 256, 256. A row leaves when one neither
tries nor vets an action of it. A wave
    tries   candidates whose direct cost is below the bound; on one number, values between a tried
            value and the next one outwards, if that is good; on several features, points from the
            good actions of the four cheapest sets towards the factual (`closer`)
    vets    at most size x k good actions of a row, the cheapest first; of a set those at places 0,
            1, 3, 7, ... by price, or the last of each quarter if the set has an answer
*Good* are answers, and actions to vet with the margin they need and a price below the k-th answer
and below the answers on their set and its subsets. The bound is 1 + `prefer_alone` times the k-th
least price of answers, the cheapest of each set, infinite if there are fewer. In the first two
waves, and always for values and points between, good actions count like answers: if they fail, the
bound rises. A set does not count if a subset has a cheaper answer.

Of an answer on several features, each is left out in turn. If the rest has the margin and meets
the criteria as reported (`Search`, other resamples), the rest replaces it. Ranks are by size, any
given set being 1, then price; the first for k = 1 stays first. Without an answer: accepted actions
by the criteria met; with nothing accepted, the largest margin. `solver="paper"`: `source` gives
all candidates. A row's answers do not depend on other rows, but for decoders of three or more
features that are trained jointly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations as pairs_of

import torch
from torch import Tensor
from torch.nn.functional import pad

from dear_plugin._lazy import lazy
from dear_plugin.evaluation.trained import Trained
from dear_plugin.search.actions import Candidates, first_of_each, in_order
from dear_plugin.search.criteria import criteria
from dear_plugin.search.grow import OTHERS, PLACES, grow
from dear_plugin.search.problem import SearchProblem
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
class SearchRun:
    """The search of n rows.

    Attributes:
        problem: the rows and the given sets.
        search: the settings.
        evidence: what the criteria compare answers with; None for no criteria.
        known: the lists of values.
        aim: (n,) the least margin of a success.
        enough: (n,) the least margin of an answer.
        source: what gives the only candidates; None for lists of values.
        own: (n,) the plausibility of the factuals; None for no criteria.
        table: what was tried.
    """

    problem: SearchProblem
    search: Search
    evidence: Trained | None
    known: FeatureValues
    aim: Tensor
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
            self.problem, asked, self.aim, self.enough, self.search.prefer_alone
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
        if not bool(rows.any()) or len(self.combinable) < size or not len(table.tried):
            return
        below = table.bound(self.waves.k, table.passed)
        every = rows.nonzero()[:, 0]
        found, mine, sets = grow(table, every, size, self.combinable, below, places)
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
        self.waves.run(asked.any(1), start=LATE if places is OTHERS else 0)
        # Margins do not always add up: a model with steps has none to add. What is left of
        # answers may have brought further sets.
        asked = pad(asked, (0, table.need.shape[1] - asked.shape[1]))
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
            each = [members[i] for i in self.combinable.tolist()]
            wanted = [tuple(sorted(one + other)) for one, other in pairs_of(each, 2)]
        if decoders.decoder.joint:
            decoders.fit([s for s in wanted if s not in self.problem.sets.members])

    @property
    def _every(self) -> Tensor:
        return torch.ones(len(self.problem), dtype=torch.bool)

    @lazy
    def combinable(self) -> Tensor:
        """(b,) the given sets of one feature that are combined to pairs."""
        most = self.problem.decoders.decoder.pair_features
        return self.problem.sets.alone.nonzero()[:most, 0]

    def _from_source(self, problem: SearchProblem) -> None:
        """Put the candidates of a source on the sets of a problem into the pool."""
        if self.source is None:
            return
        decoder, schema = problem.decoders.decoder, problem.classifier.encoder.schema
        parts = [len(decoder.parts(schema, members)) for members in problem.sets.members]
        # Several parts are decoded one after another, which no source follows.
        asked = problem.actionable & (torch.tensor(parts) == 1)
        if not bool(asked.any()):
            return
        problem = problem.only(asked)
        more = self.enough - self.aim
        rows, sets, values = self.source(problem, least=self.aim, more=more)
        which = torch.tensor(self.table.positions_of(problem.sets.members, 1))
        # An action of size zero succeeds where the decoder's reconstruction is accepted.
        moved = (values != problem.own(rows, sets)).any(1)
        new = Candidates(rows, which[sets], values, torch.zeros(len(rows)))
        self.waves.put(new.part(moved | (self.evidence is None)))

    def _settle(self) -> None:
        """Vet what is accepted by too small a margin; what is proposed needs each change."""
        table, k = self.table, self.waves.k
        need, table.need = table.need, self.aim[:, None].expand(table.need.shape).clone()
        table.vet(self.waves.next(~table.has(table.passed), NEARER))
        table.need = need
        for _ in range(table.width):
            at = best(table)
            at = at[in_order(table.tried.rows[at], -table.tried.met[at])]
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
