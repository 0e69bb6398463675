"""Ranks: which tried actions are answers and alternatives of a row, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.search.actions import in_order
from dear_plugin.search.problem import SMALLEST
from dear_plugin.search.rounds import between_block
from dear_plugin.search.stage import Stage

Array = npt.NDArray[Any]
# The rows of a search that a stage searches, and the stage.
Stages = Sequence[tuple[Tensor, Stage]]
ROWS_A_BATCH = 1 << 13
# Why an action is an answer, in the order of ranks: it has rank 0 already, it meets all criteria,
# it is the best accepted action of a set of a row without such an answer, it is dearer than
# another one on the same set, or it comes nearest.
GIVEN, CREDIBLE, ACCEPTED, LARGER, NEAREST = range(5)


@dataclass(frozen=True)
class Ranked:
    """The actions of one rank, for some of the rows.

    Attributes:
        rows: (m,) the rows.
        stages: (m,) the stage of each action.
        at: (m,) its position among the actions of the stage.
        larger: (m,) bool, another action on a set that has a better rank.
    """

    rows: Tensor
    stages: Tensor
    at: Tensor
    larger: Tensor


def ranked(stages: Stages, k: int, first: Ranked | None = None) -> list[Ranked]:
    """The first k actions of every row: answers, else accepted ones or the nearest miss.

    Answers are ordered by size of set and price, others by score first. Each acts on another
    set of features, but for larger actions, which come last.

    Args:
        stages: the stages of a search.
        k: the number of ranks.
        first: those of rank 0, if they are known.
    """
    parts = list(_contenders(stages, k, first))
    rows, which, at, kind, score, price = (np.concatenate(e) for e in zip(*parts, strict=True))
    depth = np.array([0, *(max(map(len, s.problem.sets.names)) for _, s in stages[1:])])
    score = np.where(kind >= ACCEPTED, -score, 0.0)
    order = np.lexsort((price, depth[which], score, kind, rows))
    if k > 1:
        # The first of those that change the same features, but for larger actions, and the
        # first of those with the same outcome.
        repeats = np.where(kind == LARGER, np.arange(len(rows)), -1)
        keys = np.c_[rows, _of_stages(stages, which, at, _changed), repeats]
        order = order[_first(keys[order])]
        reached = _of_stages(stages, which[order], at[order], _reached)
        order = order[_first(np.c_[rows[order], reached])]
    row, stage, position, larger = (
        torch.from_numpy(each[order]) for each in (rows, which, at, kind == LARGER)
    )
    place = torch.arange(len(row)) - torch.searchsorted(row, row)
    masks = (place == rank for rank in range(k))
    return [Ranked(row[m], stage[m], position[m], larger[m]) for m in masks]


def _contenders(stages: Stages, k: int, first: Ranked | None) -> Iterator[tuple[Array, ...]]:
    """Rows, stages, positions, kinds, scores and prices of actions."""
    solved = torch.cat([rows[stage.tried.rows[stage.passed]] for rows, stage in stages])
    for number, (rows, stage) in enumerate(stages):
        tried, has_answer = stage.tried, torch.isin(rows, solved)
        kinds = {
            CREDIBLE: stage.answers,
            ACCEPTED: stage.best(~has_answer),
            NEAREST: stage.nearest(),
        }
        if k > 1:
            at = larger_actions(stage)
            kinds[LARGER] = at[torch.isin(at, stage.passed) | ~has_answer[tried.rows[at]]]
        if first is not None:
            kinds[GIVEN] = first.at[first.stages == number]
        for kind, at in kinds.items():
            part = tried.part(at)
            score = torch.where(part.score.isfinite(), part.score, float(len(stage.wanted)))
            score = part.margin.double() if kind == NEAREST else score
            many = torch.full_like(at, number), at, torch.full_like(at, kind)
            found = rows[part.rows], *many, score, part.price
            yield tuple(each.numpy() for each in found)


def try_larger(stage: Stage) -> None:
    """Try k larger actions on the sets of open rows that have an accepted action, and score."""
    best = stage.tried.part(stage.best_of_all())
    best = best.part(stage.open_rows[best.rows])
    if len(best):
        own = stage.problem.own(best.rows, best.sets)
        number = stage.problem.is_number[stage.problem.sets.positions[best.sets]]
        end = torch.where(best.values > own, 1.0, torch.where(best.values < own, 0.0, own))
        end = torch.where(number & ~is_special(best.values), end, best.values)[:, None]
        shares = (torch.arange(1, stage.k + 1) / stage.k)[:, None]
        values = torch.lerp(best.values[:, None], end, shares)
        every = between_block(stage, best, values, best.values).take_all()
        for some in zip(*(each.split(ROWS_A_BATCH) for each in every), strict=True):
            stage.evaluate(*some)
    at = larger_actions(stage)
    for some in at[stage.tried.score[at] < 0.0].split(ROWS_A_BATCH):
        stage.score(some)


def larger_actions(stage: Stage) -> Tensor:
    """(q,) actions of open rows that are dearer than the one to be preferred on the same set.

    About k of each row and set, evenly spread by price.
    """
    tried, known = stage.tried, stage.best_of_all()
    least = torch.full((len(stage.need),), torch.inf)
    least[stage.pairs[known]] = tried.price[known]
    at = stage.successes
    at = at[stage.open_rows[tried.rows[at]] & (tried.price[at] > least[stage.pairs[at]])]
    at = at[in_order(stage.pairs[at], tried.price[at])]
    pairs = stage.pairs[at].numpy()
    first, last = (np.searchsorted(pairs, pairs, side) for side in ("left", "right"))
    part = (np.arange(len(pairs)) - first) * stage.k // np.maximum(last - first, 1)
    return at[torch.from_numpy(_first(np.c_[pairs, part]))]


def _of_stages(
    stages: Stages, which: Array, at: Array, of: Callable[[Stage, Tensor], Tensor]
) -> Array:
    """(m,) a number for what a function finds for actions at positions, (m,), of stages, (m,)."""
    out = np.zeros(len(at))
    weights = torch.rand(
        stages[0][1].problem.sets.p,
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(0),
    )
    for number, (_, stage) in enumerate(stages):
        for here in torch.from_numpy(which == number).nonzero()[:, 0].split(ROWS_A_BATCH):
            found = of(stage, torch.from_numpy(at[here.numpy()]))
            out[here.numpy()] = (found * weights).sum(1).numpy()
    return out


def _reached(stage: Stage, at: Tensor) -> Tensor:
    """(m, p) the counterfactuals of tried actions at positions (m,)."""
    return stage.decoded(at).reached


def _changed(stage: Stage, at: Tensor) -> Tensor:
    """(m, p) 1.0 where tried actions at positions (m,) change a feature directly."""
    actions, problem = stage.tried.part(at), stage.problem
    moved = (actions.values - problem.own(actions.rows, actions.sets)).abs() > SMALLEST
    changed = torch.zeros(len(actions), problem.sets.p)
    changed.scatter_reduce_(1, problem.sets.positions[actions.sets], moved.float(), "amax")
    return changed


def _first(keys: Array) -> npt.NDArray[np.int64]:
    """(q,) ascending, the positions of the first of equal keys, (m, c)."""
    return np.sort(np.unique(keys, axis=0, return_index=True)[1])
