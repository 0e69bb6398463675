"""SearchTable: what a search has tried of every row and set, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.search.actions import Candidates, TriedActions, first_of, in_order, least
from dear_plugin.search.credibility import Decoded, by_share
from dear_plugin.search.criteria import Criterion, scored
from dear_plugin.search.problem import SearchProblem

Wanted = Mapping[str, Criterion]


@dataclass
class SearchTable:
    """The actions that were tried of n rows over s sets, a list that grows.

    Attributes:
        problem: the rows and the sets.
        criteria: of a problem, what a search asks of answers, and what is reported.
        aim: (n,) the least margin of a success.
        enough: (n,) the least margin of an answer.
        discount: how much more an action may cost that needs no indirect change, as a share.
        gain: the share by which an action must be cheaper than an answer to be of use.
        tried: the evaluated actions.
        hits: (q,) ascending, the positions of those that are accepted.
        fresh: (q,) those of which the criteria are not evaluated.
        passed: (q,) answers: those that have the margin and meet all criteria.
        need: (n, s) the least margin of an action whose criteria are evaluated.
        size: (s,) 1 for a given set, for others the number of features.
        order: (s,) the place of each set by its features: ties do not depend on other rows.
    """

    problem: SearchProblem
    criteria: Callable[[SearchProblem], tuple[Wanted, Wanted]]
    aim: Tensor
    enough: Tensor
    discount: float
    gain: float = 0.002
    tried: TriedActions = field(init=False)
    hits: Tensor = field(init=False)
    fresh: Tensor = field(init=False)
    passed: Tensor = field(init=False)
    need: Tensor = field(init=False)
    size: Tensor = field(init=False)
    order: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is tried yet."""
        s, width = self.problem.sets.positions.shape
        self.tried = TriedActions.none(width)
        self.hits = self.fresh = self.passed = torch.empty(0, dtype=torch.int64)
        self.need = self.enough[:, None].repeat(1, s)
        self.size = torch.ones(s, dtype=torch.int64)
        self._extend(self.problem)

    @lazy
    def before(self) -> Tensor:
        """(n,) the margin of the factuals."""
        problem = self.problem
        scores = problem.classifier.scores(problem.x)
        return problem.goal.margin(scores).float()

    def _extend(self, problem: SearchProblem) -> None:
        """Take the problem with more sets."""
        self.problem, members = problem, problem.sets.members
        self.wanted, self.reported = self.criteria(problem)
        by_features = sorted(range(len(members)), key=lambda i: (len(members[i]), members[i]))
        self.order = torch.tensor(by_features).argsort()

    def positions_of(self, members: Sequence[tuple[int, ...]], size: int) -> list[int]:
        """The positions of sets of features, which join the list if they are new."""
        known = self.problem.sets.members
        if new := [each for each in dict.fromkeys(members) if each not in set(known)]:
            subjects = self.problem.classifier.encoder.schema.subjects
            self._extend(self.problem.extended(self.problem.sets.extended(new, subjects)))
            self.need = torch.cat([self.need, self.enough[:, None].repeat(1, len(new))], 1)
            self.size = torch.cat([self.size, torch.full((len(new),), size)])
            self.tried = self.tried.widened(self.width)
        at = {each: i for i, each in enumerate(self.problem.sets.members)}
        return [at[each] for each in members]

    # Trying.

    def add(self, new: Candidates) -> None:
        """Evaluate candidates and add them to the tried actions."""
        if not len(new):
            return
        problem, (rows, sets, values) = self.problem, (new.rows, new.sets, new.values)
        cost, margin = problem.evaluate(rows, sets, values)
        found = (margin >= self.aim[rows]).nonzero()[:, 0]
        price = cost.clone()
        if self.discount:
            at = found[margin[found] >= self.enough[rows[found]]]
            alone = problem.margins(problem.alone(rows[at], sets[at], values[at]), rows[at], True)
            price[at[alone >= self.aim[rows[at]]]] /= 1.0 + self.discount
        self.hits = torch.cat([self.hits, len(self.tried) + found])
        self.fresh = torch.cat([self.fresh, len(self.tried) + found])
        self.tried = self.tried.extended(TriedActions.of(new, cost, margin, price))

    def decoded(self, at: Tensor) -> Decoded:
        """The tried actions at positions (q,) with their counterfactuals."""
        part, decode = self.tried.part(at), self.problem.decode_actions
        reached = decode(part.rows, part.sets, part.values[:, None])[:, 0]
        return Decoded(part.rows, reached, part.sets, part.values)

    def vet(self, at: Tensor) -> None:
        """Evaluate the criteria of tried actions at positions (q,).

        An action of several features that meets all of them is dropped if it needs one less.
        """
        self.drop_needless(self._measure(at, self.wanted))

    def _measure(self, at: Tensor, wanted: Wanted) -> Tensor:
        """(q,) those of tried actions at positions (m,) that are answers, by some criteria."""
        if not len(at):
            return at
        tried, good = self.tried, self.tried.margin[at] >= self.enough[self.tried.rows[at]]
        tried.met[at] = torch.inf
        if wanted or self.discount:
            found = self.decoded(at)
            tried.met[at], more, tried.measured[at] = scored(found, wanted)
            short, need = at[more > 0.0], (tried.margin[at] + more)[more > 0.0]
            self.need.view(-1).scatter_reduce_(0, self.pairs(short), need, "amax")
            good &= tried.met[at] == torch.inf
            self._undiscount(at, found, good & (tried.price[at] < tried.cost[at]))
        met = at[good]
        self.fresh = self.fresh[tried.met[self.fresh] < 0.0]
        self.passed = torch.cat([self.passed, met])
        return met

    def _undiscount(self, at: Tensor, found: Decoded, some: Tensor) -> None:
        """Compare some actions, (m,) bool, that a part of what follows undoes by their cost."""
        if bool(some.any()):
            relies = at[some][by_share(self.problem, found.part(some)).reliance > 0.0]
            self.tried.price[relies] = self.tried.cost[relies]

    def drop_needless(self, at: Tensor) -> Tensor:
        """(q,) those of accepted actions, (m,), without one change of which all remains so.

        All: that it has the margin, and the criteria that it meets. What is left of the action,
        one on fewer features, is judged by what is reported of it, and takes its place.
        """
        whole, parts = self._parts(at)
        if not len(parts):
            return whole
        part = len(self.tried) + torch.arange(len(parts))
        self.add(parts)
        tried, rows = self.tried, parts.rows
        has_margin = tried.margin[whole] >= self.enough[rows]
        kept = tried.margin[part] >= self.enough[rows].where(has_margin, self.aim[rows])
        whole, part = whole[kept], part[kept]
        met = self._measure(part, self.reported)
        needless: Tensor = whole[tried.met[part] >= tried.met[whole].floor()].unique()
        tried.met[needless] = 0.0
        self.passed = self.passed[tried.met[self.passed] > 0.0]
        self.drop_needless(met)
        return needless

    def _parts(self, at: Tensor) -> tuple[Tensor, Candidates]:
        """The actions of several features among tried ones, (m,), once for each of their parts."""
        wholes, found = [at[:0]], [Candidates.none(self.width)]
        for i in self.tried.sets[at].unique().tolist():
            names, members = self.problem.sets.names[i], self.problem.sets.members[i]
            some = at[self.tried.sets[at] == i]
            subjects = self.problem.classifier.encoder.schema.subjects
            for left_out in names if len(names) > 1 else ():
                kept = [c for c, j in enumerate(members) if subjects[j] != left_out]
                smaller = tuple(members[c] for c in kept)
                (which,) = self.positions_of([smaller], min(len(names) - 1, int(self.size[i])))
                kept += kept[:1] * (self.width - len(kept))
                rows, values = self.tried.rows[some], self.tried.values[some][:, kept]
                new = Candidates(rows, torch.full_like(rows, which), values, values[:, 0])
                wholes.append(some)
                found.append(new)
        return torch.cat(wholes), Candidates.joined(found)

    # What is known.

    def pairs(self, at: Tensor | slice = slice(None)) -> Tensor:
        """(q,) the row and set of tried actions at positions, as one number."""
        pairs: Tensor = self.tried.rows[at] * self.need.shape[1] + self.tried.sets[at]
        return pairs

    @property
    def width(self) -> int:
        """The most features of a set (w)."""
        return self.problem.sets.positions.shape[1]

    def prices(self, at: Tensor) -> Tensor:
        """(n, s) the least price of tried actions at positions, (q,); infinite without one."""
        found = least(self.tried.price[at], self.pairs(at), self.need.numel(), torch.inf)
        return found.view(self.need.shape)

    def limits(self) -> Tensor:
        """(n, s) the price below which an action would be a new or cheaper answer.

        An answer on some of the features of a set counts as one on the set.
        """
        limits: Tensor = self.prices(self.passed)[:, self.problem.sets.subsets].amin(2)
        return limits

    def bound(self, k: int, at: Tensor) -> Tensor:
        """(n,) the k-th least price of tried actions at positions on sets that count."""
        prices = self.prices(at)
        counts = prices <= prices[:, self.problem.sets.subsets].amin(2)
        prices = prices.where(counts, torch.inf).sort(1).values
        return prices[:, k - 1] if k <= prices.shape[1] else torch.full((len(prices),), torch.inf)

    def alive(self, k: int) -> Tensor:
        """(q,) the positions of tried actions that may become one of the first k answers."""
        at, limit = self.fresh, self.limits()
        limit = torch.minimum(limit, self.bound(k, self.passed)[:, None]) * (1.0 - self.gain)
        pairs, tried = self.pairs(at), self.tried
        useful = tried.margin[at] >= self.need.view(-1)[pairs]
        return at[useful & (tried.price[at] < limit.view(-1)[pairs])]

    def cheapest(self, at: Tensor) -> Tensor:
        """(q,) the first of the cheapest of actions at positions, (m,), of each row and set."""
        pairs, price = self.pairs(at), self.tried.price[at]
        lowest = at[price == self.prices(at).view(-1)[pairs]]
        first = first_of(lowest, self.pairs(lowest), self.need.numel())
        return first[in_order(self.tried.rows[first], self.order[self.tried.sets[first]])]

    def has(self, at: Tensor) -> Tensor:
        """(n,) bool, the rows of tried actions at positions, (q,)."""
        out = torch.zeros(len(self.need), dtype=torch.bool)
        return out.index_fill(0, self.tried.rows[at], True)
