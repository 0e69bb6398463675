"""Stage: what the search of some rows over some sets has tried, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.search.actions import Actions, greatest, least
from dear_plugin.search.candidates import Block
from dear_plugin.search.credibility import Decoded
from dear_plugin.search.criteria import Criterion, scored
from dear_plugin.search.problem import SearchProblem

# Cells of the counterfactuals of accepted actions that are kept: 16 MiB.
MOST_KEPT = 1 << 22
# Larger than any position.
NEVER = 1 << 62
# Relative rounding error of a margin, larger than that of a float32 model.
TOLERANCE = 1e-5


@dataclass
class Stage:
    """The actions that were tried for n rows over the s sets of a problem.

    Attributes:
        problem: the rows and the sets.
        blocks: the candidates.
        wanted: the criteria by name, in order.
        accepted: (n,) the least margin of a success.
        required_margin: (n,) how much more margin an answer needs.
        discount: how much more an action may cost that needs no indirect change, as a share.
        k: the number of answers of a row that are searched for, on different sets.
        tried: the evaluated actions.
        need: (n * s,) the least margin of an action whose criteria are evaluated.
        pairs: (m,) the row and set of each tried action, as one number.
        passed: (q,) ascending, the positions of answers: tried actions that have the margin and
            meet all criteria.
    """

    problem: SearchProblem
    blocks: list[Block]
    wanted: Mapping[str, Criterion]
    accepted: Tensor
    required_margin: Tensor
    discount: float
    k: int
    tried: Actions = field(init=False)
    need: Tensor = field(init=False)
    pairs: Tensor = field(init=False)
    passed: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is tried yet."""
        s, width = self.problem.sets.positions.shape
        self.tried, self.pairs = Actions.none(width), torch.empty(0, dtype=torch.int64)
        self.passed = self.successes = self.pairs
        self._reached = self.problem.x[:0]
        self.need = self.enough.repeat_interleave(s)

    @property
    def enough(self) -> Tensor:
        """(n,) the least margin of an answer."""
        return self.accepted + self.required_margin

    @lazy
    def is_line(self) -> Tensor:
        """(s,) bool, sets of one number."""
        sets = self.problem.sets
        return sets.single & self.problem.is_number[sets.positions[:, 0]]

    # Evaluation.

    def evaluate(self, rows: Tensor, sets: Tensor, values: Tensor) -> Actions:
        """Evaluate actions and add them to the tried ones."""
        problem = self.problem
        if not len(rows):
            return self.tried.part(rows)
        cost, margin, reached = problem.outcomes(rows, sets, values, self.accepted)
        found = (margin >= self.accepted[rows]).nonzero()[:, 0]
        price = cost.clone()
        if self.discount:
            at = found[margin[found] >= self.enough[rows[found]]]
            alone = problem.margin_alone(rows[at], sets[at], values[at])
            price[at[alone >= self.accepted[rows[at]]]] /= 1.0 + self.discount
        new = Actions.of(rows, sets, values, torch.stack([cost, margin, price]))
        # Those of the first successes are kept, up to the first that do not fit.
        fits = self._reached.numel() + reached.numel() <= MOST_KEPT
        if fits and len(self._reached) == len(self.successes):
            self._reached = torch.cat([self._reached, reached])
        self.successes = torch.cat([self.successes, len(self.tried) + found])
        self.tried = self.tried.extended(new)
        self.pairs = torch.cat([self.pairs, rows * len(problem.sets) + sets])
        return new

    def evaluate_below(self, block: Block, *, coarse: bool = False) -> None:
        """Evaluate the candidates of a block that are cheap enough: all, or the coarse ones."""
        cheap = block.direct < self.bound()[block.rows][:, None]
        self.evaluate(*block.take(cheap & block.coarse if coarse else cheap))

    def decoded(self, at: Tensor) -> Decoded:
        """The tried actions at positions (q,) with their counterfactuals."""
        part, index = self.tried.part(at), self.successes[: len(self._reached)]
        reached = self.problem.x.new_empty(len(at), self.problem.sets.p)
        kept = torch.isin(at, index)
        reached[kept] = self._reached[torch.searchsorted(index, at[kept])]
        if not bool(kept.all()):
            some, decode = part.part(~kept), self.problem.decode_actions
            reached[~kept] = decode(some.rows, some.sets, some.values[:, None])[1][:, 0]
        return Decoded(part.rows, reached, part.sets, part.values)

    def score(self, at: Tensor) -> None:
        """Evaluate the criteria of tried actions at positions (q,)."""
        tried, margin = self.tried, self.tried.margin[at]
        if self.wanted:
            tried.score[at], more, tried.measured[at] = scored(self.decoded(at), self.wanted)
            short = more > 0.0
            need = (margin + more)[short]
            self.need.scatter_reduce_(0, self.pairs[at][short], need, "amax")
        else:
            tried.score[at] = torch.inf
        met = at[(margin >= self.enough[tried.rows[at]]) & (tried.score[at] == torch.inf)]
        self.passed = torch.cat([self.passed, met]).sort().values

    def meet_all(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m,) bool, which new actions are answers: evaluated with all criteria."""
        start, new = len(self.tried), self.evaluate(rows, sets, values)
        at = start + (new.margin >= self.enough[rows]).nonzero()[:, 0]
        if len(at):
            self.score(at)
        return torch.isin(start + torch.arange(len(rows)), self.passed)

    # What is open.

    @property
    def _solved_pairs(self) -> Tensor:
        """(n * s,) bool, rows and sets with an answer."""
        solved = torch.zeros(len(self.need), dtype=torch.bool)
        return solved.index_fill(0, self.pairs[self.passed], True)

    @property
    def open_rows(self) -> Tensor:
        """(n,) bool, rows with fewer than k answers on different sets."""
        return self._solved_pairs.view(-1, len(self.problem.sets)).sum(1) < self.k

    @property
    def alive(self) -> Tensor:
        """(q,) the positions of tried actions that may become an answer."""
        closed = ~self.open_rows.repeat_interleave(len(self.problem.sets))
        need = self.need.masked_fill(self._solved_pairs | closed, torch.inf)
        at = self.successes[self.tried.score[self.successes] < 0.0]
        return at[self.tried.margin[at] >= need[self.pairs[at]]]

    def bound(self) -> Tensor:
        """(n,) the direct cost from which on no action can become an answer; -inf if closed."""
        n, alive = len(self.problem), self.alive
        price = least(self.tried.price[alive], self.pairs[alive], len(self.need), torch.inf)
        price = price.view(n, -1).sort(1).values
        missing = self.k - self._solved_pairs.view(n, -1).sum(1)
        at = (missing - 1).clamp(0, price.shape[1] - 1)
        bound = price.gather(1, at[:, None])[:, 0] * (1.0 + self.discount)
        bound = torch.where(missing > price.shape[1], torch.inf, bound)
        return torch.where(missing > 0, bound, -torch.inf)

    # The best of what was tried.

    @property
    def answers(self) -> Tensor:
        """(q,) the cheapest answer of each row and set, by position."""
        return self.cheapest(self.passed)

    def cheapest(self, at: Tensor) -> Tensor:
        """(q,) the first of the cheapest of actions at positions, (m,), of each row and set."""
        pairs, price = self.pairs[at], self.tried.price[at]
        lowest = at[price == least(price, pairs, len(self.need), torch.inf)[pairs]]
        return _first(lowest, self.pairs[lowest], len(self.need))

    def best(self, rows: Tensor) -> Tensor:
        """(q,) the accepted action of each row and set with the best score, then the cheapest.

        Args:
            rows: (n,) bool, the rows.
        """
        at = self.successes[rows[self.tried.rows[self.successes]]]
        score, pairs = self.tried.score[at], self.pairs[at]
        return self.cheapest(at[score == greatest(score, pairs, len(self.need), -1.0)[pairs]])

    def best_of_all(self) -> Tensor:
        """(q,) the answers, and of rows without an answer the best accepted action of each set."""
        solved = torch.zeros(len(self.problem), dtype=torch.bool)
        solved[self.tried.rows[self.passed]] = True
        return torch.cat([self.answers, self.best(~solved)])

    def nearest(self) -> Tensor:
        """(q,) the first of the largest margins of each row that are too small.

        Margins that differ by rounding only are equal: models round differently in batches of
        another size, and a row's answer must not depend on the batch.
        """
        at = (self.tried.margin < self.accepted[self.tried.rows]).nonzero()[:, 0]
        rows, margin = self.tried.rows[at], self.tried.margin[at]
        top = greatest(margin, rows, len(self.problem), -torch.inf)[rows]
        some = at[(margin >= top - TOLERANCE * top.abs()) & top.isfinite()]
        return _first(some, self.tried.rows[some], len(self.problem))


def _first(at: Tensor, owner: Tensor, count: int) -> Tensor:
    """(q,) the least of positions, (m,), of each of `count` owners that has some."""
    first = least(at, owner, count, NEVER)
    return first[first < NEVER]
