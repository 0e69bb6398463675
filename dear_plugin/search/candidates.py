"""CandidateGrids: the candidate values of x_S that a search evaluates, read off training rows."""

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
from dear_plugin.search.ends import corners, extend_to_ends
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.representatives import (
    COMMON,
    DENSE,
    common_of,
    dense_of,
    padded,
    points,
    spread_of,
    values_at,
)

COMBINATIONS = 64
LATTICE = 1024
# Values near the factual on either side: their number, the farthest, the least step.
NEAR, NEAR_REACH, LEAST_STEP = 10, 1.0 / 16.0, 1e-5
# Directions of a group that are tried below a known cost, and the share of that cost to spend.
DIRECTIONS, COST_SHARE = 16, 0.95
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

# Rows (m,), sets (m,) and values (m, c, w).
Candidates = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class CandidateGrids:
    """Candidate values of every set.

    Attributes:
        numeric: (s,) bool, sets of one numeric feature.
        counts: (s,) the number of categories of a discrete singleton, 0 for all other sets.
        values: (2, s, c) coarse values of numeric singletons, and the values between them.
        dense: (s, 96) many values of numeric singletons, the common ones among them.
        common: (s, 32) the most frequent training values of numeric singletons.
        several: (s,) bool, sets of more than one feature.
        combinations: (s, 64, w) well spread values of several features together.
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
        """Read the values off training rows.

        Args:
            rows: (n, p) training rows.
            encoder: the encoder of the rows.
            sets: the s action sets.
            count: the number c of coarse values of a numeric feature.
        """
        features = encoder.schema.features
        number = torch.tensor([f.kind is Kind.NUMERIC for f in features])
        levels = torch.tensor([len(f.categories) for f in features])
        spread = torch.zeros(encoder.p, 2 * count)
        dense, common = torch.zeros(encoder.p, DENSE), torch.zeros(encoder.p, COMMON)
        for j in sorted({j for members in sets.members for j in members}):
            spread[j], dense[j] = spread_of(rows[:, j], 2 * count), dense_of(rows[:, j])
            common[j] = padded(common_of(rows[:, j]), COMMON)
        first = sets.positions[:, 0]
        values = spread[first].view(len(sets), count, 2).permute(2, 0, 1).contiguous()
        width = sets.positions.shape[1]
        return cls(
            *_kinds(encoder, sets),
            values,
            dense[first],
            common[first],
            ~sets.single,
            values_at(points(width, COMBINATIONS), spread, number, levels, sets),
            values_at(points(width, LATTICE), spread, number, levels, sets),
        )

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> CandidateGrids:
        """Restore saved grids.

        Raises:
            ValueError: the tensors belong to other features or sets.
        """
        s, w = sets.positions.shape
        check_tensors(tensors, SHAPES, {"s": s, "w": w})
        grids = cls(**tensors)
        numeric, counts = _kinds(encoder, sets)
        pairs = (grids.numeric, numeric), (grids.counts, counts), (grids.several, ~sets.single)
        if not all(torch.equal(saved, expected) for saved, expected in pairs):
            raise ValueError("the grids are those of other features or sets")
        return grids

    def all_candidates(self, problem: SearchProblem) -> Iterator[Candidates]:
        """All admissible candidates of all sets."""
        yield from other_categories(problem, problem.actionable, self)
        yield from special_levels(problem)
        numeric = problem.actionable & self.numeric
        if bool(numeric.any()):
            yield grid_candidates(problem, numeric, self.dense, outer=DENSE)
            yield near_factual(problem, numeric)
        yield from corner_candidates(problem, problem.actionable & self.several)
        yield from group_candidates(problem, problem.actionable & self.several, self.combinations)


def _kinds(encoder: Encoder, sets: ActionSets) -> tuple[Tensor, Tensor]:
    """(s,) bool, sets of one number, and (s,) the categories of discrete singletons, or 0."""
    features = encoder.schema.features
    number = torch.tensor([f.kind is Kind.NUMERIC for f in features])
    levels = torch.tensor([len(f.categories) for f in features])
    first = sets.positions[:, 0]
    return number[first] & sets.single, torch.where(sets.single, levels[first], 0)


def other_categories(
    problem: SearchProblem, pairs: Tensor, grids: CandidateGrids
) -> Iterator[Candidates]:
    """Every other category of discrete singletons in pairs, (n, s) bool, by their number."""
    pairs = pairs & (grids.counts > 1)
    for count in sorted(set(grids.counts[pairs.any(0)].tolist())):
        rows, sets = (pairs & (grids.counts == count)).nonzero(as_tuple=True)
        feature = problem.sets.positions[sets, 0]
        own = problem.x[rows, feature][:, None]
        # The factual category is left out: 0 ... count - 2, plus 1 from the factual one on.
        rank = torch.arange(count - 1).expand(len(rows), -1)
        values = (rank + (rank >= own)).float()
        admitted = problem.feasible.admits(values, feature, rows)
        some = admitted.any(1)
        kept = torch.where(admitted, values, own)[some]
        if len(kept):
            yield rows[some], sets[some], kept[..., None]


def special_levels(problem: SearchProblem) -> Iterator[Candidates]:
    """The special levels of numeric singletons that an action may set, a feature at a time."""
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


def grid_candidates(
    problem: SearchProblem, pairs: Tensor, grid: Tensor, outer: int = 0
) -> Candidates:
    """Grid values of numeric singletons, snapped.

    Args:
        problem: the search problem.
        pairs: (n, s) bool, the numeric singletons.
        grid: (s, c) their values, ascending.
        outer: the first and the last one of the first `outer` values are replaced by the ends of
            a range that lie outside of all of them; 0 replaces none.
    """
    rows, sets = pairs.nonzero(as_tuple=True)
    feature, values = problem.sets.positions[sets, 0], grid[sets]
    if outer > 1:
        extend_to_ends(problem, rows, feature, values[:, :outer])
    return rows, sets, problem.feasible.snap(values, feature, rows)[..., None]


def near_factual(problem: SearchProblem, pairs: Tensor) -> Candidates:
    """Values on either side of the factual, from one step of precision on, ever wider apart.

    Args:
        problem: the search problem.
        pairs: (n, s) bool, the numeric singletons.
    """
    rows, sets = pairs.nonzero(as_tuple=True)
    feature = problem.sets.positions[sets, 0]
    step = problem.feasible.steps[feature].clamp_min(LEAST_STEP)[:, None]
    growth = (NEAR_REACH / step).clamp_min(1.0) ** (torch.arange(NEAR) / (NEAR - 1))
    # Where precision is coarse, the next whole steps.
    away = torch.maximum(step * growth, step * (1.0 + torch.arange(NEAR)).clamp_max(4.0))
    values = problem.x[rows, feature, None] + torch.cat([-away.flip(1), away], 1)
    return rows, sets, problem.feasible.snap(values, feature, rows)[..., None]


def corner_candidates(problem: SearchProblem, pairs: Tensor) -> Iterator[Candidates]:
    """The range corners of groups in pairs, (n, s) bool, snapped; see `corners`."""
    for rows, sets, values in corners(problem, pairs):
        yield rows, sets, snapped(problem, rows, sets, values)


def group_candidates(
    problem: SearchProblem, pairs: Tensor, values: Tensor
) -> Iterator[Candidates]:
    """Combinations of values, (s, c, w), of groups in pairs, (n, s) bool, snapped."""
    rows, sets = pairs.nonzero(as_tuple=True)
    if not len(rows):
        return
    for part in torch.arange(len(rows)).split(max(1, VALUES_A_TIME // values.shape[1])):
        r, s = rows[part], sets[part]
        yield r, s, snapped(problem, r, s, values[s])


def below_cost(
    problem: SearchProblem, pairs: Tensor, values: Tensor, bound: Tensor
) -> Iterator[Candidates]:
    """Combinations moved towards the factual until their direct cost is below a bound.

    Args:
        problem: the search problem.
        pairs: (n, s) bool, the groups.
        values: (s, c, w) combinations, the first of which give the directions.
        bound: (n,) the cost of each row to stay below.
    """
    numeric = problem.feasible.steps < 1.0
    positions = problem.sets.positions
    has_numbers = (problem.sets.masks & numeric).sum(1) > 1
    # A change of category costs one.
    rows, sets = (pairs & (has_numbers | (bound > 1.0)[:, None])).nonzero(as_tuple=True)
    for part in torch.arange(len(rows)).split(max(1, VALUES_A_TIME // DIRECTIONS)):
        r, s = rows[part], sets[part]
        features = positions[s]
        own, number = problem.x[r[:, None], features][:, None], numeric[features][:, None]
        wanted = values[s, :DIRECTIONS]
        # The first feature, which shorter sets repeat, counts once.
        counts = torch.ones_like(features, dtype=torch.bool)
        counts[:, 1:] = features[:, 1:] != features[:, :1]
        change = (wanted - own) * counts[:, None]
        category = (change != 0.0) & ~number
        budget = bound[r, None] * COST_SHARE - category.sum(2)
        length = (change.abs() * number).sum(2)
        share = (budget / length.clamp_min(1e-9)).clamp(0.0, 1.0)[..., None]
        moved = torch.where(number, own + share * (wanted - own), wanted)
        affordable = (budget > 0.0)[..., None]
        yield r, s, snapped(problem, r, s, torch.where(affordable, moved, own))


def snapped(problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
    """(m, c, w) values of several features, each snapped, or the factual where not admissible."""
    positions, out = problem.sets.positions[sets], values.clone()
    for i in range(values.shape[2]):
        feature = positions[:, i]
        own = problem.x[rows, feature][:, None]
        near = problem.feasible.snap(values[..., i].contiguous(), feature, rows)
        admitted = problem.feasible.admits(near, feature, rows)
        out[..., i] = torch.where(admitted, near, own)
        # The first feature, which shorter sets repeat, has one value.
        repeated = (feature == positions[:, 0])[:, None]
        out[..., i] = torch.where(repeated, out[..., 0], out[..., i])
    return out
