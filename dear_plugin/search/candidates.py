"""Grids: which values of x_S are tried first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._validation.tensors import Shape, check_tensors
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import row_value
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.search.ends import corners, reach_out
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.representatives import (
    COMMON,
    DENSE,
    common_of,
    dense_of,
    filled,
    points,
    spread_of,
    values_at,
)

COMBINATIONS = 64
LATTICE = 1024
# So many values on either side of the factual, as far as this; no nearer than this.
BESIDE, REACH, LEAST_STEP = 10, 1.0 / 16.0, 1e-5
# So many directions of a group are tried where a cost is known, up to this share of it.
DIRECTIONS, INWARD = 16, 0.95
VALUES_A_TIME = 1 << 19
SHAPES = {
    "numeric": Shape("s", torch.bool),
    "counts": Shape("s", torch.int64),
    "several": Shape("s", torch.bool),
    "values": Shape("2 s c+"),
    "dense": Shape(f"s {DENSE}"),
    "common": Shape(f"s {COMMON}"),
    "combinations": Shape(f"s {COMBINATIONS} w"),
    "lattice": Shape(f"s {LATTICE} w"),
}


@dataclass(frozen=True)
class CandidateGrids:
    """Values to try, for every set.

    Attributes:
        numeric: (s,) bool, sets of one numeric feature.
        counts: (s,) how many categories a discrete singleton has, 0 for all other sets.
        values: (2, s, c) coarse values of numeric singletons and those between them.
        dense: (s, 96) many values of numeric singletons, the common ones among them.
        common: (s, 32) the values of numeric singletons that most training rows have.
        several: (s,) bool, sets of more than one feature.
        combinations: (s, 64, w) values of several features together, well spread.
        lattice: (s, 1024, w) many more, for rows that those do not solve.
    """

    numeric: Tensor
    counts: Tensor
    values: Tensor
    dense: Tensor
    common: Tensor
    several: Tensor
    combinations: Tensor
    lattice: Tensor

    @classmethod
    def of(cls, rows: Tensor, encoder: Encoder, sets: ActionSets, count: int) -> CandidateGrids:
        """Read the values off training rows, (n, p).

        Args:
            rows: training rows.
            encoder: the gate.
            sets: the sets.
            count: how many coarse values a number gets.
        """
        features = encoder.schema.features
        number = torch.tensor([f.kind is Kind.NUMERIC for f in features])
        levels = torch.tensor([len(f.categories) for f in features])
        spread = torch.zeros(encoder.p, 2 * count)
        dense, common = torch.zeros(encoder.p, DENSE), torch.zeros(encoder.p, COMMON)
        for j in sorted({j for members in sets.members for j in members}):
            spread[j], dense[j] = spread_of(rows[:, j], 2 * count), dense_of(rows[:, j])
            common[j] = filled(common_of(rows[:, j]), COMMON)
        first = sets.positions[:, 0]
        values = spread[first].view(len(sets), count, 2).permute(2, 0, 1).contiguous()
        return cls(
            *_kinds(encoder, sets),
            values,
            dense[first],
            common[first],
            ~sets.single,
            values_at(points(sets.positions.shape[1], COMBINATIONS), spread, number, levels, sets),
            values_at(points(sets.positions.shape[1], LATTICE), spread, number, levels, sets),
        )

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> CandidateGrids:
        """Grids from their tensors.

        Raises:
            ValueError: they are not those of these features and sets.
        """
        s, w = sets.positions.shape
        check_tensors(tensors, SHAPES, {"s": s, "w": w})
        grids = cls(**tensors)
        numeric, counts = _kinds(encoder, sets)
        own = (grids.numeric, numeric), (grids.counts, counts), (grids.several, ~sets.single)
        if not all(torch.equal(came, wanted) for came, wanted in own):
            raise ValueError("the grids are those of other features or sets")
        return grids

    def everything(self, problem: SearchProblem) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """All values of all sets as `(rows, sets, values)`, admissible ones only."""
        yield from others(problem, problem.actionable, self)
        yield from special_levels(problem)
        asked = problem.actionable & self.numeric
        if bool(asked.any()):
            yield numbers(problem, asked, self.dense, outer=DENSE)
            yield near(problem, asked)
        yield from cornered(problem, problem.actionable & self.several)
        yield from together(problem, problem.actionable & self.several, self.combinations)


def _kinds(encoder: Encoder, sets: ActionSets) -> tuple[Tensor, Tensor]:
    """(s,) which sets are one number, and (s,) how many categories the others of one have."""
    features = encoder.schema.features
    number = torch.tensor([f.kind is Kind.NUMERIC for f in features])
    levels = torch.tensor([len(f.categories) for f in features])
    first = sets.positions[:, 0]
    return number[first] & sets.single, torch.where(sets.single, levels[first], 0)


def others(
    problem: SearchProblem, asked: Tensor, grids: CandidateGrids
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Every other category of discrete singletons, (n, s) bool, equally many at a time."""
    asked = asked & (grids.counts > 1)
    for count in sorted(set(grids.counts[asked.any(0)].tolist())):
        rows, sets = (asked & (grids.counts == count)).nonzero(as_tuple=True)
        feature = problem.sets.positions[sets, 0]
        own = problem.x[rows, feature][:, None]
        # The own category is left out: 0 ... count - 2, and those from the own one on moved up.
        rank = torch.arange(count - 1).expand(len(rows), -1)
        values = (rank + (rank >= own)).float()
        admitted = problem.feasible.admits(values, feature, rows)
        some = admitted.any(1)
        kept = torch.where(admitted, values, own)[some]
        if len(kept):
            yield rows[some], sets[some], kept[..., None]


def special_levels(problem: SearchProblem) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The special levels of numeric singletons that an action may end in, a feature at a time."""
    levels = problem.feasible.levels
    if levels is None or not bool(levels.enter.any()):
        return
    first, single = problem.sets.positions[:, 0], problem.sets.single
    count = torch.where(single & levels.enter[first], levels.counts[first], 0)
    for which in (count > 0).nonzero()[:, 0].tolist():
        rows = problem.actionable[:, which].nonzero()[:, 0]
        values = torch.tensor([row_value(i) for i in range(int(count[which]))])
        if len(rows):
            sets = torch.full_like(rows, which)
            yield rows, sets, values.expand(len(rows), -1)[..., None]


def numbers(
    problem: SearchProblem, asked: Tensor, grid: Tensor, outer: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Grid values, (s, c), of the numeric singletons asked for, (n, s), snapped to what may be.

    Args:
        problem: who asks what.
        asked: which singletons.
        grid: their values, ascending.
        outer: of the first so many values the first and the last one give way to the ends of a
            range that lies between or beyond all of them; 0 leaves them.
    """
    rows, sets = asked.nonzero(as_tuple=True)
    feature, values = problem.sets.positions[sets, 0], grid[sets]
    if outer > 1:
        reach_out(problem, rows, feature, values[:, :outer])
    return rows, sets, problem.feasible.snap(values, feature, rows)[..., None]


def near(problem: SearchProblem, asked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Values on either side of the factual, from one step of precision on, wider and wider apart.

    Args:
        problem: who asks what.
        asked: (n, s) bool, which numeric singletons.
    """
    rows, sets = asked.nonzero(as_tuple=True)
    feature = problem.sets.positions[sets, 0]
    step = problem.feasible.steps[feature].clamp_min(LEAST_STEP)[:, None]
    widen = (REACH / step).clamp_min(1.0) ** (torch.arange(BESIDE) / (BESIDE - 1))
    # Where precision is coarse, the next whole steps.
    away = torch.maximum(step * widen, step * (1.0 + torch.arange(BESIDE)).clamp_max(4.0))
    values = problem.x[rows, feature, None] + torch.cat([-away.flip(1), away], 1)
    return rows, sets, problem.feasible.snap(values, feature, rows)[..., None]


def cornered(problem: SearchProblem, asked: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The corners of groups asked for, (n, s), snapped; see `corners`."""
    for rows, sets, values in corners(problem, asked):
        yield rows, sets, snapped(problem, rows, sets, values)


def together(
    problem: SearchProblem, asked: Tensor, values: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Combinations, (s, c, w), of values of the groups asked for, (n, s), snapped."""
    rows, sets = asked.nonzero(as_tuple=True)
    if not len(rows):
        return
    for part in torch.arange(len(rows)).split(max(1, VALUES_A_TIME // values.shape[1])):
        r, s = rows[part], sets[part]
        yield r, s, snapped(problem, r, s, values[s])


def inward(
    problem: SearchProblem, asked: Tensor, values: Tensor, known: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Combinations, (s, c, w), drawn in towards the factual so that they may cost less.

    Args:
        problem: who asks what.
        asked: (n, s) bool, which groups.
        values: the first few are the directions that are tried.
        known: (n,) the cost to stay below.
    """
    numeric = problem.feasible.steps < 1.0
    positions = problem.sets.positions
    several = (problem.sets.masks & numeric).sum(1) > 1
    # Another category costs one.
    rows, sets = (asked & (several | (known > 1.0)[:, None])).nonzero(as_tuple=True)
    for part in torch.arange(len(rows)).split(max(1, VALUES_A_TIME // DIRECTIONS)):
        r, s = rows[part], sets[part]
        where = positions[s]
        own, number = problem.x[r[:, None], where][:, None], numeric[where][:, None]
        wanted = values[s, :DIRECTIONS]
        # A shorter set repeats its first feature, which costs once.
        first = torch.ones_like(where, dtype=torch.bool)
        first[:, 1:] = where[:, 1:] != where[:, :1]
        off = (wanted - own) * first[:, None]
        level = (off != 0.0) & ~number
        room = known[r, None] * INWARD - level.sum(2)
        fits = room > 0.0
        way = (off.abs() * number).sum(2)
        share = (room / way.clamp_min(1e-9)).clamp(0.0, 1.0)[..., None]
        drawn = torch.where(number, own + share * (wanted - own), wanted)
        yield r, s, snapped(problem, r, s, torch.where(fits[..., None], drawn, own))


def snapped(problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
    """Values of several features, (m, c, w), each snapped to what may be or left as it is."""
    positions, out = problem.sets.positions[sets], values.clone()
    for i in range(values.shape[2]):
        feature = positions[:, i]
        own = problem.x[rows, feature][:, None]
        near = problem.feasible.snap(values[..., i].contiguous(), feature, rows)
        possible = problem.feasible.admits(near, feature, rows)
        out[..., i] = torch.where(possible, near, own)
        # A shorter set repeats its first feature, which can only have one value.
        again = (feature == positions[:, 0])[:, None]
        out[..., i] = torch.where(again, out[..., 0], out[..., i])
    return out
