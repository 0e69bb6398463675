"""Search: the smallest change of x_S that reaches the target, for all rows and sets at once.

For one feature the problem is one-dimensional: scan its admissible values, then bisect to the
smallest change that succeeds. It needs no gradient, finds non-monotone solutions, and cannot
stall on a plateau.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.classifier import Classifier
from dear_plugin.constraints import Limits
from dear_plugin.decoders import Decoder
from dear_plugin.encoding import Encoder
from dear_plugin.schema import Kind
from dear_plugin.target import Goal

CELLS_A_BATCH = 1 << 18


@dataclass(frozen=True)
class Search:
    """How to search.

    Attributes:
        coarse: values of a numeric feature tried first; as many again where none succeeds.
        refine: bisections between the last failure and the first success.
        slack: how far past the boundary to aim, in units of the margin.
    """

    coarse: int = 16
    refine: int = 8
    slack: float = 1e-5

    def aiming(self, slack: float) -> Search:
        """The same search, aiming farther past the boundary."""
        return replace(self, slack=max(slack, self.slack))


@dataclass(frozen=True)
class Question:
    """What the search asks: n people, their sets, the decoder and the model.

    Attributes:
        x: (n, p) factual rows.
        v: (n, s, k) their latents.
        goal: the target of each.
        limits: their admissible changes.
        sets: the s action sets.
        decoder: g(v, x_S).
        classifier: the model.
    """

    x: Tensor
    v: Tensor
    goal: Goal
    limits: Limits
    sets: ActionSets
    decoder: Decoder
    classifier: Classifier

    def reach(self, rows: Tensor, sets: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Where actions lead, before and after A_d, (m, c, p) each.

        Args:
            rows: (m,) who acts.
            sets: (m,) on which set.
            values: (m, c, w) the new values of the set's features.
        """
        x = self.x[rows]
        moved = self.decoder.decode(x, self.v[rows, sets], values, sets)
        return moved, self.limits.project(x, moved, rows)

    def ask(self, rows: Tensor, sets: Tensor, values: Tensor, slack: float) -> Answer:
        """Cost, margin and success of actions, (m, c) each; arguments as in `reach`."""
        width = values.shape[1] * self.classifier.encoder.d
        size = max(1, CELLS_A_BATCH // width)
        parts = [
            self._ask(r, s, a, slack)
            for r, s, a in zip(rows.split(size), sets.split(size), values.split(size), strict=True)
        ]
        return parts[0] if len(parts) == 1 else Answer(*map(torch.cat, zip(*parts, strict=True)))

    def _ask(self, rows: Tensor, sets: Tensor, values: Tensor, slack: float) -> Answer:
        _, reached = self.reach(rows, sets, values)
        m, c, p = reached.shape
        cost = self.classifier.encoder.distance(reached, self.x[rows, None]).sum(2)
        scores = self.classifier.scores(reached.view(m * c, p))
        who = rows.repeat_interleave(c)
        margin = self.goal.margin(scores, who).view(m, c)
        good = self.goal.accepts(scores, who, slack).view(m, c)
        return Answer(cost, margin.float(), good)


@dataclass(frozen=True)
class Answer:
    """What came of actions, (m, c) each.

    Attributes:
        cost: l1 in scaled units, direct and indirect.
        margin: the target's margin.
        good: whether the decision is the wanted one.
    """

    cost: Tensor
    margin: Tensor
    good: Tensor

    def __iter__(self) -> Iterator[Tensor]:
        """The three tensors."""
        return iter((self.cost, self.margin, self.good))


@dataclass(frozen=True)
class Found:
    """The cheapest success of every row and set, and each row's nearest miss.

    Attributes:
        values: (n, s, w) the new values of the sets' features.
        cost: (n, s) the cost; infinite where no success was found.
        tried_values: (n, w) the action with the largest margin, for rows without a success.
        tried_set: (n,) its set, -1 where nothing was admissible.
        tried_margin: (n,) its margin.
    """

    values: Tensor
    cost: Tensor
    tried_values: Tensor
    tried_set: Tensor
    tried_margin: Tensor

    @classmethod
    def none(cls, n: int, s: int, w: int) -> Found:
        """Nothing found yet."""
        return cls(
            torch.zeros(n, s, w),
            torch.full((n, s), torch.inf),
            torch.zeros(n, w),
            torch.full((n,), -1),
            torch.full((n,), -torch.inf),
        )

    def note(self, rows: Tensor, sets: Tensor, values: Tensor, answer: Answer) -> None:
        """Keep what is better than what was known.

        Arguments as in `Question.ask`; no pair (row, set) may come twice in one call.
        """
        least, at = torch.where(answer.good, answer.cost, torch.inf).min(1)
        better = (least < self.cost[rows, sets]).nonzero()[:, 0]
        self.cost[rows[better], sets[better]] = least[better]
        self.values[rows[better], sets[better]] = values[better, at[better]]
        self._note_miss(rows, sets, values, answer.margin)

    def _note_miss(self, rows: Tensor, sets: Tensor, values: Tensor, margin: Tensor) -> None:
        most, at = margin.max(1)
        top = self.tried_margin.scatter_reduce(0, rows, most, "amax")
        leads = ((most == top[rows]) & (most > self.tried_margin[rows])).nonzero()[:, 0]
        # Of several equal leaders the first wins, so that ties break in a fixed order.
        first = torch.full((len(top),), len(rows)).scatter_reduce(0, rows[leads], leads, "amin")
        chosen = first[first < len(rows)]
        self.tried_margin.copy_(top)
        self.tried_set[rows[chosen]] = sets[chosen]
        self.tried_values[rows[chosen]] = values[chosen, at[chosen]]


@dataclass(frozen=True)
class Grids:
    """Which values of each singleton are tried first.

    Attributes:
        numeric: (s,) bool, sets of one numeric feature.
        counts: (s,) how many categories a discrete set has, 0 for numeric ones.
        values: (2, s, c) the coarse values and those between them.
    """

    numeric: Tensor
    counts: Tensor
    values: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder, sets: ActionSets, count: int) -> Grids:
        """Read the values off training rows, (n, p): evenly spaced ones and quantiles."""
        kinds = [encoder.schema.features[m[0]] for m in sets.members]
        numeric = torch.tensor([f.kind is Kind.NUMERIC for f in kinds])
        counts = torch.tensor([len(f.categories) for f in kinds])
        both = [_spread(rows[:, m[0]], 2 * count) for m in sets.members]
        values = torch.stack(both).view(len(sets), count, 2).permute(2, 0, 1)
        return cls(numeric, counts, values.contiguous())


def _spread(column: Tensor, count: int) -> Tensor:
    """(count,) observed values: all there are, or evenly spaced and quantile ones together."""
    values = column.unique()
    if len(values) > count:
        even = torch.linspace(float(values[0]), float(values[-1]), count // 2)
        ranks = torch.linspace(0, len(values) - 1, count - count // 2)
        shares = torch.linspace(0, len(column) - 1, count - count // 2)
        among = (
            torch.cat([values[ranks.long()], column.sort().values[shares.long()]]).sort().values
        )
        values = torch.cat([even, among[::2]]).sort().values
    return torch.cat([values, values[-1:].expand(count - len(values))])


def line_search(question: Question, grids: Grids, search: Search, prune: bool = True) -> Found:
    """The cheapest success of every row and singleton.

    Args:
        question: who asks what.
        grids: the values to try first.
        search: how finely.
        prune: refine only sets that may still become a row's cheapest.
    """
    asked = question.limits.sets
    n, s = asked.shape
    found = Found.none(n, s, 1)
    for count in grids.counts.unique().tolist():
        if count:
            _try_levels(question, asked & (grids.counts == count), count, search, found)
    coarse, between = grids.values
    _scan(question, asked & grids.numeric, coarse, search, found, prune)
    unsolved = found.cost.isinf().all(1)[:, None]
    _scan(question, asked & grids.numeric & unsolved, between, search, found, prune)
    return found


def _try_levels(
    question: Question, asked: Tensor, count: int, search: Search, found: Found
) -> None:
    """Ask for every other category of discrete sets with `count` categories."""
    rows, sets = asked.nonzero(as_tuple=True)
    feature = question.sets.positions[sets, 0]
    own = question.x[rows, feature]
    # The own category is left out: 0 ... count - 2, and those from the own one on moved up.
    others = torch.arange(count - 1).expand(len(rows), -1)
    values = (others + (others >= own[:, None])).float()
    admitted = question.limits.admits(values, feature, rows)
    values = torch.where(admitted, values, own[:, None])
    some = admitted.any(1)
    if bool(some.any()):
        rows, sets, values = rows[some], sets[some], values[some, :, None]
        found.note(rows, sets, values, question.ask(rows, sets, values, search.slack))


def _scan(
    question: Question, asked: Tensor, grid: Tensor, search: Search, found: Found, prune: bool
) -> None:
    """Ask for the grid's values, then bisect towards the factual."""
    rows, sets = asked.nonzero(as_tuple=True)
    feature = question.sets.positions[sets, 0]
    possible = question.limits.low[rows, feature] <= question.limits.high[rows, feature]
    rows, sets, feature = rows[possible], sets[possible], feature[possible]
    if not len(rows):
        return
    values = question.limits.snap(grid[sets], feature, rows)
    answer = question.ask(rows, sets, values[..., None], search.slack)
    found.note(rows, sets, values[..., None], answer)
    bracket = _Bracket.of(question, rows, sets, values, answer)
    for _ in range(search.refine):
        if not _bisect(question, bracket, search, found, prune):
            break


@dataclass
class _Bracket:
    """Between the last failure and the first success of m pairs (row, set).

    Attributes:
        rows: (m,) who acts.
        sets: (m,) on which set.
        low: (m,) a value that fails, or the factual.
        high: (m,) a value that succeeds, farther from the factual.
        cost: (m,) the cost at `low`: no success in between is taken to be cheaper.
    """

    rows: Tensor
    sets: Tensor
    low: Tensor
    high: Tensor
    cost: Tensor

    @classmethod
    def of(
        cls, question: Question, rows: Tensor, sets: Tensor, values: Tensor, answer: Answer
    ) -> _Bracket:
        """The brackets around each pair's cheapest success, if it has one."""
        least, at = torch.where(answer.good, answer.cost, torch.inf).min(1)
        x = question.x[rows, question.sets.positions[sets, 0]]
        high = values.gather(1, at[:, None])
        gap, reach = values - x[:, None], high - x[:, None]
        inner = torch.where((gap * reach > 0) & (gap.abs() < reach.abs()), gap.abs(), -1.0)
        nearest, where = inner.max(1)
        some = nearest > 0
        low = torch.where(some, values.gather(1, where[:, None])[:, 0], x)
        cost = torch.where(some, answer.cost.gather(1, where[:, None])[:, 0], 0.0)
        solved = least.isfinite()
        return cls(rows[solved], sets[solved], low[solved], high[solved, 0], cost[solved])


def _bisect(
    question: Question, bracket: _Bracket, search: Search, found: Found, prune: bool
) -> bool:
    """Halve the brackets once; False when none is left to halve."""
    feature = question.sets.positions[bracket.sets, 0]
    halfway = ((bracket.low + bracket.high) / 2.0)[:, None]
    middle = question.limits.snap(halfway, feature, bracket.rows)[:, 0]
    room = question.limits.steps[feature] / 4.0
    going = torch.minimum((middle - bracket.low).abs(), (middle - bracket.high).abs()) > room
    if prune:
        going &= bracket.cost < found.cost.amin(1)[bracket.rows]
    at = going.nonzero()[:, 0]
    if not len(at):
        return False
    rows, sets, values = bracket.rows[at], bracket.sets[at], middle[at, None, None]
    answer = question.ask(rows, sets, values, search.slack)
    found.note(rows, sets, values, answer)
    good, cost = answer.good[:, 0], answer.cost[:, 0]
    bracket.high[at] = torch.where(good, middle[at], bracket.high[at])
    bracket.low[at] = torch.where(good, bracket.low[at], middle[at])
    bracket.cost[at] = torch.where(good, bracket.cost[at], cost)
    return True
