"""Stage: the search of some rows over some sets, which remembers every action that it tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.special_values import is_special
from dear_plugin.search.actions import Actions, first_of_each
from dear_plugin.search.candidates import Block
from dear_plugin.search.credibility import Decoded
from dear_plugin.search.criteria import Criterion, scored
from dear_plugin.search.problem import SMALLEST, SearchProblem

# Rounds of trying more values and evaluating criteria.
ROUNDS = 4
# Actions of a row whose criteria are evaluated in turn, for each answer that is missing.
VETTED = (1, 4, 16, 32)
# Actions of a row that may be accepted by too small a margin: the same, for a row without answer.
VETTED_NEARER = (4, 16)
# The parts into which the way to the cheapest action is cut.
PARTS = 8
# The cheapest sets of several features of a row whose actions are moved back.
FEW_SETS = 4
HALVINGS = 4
# The parts of the way from an action on several features to the factual.
WAY_BACK = (8, 64)
# Cells of the counterfactuals of accepted actions that are kept: 128 MiB.
MOST_KEPT = 1 << 25
# Larger than any position.
NEVER = 1 << 62
# Relative rounding error of a margin, larger than that of a float32 model.
TOLERANCE = 1e-5


@dataclass
class Stage:
    """The search of n rows over the s sets of a problem.

    Attributes:
        problem: the rows and the sets.
        blocks: the candidates, those to be tried first in the first block.
        wanted: the criteria by name, in order.
        accepted: (n,) the least margin of a success.
        lead: (n,) how much more margin an answer needs.
        discount: how much more an action may cost that needs no indirect change, as a share.
        k: the number of answers of a row that are searched for, on different sets.
        tried: the evaluated actions.
        need: (n * s,) the least margin of an action whose criteria are evaluated.
        pairs: (m,) the row and set of each tried action, as one number.
        passed: (q,) ascending, the positions of answers: tried actions that have the lead and
            meet all criteria.
    """

    problem: SearchProblem
    blocks: list[Block]
    wanted: Mapping[str, Criterion]
    accepted: Tensor
    lead: Tensor
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
        self.passed = self._accepted_at = self.pairs
        self._reached = self.problem.x[:0]
        self.need = (self.accepted + self.lead).repeat_interleave(s)

    def search(self, *, further: bool = True) -> None:
        """Try candidates and evaluate criteria until each row has k answers, or no round helps.

        Args:
            further: try values near the cheapest actions as well.
        """
        if not self.blocks and not len(self.tried):
            return
        for number in range(ROUNDS):
            for fine, cuts in ((False, 1), (True, 2)):
                # The bound falls before fine values are tried, most of which then need not be.
                for block in (each for each in self.blocks if each.fine == fine):
                    self._try(block)
                for _ in range(cuts * (further and not number)):
                    self._cut()
            for steps in WAY_BACK * further:
                self._move_back(steps)
            if not self._vet(VETTED) or not bool(self.open_rows.any()):
                break
        if further:
            self._tighten()
            self._drop_superfluous()

    def settle(self) -> None:
        """Evaluate criteria of the actions of open rows that are accepted by any margin."""
        s, kept = len(self.problem.sets), self.need
        self.need = self.accepted.repeat_interleave(s)
        self._vet(VETTED_NEARER)
        self.need = kept

    @property
    def open_rows(self) -> Tensor:
        """(n,) bool, rows with fewer than k answers on different sets."""
        return self._solved_pairs.view(len(self.problem), -1).sum(1) < self.k

    @property
    def _solved_pairs(self) -> Tensor:
        """(n * s,) bool, rows and sets with an answer."""
        solved = torch.zeros(len(self.need), dtype=torch.bool)
        return solved.index_fill(0, self.pairs[self.passed], True)

    @property
    def alive(self) -> Tensor:
        """(q,) the positions of tried actions that may become an answer."""
        solved = self._solved_pairs
        closed = solved.view(len(self.problem), -1).sum(1) >= self.k
        closed_pairs = solved | closed.repeat_interleave(len(self.problem.sets))
        need = self.need.masked_fill(closed_pairs, torch.inf)
        at = self._accepted_at[self.tried.score[self._accepted_at] < 0.0]
        return at[self.tried.margin[at] >= need[self.pairs[at]]]

    def _bound(self) -> Tensor:
        """(n,) the direct cost from which on no action can become an answer; -inf if closed."""
        n, alive = len(self.problem), self.alive
        least = self.tried.cost.new_full((len(self.need),), torch.inf)
        least = least.scatter_reduce(0, self.pairs[alive], self.tried.price[alive], "amin")
        missing = self.k - self._solved_pairs.view(n, -1).sum(1)
        price = least.view(n, -1).sort(1).values
        at = (missing - 1).clamp(0, price.shape[1] - 1)
        bound = price.gather(1, at[:, None])[:, 0] * (1.0 + self.discount)
        bound = torch.where(missing > price.shape[1], torch.inf, bound)
        return torch.where(missing > 0, bound, -torch.inf)

    def _try(self, block: Block) -> None:
        """Evaluate the candidates of a block that are cheap enough."""
        self.evaluate(*block.take(block.direct < self._bound()[block.rows][:, None]))

    def evaluate(self, rows: Tensor, sets: Tensor, values: Tensor) -> Actions:
        """Evaluate actions and add them to the tried ones."""
        problem = self.problem
        if not len(rows):
            return self.tried.part(rows)
        cost, margin, reached = problem.outcomes(rows, sets, values, self.accepted)
        found = (margin >= self.accepted[rows]).nonzero()[:, 0]
        price = cost.clone()
        if self.discount:
            at = found[margin[found] >= (self.accepted + self.lead)[rows[found]]]
            alone = problem.margin_alone(rows[at], sets[at], values[at])
            price[at[alone >= self.accepted[rows[at]]]] /= 1.0 + self.discount
        new = Actions.of(rows, sets, values, torch.stack([cost, margin, price]))
        # Those of the first accepted actions are kept, up to the first that do not fit.
        fits = self._reached.numel() + reached.numel() <= MOST_KEPT
        if fits and len(self._reached) == len(self._accepted_at):
            self._reached = torch.cat([self._reached, reached])
        self._accepted_at = torch.cat([self._accepted_at, len(self.tried) + found])
        self.tried = self.tried.extended(new)
        self.pairs = torch.cat([self.pairs, rows * len(problem.sets) + sets])
        return new

    def _cut(self) -> None:
        """Try values between the cheapest action of a row and set, and what was tried before."""
        at = self._cheapest(self.alive)
        bound, tried = self._bound(), self.tried.part(at)
        own = self.problem.own(tried.rows, tried.sets)
        single = self._is_line[tried.sets] & ~is_special(torch.minimum(own, tried.values)).any(1)
        low = self._before(at)
        cost = self.problem.direct_cost(tried.rows, tried.sets, low[:, None])[:, 0]
        may_win = single & (cost < bound[tried.rows])
        rows, sets = tried.rows[may_win], tried.sets[may_win]
        shares = (torch.arange(1, PARTS) / PARTS)[:, None]
        between = torch.lerp(low[may_win, None], tried.values[may_win, None], shares)
        self._try(self._between(rows, sets, between, (low[may_win], tried.values[may_win])))

    def _between(
        self, rows: Tensor, sets: Tensor, values: Tensor, ends: tuple[Tensor, Tensor]
    ) -> Block:
        """Values, (m, c, w), snapped; without those that equal the one before, or an end."""
        block = Block.of(self.problem, rows, sets, values)
        low, high = (each[:, None] for each in ends)
        before = torch.cat([low, block.values[:, :-1]], 1)
        steps = self.problem.feasible.steps[self.problem.sets.positions[sets]][:, None] / 4.0
        new = ((block.values - before).abs() > steps).any(2)
        block.untried &= new & ((block.values - high).abs() > steps).any(2)
        return block

    def _move_back(self, steps: int) -> None:
        """Try values between the cheapest actions on several features and the factual.

        Args:
            steps: the number of parts of the way, of which the last eight are tried.
        """
        problem, best = self.problem, self.tried.part(self._cheapest(self.alive))
        best = best.part(self._few_sets(best, ~problem.sets.single[best.sets]))
        if not len(best):
            return
        own = problem.own(best.rows, best.sets)[:, None]
        number = problem.numeric[problem.sets.positions[best.sets]][:, None]
        shares, ends = (1.0 - torch.arange(1, 9) / steps)[:, None], best.values[:, None]
        ways = [torch.where(number, torch.lerp(own, ends, shares), ends)]
        for i in range(best.values.shape[1]):
            one = ends.repeat(1, len(shares), 1)
            moved = torch.lerp(own[..., i], ends[..., i], shares[:, 0])
            one[..., i] = torch.where(number[..., i], moved, own[..., i])
            ways.append(one)
        values = torch.cat(ways, 1)
        self._try(self._between(best.rows, best.sets, values, (best.values, best.values)))

    def _vet(self, sizes: Iterable[int]) -> bool:
        """Evaluate the criteria of the cheapest actions of open rows; False if there were none."""
        some = False
        for size in sizes:
            at = self._next(size * self.k)
            if not len(at):
                break
            self.score(at)
            some = True
        return some

    def _next(self, size: int) -> Tensor:
        """(q,) the actions of open rows to examine, `size` of a row, the cheapest first.

        Of a set, those at places 0, 1, 3, 7, ... in the order of price: neighbouring values
        mostly meet the same criteria.
        """
        at = self.alive.numpy()
        rows, price = self.tried.rows.numpy()[at], self.tried.price.numpy()[at]
        pairs = self.pairs.numpy()[at]
        order = np.lexsort((price, pairs))
        sorted_pairs = pairs[order]
        place = np.arange(len(order)) - np.searchsorted(sorted_pairs, sorted_pairs)
        some = order[((place + 1) & place) == 0]
        some = some[np.lexsort((price[some], rows[some]))]
        missing = torch.from_numpy(rows[some])
        return torch.from_numpy(at[some])[first_of_each(missing, size)]

    def decoded(self, at: Tensor) -> Decoded:
        """The tried actions at positions (q,) with their counterfactuals."""
        part, index = self.tried.part(at), self._accepted_at[: len(self._reached)]
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
            tried.score[at], shortfall, tried.measured[at] = scored(self.decoded(at), self.wanted)
            short = shortfall > 0.0
            need = (margin + shortfall)[short]
            self.need.scatter_reduce_(0, self.pairs[at][short], need, "amax")
        else:
            tried.score[at] = torch.inf
        enough = margin >= (self.accepted + self.lead)[tried.rows[at]]
        met = at[enough & (tried.score[at] == torch.inf)]
        self.passed = torch.cat([self.passed, met]).sort().values

    def _tighten(self) -> None:
        """Halve the way from answers of one number to a rejected action before them."""
        at = self.answers[self._is_line[self.tried.sets[self.answers]]]
        rejected = (self.tried.score >= 0.0).index_fill(0, self.passed, False)
        low, best = self._before(at, rejected), self.tried.part(at)
        high = best.values
        rows, sets = best.rows, best.sets
        own = self.problem.own(rows, sets)
        bounded = (low != own).any(1) & ~is_special(torch.minimum(own, high)).any(1)
        rows, sets, low, high = rows[bounded], sets[bounded], low[bounded], high[bounded]
        for _ in range(HALVINGS):
            if not len(rows):
                return
            block = self._between(rows, sets, torch.lerp(low, high, 0.5)[:, None], (low, high))
            new = block.untried[:, 0]
            rows, sets, low, high = rows[new], sets[new], low[new], high[new]
            middle = block.values[new, 0]
            met = self._meet_all(rows, sets, middle)[:, None]
            low, high = torch.where(met, low, middle), torch.where(met, middle, high)

    def _drop_superfluous(self) -> None:
        """Try answers on several features without each of their changes; see `Block.of`."""
        if self.problem.has_tiers:
            return
        for i in range(self.problem.sets.positions.shape[1]):
            best = self.tried.part(self.answers)
            own = self.problem.own(best.rows, best.sets)
            values = best.values.clone()
            values[:, i] = own[:, i]
            changed = ((best.values - own).abs() > SMALLEST).sum(1) > 1
            some = changed & (values[:, i] != best.values[:, i]) & ~self._is_line[best.sets]
            self._meet_all(best.rows[some], best.sets[some], values[some])

    def _meet_all(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m,) bool, which actions are answers: evaluated with all criteria."""
        if not len(rows):
            return torch.zeros(0, dtype=torch.bool)
        start, new = len(self.tried), self.evaluate(rows, sets, values)
        enough = new.margin >= (self.accepted + self.lead)[rows]
        at = start + enough.nonzero()[:, 0]
        if len(at):
            self.score(at)
        return torch.isin(start + torch.arange(len(rows)), self.passed)

    @property
    def _bases(self) -> Tensor:
        """(q,) the answers, and of rows without an answer the best accepted action of each set."""
        solved = torch.zeros(len(self.problem), dtype=torch.bool)
        solved[self.tried.rows[self.passed]] = True
        return torch.cat([self.answers, self.best(~solved)])

    @property
    def answers(self) -> Tensor:
        """(q,) the cheapest answer of each row and set, by position."""
        return self._cheapest(self.passed)

    def best(self, rows: Tensor) -> Tensor:
        """(q,) the accepted action of each row and set with the best score, then the cheapest.

        Args:
            rows: (n,) bool, the rows.
        """
        at = self._accepted_at[rows[self.tried.rows[self._accepted_at]]]
        score, pairs = self.tried.score[at], self.pairs[at]
        most = torch.full((len(self.need),), -torch.inf, dtype=torch.float64)
        most = most.scatter_reduce(0, pairs, score, "amax")
        return self._cheapest(at[score == most[pairs]])

    def try_larger(self) -> None:
        """Try k larger actions on the sets of open rows that have an accepted action."""
        best = self.tried.part(self._bases)
        best = best.part(self.open_rows[best.rows])
        if not len(best):
            return
        own = self.problem.own(best.rows, best.sets)
        number = self.problem.numeric[self.problem.sets.positions[best.sets]]
        end = torch.where(best.values > own, 1.0, torch.where(best.values < own, 0.0, own))
        end = torch.where(number & ~is_special(best.values), end, best.values)[:, None]
        shares = (torch.arange(1, self.k + 1) / self.k)[:, None]
        values = torch.lerp(best.values[:, None], end, shares)
        ends = best.values, best.values
        self.evaluate(*self._between(best.rows, best.sets, values, ends).take_all())

    def larger(self, *, unscored: bool = False) -> Tensor:
        """(q,) actions of open rows that are dearer than the one to be preferred on the same set.

        About k of each row and set, evenly spread by price.

        Args:
            unscored: only those whose criteria are not evaluated.
        """
        tried, least = self.tried, torch.full((len(self.need),), torch.inf)
        least[self.pairs[self._bases]] = tried.price[self._bases]
        at = self._accepted_at
        dearer = self.open_rows[tried.rows[at]] & (tried.price[at] > least[self.pairs[at]])
        at = at[dearer]
        order = np.lexsort((tried.price[at].numpy(), self.pairs[at].numpy()))
        pairs = self.pairs[at].numpy()[order]
        first, last = (np.searchsorted(pairs, pairs, side) for side in ("left", "right"))
        part = (np.arange(len(pairs)) - first) * self.k // np.maximum(last - first, 1)
        new = np.ones(len(pairs), dtype=bool)
        new[1:] = (part[1:] != part[:-1]) | (pairs[1:] != pairs[:-1])
        chosen = at[torch.from_numpy(order[new])]
        return chosen[tried.score[chosen] < 0.0] if unscored else chosen

    def nearest(self) -> Tensor:
        """(q,) the first of the largest margins of each row that are too small.

        Margins that differ by rounding only are equal: models round differently in batches of
        another size, and a row's answer must not depend on the batch.
        """
        at = (self.tried.margin < self.accepted[self.tried.rows]).nonzero()[:, 0]
        n = len(self.problem)
        rows, margin = self.tried.rows[at], self.tried.margin[at]
        top = torch.full((n,), -torch.inf).scatter_reduce(0, rows, margin, "amax")[rows]
        some = at[(margin >= top - TOLERANCE * top.abs()) & top.isfinite()]
        return _first(some, self.tried.rows[some], n)

    def _cheapest(self, at: Tensor) -> Tensor:
        """(q,) the first of the cheapest of actions at positions, (m,), of each row and set."""
        pairs, price = self.pairs[at], self.tried.price[at]
        least = price.new_full((len(self.need),), torch.inf)
        least = least.scatter_reduce(0, pairs, price, "amin")
        lowest = at[price == least[pairs]]
        return _first(lowest, self.pairs[lowest], len(self.need))

    def _before(self, at: Tensor, among: Tensor | None = None) -> Tensor:
        """(q, w) the farthest tried value nearer than actions on one number, or the factual.

        Args:
            at: (q,) the actions, at most one of each row and set.
            among: (m,) bool, the tried actions to look at; None for all.
        """
        problem, tried = self.problem, self.tried
        own = problem.own(tried.rows, tried.sets)[:, 0]
        change = tried.values[:, 0] - own
        limit = change.new_zeros(len(self.need))
        limit[self.pairs[at]] = change[at]
        here = limit[self.pairs]
        nearer = (change * here > 0.0) & (change.abs() < here.abs())
        if among is not None:
            nearer &= among
        farthest = change.new_zeros(len(self.need))
        farthest = farthest.scatter_reduce(0, self.pairs[nearer], change[nearer].abs(), "amax")
        length = farthest[self.pairs[at]] * change[at].sign()
        return (own[at] + length)[:, None].expand(-1, tried.values.shape[1])

    def _few_sets(self, best: Actions, mask: Tensor) -> Tensor:
        """(q,) the cheapest few of actions in a mask, (m,) bool, of each row."""
        at = mask.nonzero()[:, 0].numpy()
        order = at[np.lexsort((best.price.numpy()[at], best.rows.numpy()[at]))]
        few = torch.from_numpy(order)
        return few[first_of_each(best.rows[few], FEW_SETS)].sort().values

    @lazy
    def _is_line(self) -> Tensor:
        """(s,) bool, sets of one number."""
        sets = self.problem.sets
        return sets.single & self.problem.numeric[sets.positions[:, 0]]


def _first(at: Tensor, owner: Tensor, count: int) -> Tensor:
    """(q,) the least of positions, (m,), of each of `count` owners that has some."""
    first = torch.full((count,), NEVER).scatter_reduce(0, owner, at, "amin")
    return first[first < NEVER]
