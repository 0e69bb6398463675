"""The search: for every row, up to k actions of low cost that meet all criteria.

    action    new values for the features of one set
    line      an action that was tried of a row: decoded and scored once, which gives its cost and
              its margin. All lines are one `Table`; what is known of a row is read off its lines
    round     what all rows do at a time. What they ask of the model is answered together
              (`asking`): one call for few actions; of many, one criterion asks after another
    stage     what a row tries when its lines give it nothing to do (`stages`)
    sum       two lines of a row on different features, taken as one action (`sums`)
    way       the levels of categories an action sets, and whether it succeeds alone (`ways`)

A line is

    accepted  if its margin is at least `aim`
    vetted    if it is accepted, and the criteria of `Search.stricter` were evaluated
    answer    if all criteria are met, and its margin is at least `enough`
    open      if it is not vetted, and has the margin that its row and set need: `enough`, or more
              where confidence or agreement fell short
    good      if it is an answer; or open, and cheaper than the k-th answer and the answers on its
              set and subsets

*Price* is the cost, divided by 1 + `prefer_alone` if the margin is at least `enough` and that of
the action alone at least `aim`, unless vetting shows that a part of what follows undoes it. The
k-th is of sets of which no subset is cheaper. In a round a row

    vets      good open lines, the cheapest first, up to `VETTED` times k. Of a set those at places
              0, 1, 3, 7, ... by price; if it has an answer, at such places counted down from it
    tries     numbers between a tried one and the next one outwards, if that is open or an answer,
              and a lower price is expected; and, from the cheapest good line of each of the four
              cheapest sets of several features, points on the way to the factual (`line`); none
              whose direct cost is above 1 + `prefer_alone` times the k-th price of good lines

A row with nothing to do stops if it has k answers; else it goes on to its next stage, if any. A
stage lasts four rounds at most; in the first, a row without an answer goes on in its second round,
and still vets what it has. Stages are

    1 feature   its list of values and some near the factual (`values`); without criteria and
                `prefer_alone`, or on more than 50 sets, few at first; and 32 combinations on
                given sets of several
    2 features  three stages, of rows with fewer than k answers: sums on sets that promise an
                answer, or are the best: the model first scores what both parts together should
                lead to, then decoders are fitted; for k = 1 more sums, of rows with nothing
                accepted also on six sets, of more than six features only where one of 256
                combinations is expected to be nearly accepted; and these combinations, of rows
                with nothing accepted
    3, 4, 5     the same with one feature more, of rows with nothing accepted; where there are more
                than six features only sums that promise an answer

Of an answer on several features, and at last of the best misses, each feature is left out in turn
(`rounds`). If the rest has the margin and meets as many criteria as reported (by
`Search`, with other resamples), the whole is discarded. In the end, rows without an answer also
vet what is accepted by too small a margin: by what is reported it may be credible. A search for
k > 1 continues that for k = 1, of rows with an answer, from round `FURTHER` on.

*Ranks* are by size, any given set being 1, then price, then ways; the first for k = 1 stays first
(`answers`). Misses: accepted lines by the criteria met, or the largest margin. With
`solver="paper"` Algorithm 1 gives one action of each set, and nothing is tried beside it; both
solvers have the same four methods (`stages.Solver`). A row's answers do not depend on other rows,
but for decoders of three or more features that are trained jointly.

An answer on several features is doubted: the actions without one of its changes are tried, and
what is left is judged by what is reported of it. If it does as well, it takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from dear_plugin._threads import Bar
from dear_plugin.data.numbers import Array
from dear_plugin.evaluation.trained import Trained
from dear_plugin.search.criteria import criteria
from dear_plugin.search.problem import SearchProblem, answered, together
from dear_plugin.search.settings import Search
from dear_plugin.search.sums import Solver, Stages
from dear_plugin.search.table import Actions, Table, among, best, places, ranked, rows_of
from dear_plugin.search.values import Line

# Lines of a row that are vetted in each round, for each answer; the rounds of a stage; and those
# after which a row without an answer goes on, and still vets what it has.
VETTED, TURNS, PATIENCE = 128, 4, 1
# The first of these rounds for further answers, which need not be as near to the cheapest.
FURTHER = 1
# Actions that are accepted by too small a margin: of a row without an answer.
NEARER = 16


@dataclass
class SearchRun:
    """The search of n rows, which can be continued for more answers.

    Attributes:
        problem: the rows and the given sets.
        search: the settings.
        evidence: what the criteria compare answers with; None for no criteria.
        aim: (n,) the least margin of a success.
        enough: (n,) the least margin of an answer.
        solver: what gives the actions that are tried.
        own: (n,) the plausibility of the factuals; None for no criteria.
        table: what was tried.
    """

    problem: SearchProblem
    search: Search
    evidence: Trained | None
    aim: Array
    enough: Array
    solver: Callable[[Table, Search], Solver] = Line

    def __post_init__(self) -> None:
        """Nothing is tried yet."""
        self.own = None if self.evidence is None else self.evidence.plausibility(self.problem.x)
        # Not bound to the run: a circle would keep the table in memory.
        judged = partial(criteria, search=self.search, evidence=self.evidence, own=self.own)
        discount = self.search.prefer_alone
        self.table = Table(
            self.problem, judged, aim=self.aim, enough=self.enough, discount=discount
        )
        self.k, self._first = 0, self.table.row
        self._solver = self.solver(self.table, self.search)
        self._stages = Stages(self.table, self._solver, self.search.max_features)

    def ranked(self, k: int = 1) -> list[Array]:
        """The lines of the first k answers of every row, by rank; a nearest miss has rank 0."""
        for goal in dict.fromkeys((1, k)):
            if goal > self.k:
                self.k = goal
                with Bar(len(self.aim), "searching, rows") as done:
                    self._run(done)
                self._settle()
                self._first = ranked(self.table, 1)[0] if goal == 1 else self._first
        return ranked(self.table, k, self._first if k > 1 else None)

    def _run(self, done: Bar) -> None:
        """Rounds: each row vets, looks beside what is good, or goes on to its next stage."""
        table, last = self.table, len(self._stages)
        start, stage = -1, np.full(len(self.aim), -1)
        if self.k > 1:
            # Rows without an answer have been through all stages.
            start, stage = FURTHER, last * (~table.has(table.passed)).astype(int)
        turn = np.full_like(stage, start)
        while (stage < last).any():
            done.at(int((stage >= last).sum()))
            busy = (stage >= 0) & (stage < last)
            late = busy & (turn >= np.where(stage == 0, PATIENCE, TURNS)) & (stage < last - 1)
            busy &= turn < TURNS
            alive = table.alive(self.k)
            vets = self._next(alive[busy[table.row[alive]]], VETTED)
            good, open_ = np.concatenate([table.passed, alive]), busy & (turn < TURNS - 1)
            bound = table.bound(self.k, good) * (1.0 + table.discount)
            new = self._solver.beside(good, open_, bound) if open_.any() else []
            stays = self._at_work(vets, new)
            moving = (stage < last) & ((late & ~table.has(table.passed)) | ~stays)
            while moving.any():
                # Further stages are of use to rows with too few answers only.
                enough = table.bound(self.k, table.passed) < np.inf
                stage[moving] = np.where(enough, last, stage + 1)[moving]
                turn[moving] = start
                for i in np.unique(stage[moving & (stage < last)]).tolist():
                    new += self._stages.at(i, moving & (stage == i), self.k)
                moving = moving & (stage < last) & ~self._at_work(vets, new)
            advance(table, vets, new)
            turn += 1

    def _at_work(self, vets: Array, new: Sequence[Actions]) -> Array:
        """(n,) bool, the rows with lines to vet, (q,), or actions to try."""
        rows = [self.table.row[vets], *(row for row, _, _ in new)]
        return rows_of(np.concatenate(rows), len(self.aim))

    def _settle(self) -> None:
        """Vet what is accepted by too small a margin; what is proposed needs each change."""
        table, kept = self.table, self.table.row[:0]
        if self.k == 1:
            need, table.need = table.need, self.aim[:, None].repeat(table.need.shape[1], 1)
            try:
                alive = table.alive(1)
                alive = alive[~table.has(table.passed)[table.row[alive]]]
                advance(table, self._next(alive, NEARER))
            finally:
                table.need = np.concatenate([need, table.need[:, need.shape[1] :]], 1)
        for _ in range(table.values.shape[1]):
            at = best(table, self.k)
            at = at[(table.met[at] != 0.0) & (table.count(at) > 1) & ~among(at, kept)]
            kept = np.concatenate([kept, at])
            doubt(table, at)

    def _next(self, at: Array, most: int) -> Array:
        """(q,) the lines to vet, of some: at most so many of a row, the cheapest first.

        Of a set, those at places 0, 1, 3, 7, ... in the order of price: neighbouring values
        mostly meet the same criteria. Of a set with an answer, those at such places below it.
        """
        table = self.table
        at = table.sorted(at, table.set[at])
        pair = table.pair[at]
        solved = (table.prices(table.passed) < np.inf).reshape(-1)[pair]
        place = np.where(solved, places(pair[::-1])[::-1], places(pair))
        at = at[(place + 1) & place == 0]
        at = table.sorted(at, table.price[at])
        return at[places(table.row[at]) < most * self.k]


def advance(table: Table, vets: Array, new: Sequence[Actions] = ()) -> None:
    """Try actions and vet lines, (q,), with one call of the model if they are few."""
    # Parts of pairs are tried at once: those of larger sets need further decoders.
    whole, left = _parts(table, vets[table.count(vets) == 2])
    trying = table.trying(table.joined([*new, left]))
    asks = together([table.vetting(vets, table.wanted), table.factual(), trying])
    vetted, *_ = answered(table.problem.scores, asks)
    more = _discarding(table, whole, vetted), vetted[table.count(vetted) > 2]
    doubt(table, np.concatenate(more))


def doubt(table: Table, at: Array) -> None:
    """Discard lines on several features, (q,), without one of which they would do as well."""
    while len(at):
        whole, left = _parts(table, at)
        answered(table.problem.scores, table.trying(left))
        at = _discarding(table, whole, at)


def _discarding(table: Table, whole: Array, some: Array) -> Array:
    """Discard lines, (m,), among some, of which a part does as well; (q,) answers to doubt next.

    The parts are the last lines of the table, and must have the margin, too.
    """
    if not len(whole):
        return whole
    part, rows = np.arange(len(table) - len(whole), len(table)), table.row[whole]
    enough = table.margin[whole] >= table.enough[rows]
    kept = table.margin[part] >= np.where(enough, table.enough[rows], table.aim[rows])
    kept &= among(whole, some)
    whole, part = whole[kept], part[kept]
    reported = answered(table.problem.scores, table.vetting(part, table.reported))
    table.meets(whole[table.met[part] >= np.floor(table.met[whole])], 0.0)
    return reported[table.count(reported) > 1]


def _parts(table: Table, at: Array) -> tuple[Array, Actions]:
    """(m,) lines of several features, each once for each of these; the actions without it."""
    wholes, found = [at[:0]], []
    for i in np.unique(table.set[at]).tolist():
        members, some = table.problem.sets.members[i], at[table.set[at] == i]
        small = min(len(members) - 1, int(table.size[i]))
        for kept in map(list, combinations(range(len(members)), small and len(members) - 1)):
            sets = table.sets_of([tuple(members[c] for c in kept)], small).repeat(len(some))
            wholes.append(some)
            found.append((table.row[some], sets, table.values[some][:, kept]))
    return np.concatenate(wholes), table.joined(found)
