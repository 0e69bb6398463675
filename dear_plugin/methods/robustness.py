"""Robustness: criteria and spread of given answers over redraws of the decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from dear_plugin.methods.optimizer import Optimizer, rows_by_set
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Spread
from dear_plugin.search import Decoded, SearchProblem
from dear_plugin.search.criteria import completed, measures_of_actions

OptimizerOf = Callable[[tuple[int, ...]], Optimizer]


def shares_of_actions(
    case: Case, proposal: Proposal, optimizer_of: OptimizerOf
) -> dict[str, Tensor]:
    """(m,) the criteria of actions, see `measures_of_actions`, of answers; 1 without a change.

    What the search has measured is not evaluated again.

    Args:
        case: m rows.
        proposal: their answers.
        optimizer_of: the optimizer of a set, given by the positions of its features.
    """
    shares: dict[str, Tensor] = {}
    for rows, optimizer in _acting(case, proposal, optimizer_of):
        with torch.inference_mode():
            problem, actions = _actions(optimizer, case.select(rows), proposal.select(rows))
            known = {"confidence": proposal.measured[rows, 0]}
            for name, measure in measures_of_actions(problem).items():
                found = completed(known.get(name), measure, actions)
                shares.setdefault(name, torch.ones(len(case)))[rows] = found.clone()
    return shares


def spread(case: Case, proposal: Proposal, optimizer_of: OptimizerOf, is_number: Tensor) -> Spread:
    """How far redraws of the decoder agree on answers; arguments: see `shares_of_actions`.

    `is_number`, (p,) bool, marks the numeric features.
    """
    out = Spread.none(case.x, proposal.rows, is_number)
    for rows, optimizer in _acting(case, proposal, optimizer_of):
        part, answers = case.select(rows), proposal.select(rows)
        redrawn = _redrawn(optimizer, part, answers)
        out = out.put(rows, Spread.of(part.x, answers.rows, redrawn, is_number))
    return out


def _acting(
    case: Case, proposal: Proposal, optimizer_of: OptimizerOf
) -> Iterator[tuple[Tensor, Optimizer]]:
    """Rows, (q,), that act on the same set and change, and the optimizer of the set."""
    changed = (proposal.rows != case.x).any(1).nonzero()[:, 0]
    for members, rows in rows_by_set(proposal.direct, changed):
        yield rows, optimizer_of(members)


def _actions(optimizer: Optimizer, case: Case, answers: Proposal) -> tuple[SearchProblem, Decoded]:
    """The answers of m rows that act on the same set, as the criteria take them."""
    masks, positions = optimizer.sets.masks, optimizer.sets.positions
    sets = (masks == answers.direct[0]).all(1).nonzero()[:1, 0].expand(len(case))
    values = answers.rows.gather(1, positions[sets])
    problem = replace(optimizer.problem(case), redrawn=True)
    return problem, Decoded(torch.arange(len(case)), answers.rows, sets, values)


def _redrawn(optimizer: Optimizer, case: Case, answers: Proposal) -> Tensor:
    """(m, r, p) the counterfactuals of the same actions under each redraw, projected."""
    with torch.inference_mode():
        problem, actions = _actions(optimizer, case, answers)
        every = torch.arange(1, optimizer.decoders.decoder.draws + 1)
        return problem.redraw(actions.rows, actions.sets, actions.values, every)
