"""The table of tried actions, and which of them are answers and alternatives of a row.

An alternative on the same set of features has another level of a category; or, where an answer
relies on indirect changes, the same levels with numbers so far that the action is enough by
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from dear_plugin.search.criteria import Decoded, Wanted, by_share, scoring
from dear_plugin.search.problem import (
    Asking,
    SearchProblem,
    direct_cost,
    evaluation,
    once,
    order,
    places,
)
from dear_plugin.search.settings import CRITERIA

# Rows, sets and values, (m, w), of m actions.
Actions: TypeAlias = tuple[Tensor, Tensor, Tensor]
# The share by which an action must be cheaper than an answer to be worth its criteria.
CHEAPER = 0.002
# Cells of the rows of actions that are decoded at once.
CELLS = 1 << 22


class Table:
    """The tried actions of n rows: m lines, of which all that is known is masks and orders.

    Args:
        problem: the rows and the given sets; further sets join them.
        criteria: of a problem, what a search asks of answers, and what is reported.
        aim: (n,) the least margin of a success.
        enough: (n,) the least margin of an answer.
        discount: how much more an action may cost that needs no indirect change, as a share.

    Attributes:
        row: (m,) the row of each line.
        set: (m,) the set acted on.
        values: (m, w) the new values of its features; a shorter set repeats the first.
        cost: (m,) the l1 cost, direct and indirect, as `Search.indirect_weight` counts it.
        margin: (m,) the goal's margin.
        price: (m,) the cost, discounted where no indirect change is needed.
        met: (m,) double, -1 where the criteria are not evaluated; else see `scoring`.
        measured: (m, c) the criteria's values in the order of `CRITERIA`, NaN if unknown.
        hits: (q,) ascending, the lines that are accepted.
        need: (n, s) the least margin of an action whose criteria are evaluated.
        size: (s,) 1 for a given set, for others the number of features.
        before: (n,) the margin of the factuals; 0 until it is needed.
        nothing: no actions.
    """

    def __init__(
        self,
        problem: SearchProblem,
        criteria: Callable[[SearchProblem], tuple[Wanted, Wanted]],
        *,
        aim: Tensor,
        enough: Tensor,
        discount: float,
    ) -> None:
        self.criteria, self.discount, self.aim, self.enough = criteria, discount, aim, enough
        none, empty, count = torch.empty(0, dtype=torch.int64), torch.empty(0), len(CRITERIA)
        self.row, self.set, self.hits, self.before = none, none, none, torch.zeros_like(aim)
        self.cost, self.margin, self.price = empty, empty, empty
        self.met, self.measured = empty.double(), torch.empty(0, count)
        self.values = problem.x.new_empty(0, problem.sets.positions.shape[1])
        self.need, self.size = enough[:, None][:, :0], none
        self._passed: Tensor | None = None
        self._extend(problem, size=1)

    def __len__(self) -> int:
        """The number of lines (m)."""
        return len(self.row)

    def _extend(self, problem: SearchProblem, size: int) -> None:
        """Take the problem with more sets, of a size."""
        self.problem, members = problem, problem.sets.members
        self.wanted, self.reported = self.criteria(problem)
        new = len(members) - len(self.size)
        self.need = torch.cat([self.need, self.enough[:, None].expand(-1, new)], 1)
        self.size = torch.cat([self.size, torch.full((new,), size)])
        self.values = self.wide(self.values)
        self.nothing = self.row[:0], self.set[:0], self.values[:0]
        self._pair = self.row * self.need.shape[1] + self.set
        # Ties are in the order of features, which does not depend on other rows.
        by_features = sorted(range(len(members)), key=lambda i: (len(members[i]), members[i]))
        self._order = torch.tensor(by_features).argsort()

    def sets_of(self, members: Sequence[tuple[int, ...]], size: int) -> Tensor:
        """(q,) the positions of sets of features, which join the list if they are new."""
        known = set(self.problem.sets.members)
        if new := [each for each in dict.fromkeys(members) if each not in known]:
            self._extend(self.problem.extended(self.problem.sets.extended(new)), size)
        at = {each: i for i, each in enumerate(self.problem.sets.members)}
        return torch.tensor([at[each] for each in members], dtype=torch.int64)

    def wide(self, values: Tensor) -> Tensor:
        """(q, w) values of sets of up to w features."""
        more = self.problem.sets.positions.shape[1] - values.shape[1]
        return torch.cat([values, values[:, :1].expand(-1, more)], 1) if more > 0 else values

    def joined(self, parts: Sequence[Actions]) -> Actions:
        """The actions of several parts, of sets of different sizes."""
        each = [self.nothing, *parts]
        wide = [(row, sets, self.wide(values)) for row, sets, values in each]
        row, sets, values = map(torch.cat, zip(*wide, strict=True))
        return row, sets, values

    @property
    def takes_all(self) -> bool:
        """Whether there are no criteria, so that an accepted action is an answer."""
        return not self.wanted and not self.discount

    def direct_cost(self, actions: Actions) -> Tensor:
        """(q,) the cost of actions without what follows, a bound of their cost."""
        row, sets, values = actions
        return direct_cost(self.problem, row, sets, self.wide(values)[:, None])[:, 0]

    def factual(self) -> Asking[None]:
        """The margins of the factuals, `before`, if nothing is tried yet."""
        if len(self):
            return
        scores = yield self.problem.x
        every = torch.arange(len(self.problem))
        self.before = self.problem.goal.margin(scores, every).float()

    def trying(self, new: Actions) -> Asking[None]:
        """Evaluate new actions, which are further lines."""
        parts = torch.arange(len(new[0])).split(max(1, CELLS // self.problem.x.shape[1]))
        for at in parts if len(new[0]) else ():
            yield from self._trying(*part_of(new, at))

    def _trying(self, row: Tensor, sets: Tensor, values: Tensor) -> Asking[None]:
        values, least = self.wide(values), (self.aim, self.enough) if self.discount else None
        cost, margin, alone = yield from evaluation(self.problem, row, sets, values, least)
        self.row, self.set = torch.cat([self.row, row]), torch.cat([self.set, sets])
        self._pair = torch.cat([self._pair, row * self.need.shape[1] + sets])
        self.values = torch.cat([self.values, values])
        self.cost, self.margin = torch.cat([self.cost, cost]), torch.cat([self.margin, margin])
        price = torch.where(alone, cost / (1.0 + self.discount), cost)
        self.price = torch.cat([self.price, price])
        # Without criteria an action on one feature is an answer; others may be in part needless.
        met = torch.full_like(cost, -1.0, dtype=torch.float64)
        met[self.takes_all & self.problem.sets.single[sets]] = torch.inf
        self.met, self._passed = torch.cat([self.met, met]), None
        blank = torch.full((len(row), len(CRITERIA)), torch.nan)
        self.measured = torch.cat([self.measured, blank])
        hits = (margin >= self.aim[row]).nonzero()[:, 0] + len(self) - len(row)
        self.hits = torch.cat([self.hits, hits])

    def vetting(self, at: Tensor, wanted: Wanted) -> Asking[Tensor]:
        """(q,) those of lines, (m,), that are answers by some criteria, which are evaluated."""
        if not len(at):
            return at
        self.meets(at, torch.inf)
        if wanted or self.discount:
            found = self.decoded(at)
            met, more, self.measured[at] = yield from scoring(found, wanted)
            self.meets(at, met)
            short, need = at[more > 0.0], (self.margin[at] + more)[more > 0.0]
            self.need.view(-1).scatter_reduce_(0, self.pair(short), need, "amax")
            yield from self._undiscounting(at, found)
        return at[(self.margin[at] >= self.enough[self.row[at]]) & (self.met[at] == torch.inf)]

    def _undiscounting(self, at: Tensor, found: Decoded) -> Asking[None]:
        """Compare answers among lines, (m,), that a part of what follows undoes by their cost."""
        some = (self.met[at] == torch.inf) & (self.price[at] < self.cost[at])
        column = CRITERIA.index("reliance")
        unknown = some & self.measured[at, column].isnan()
        if bool(unknown.any()):
            shares = yield from by_share(self.problem, found.part(unknown))
            self.measured[at[unknown], column] = 1.0 - shares["reliance"].float()
        relies = at[some & (self.measured[at, column] < 1.0)]
        self.price[relies] = self.cost[relies]

    def decoded(self, at: Tensor) -> Decoded:
        """Lines, (q,), with their counterfactuals."""
        row, sets, values = self.row[at], self.set[at], self.values[at]
        reached = self.problem.decode_actions(row, sets, values[:, None])[:, 0]
        return Decoded(row, reached, sets, values)

    @property
    def passed(self) -> Tensor:
        """(q,) the answers: lines that have the margin and meet all criteria."""
        if self._passed is None:
            at = self.hits[self.met[self.hits] == torch.inf]
            self._passed = at[self.margin[at] >= self.enough[self.row[at]]]
        return self._passed

    def meets(self, at: Tensor, met: Tensor | float) -> None:
        """Note how many criteria lines, (q,), meet; see `met`."""
        self.met[at], self._passed = met, None

    def alive(self, k: int) -> Tensor:
        """(q,) the lines to vet that may become one of the first k answers."""
        passed = self.passed
        limit = self.limits(passed).minimum(self.bound(k, passed)[:, None])
        limit = limit * (1.0 - CHEAPER) if self.wanted else limit
        at = self.hits[self.met[self.hits] < 0.0]
        pair = self.pair(at)
        useful = self.margin[at] >= self.need.view(-1)[pair]
        return at[useful & (self.price[at] < limit.view(-1)[pair])]

    def pair(self, at: Tensor | slice) -> Tensor:
        """(q,) the row and set of lines as one number."""
        return self._pair[at]

    def prices(self, at: Tensor) -> Tensor:
        """(n, s) the least price of some lines; infinite without one."""
        none = torch.full((self.need.numel(),), torch.inf)
        return none.scatter_reduce(0, self.pair(at), self.price[at], "amin").view(self.need.shape)

    def limits(self, at: Tensor) -> Tensor:
        """(n, s) the least price of some lines on a set or a part of it."""
        return self.prices(at)[:, self.problem.sets.subsets].amin(2)

    def bound(self, k: int, at: Tensor) -> Tensor:
        """(n,) the k-th least price of some lines over sets of which no part is cheaper."""
        prices = self.prices(at)
        counts = prices <= prices[:, self.problem.sets.subsets].amin(2)
        prices = prices.where(counts, torch.inf).sort(1).values
        return prices[:, k - 1] if k <= prices.shape[1] else torch.full((len(prices),), torch.inf)

    def has(self, at: Tensor) -> Tensor:
        """(n,) bool, the rows of some lines."""
        return torch.zeros(len(self.need), dtype=torch.bool).index_fill(0, self.row[at], True)

    def count(self, at: Tensor) -> Tensor:
        """(q,) the number of features of lines."""
        count: Tensor = self.problem.sets.masks.sum(1)[self.set[at]]
        return count

    def by_itself(self, at: Tensor) -> Tensor:
        """(q,) bool, the lines that are known, or expected, to need nothing that follows."""
        return self.price[at] < self.cost[at]

    def sorted(self, at: Tensor, *keys: Tensor) -> Tensor:
        """Lines by row, then by some keys, set and price; the order is that of a row."""
        return at[order(self.row[at], *keys, self._order[self.set[at]], self.price[at])]


def part_of(actions: Actions, at: Tensor) -> Actions:
    """Those of actions at positions (q,), or where a mask is true."""
    row, sets, values = actions
    return row[at], sets[at], values[at]


# Relative rounding error of a margin, larger than that of a float32 model.
TOLERANCE = 1e-5


def ranked(table: Table, k: int, first: Tensor | None = None) -> list[Tensor]:
    """The lines of the first k answers of every row that has so many, (q,) of each rank.

    Answers are ordered by size of set and price. A row without one has its accepted actions, one
    of a set, by the criteria that they meet; or the nearest miss. Each acts on another set of
    features, and has another outcome; then come other ways on the same sets (`ways`).

    Args:
        table: what was tried.
        k: the number of ranks.
        first: those of rank 0, if they are known.
    """
    hits, given = table.hits, table.hits[:0] if first is None else first
    others = hits[~table.has(table.passed)[table.row[hits]]]
    at = torch.cat([table.passed, others, nearest(table)])
    met, size = table.met[at].clamp_max(1e6), table.size[table.set[at]]
    # Of answers size comes first; of others the criteria that they meet.
    score = torch.where(met < 1e6, -met, -1e6)
    at = table.sorted(at, score, size, table.price[at])
    at = _counting(table, at[once(table.pair(at))])
    at = torch.cat([given, at[~torch.isin(at, given)]])
    at = at[table.row[at].argsort(stable=True)]
    if k > 1:
        at = at[once(*_changed(table, at).T)]
        at = torch.cat([at, other_ways(table, at)])
        at = at[table.row[at].argsort(stable=True)]
        at = at[once(table.row[at], *table.decoded(at).reached.T)]
    place = places(table.row[at])
    return [at[place == rank] for rank in range(k)]


def best(table: Table, k: int) -> Tensor:
    """(q,) the best accepted lines, of k sets of each row without an answer."""
    at = table.hits[~table.has(table.passed)[table.row[table.hits]]]
    at = table.sorted(at, -table.met[at], table.price[at])
    at = at[once(table.pair(at))]
    return at[places(table.row[at]) < k]


def nearest(table: Table) -> Tensor:
    """(q,) the first of the largest margins of each row of which nothing is accepted.

    Margins that differ by rounding only are equal.
    """
    at = (~table.has(table.hits)[table.row] & table.margin.isfinite()).nonzero()[:, 0]
    at = at[table.row[at].argsort(stable=True)]
    none = torch.full((len(table.need),), -torch.inf)
    top = none.scatter_reduce(0, table.row[at], table.margin[at], "amax")[table.row[at]]
    at = at[table.margin[at] >= top - TOLERANCE * top.abs()]
    return at[places(table.row[at]) == 0]


def _counting(table: Table, at: Tensor) -> Tensor:
    """(q,) those of lines, (m,), at most one of a row and set, of which no part does as well.

    A set counts only if it is cheaper than what is known of a set of some of its features and
    meets as many criteria.
    """
    shape, pair, subsets = table.need.shape, table.pair(at), table.problem.sets.subsets
    price, met = torch.full((2, table.need.numel()), torch.inf, dtype=torch.float64)
    price[pair], met[pair] = table.price[at].double(), table.met[at].floor()
    price, met = price.view(shape), met.view(shape)
    better = (price[:, subsets] < price[..., None]) & (met[:, subsets] >= met[..., None])
    return at[~better.any(2).view(-1)[pair]]


def _changed(table: Table, at: Tensor) -> Tensor:
    """(q, 1 + p) the row of lines, and which features change: what is held does not."""
    positions = table.problem.sets.positions[table.set[at]]
    moved = (table.values[at] != table.problem.own(table.row[at], table.set[at])).double()
    changed = torch.zeros(len(at), table.problem.x.shape[1]).double()
    changed.scatter_reduce_(1, positions, moved, "amax")
    return torch.cat([table.row[at, None], changed], 1)


def other_ways(table: Table, firsts: Tensor) -> Tensor:
    """(q,) the cheapest answers of each other way on the sets of answers, (m,), one of a set."""
    firsts = firsts[torch.isin(firsts, table.passed)]
    best = table.prices(firsts)
    subsets = table.problem.sets.subsets
    strict = subsets != torch.arange(len(subsets))[:, None]
    part = best[:, subsets].masked_fill(~strict, torch.inf).amin(2).view(-1)
    at = table.passed[best.isfinite().view(-1)[table.pair(table.passed)]]
    # Of an action that a smaller set does as well for less, a part is not needed.
    at = at[table.price[at] < part[table.pair(at)]]
    at = torch.cat([firsts, table.sorted(at, table.price[at])])
    way, alone = _ways(table, at), at[table.by_itself(at)]
    found = torch.cat([at[once(way)], alone[once(way[table.by_itself(at)])]]).unique()
    found = found[~torch.isin(found, firsts)]
    return table.sorted(found, table.price[found])


def _ways(table: Table, at: Tensor) -> Tensor:
    """(q,) a number for each row, set and levels of lines, (q,)."""
    problem, sets = table.problem, table.set[at]
    values, positions = table.values[at], problem.sets.positions[sets]
    amounts = problem.classifier.encoder.amounts(values, at=positions)
    levels = values.masked_fill(amounts, 0.0)
    key = torch.cat([table.pair(at)[:, None].to(levels), levels], 1)
    which: Tensor = key.unique(dim=0, return_inverse=True)[1]
    return which
