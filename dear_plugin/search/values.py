"""Values: what a search tries of x_S, the same for every kind of model.

A feature is a list of values: of a number the multiples of its step, in the central range and at
training values outside of it, or without steps the distinct training values; of a category its
levels. 128 places of the list are tried, in steps more, so that those of all features are 8,192:
a model may accept a few amounts between others. Tried are besides, of each row, its neighbours at
ranks 1, 4, 16, 64 and 256 on both sides, the ends of its range, and special levels that it may
enter; then the places between two tried values, and where there are none, steps of the
grid. Places and ranks need no scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.grid import in_steps
from dear_plugin.data.special_values import known
from dear_plugin.decoders import Sample
from dear_plugin.search.order import once
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.table import Actions

# Places of a number that are tried; in steps, of all features; and those that are tried at first.
MANY, ALL, FEW = 128, 1 << 13, 16
# The ranks of the neighbours of the factual.
RANKS = 4 ** torch.arange(5)
# Values between two that were tried.
BETWEEN = 23
# Of the first combinations of several features, the shares of the way to them that are tried.
WITH_WAYS, SHARES = 32, (0.25, 0.5)
# One in so many combinations holds a feature.
HELD = 16
# With an order of causes, the least change of each of several features, in units of cost.
LEAST_TOGETHER = 0.02


@dataclass(frozen=True)
class FeatureValues:
    """The lists of values of every feature.

    Attributes:
        known: (p,) tensors, ascending, the values of a number, or the levels of a category.
        tried: (p,) tensors, those of them that are tried of every row.
    """

    known: tuple[Tensor, ...]
    tried: tuple[Tensor, ...]

    @classmethod
    def of(cls, sample: Sample, *, steps: bool = False) -> FeatureValues:
        """The values of training rows, or multiples of steps."""
        rows, encoder, known, tried = sample.rows, sample.encoder, [], []
        many = max(MANY, steps * ALL // len(encoder.schema))
        for j, feature in enumerate(encoder.schema):
            values = feature.values(rows[:, j])
            known.append(_multiples(values, j, encoder) if steps and encoder.step[j] else values)
            tried.append(feature.coarser(known[j], partial(places_of, count=many)))
        return cls(tuple(known), tuple(tried))

    def near(self, j: int, x: Tensor) -> Tensor:
        """(m, 10) values at the ranks around values, (m,); at the ends these."""
        values = self.known[j]
        below = torch.searchsorted(values, x)[:, None] - RANKS
        above = torch.searchsorted(values, x, right=True)[:, None] + RANKS - 1
        return values[torch.cat([below, above], 1).clamp(0, len(values) - 1)]

    def between(self, feature: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """(m, 23) values from a start, (m,), towards an end, (m,): even places of the list.

        Where the list has none between them, they are evenly spaced.
        """
        low, high = torch.minimum(start, end), torch.maximum(start, end)
        steps = torch.arange(1, BETWEEN + 1)
        out = torch.lerp(start[:, None], end[:, None], (steps / (BETWEEN + 1)).to(start))
        for j in feature.unique().tolist():
            values, at = self.known[j], (feature == j).nonzero()[:, 0]
            first = torch.searchsorted(values, low[at], right=True)[:, None]
            count = torch.searchsorted(values, high[at])[:, None] - first
            place = (first - 1 + steps * (count + 1) // (BETWEEN + 1)).clamp(0, len(values) - 1)
            some = torch.maximum(torch.minimum(values[place], high[at, None]), low[at, None])
            some = torch.where((start > end)[at, None], some.flip(1), some)
            out[at] = torch.where(count > 0, some, out[at])
        return out


def _multiples(values: Tensor, j: int, encoder: Encoder) -> Tensor:
    """Ascending, the multiples of the step of feature j in its central range, and at values."""
    low, high = (float(end[j]) for end in encoder.central)
    # A usual step is at least 1/250 of the range.
    even = torch.linspace(low, high, 256, dtype=values.dtype)
    found: Tensor = in_steps(torch.cat([values, even]), encoder.step[j]).unique()
    return found


def places_of(values: Tensor, count: int) -> Tensor:
    """(c,) at most `count` of distinct values, (l,): even by rank, and a quarter by value."""
    if len(values) <= count:
        return values
    even = torch.linspace(0, len(values) - 1, count - count // 4).round().long()
    by_value = torch.linspace(float(values[0]), float(values[-1]), count // 4, dtype=values.dtype)
    near = torch.searchsorted(values, by_value).clamp_max(len(values) - 1)
    return values[torch.cat([even, near]).unique()]


def singles(problem: SearchProblem, known: FeatureValues) -> tuple[Actions, Tensor]:
    """The actions on given sets of one feature, each once.

    Also (m,) bool, those to try at first; the others lie between them.
    """
    none = torch.empty(0, dtype=torch.int64)
    empty = problem.x.new_empty(0, problem.sets.positions.shape[1])
    parts = [(none, none, empty, none.bool())]
    for i in (problem.actionable.any(0) & problem.sets.single).nonzero()[:, 0].tolist():
        rows = problem.actionable[:, i].nonzero()[:, 0]
        values, first = _values_of(problem, known, rows, i)
        new, place = admitted(problem, rows, torch.full_like(rows, i), values)
        parts.append((*new, place < first))
    row, sets, values, at_first = map(torch.cat, zip(*parts, strict=True))
    return (row, sets, values), at_first


def _values_of(
    problem: SearchProblem, known: FeatureValues, rows: Tensor, i: int
) -> tuple[Tensor, int]:
    """(m, c, 1) the values that rows, (m,), may try on set i, of one feature, or their own.

    Also the number of those to try at first, which precede the others.
    """
    (j,), feasible = problem.sets.members[i], problem.acting
    own = problem.x[rows, j][:, None]
    low, high = feasible.low[rows, j][:, None], feasible.high[rows, j][:, None]
    tried, feature = known.tried[j], feasible.encoder.features[j]
    parts = [feature.coarser(tried, partial(places_of, count=FEW)).expand(len(rows), -1)]
    if len(known.known[j]):
        # A bound at the factual comes from a direction, one at the end from the observed values.
        least, most = (end[j] for end in (feasible.encoder.low, feasible.encoder.high))
        ends = low.where(low > least, own), high.where(high < most, own)
        parts += [known.near(j, own[:, 0].contiguous()), *ends]
    # A value outside of the range is no candidate: the end is.
    values = torch.cat([*parts, tried.expand(len(rows), -1)], 1)
    values = values.where((values >= low) & (values <= high), own)
    entered = feature.special_values[: None if feature.enter_special else 0].to(values)
    first = len(entered) + sum(part.shape[1] for part in parts)
    return torch.cat([entered.expand(len(rows), -1), values], 1)[..., None], first


def admitted(
    problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor, but: Tensor | None = None
) -> tuple[Actions, Tensor]:
    """The actions, each once, that set values as a row may set them; those of size zero are none.

    Args:
        problem: the rows and sets.
        rows: (m,) the row.
        sets: (m,) the set.
        values: (m, c, w) the wanted values.
        but: (m, e, w) values that are tried already.

    Returns:
        q actions, and (q,) the place of each among the c values.
    """
    # Special values that may be entered are as they are.
    values = problem.snapped(rows, sets, values).where(known(values), values)
    own = problem.own(rows, sets)
    positions = problem.sets.positions[sets]
    if but is not None:
        tried = (values[:, :, None] == but[:, None]).all(3).any(2)[..., None]
        values = torch.where(tried, own[:, None, : values.shape[2]], values)
    change = (values - own[:, None]).abs()
    # With an order each feature acted on moves: held at its value, it would change what follows.
    least = problem.classifier.encoder.unit[positions] * LEAST_TOGETHER * problem.has_order
    moves = change > least.masked_fill(problem.sets.single[sets, None], 0.0)[:, None]
    at, place = (moves.all(2) if problem.has_order else moves.any(2)).nonzero(as_tuple=True)
    row, which, new = rows[at], sets[at], values.expand(-1, -1, own.shape[1])[at, place]
    one = once(row, which, *new.T)
    return (row[one], which[one], new[one]), place[one]


def combinations(
    problem: SearchProblem, known: FeatureValues, wanted: Tensor, count: int
) -> Actions:
    """Well spread combinations of the values of several features; `wanted`, (n, s) bool."""
    rows, sets = (wanted & ~problem.sets.single).nonzero(as_tuple=True)
    positions, feasible = problem.sets.positions[sets], problem.acting
    unit: Tensor = torch.quasirandom.SobolEngine(positions.shape[1]).draw(count)
    # Some are at the ends of a list; and some hold a feature at its own value.
    stretched = (1.1 * unit - 0.05).clamp(0.0, 1.0)
    held = torch.arange(count)[:, None] % HELD == torch.arange(positions.shape[1])
    values = problem.x.new_empty(len(rows), count, positions.shape[1])
    for j in positions.unique().tolist():
        at, place = (positions == j).nonzero(as_tuple=True)
        some, x = known.tried[j], problem.x[rows[at], j]
        first = torch.searchsorted(some, feasible.low[rows[at], j].contiguous())
        last = torch.searchsorted(some, feasible.high[rows[at], j].contiguous(), right=True)
        size = (last - first)[:, None]
        pick = (stretched.T[place] * size).long().clamp_max(size - 1).clamp_min(0)
        found = some[(first[:, None] + pick).clamp_max(len(some) - 1)] if len(some) else x[:, None]
        values[at, :, place] = found.where((size > 0) & ~held.T[place], x[:, None])
    # Values on the way to the first of them: a list may have no value near the factual.
    own, first = problem.own(rows, sets)[:, None], values[:, :WITH_WAYS]
    number = problem.classifier.encoder.amounts(own, first, at=positions[:, None])
    ways = [torch.where(number, torch.lerp(own, first, share), first) for share in SHARES]
    return admitted(problem, rows, sets, torch.cat([values, *ways], 1))[0]
