"""The search problem: the rows that actions lead to, their costs and their margins.

What a decoder or a model takes and gives are tensors, (m, p) rows of them; all else that a search
knows are numpy arrays: they are small, and what torch does before it adds two numbers takes longer
than the sum. `tensors` and `arrays` are between them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.data.numbers import Array, in_steps, known, nearest
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.evaluation.trained import Trained
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.feasible import Admissible, Case, Limits
from dear_plugin.problem.goals import Goal

# Cells of rows in one evaluation: 4 MiB, large enough for the overhead of a call; 16 MiB of
# encoded columns; and for a black box, frames long enough for their overhead per column.
CELLS_A_BATCH = 1 << 19
CELLS_EXPANDED = 1 << 22
CELLS_A_FRAME = 1 << 21


def tensors(*each: Array) -> tuple[Tensor, ...]:
    """Arrays as tensors, which share their memory."""
    return tuple(map(torch.from_numpy, each))


def arrays(*each: Tensor) -> tuple[Array, ...]:
    """Tensors as arrays, which share their memory."""
    return tuple(map(Tensor.numpy, each))


class Features:
    """What a search reads of p features, as arrays; for attributes see `Encoder`.

    Args:
        sample: training rows.
    """

    def __init__(self, sample: Sample) -> None:
        own = sample.encoder
        self.labelled, self.blocks = arrays(own.labelled, own.blocks)
        self.low, self.high, self.unit = arrays(own.low, own.high, own.unit)
        self.step, self.shares = arrays(own.step, own.shares)
        self.starts = np.array(own.starts)
        self.observed = own.observed

    def amounts(self, *values: Array, at: Any = slice(None)) -> Array:
        """(...) bool, the values that are amounts in all of some arrays; see `Encoder.amounts`."""
        return np.asarray(~self.labelled[at] & known(reduce(np.minimum, values)))

    def observed_near(self, values: Array, at: Array) -> Array:
        """(m, c, w) values, or the nearest observed ones of features that take no others.

        Args:
            values: the values.
            at: (m, w) the features.
        """
        for j, own in self.observed.items():
            values = np.where((at == j)[:, None], nearest(values, own), values)
        return values


@dataclass(frozen=True)
class SearchProblem:
    """n rows, their action sets, the decoder and the model of a search.

    Attributes:
        x: (n, p) factual rows.
        goal: the targets of the rows.
        feasible: what is admissible of the rows.
        sets: the s action sets.
        decoders: g(v, x_S) of every set.
        classifier: the model.
        may_act: (n, s) bool, the sets that each row may act on.
        in_steps: whether actions set multiples of steps, and no extreme values.
        indirect_weight: what a unit of indirect change counts for in costs.
        latents_by_set: the latents of the rows, (n, k), by set; see `latents`.
    """

    x: Tensor
    goal: Goal
    feasible: Admissible
    sets: ActionSets
    decoders: Decoders
    classifier: Classifier
    may_act: Array
    in_steps: bool = False
    indirect_weight: float = 1.0
    latents_by_set: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case, sets: ActionSets, trained: Trained) -> SearchProblem:
        """The problem of the rows of a case on some sets, with the model and its decoders."""
        decoders, classifier = cast(Decoders, trained.decoders), trained.classifier
        limits = case.feasible.limits
        feasible = replace(case.feasible, limits=_in_own_unit(limits, sets))
        may_act = limits.may_act(sets).numpy()
        return cls(case.x, case.goal, feasible, sets, decoders, classifier, may_act)

    def __len__(self) -> int:
        """The number of rows (n)."""
        return len(self.x)

    @lazy
    def has_order(self) -> bool:
        """Whether the schema states an order of causes."""
        return self.classifier.encoder.schema.causal_order.is_stated

    @lazy
    def features(self) -> Features:
        """What is known of the features."""
        return self.decoders.sample.shared(Features)

    @lazy
    def cells(self) -> Array:
        """(n, p) the factual rows."""
        return self.x.numpy()

    @lazy
    def ends(self) -> tuple[Array, Array]:
        """(n, p) each, the least and the greatest value that actions may set."""
        limits = self.feasible.limits
        limits = limits.without_extremes(self.x) if self.in_steps else limits
        return limits.low.numpy(), limits.high.numpy()

    @lazy
    def weights(self) -> Array:
        """(n, p) what a unit of a feature counts where a row acts on it."""
        costs, shares = self.feasible.limits.costs, self.features.shares
        each = shares if costs is None else shares * costs.numpy()
        return np.broadcast_to(each, self.cells.shape)

    @lazy
    def positions(self) -> Array:
        """(s, w) the features of each set; shorter sets repeat their first feature."""
        return self.sets.positions.numpy()

    @lazy
    def masks(self) -> Array:
        """(s, p) bool, the features in each set."""
        return self.sets.masks.numpy()

    @lazy
    def single(self) -> Array:
        """(s,) bool, sets of one feature."""
        return np.array([len(members) == 1 for members in self.sets.members])

    @lazy
    def subsets(self) -> Array:
        """(s, q) the sets that are contained in each, which is repeated if they are few."""
        masks = self.masks.astype(np.float32)
        inside = (masks @ (1.0 - masks).T == 0.0).T
        at = np.argsort(~inside, 1, kind="stable")[:, : inside.sum(1).max()]
        return np.where(np.take_along_axis(inside, at, 1), at, np.arange(len(masks))[:, None])

    @lazy
    def held(self) -> Tensor:
        """(s, p) bool, the features that do not move with each set."""
        order = self.classifier.encoder.schema.causal_order
        return replace(self.sets, members=tuple(map(order.held, self.sets.members))).masks

    def select(self, rows: Tensor) -> SearchProblem:
        """The problem of the rows at positions (q,)."""
        return replace(
            self,
            x=self.x[rows],
            goal=self.goal.select(rows),
            feasible=self.feasible.select(rows),
            may_act=self.may_act[rows.numpy()],
            latents_by_set={i: v[rows] for i, v in list(self.latents_by_set.items())},
        )

    def latents(self, i: int) -> Tensor:
        """(n, k) the latents of the rows for set i, encoded when first needed."""
        if i not in self.latents_by_set:
            # A decoder may differentiate while it encodes.
            with torch.inference_mode(False):
                self.latents_by_set[i] = self.decoders.of(self.sets.members[i]).encode(self.x)
        return self.latents_by_set[i]

    def decode(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m, c, p) the decoders' rows of actions, which need not be admissible.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, c, w) the new values of the set's features, or (m, c, 1) for singletons.
        """
        x = self.x.index_select(0, rows)
        moved = x.new_empty(*values.shape[:2], x.shape[1])
        for i, at in by_set(sets):
            members, v = self.sets.members[i], self.latents(i)
            some = values[at][..., : len(members)]
            moved[at] = self.decoders.of(members).decode(x[at], v[rows[at]], some)
        return moved

    def decode_actions(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m, c, p) the rows of actions; arguments as of `decode`."""
        return self.project(self.decode(rows, sets, values), rows, sets)

    def resample(self, rows: Tensor, sets: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(m, r, p) the projected rows of actions under some resamples.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, w) the new values of the set's features.
            draws: (r,) the resamples, each in 1 ... R.
        """
        x = self.x.index_select(0, rows)
        moved = x.new_empty(len(x), len(draws), x.shape[1])
        for i, at in by_set(sets):
            members = self.sets.members[i]
            some = values[at][:, : len(members)]
            moved[at] = self.decoders.resample(members, x[at], some, draws)
        return self.project(moved, rows, sets)

    def project(self, moved: Tensor, rows: Tensor, sets: Tensor) -> Tensor:
        """(m, c, p) decoded rows, projected onto A_d; arguments as of `Admissible.project`."""
        held = self.held[sets] if self.has_order else None
        x = self.x.index_select(0, rows)
        return self.feasible.project(x, moved, rows, self.sets.masks[sets], held)

    def scores(self, rows: Tensor) -> Tensor:
        """(m, c) the model's scores of rows, (m, p), in parts that fit into memory."""
        most = CELLS_A_BATCH if self.classifier.is_module else CELLS_A_FRAME
        share = max(rows.shape[1] / most, self.classifier.encoder.d / CELLS_EXPANDED)
        parts = rows.split(max(1, int(1.0 / share)))
        return torch.cat([self.classifier.scores(part) for part in parts])

    def extended(self, sets: ActionSets) -> SearchProblem:
        """The same rows with more action sets; those of before keep their positions."""
        return replace(self, sets=sets, may_act=self.feasible.limits.may_act(sets).numpy())

    def own(self, rows: Array, sets: Array) -> Array:
        """(m, w) the factual values of the sets' features; rows and sets are (m,)."""
        return np.asarray(self.cells[rows[:, None], self.positions[sets]])

    def snapped(self, rows: Array, sets: Array, values: Array) -> Array:
        """(m, c, w) values that actions may set: each snapped, or the factual where none is near.

        With steps no value is less than one from the factual.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, c, w) the wanted values.
        """
        features, at, row = self.features, self.positions[sets, : values.shape[2]], rows[:, None]
        own, low, high = [each[row, at][:, None] for each in (self.cells, *self.ends)]
        step, round_ = features.step[at][:, None] * self.in_steps, self.feasible.limits.grid.round
        near = features.observed_near(in_steps(values, step), at)
        # A bound may be the factual, which need not be on the grid.
        near = round_(np.minimum(np.maximum(near, low), high), at[:, None])
        near = np.minimum(np.maximum(near, low), high)
        # Rounding errors of a step are far below a thousandth of it.
        good = (near >= low) & (near <= high) & (np.abs(near - own) >= 0.999 * step)
        good &= near == features.observed_near(near, at)
        if (allowed := self.feasible.limits.allowed) is not None:
            level = np.where(features.blocks[at][:, None], near, 0.0).astype(np.int64)
            good &= allowed.numpy()[row[..., None], features.starts[at][:, None] + level]
        out = np.where(good, near, own)
        # The first feature, which shorter sets repeat, has one value.
        return np.where((at == at[:, :1])[:, None], out[..., :1], out)


def by_set(sets: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Each set among those of m actions, (m,), and (q,) the positions of its actions."""
    own = sets.numpy()
    for i in np.unique(own).tolist():
        yield i, torch.from_numpy(np.flatnonzero(own == i))


# Actions of which the margin without indirect changes is evaluated at once.
AT_ONCE = 2048
# (n,) each: the least margin of a success, and of an answer.
Least: TypeAlias = tuple[Array, Array]
# (m,) each: the cost, the margin, and whether the action alone is enough; see `judged`.
Judged: TypeAlias = tuple[Array, Array, Array]


def evaluate(problem: SearchProblem, *actions: Tensor) -> tuple[Tensor, Tensor]:
    """(m,) the cost and (m,) the margin of actions; see `evaluation`."""
    row, sets, values = arrays(*actions)
    cost, margin, _ = answered(problem.scores, evaluation(problem, row, sets, values))
    return torch.from_numpy(cost), torch.from_numpy(margin)


def evaluation(
    problem: SearchProblem, rows: Array, sets: Array, values: Array, least: Least | None = None
) -> Asking[Judged]:
    """What becomes of actions; see `judged`.

    Args:
        problem: the rows, the sets and the model.
        rows: (m,) the row.
        sets: (m,) the set acted on.
        values: (m, w) the new values.
        least: see `judged`.
    """
    alone = problem.cells[rows]
    np.put_along_axis(alone, problem.positions[sets], values, 1)
    row, which, wanted = tensors(rows, sets, values)
    moved, acted = problem.decode(row, which, wanted[:, None]), problem.sets.masks[which]
    held = problem.held[which] if problem.has_order else None
    return (yield from judged(problem, rows, moved, alone, acted=(acted, held), least=least))


def judged(
    problem: SearchProblem,
    rows: Array,
    moved: Tensor,
    alone: Array,
    *,
    acted: tuple[Tensor, Tensor | None],
    least: Least | None,
) -> Asking[Judged]:
    """(m,) the cost and (m,) the margin of rows, -inf for what is excluded; (m,) bool, alone.

    Margins have 11 bits: models round differently in batches of another size, and what a
    search chooses must not depend on that.

    Args:
        problem: the rows, the sets and the model.
        rows: (m,) the factual row.
        moved: (m, 1, p) what is decoded, which need not be admissible.
        alone: (m, p) the factuals with the action alone.
        acted: (m, p) bool, what is acted on, and what does not move with it; None for nothing.
        least: (n,) the least margin of a success, and that from which on it is evaluated whether
            the action alone, with what it forces, succeeds; None to ask for none.
    """
    (row, own), m = tensors(rows, alone), len(rows)
    x = problem.x.index_select(0, row)
    # A further call costs as much as many rows.
    at_once = least is not None and m <= AT_ONCE
    ends = problem.feasible.project(x, moved, row, *acted, own if at_once else None)
    reached, frozen = ends[:, -1], ends[:, :-1].flatten(0, 1)
    scores = yield torch.cat([reached, frozen])
    margin = margins_of(problem, scores[:m], reached, row)
    margin = margin.masked_fill(problem.feasible.creates_impossible(x, reached), -torch.inf)
    cost, margins = arrays(_cost(problem, x, reached, row, acted[0]), margin)
    margins = (margins.view(np.int32) & -(1 << 12)).view(np.float32)
    enough = np.zeros(m, dtype=bool)
    if least is not None and len(some := np.flatnonzero(margins >= least[1][rows])):
        (at,) = tensors(some)
        if at_once:
            frozen, more = frozen[at], scores[m:][at]
        else:
            still = acted[0] if acted[1] is None else acted[0] | acted[1]
            each = x[at], own[at, None], still[at], row[at]
            more = yield (frozen := problem.feasible.repair(*each, alone=1)[:, 0])
        (alone_margin,) = arrays(margins_of(problem, more, frozen, row[at]))
        possible = problem.feasible.is_possible(x[at], frozen, reached[at], row[at]).numpy()
        enough[some] = (alone_margin >= least[0][rows[some]]) & possible
    return cost, margins, enough


def margins_of(problem: SearchProblem, scores: Tensor, reached: Tensor, rows: Tensor) -> Tensor:
    """(m,) the margins of counterfactuals, -inf for those that break a rule.

    Args:
        problem: the rows and the goal.
        scores: (m, c) their scores.
        reached: (m, p) the counterfactuals.
        rows: (m,) the factual row of each.
    """
    margin = problem.goal.margin(scores, rows)
    if len(problem.feasible.rules):
        satisfied = problem.feasible.keeps_rules(reached, rows)
        margin = margin.masked_fill(~satisfied, -torch.inf)
    return margin.float()


def _cost(
    problem: SearchProblem, x: Tensor, reached: Tensor, rows: Tensor, acted: Tensor
) -> Tensor:
    """(m,) the l1 cost of counterfactuals, (m, p), of what is acted on, (m, p) bool."""
    distance = problem.classifier.encoder.distance(reached, x)
    costs = problem.feasible.limits.costs
    if costs is not None or problem.indirect_weight != 1.0:
        own = torch.ones(()) if costs is None else costs[rows]
        distance = distance * own.where(acted, problem.indirect_weight)
    return distance.sum(1).float()


def _in_own_unit(limits: Limits, sets: ActionSets) -> Limits:
    """Limits whose costs are multiples of the median one of what each row may act on.

    So no answer depends on the unit of costs, and what follows counts in the same unit.
    """
    if limits.costs is None:
        return limits
    free = sets.masks.any(0) & ~limits.not_actionable
    usual = limits.costs.where(free, torch.nan).nanmedian(1, keepdim=True).values
    return replace(limits, costs=limits.costs / usual.nan_to_num(1.0))


def direct_cost(problem: SearchProblem, row: Array, sets: Array, values: Array) -> Array:
    """(m,) the cost of actions without what follows, a bound of their cost."""
    features, at = problem.features, (row[:, None], problem.positions[sets, : values.shape[1]])
    own, positions = problem.cells[at], at[1]
    with np.errstate(over="ignore"):  # a code, in tiny units
        scaled = np.abs(values - own) / features.unit[positions]
    change = np.where(features.amounts(values, own, at=positions), scaled, values != own)
    change *= problem.weights[at]
    change[:, 1:] *= positions[:, 1:] != positions[:, :1]
    return np.asarray(change.sum(1).astype(np.float32))


T = TypeVar("T")
# It yields rows, (m, p), is sent their scores, (m, c), perhaps several times, and returns a T.
Asking: TypeAlias = Generator[Tensor, Tensor, T]


def together(asks: Sequence[Asking[Any]]) -> Asking[list[Any]]:
    """The results of functions that ask for scores, what all of them ask for at a time as one.

    A call costs as much as many rows: a frame has to be made, a pipeline to be walked through.
    """
    results: list[Any] = [None] * len(asks)
    sent: dict[int, Any] = dict.fromkeys(range(len(asks)))
    while True:
        wanted: dict[int, Tensor] = {}
        for i, part in sent.items():
            try:
                wanted[i] = asks[i].send(part)
            except StopIteration as end:
                results[i] = end.value
        if not wanted:
            return results
        found = yield torch.cat(list(wanted.values()))
        parts = found.split([len(rows) for rows in wanted.values()])
        sent = dict(zip(wanted, parts, strict=True))


def answered(scores: Callable[[Tensor], Tensor], ask: Asking[T]) -> T:
    """The result of a function that asks for scores, given the model."""
    sent: Any = None
    while True:
        try:
            rows = ask.send(sent)
        except StopIteration as end:
            return cast(T, end.value)
        sent = scores(rows)
