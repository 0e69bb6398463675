"""Rounds: candidates are tried and the criteria of the cheapest are evaluated, in turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.search.actions import Actions, first_of_each, greatest, in_order
from dear_plugin.search.candidates import Block
from dear_plugin.search.problem import SMALLEST
from dear_plugin.search.stage import Stage

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


def search_rounds(stage: Stage, *, further: bool = True) -> None:
    """Try candidates and evaluate criteria until each row has k answers, or no round helps.

    Args:
        stage: what was tried, and the candidates.
        further: try values near the cheapest actions as well.
    """
    if not stage.blocks and not len(stage.tried):
        return
    for number in range(ROUNDS):
        for coarse, cuts in ((True, 1), (False, 2)):
            # The bound falls before all values are tried, most of which then need not be.
            for block in stage.blocks:
                stage.evaluate_below(block, coarse=coarse)
            for _ in range(cuts * (further and not number)):
                _cut(stage)
        for steps in WAY_BACK * further:
            _move_back(stage, steps)
        if not _vet(stage, VETTED) or not bool(stage.open_rows.any()):
            break
    if further:
        _tighten(stage)
        _drop_superfluous(stage)


def settle(stage: Stage) -> None:
    """Evaluate criteria of the actions of open rows that are accepted by any margin."""
    kept, stage.need = stage.need, stage.accepted.repeat_interleave(len(stage.problem.sets))
    _vet(stage, VETTED_NEARER)
    stage.need = kept


def _vet(stage: Stage, sizes: Iterable[int]) -> bool:
    """Evaluate the criteria of the cheapest actions of open rows; False if there were none."""
    some = False
    for size in sizes:
        at = _next(stage, size * stage.k)
        if not len(at):
            break
        stage.score(at)
        some = True
    return some


def _next(stage: Stage, size: int) -> Tensor:
    """(q,) the actions of open rows to examine, `size` of a row, the cheapest first.

    Of a set, those at places 0, 1, 3, 7, ... in the order of price: neighbouring values
    mostly meet the same criteria.
    """
    alive = stage.alive
    at = alive[in_order(stage.pairs[alive], stage.tried.price[alive])]
    place = torch.arange(len(at)) - torch.searchsorted(stage.pairs[at], stage.pairs[at])
    some = at[((place + 1) & place) == 0]
    some = some[in_order(stage.tried.rows[some], stage.tried.price[some])]
    return some[first_of_each(stage.tried.rows[some], size)]


def _cut(stage: Stage) -> None:
    """Try values between the cheapest action of a row and set, and what was tried before."""
    problem, at = stage.problem, stage.cheapest(stage.alive)
    tried, low = stage.tried.part(at), _before(stage, at)
    single = stage.is_line[tried.sets] & ~_enters_or_leaves_special(stage, tried)
    cost = problem.direct_cost(tried.rows, tried.sets, low[:, None])[:, 0]
    may_win = single & (cost < stage.bound()[tried.rows])
    tried, low = tried.part(may_win), low[may_win]
    shares = (torch.arange(1, PARTS) / PARTS)[:, None]
    between = torch.lerp(low[:, None], tried.values[:, None], shares)
    stage.evaluate_below(between_block(stage, tried, between, low))


def between_block(stage: Stage, ends: Actions, values: Tensor, start: Tensor) -> Block:
    """New values on the ways to actions, snapped; without those that equal the one before.

    Args:
        stage: the rows and sets.
        ends: m actions.
        values: (m, c, w) the values.
        start: (m, w) the values at which the ways start.
    """
    block, high = Block.of(stage.problem, ends.rows, ends.sets, values), ends.values[:, None]
    before = torch.cat([start[:, None], block.values[:, :-1]], 1)
    positions = stage.problem.sets.positions[ends.sets]
    steps = stage.problem.feasible.steps[positions][:, None] / 4.0
    new = ((block.values - before).abs() > steps).any(2)
    block.untried &= new & ((block.values - high).abs() > steps).any(2)
    return block


def _move_back(stage: Stage, steps: int) -> None:
    """Try values between the cheapest actions on several features and the factual.

    Args:
        stage: what was tried.
        steps: the number of parts of the way, of which the last eight are tried.
    """
    problem, best = stage.problem, stage.tried.part(stage.cheapest(stage.alive))
    best = best.part(~problem.sets.alone[best.sets])
    best = best.part(in_order(best.rows, best.price))
    best = best.part(first_of_each(best.rows, FEW_SETS))
    if not len(best):
        return
    own = problem.own(best.rows, best.sets)[:, None]
    number = problem.is_number[problem.sets.positions[best.sets]][:, None]
    shares, ends = (1.0 - torch.arange(1, 9) / steps)[:, None], best.values[:, None]
    moved = torch.where(number, torch.lerp(own, ends, shares), ends)
    alone = torch.where(number, torch.lerp(own, ends, shares), own)
    each = torch.eye(ends.shape[2]).bool()[:, None, None]
    ways = [moved, *torch.where(each, alone, ends)]
    stage.evaluate_below(between_block(stage, best, torch.cat(ways, 1), best.values))


def _tighten(stage: Stage) -> None:
    """Halve the way from answers of one number to a rejected action before them."""
    at = stage.answers[stage.is_line[stage.tried.sets[stage.answers]]]
    rejected = (stage.tried.score >= 0.0).index_fill(0, stage.passed, False)
    low, best = _before(stage, at, rejected), stage.tried.part(at)
    own = stage.problem.own(best.rows, best.sets)
    bounded = (low != own).any(1) & ~_enters_or_leaves_special(stage, best)
    low, best = low[bounded], best.part(bounded)
    for _ in range(HALVINGS):
        if not len(best):
            return
        middle = torch.lerp(low, best.values, 0.5)[:, None]
        block = between_block(stage, best, middle, low)
        new = block.untried[:, 0]
        low, best, middle = low[new], best.part(new), block.values[new, 0]
        met = stage.meet_all(best.rows, best.sets, middle)[:, None]
        best = replace(best, values=torch.where(met, middle, best.values))
        low = torch.where(met, low, middle)


def _drop_superfluous(stage: Stage) -> None:
    """Try answers on several features without each of their changes; see `Block.of`."""
    problem = stage.problem
    if problem.has_tiers:
        return
    for i in range(problem.sets.positions.shape[1]):
        best = stage.tried.part(stage.answers)
        own, values = problem.own(best.rows, best.sets), best.values.clone()
        values[:, i] = own[:, i]
        changed = ((best.values - own).abs() > SMALLEST).sum(1) > 1
        some = changed & (values[:, i] != best.values[:, i]) & ~stage.is_line[best.sets]
        stage.meet_all(best.rows[some], best.sets[some], values[some])


def _before(stage: Stage, at: Tensor, among: Tensor | None = None) -> Tensor:
    """(q, w) the farthest tried value nearer than actions on one number, or the factual.

    Args:
        stage: what was tried.
        at: (q,) the actions, at most one of each row and set.
        among: (m,) bool, the tried actions to look at; None for all.
    """
    tried, pairs = stage.tried, stage.pairs
    own = stage.problem.own(tried.rows, tried.sets)[:, 0]
    change = tried.values[:, 0] - own
    limit = change.new_zeros(len(stage.need))
    limit[pairs[at]] = change[at]
    here = limit[pairs]
    nearer = (change * here > 0.0) & (change.abs() < here.abs())
    if among is not None:
        nearer &= among
    farthest = greatest(change[nearer].abs(), pairs[nearer], len(stage.need), 0.0)
    length = farthest[pairs[at]] * change[at].sign()
    return (own[at] + length)[:, None].expand(-1, tried.values.shape[1])


def _enters_or_leaves_special(stage: Stage, tried: Actions) -> Tensor:
    """(m,) bool, actions from or to a special level."""
    own = stage.problem.own(tried.rows, tried.sets)
    special: Tensor = is_special(torch.minimum(own, tried.values))
    return special.any(1)
