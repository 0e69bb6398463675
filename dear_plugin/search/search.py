"""One search: for every row, up to k actions of low cost that meet all criteria.

An *action* gives new values to the features of one set. Every action that was tried is a line of
one `Table`, and all that is known of a row is read off its lines:

    tried     decoded and scored once, which gives its cost and its margin
    accepted  the margin is at least `aim`
    price     the cost; divided by 1 + `Search.prefer_alone` if the margin is at least `enough`,
              and that of the action alone at least `aim`
    vetted    accepted, and the criteria of `Search.stricter` were evaluated
    answer    vetted, all criteria are met and the margin is at least `enough`
    good      an answer; or to be vetted, with the margin that it needs and a price below the k-th
              answer and the answers on its set and subsets. Where confidence or agreement fell
              short, further actions of the same row and set need more margin

A search goes in *rounds*. In each, every row vets some good actions and tries new ones, and all
that is asked of the model, for all rows and purposes, is one call (`asking`): a call costs as much
as many rows. A row

    vets    at most as many as the round says, the cheapest first; of a set those at places 0, 1,
            3, 7, ... by price, or the last of each quarter if the set has an answer
    tries   values of single features whose direct cost is below the bound; values of a number
            between a tried one and the next one outwards, if that is good; points from good
            actions of the four cheapest sets of several features towards the factual (`between`)

The *bound* is 1 + `prefer_alone` times the k-th least price of good actions over sets of which no
subset is cheaper. For values of single features, actions to vet count only in the rounds that vet
up to eight. A row with nothing to do goes on to its next *stage*, and one without an answer does
so after these rounds and one more:

    singles       values of single features, all at once for a black box; 32 combinations of given
                  sets of several
    sums of two   of rows with fewer than k answers: the model scores the rows that are expected
                  of sums of two tried actions (`sums`); decoders are fitted, and sums tried, only
                  of sets that promise an answer or are the best. More of them in a second step
    combinations  256 on these sets, of rows with nothing accepted
    3, 4, 5       the same with one feature more, of rows with nothing accepted

Of an action on several features, each is left out in turn. If the rest has the margin and meets
the criteria as reported (`Search`, other resamples), the rest replaces it. In the end, rows
without an answer vet what is accepted by too small a margin.

More answers continue the same table: the k-th answer is the bound, values that were too dear are
tried, and rows that had no sums of two get them. *Ranks* are by size, any given set being 1, then
price; the first for k = 1 stays first (`answers`). Without an answer: accepted actions by the
criteria met; with nothing accepted, the largest margin. With `solver="paper"` `source` gives all
actions. A row's answers do not depend on other rows, but for decoders of three or more features
that are trained jointly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations as pairs_of

import torch
from torch import Tensor

from dear_plugin.evaluation.trained import Trained
from dear_plugin.search.answers import best, ranked
from dear_plugin.search.asking import Asking, answered, together
from dear_plugin.search.between import back, on_lines, to_move_back
from dear_plugin.search.criteria import criteria
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.settings import Search
from dear_plugin.search.sums import Sums, promising
from dear_plugin.search.table import Actions, Table, Wanted, places
from dear_plugin.search.values import FeatureValues, admitted, combinations, singles

logger = logging.getLogger(__name__)

# Lines of a row that are vetted in each round, for each answer. Of a black box, of which a call
# costs more than rows, more at once.
MODULE, BLACK_BOX = (0, 0, 1, 4, 16, 64, 256, 256, 256), (8, 32, 128, 256, 256)
# In a round of at most so many, what is not vetted yet bounds what is tried; after the next one
# a row without an answer goes on, and still vets what it has.
EARLY = 8
# Of the cheaper actions of a set with an answer, so many evenly spread ones are vetted.
PARTS = 4
# The parts of the ways back to the factual.
WAYS = (8, 64)
# Combinations of a given set, and of a set where nothing is accepted.
FEW, MANY = 32, 256
# Actions that are accepted by too small a margin: of a row without an answer.
NEARER = 16
# The sets and places of sums that are tried first and next: of pairs, and of larger sets.
TRIED = ((6, 8), (32, 32)), ((2, 16), (6, 32))
# Of the sets of a row that promise no answer, those that are tried all the same.
BEST = 2
# Cells of the rows of actions that are decoded at once.
CELLS = 1 << 22

# What gives the candidates in place of lists of values: the rows, sets and values, (m, w), of a
# problem, given the least margins and how much more an answer needs.
Source = Callable[..., Actions]


@dataclass
class SearchRun:
    """The search of n rows, which can be continued for more answers.

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
        """Nothing is tried yet."""
        self.own = None if self.evidence is None else self.evidence.plausibility(self.problem.x)
        # Not bound to the run: a circle would keep the table in memory.
        asked = partial(_asked, search=self.search, evidence=self.evidence, own=self.own)
        discount = self.search.prefer_alone
        self.table = Table(
            self.problem, asked, aim=self.aim, enough=self.enough, discount=discount
        )
        n, self._none = len(self.aim), torch.empty(0, dtype=torch.int64)
        self.k, self._first = 0, self._none
        self._sizes = torch.tensor(MODULE if self.problem.classifier.is_module else BLACK_BOX)
        # The size of sets that each row has tried; what is left of single features, and is tried
        # where it is cheap enough; sums that were not tried; lines that were moved back.
        self._grown = torch.zeros(n, dtype=torch.int64)
        self._pool: tuple[Tensor, ...] = ()
        self._sums: list[Sums] = []
        # Rows and sets of several features that were tried, also where no value was admissible.
        self._asked = self._none, self._none
        self._moved = [self._none for _ in WAYS]
        # Lines that may do with one change less; pairs of such lines and of their parts to judge.
        self._doubted, self._judged = self._none, (self._none, self._none)
        self._asks: list[Asking[None]] = []

    def ranked(self, k: int = 1) -> list[Tensor]:
        """The lines of the first k answers of every row, by rank; a nearest miss has rank 0."""
        for goal in dict.fromkeys((1, k)):
            if goal > self.k:
                self.k = goal
                self._run()
                self._settle()
                self._first = ranked(self.table, 1)[0] if goal == 1 else self._first
        return ranked(self.table, k, self._first if k > 1 else None)

    def _run(self) -> None:
        """Rounds: each row vets, looks beside what is good, or goes on to its next stage."""
        table, stages = self.table, self._stages
        last, turns = len(stages), len(self._sizes)
        stage = torch.full((len(self.aim),), -1 if self.k == 1 else 0)
        turn = torch.zeros_like(stage)
        while bool((stage < last).any()):
            busy = (stage >= 0) & (stage < last)
            patience = torch.where(stage == 0, int((self._sizes <= EARLY).sum()) + 1, turns)
            late = busy & (turn >= patience) & (stage < last - 1) & ~table.has(table.passed)
            busy &= turn < turns
            alive = table.alive(self.k)
            mine = alive[busy[table.row[alive]]]
            vets, new = self._next(mine, turn), self._beside(busy, alive, turn)
            waits = table.has(mine) & (self._sizes[turn.clamp_max(turns - 1)] == 0)
            moving = (stage < last) & (late | ~(self._at_work(vets, new) | waits))
            while bool(moving.any()):
                stage[moving] += 1
                turn[moving] = 0
                for i in stage[moving & (stage < last)].unique().tolist():
                    new += stages[i](moving & (stage == i))
                moving = moving & (stage < last) & ~self._at_work(vets, new)
            self._round(new, vets)
            turn += 1

    @property
    def _stages(self) -> list[Callable[[Tensor], list[Actions]]]:
        """What a row does in turn, until it has its answers."""
        stages: list[Callable[[Tensor], list[Actions]]] = [self._singles]
        for size in range(2, self.search.max_features + 1):
            stages += [partial(self._larger, size, step) for step in range(2)]
            stages.append(partial(self._combined, size))
        return stages

    def _at_work(self, vets: Tensor, new: Sequence[Actions]) -> Tensor:
        """(n,) bool, the rows with something to do in a round."""
        busy = self.table.has(torch.cat([vets, self._doubted, self._judged[0]]))
        return busy.index_fill(0, torch.cat([self._none, *(part[0] for part in new)]), True)

    def _round(self, new: Sequence[Actions], vets: Tensor) -> None:
        """Try actions and vet lines, with one call of the model if they are few."""
        table = self.table
        # Parts of pairs are tried at once: those of larger sets need further decoders.
        count = self._count(vets)
        whole, *parts = self._parts(torch.cat([vets[count == 2], self._doubted]))
        doubted, (judged, part) = self._doubted, self._judged
        added = [(row, sets, table.wide(values)) for row, sets, values in [*new, tuple(parts)]]
        row, sets, values = map(torch.cat, zip(*added, strict=True))
        size = max(1, CELLS // self.problem.x.shape[1])
        first, *chunks = torch.arange(len(row)).split(size) or (self._none,)
        ask = [table.vetting(vets, table.wanted), table.vetting(part, table.reported), *self._asks]
        self._asks = []
        mine = table.trying((row[first], sets[first], values[first]))
        passed = together(table.problem.scores, [*ask, mine])
        for at in chunks:
            answered(table.problem.scores, table.trying((row[at], sets[at], values[at])))
        if len(judged):
            table.met[judged[table.met[part] >= table.met[judged].floor()]] = 0.0
        at = torch.arange(len(table) - len(whole), len(table))
        rows = table.row[whole]
        enough = table.margin[whole] >= table.enough[rows]
        kept = table.margin[at] >= table.enough[rows].where(enough, table.aim[rows])
        kept &= torch.isin(whole, torch.cat([passed[0], doubted]))
        self._judged = whole[kept], at[kept]
        again = torch.cat([passed[1], passed[0][self._count(passed[0]) > 2]])
        self._doubted = again[(table.met[again] == torch.inf) & (self._count(again) > 1)]

    def _count(self, at: Tensor) -> Tensor:
        """(q,) the number of features, or groups of columns, of lines."""
        names = self.table.problem.sets.names
        return torch.tensor([len(each) for each in names])[self.table.set[at]]

    def _parts(self, at: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Lines of several features, each once for each of these; and actions without it."""
        table, none = self.table, self._none
        found = [(none, none, none, table.values[:0])]
        subjects = table.problem.classifier.encoder.schema.subjects
        for i in table.set[at].unique().tolist():
            names, members = table.problem.sets.names[i], table.problem.sets.members[i]
            some, small = at[table.set[at] == i], min(len(names) - 1, int(table.size[i]))
            for name in names if len(names) > 1 else ():
                kept = [c for c, j in enumerate(members) if subjects[j] != name]
                sets = table.sets_of([tuple(members[c] for c in kept)], small).expand(len(some))
                found.append((some, table.row[some], sets, table.values[some][:, kept]))
        wide = [(*part[:3], table.wide(part[3])) for part in found]
        whole, row, sets, values = map(torch.cat, zip(*wide, strict=True))
        return whole, row, sets, values

    def _settle(self) -> None:
        """Vet what is accepted by too small a margin; what is proposed needs each change."""
        table, kept = self.table, self._none
        need, table.need = table.need, self.aim[:, None].expand(table.need.shape).clone()
        alive = table.alive(self.k)
        vets = self._next(alive[~table.has(table.passed)[table.row[alive]]])
        self._round([], vets)
        table.need = torch.cat([need, table.need[:, need.shape[1] :]], 1)
        for _ in range(2 * table.values.shape[1]):
            if not (len(self._judged[0]) or len(self._doubted)):
                at = best(table, self.k)
                at = at[(table.met[at] != 0.0) & (self._count(at) > 1) & ~torch.isin(at, kept)]
                self._doubted, kept = at, torch.cat([kept, at])
                if not len(at):
                    return
            self._round([], self._none)

    def _next(self, at: Tensor, turn: Tensor | None = None) -> Tensor:
        """(q,) the lines to vet, of some: a number of each row, the cheapest first.

        Of a set, those at places 0, 1, 3, 7, ... in the order of price: neighbouring values
        mostly meet the same criteria. Of a set with an answer, those after each quarter.
        """
        table = self.table
        at = table.sorted(at, table.set[at])
        pair = table.pair(at)
        place = places(pair)
        _, which, count = pair.unique_consecutive(return_inverse=True, return_counts=True)
        part = (place + 1) * PARTS // count[which] > place * PARTS // count[which]
        solved = (table.prices(table.passed) < torch.inf).view(-1)[pair]
        at = at[torch.where(solved, part, (place + 1) & place == 0)]
        at = table.sorted(at, table.price[at])
        most = torch.full_like(self._grown, NEARER)
        if turn is not None:
            most = self._sizes[turn.clamp_max(len(self._sizes) - 1)]
        return at[places(table.row[at]) < (most * self.k)[table.row[at]]]

    def _beside(self, rows: Tensor, alive: Tensor, turn: Tensor) -> list[Actions]:
        """What is cheap enough of the pool, and actions beside good lines, of rows, (n,) bool."""
        table = self.table
        good = torch.cat([table.passed, alive])
        bound = table.bound(self.k, good) * (1.0 + table.discount)
        found = []
        if self._pool:
            early = self._sizes[turn.clamp_max(len(self._sizes) - 1)] <= EARLY
            sure = torch.cat([table.passed, alive[early[table.row[alive]]]])
            most = table.bound(self.k, sure) * (1.0 + table.discount)
            found.append(self._taken(self._pool[3] < most.where(rows, 0.0)[self._pool[0]]))
        looking = rows & (turn < len(self._sizes) - 1)
        if self.source is not None or not bool(looking.any()):
            return found
        # A dear action may lie beside a cheap one: indirect changes have steps.
        far = table.hits[(table.met[table.hits] < 0.0) | (table.met[table.hits] == torch.inf)]
        far = far[table.margin[far] >= table.need.view(-1)[table.pair(far)]]
        lines = on_lines(
            table, self.known, far[looking[table.row[far]]], bound / (1.0 + table.discount)
        )
        new = [lines, *self._back(good[looking[table.row[good]]])]
        for row, sets, values in new:
            cheap = table.problem.direct_cost(row, sets, values[:, None])[:, 0] < bound[row]
            found.append((row[cheap], sets[cheap], values[cheap]))
        return found

    def _back(self, good: Tensor) -> list[Actions]:
        """Actions from good lines on several features towards the factual."""
        found, best = [], to_move_back(self.table, good)
        for step, way in enumerate(WAYS):
            at = best[~torch.isin(best, self._moved[step])]
            self._moved[step] = torch.cat([self._moved[step], at])
            found.append(back(self.table, at, way))
        return found

    # Stages.

    def _singles(self, rows: Tensor) -> list[Actions]:
        """All values of single features, and some combinations on given sets of several."""
        self._asks.append(self._factual())
        if self.source is not None:
            return self._from_source(self.problem.actionable)
        given = combinations(self.problem, self.known, self.problem.actionable, FEW)
        (row, sets, values), first = singles(self.problem, self.known)
        direct = self.problem.direct_cost(row, sets, values[:, None])[:, 0]
        self._pool = row, sets, values, direct
        return [self._taken(first | (not self.problem.classifier.is_module)), given]

    def _factual(self) -> Asking[None]:
        scores = yield self.problem.x
        self.table.before = self.problem.goal.margin(
            scores, torch.arange(len(self.problem))
        ).float()

    def _taken(self, mask: Tensor) -> Actions:
        """Actions of the pool, (m,) bool, which leave it."""
        row, sets, values, _ = (column[mask] for column in self._pool)
        self._pool = tuple(column[~mask] for column in self._pool)
        return row, sets, values

    def _larger(self, size: int, step: int, rows: Tensor) -> list[Actions]:
        """Sums on sets of a size, the most promising first, the others in a second step.

        Pairs are for rows with too few answers; more features only where nothing is accepted.
        """
        table, single = self.table, self._single
        rows = rows & (table.bound(self.k, table.passed) == torch.inf)
        rows = (
            rows
            & table.has(torch.arange(len(table)))
            & (self._grown == size if step else self._grown < size)
        )
        rows = rows if size == 2 else rows & ~table.has(table.hits)
        if len(single) < size or (self.k > 1 and (size > 2 or step)) or not bool(rows.any()):
            return []
        if not step:
            self._grown[rows] = size
            ask = promising(table, rows, single, size=size, best=BEST * self.k)
            offered = answered(table.problem.scores, ask)
            self._sums.append(offered)
        found = []
        for every in self._sums:
            sets, limit = TRIED[size > 2][step]
            sets *= self.k
            some = rows[table.row[every.first]] & (every.rank < sets) & (every.place < limit)
            if step:
                sets, limit = TRIED[size > 2][0]
                some &= (every.rank >= sets) | (every.place >= limit)
            found.append(every.part(some))
        return [action for sums in found for action in self._both(sums, size)]

    def _both(self, sums: Sums, size: int) -> list[Actions]:
        """The actions of sums, on sets that join the table, and are fitted if need be."""
        table = self.table
        if not len(sums.first):
            return []
        members, which = sums.members(table)
        values = sums.values(table)
        sets, row = table.sets_of(members, size)[which], table.row[sums.first]
        self._fit(members, size)
        known, every = self._asked
        self._asked = torch.cat([known, row]), torch.cat([every, sets])
        if self.source is not None:
            asked = torch.zeros(table.need.shape, dtype=torch.bool)
            asked[row, sets] = True
            return self._from_source(asked)
        values = values.gather(1, table.problem.sets.positions[sets])
        return [admitted(table.problem, row, sets, values[:, None])]

    def _combined(self, size: int, rows: Tensor) -> list[Actions]:
        """Combinations on the sets of a size that rows with nothing accepted have tried.

        Margins do not always add up: a model with steps has none to add.
        """
        table = self.table
        rows = rows & ~table.has(table.hits)
        row, sets = self._asked
        some = (table.size[sets] == size) & rows[row]
        if self.source is not None or not bool(some.any()):
            return []
        asked = torch.zeros(table.need.shape, dtype=torch.bool)
        asked[row[some], sets[some]] = True
        return [combinations(table.problem, self.known, asked, MANY)]

    @property
    def _single(self) -> Tensor:
        """(b,) the given sets of one feature that are combined."""
        most = self.problem.decoders.decoder.pair_features
        return self.problem.sets.alone.nonzero()[:most, 0]

    def _fit(self, members: Sequence[tuple[int, ...]], size: int) -> None:
        """Fit the decoders of new sets, if they are trained together: of pairs always all."""
        decoders, known = self.problem.decoders, set(self.problem.sets.members)
        logger.info("trying %d sets of features for rows that no given set solves", len(members))
        if not decoders.decoder.joint:
            return
        if size == 2:
            # They depend on each other.
            each = [self.problem.sets.members[i] for i in self._single.tolist()]
            members = [tuple(sorted(one + other)) for one, other in pairs_of(each, 2)]
        decoders.fit([each for each in members if each not in known])

    def _from_source(self, asked: Tensor) -> list[Actions]:
        """What a source gives for sets, (n, s) bool."""
        problem = self.table.problem
        decoder, schema = problem.decoders.decoder, problem.classifier.encoder.schema
        parts = [len(decoder.parts(schema, members)) for members in problem.sets.members]
        # Several parts are decoded one after another, which no source follows.
        asked = asked & problem.actionable & (torch.tensor(parts) == 1)
        if self.source is None or not bool(asked.any()):
            return []
        part = problem.only(asked)
        row, sets, values = self.source(part, least=self.aim, more=self.enough - self.aim)
        # An action of size zero succeeds where the decoder's reconstruction is accepted.
        some = (values != part.own(row, sets)).any(1) | (self.evidence is None)
        sets = self.table.sets_of(part.sets.members, 1)[sets]
        return [(row[some], sets[some], values[some])]


def _asked(
    problem: SearchProblem, *, search: Search, evidence: Trained | None, own: Tensor | None
) -> tuple[Wanted, Wanted]:
    """What a search asks of answers, and what is reported of them."""
    if evidence is None:
        return {}, {}
    each = partial(criteria, problem, search, evidence, own)
    return each(), each(reported=True)
