"""The table of tried actions, and which of them are answers and alternatives of a row.

An alternative on the same set of features has another level of a category; or, where an answer
relies on indirect changes, the same levels with numbers so far that the action is enough by
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from dear_plugin.data.numbers import Array
from dear_plugin.search.criteria import Decoded, Wanted, by_share, scoring
from dear_plugin.search.problem import Asking, SearchProblem, arrays, evaluation, tensors
from dear_plugin.search.settings import CRITERIA

# Rows, sets and values, (m, w), of m actions.
Actions: TypeAlias = tuple[Array, Array, Array]
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
        aim: Array,
        enough: Array,
        discount: float,
    ) -> None:
        self.criteria, self.discount, self.aim, self.enough = criteria, discount, aim, enough
        none, empty = np.empty(0, np.int64), np.empty(0, np.float32)
        self.row, self.set, self.hits, self.before = none, none, none, np.zeros_like(aim)
        self.cost, self.margin, self.price, self.met = empty, empty, empty, empty.astype(float)
        self.measured = np.empty((0, len(CRITERIA)), np.float32)
        self.values, self.size = np.empty((0, problem.positions.shape[1])), none
        self.need = enough[:, None][:, :0]
        self._passed: Array | None = None
        self._extend(problem, size=1)

    def __len__(self) -> int:
        """The number of lines (m)."""
        return len(self.row)

    def _extend(self, problem: SearchProblem, size: int) -> None:
        """Take the problem with more sets, of a size."""
        self.problem, members = problem, problem.sets.members
        self.wanted, self.reported = self.criteria(problem)
        new = len(members) - len(self.size)
        self.need = np.concatenate([self.need, self.enough[:, None].repeat(new, 1)], 1)
        self.size = np.concatenate([self.size, np.full(new, size)])
        self.values = self.wide(self.values)
        self.nothing = self.row[:0], self.set[:0], self.values[:0]
        self.pair = self.row * len(members) + self.set
        # Ties are in the order of features, which does not depend on other rows.
        by_features = sorted(range(len(members)), key=lambda i: (len(members[i]), members[i]))
        self._order = np.argsort(by_features)

    def sets_of(self, members: Sequence[tuple[int, ...]], size: int) -> Array:
        """(q,) the positions of sets of features, which join the list if they are new."""
        known = set(self.problem.sets.members)
        if new := [each for each in dict.fromkeys(members) if each not in known]:
            self._extend(self.problem.extended(self.problem.sets.extended(new)), size)
        at = {each: i for i, each in enumerate(self.problem.sets.members)}
        return np.array([at[each] for each in members], dtype=np.int64)

    def wide(self, values: Array) -> Array:
        """(q, w) values of sets of up to w features."""
        more = self.problem.positions.shape[1] - values.shape[1]
        return np.concatenate([values, values[:, :1].repeat(more, 1)], 1) if more > 0 else values

    def joined(self, parts: Sequence[Actions]) -> Actions:
        """The actions of several parts, of sets of different sizes."""
        wide = [(row, sets, self.wide(values)) for row, sets, values in parts if len(row)]
        row, sets, values = map(np.concatenate, zip(self.nothing, *wide, strict=True))
        return row, sets, values

    @property
    def takes_all(self) -> bool:
        """Whether there are no criteria, so that an accepted action is an answer."""
        return not self.wanted and not self.discount

    def factual(self) -> Asking[None]:
        """The margins of the factuals, `before`, if nothing is tried yet."""
        if len(self):
            return
        scores = yield self.problem.x
        (every,) = tensors(np.arange(len(self.problem)))
        (self.before,) = arrays(self.problem.goal.margin(scores, every).float())

    def trying(self, new: Actions) -> Asking[None]:
        """Evaluate new actions, which are further lines."""
        most = max(1, CELLS // self.problem.x.shape[1])
        for start in range(0, len(new[0]), most):
            yield from self._trying(*part_of(new, slice(start, start + most)))

    def _trying(self, row: Array, sets: Array, values: Array) -> Asking[None]:
        values, problem, old = self.wide(values), self.problem, len(self)
        least = (self.aim, self.enough) if self.discount else None
        cost, margin, alone = yield from evaluation(problem, row, sets, values, least)
        price = np.where(alone, cost / (1.0 + self.discount), cost)
        # Without criteria an action on one feature is an answer; others may be in part needless.
        met = np.where(self.takes_all & problem.single[sets], np.inf, -1.0)
        blank = np.full((len(row), len(CRITERIA)), np.nan, np.float32)
        pair = row * len(problem.sets) + sets
        new = {"row": row, "set": sets, "pair": pair, "values": values, "cost": cost}
        new |= {"margin": margin, "price": price, "met": met, "measured": blank}
        for name, column in new.items():
            setattr(self, name, np.concatenate([getattr(self, name), column]))
        self.hits = np.concatenate([self.hits, np.flatnonzero(margin >= self.aim[row]) + old])
        self._passed = None

    def vetting(self, at: Array, wanted: Wanted) -> Asking[Array]:
        """(q,) those of lines, (m,), that are answers by some criteria, which are evaluated."""
        if not len(at):
            return at
        self.meets(at, np.inf)
        if wanted or self.discount:
            found = self.decoded(at)
            met, more, self.measured[at] = arrays(*(yield from scoring(found, wanted)))
            self.meets(at, met)
            short = more > 0.0
            need = self.need.reshape(-1)
            np.maximum.at(need, self.pair[at[short]], (self.margin[at] + more)[short])
            yield from self._undiscounting(at, found)
        at = at[self.met[at] == np.inf]
        return np.asarray(at[self.margin[at] >= self.enough[self.row[at]]])

    def _undiscounting(self, at: Array, found: Decoded) -> Asking[None]:
        """Compare answers among lines, (m,), that a part of what follows undoes by their cost."""
        some = (self.met[at] == np.inf) & self.by_itself(at)
        column = CRITERIA.index("reliance")
        unknown = some & np.isnan(self.measured[at, column])
        if unknown.any():
            shares = yield from by_share(self.problem, found.part(*tensors(unknown)))
            self.measured[at[unknown], column] = 1.0 - shares["reliance"].float().numpy()
        relies = at[some & (self.measured[at, column] < 1.0)]
        self.price[relies] = self.cost[relies]

    def decoded(self, at: Array) -> Decoded:
        """Lines, (q,), with their counterfactuals."""
        row, sets, values = tensors(self.row[at], self.set[at], self.values[at])
        reached = self.problem.decode_actions(row, sets, values[:, None])[:, 0]
        return Decoded(row, reached, sets, values)

    @property
    def passed(self) -> Array:
        """(q,) the answers: lines that have the margin and meet all criteria."""
        if self._passed is None:
            at = self.hits[self.met[self.hits] == np.inf]
            self._passed = at[self.margin[at] >= self.enough[self.row[at]]]
        return self._passed

    def meets(self, at: Array, met: Array | float) -> None:
        """Note how many criteria lines, (q,), meet; see `met`."""
        self.met[at], self._passed = met, None

    def alive(self, k: int) -> Array:
        """(q,) the lines to vet that may become one of the first k answers."""
        passed = self.passed
        limit = np.minimum(self.limits(passed), self.bound(k, passed)[:, None])
        limit = limit * (1.0 - CHEAPER) if self.wanted else limit
        at = self.hits[self.met[self.hits] < 0.0]
        at = at[self.useful(at)]
        return np.asarray(at[self.price[at] < limit.reshape(-1)[self.pair[at]]])

    def useful(self, at: Array) -> Array:
        """(q,) bool, the lines that have the margin which their row and set need."""
        return np.asarray(self.margin[at] >= self.need.reshape(-1)[self.pair[at]])

    def prices(self, at: Array) -> Array:
        """(n, s) the least price of some lines; infinite without one."""
        least = np.full(self.need.size, np.inf, np.float32)
        np.minimum.at(least, self.pair[at], self.price[at])
        return least.reshape(self.need.shape)

    def limits(self, at: Array) -> Array:
        """(n, s) the least price of some lines on a set or a part of it."""
        return np.asarray(self.prices(at)[:, self.problem.subsets].min(2))

    def bound(self, k: int, at: Array) -> Array:
        """(n,) the k-th least price of some lines over sets of which no part is cheaper."""
        prices = self.prices(at)
        counts = prices <= prices[:, self.problem.subsets].min(2)
        prices = np.sort(np.where(counts, prices, np.inf), 1)
        none = np.full(len(prices), np.inf, np.float32)
        return prices[:, k - 1] if k <= prices.shape[1] else none

    def has(self, at: Array) -> Array:
        """(n,) bool, the rows of some lines."""
        return rows_of(self.row[at], len(self.need))

    def count(self, at: Array) -> Array:
        """(q,) the number of features of lines."""
        return np.asarray(self.problem.masks.sum(1)[self.set[at]])

    def by_itself(self, at: Array) -> Array:
        """(q,) bool, the lines that are known, or expected, to need nothing that follows."""
        return np.asarray(self.price[at] < self.cost[at])

    def sorted(self, at: Array, *keys: Array) -> Array:
        """Lines by row, then by some keys, set and price; the order is that of a row."""
        by_row = order(self.row[at], *keys, self._order[self.set[at]], self.price[at])
        return np.asarray(at[by_row])


def part_of(actions: Actions, at: Array | slice) -> Actions:
    """Those of actions at positions (q,), or where a mask is true."""
    row, sets, values = actions
    return row[at], sets[at], values[at]


def rows_of(row: Array, n: int) -> Array:
    """(n,) bool, the rows at positions (q,)."""
    mask = np.zeros(n, dtype=bool)
    mask[row] = True
    return mask


def among(at: Array, others: Array) -> Array:
    """(q,) bool, the positions, (q,), that are among others, (m,)."""
    return rows_of(others, max(at.max(initial=0), others.max(initial=0)) + 1)[at]


def order(*keys: Array) -> Array:
    """(m,) the positions in the order of keys, (m,) each, the first of which counts most."""
    return np.asarray(np.lexsort(keys[::-1]))


def once(*keys: Array) -> Array:
    """(q,) ascending, the positions of the first of those with equal keys, (m,) each."""
    each = np.array(keys, dtype=np.float64)
    at = np.lexsort(each[::-1])
    new, own = np.arange(len(at)) == 0, each[:, at]
    new[1:] |= (own[:, 1:] != own[:, :-1]).any(0)
    return np.sort(at[new])


def places(owner: Array) -> Array:
    """(m,) the place of each among those of its owner, which stand together, (m,)."""
    at = np.arange(len(owner))
    new = at == 0
    new[1:] = owner[1:] != owner[:-1]
    return np.asarray(at - np.maximum.accumulate(np.where(new, at, 0)))


# Relative rounding error of a margin, larger than that of a float32 model.
TOLERANCE = 1e-5


def ranked(table: Table, k: int, first: Array | None = None) -> list[Array]:
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
    at = np.concatenate([table.passed, others, nearest(table)])
    met, size = np.minimum(table.met[at], 1e6), table.size[table.set[at]]
    # Of answers size comes first; of others the criteria that they meet.
    score = np.where(met < 1e6, -met, -1e6)
    at = table.sorted(at, score, size, table.price[at])
    at = _counting(table, at[once(table.pair[at])])
    at = _by_row(table, given, at[~among(at, given)])
    if k > 1:
        at = at[once(*_changed(table, at).T)]
        at = _by_row(table, at, other_ways(table, at))
        at = at[once(table.row[at], *table.decoded(at).reached.numpy().T)]
    place = places(table.row[at])
    return [at[place == rank] for rank in range(k)]


def _by_row(table: Table, *parts: Array) -> Array:
    """(q,) the lines of some parts, row by row."""
    at = np.concatenate(parts)
    return np.asarray(at[table.row[at].argsort(kind="stable")])


def best(table: Table, k: int) -> Array:
    """(q,) the best accepted lines, of k sets of each row without an answer."""
    at = table.hits[~table.has(table.passed)[table.row[table.hits]]]
    at = table.sorted(at, -table.met[at], table.price[at])
    at = at[once(table.pair[at])]
    return at[places(table.row[at]) < k]


def nearest(table: Table) -> Array:
    """(q,) the first of the largest margins of each row of which nothing is accepted.

    Margins that differ by rounding only are equal.
    """
    at = np.flatnonzero(~table.has(table.hits)[table.row] & np.isfinite(table.margin))
    at = _by_row(table, at)
    top = np.full(len(table.need), -np.inf, np.float32)
    np.maximum.at(top, table.row[at], table.margin[at])
    top = top[table.row[at]]
    at = at[table.margin[at] >= top - TOLERANCE * np.abs(top)]
    return np.asarray(at[places(table.row[at]) == 0])


def _counting(table: Table, at: Array) -> Array:
    """(q,) those of lines, (m,), at most one of a row and set, of which no part does as well.

    A set counts only if it is cheaper than what is known of a set of some of its features and
    meets as many criteria.
    """
    shape, pair, subsets = table.need.shape, table.pair[at], table.problem.subsets
    price, met = np.full((2, table.need.size), np.inf)
    price[pair], met[pair] = table.price[at], np.floor(table.met[at])
    price, met = price.reshape(shape), met.reshape(shape)
    better = (price[:, subsets] < price[..., None]) & (met[:, subsets] >= met[..., None])
    return np.asarray(at[~better.any(2).reshape(-1)[pair]])


def _changed(table: Table, at: Array) -> Array:
    """(q, 1 + p) the row of lines, and which features change: what is held does not."""
    positions = table.problem.positions[table.set[at]]
    moved = table.values[at] != table.problem.own(table.row[at], table.set[at])
    changed = np.zeros((len(at), table.problem.cells.shape[1]))
    # The first feature, which shorter sets repeat, has one value.
    np.put_along_axis(changed, positions, moved, 1)
    return np.concatenate([table.row[at, None], changed], 1)


def other_ways(table: Table, firsts: Array) -> Array:
    """(q,) the cheapest answers of each other way on the sets of answers, (m,), one of a set."""
    firsts = firsts[among(firsts, table.passed)]
    best = table.prices(firsts)
    subsets = table.problem.subsets
    strict = subsets != np.arange(len(subsets))[:, None]
    part = np.where(strict, best[:, subsets], np.inf).min(2).reshape(-1)
    at = table.passed[np.isfinite(best).reshape(-1)[table.pair[table.passed]]]
    # Of an action that a smaller set does as well for less, a part is not needed.
    at = at[table.price[at] < part[table.pair[at]]]
    at = np.concatenate([firsts, table.sorted(at, table.price[at])])
    ways, alone = _ways(table, at), table.by_itself(at)
    found = np.union1d(at[once(*ways)], at[alone][once(*ways[:, alone])])
    found = found[~among(found, firsts)]
    return table.sorted(found, table.price[found])


def _ways(table: Table, at: Array) -> Array:
    """(1 + w, q) the rows and sets of lines, (q,), and the levels that they set."""
    values, positions = table.values[at], table.problem.positions[table.set[at]]
    amounts = table.problem.features.amounts(values, at=positions)
    return np.concatenate([table.pair[None, at], np.where(amounts, 0.0, values).T])
