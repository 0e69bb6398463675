"""Robustness: criteria and spread of given answers over redraws of the decoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from dear_plugin.decoders import Decoders
from dear_plugin.methods.optimizer import OptimizerOf, by_set
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Spread
from dear_plugin.search import Decoded, SearchProblem
from dear_plugin.search.credibility import unseen
from dear_plugin.search.criteria import completed, measures_of_actions
from dear_plugin.search.settings import CRITERIA


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
    with torch.inference_mode():
        for rows, problem, actions in _acting(case, proposal, optimizer_of):
            known = {"reliance": proposal.measured[rows, CRITERIA.index("reliance")]}
            for name, measure in measures_of_actions(problem, None).items():
                found = completed(known.get(name), measure, actions)
                shares.setdefault(name, torch.ones(len(case)))[rows] = found
    return shares


def spread(
    case: Case, proposal: Proposal, optimizer_of: OptimizerOf, decoders: Decoders
) -> Spread:
    """How far redraws of the decoder agree on answers; arguments: see `shares_of_actions`."""
    draws, is_number = unseen(decoders.decoder), decoders.sample.encoder.is_number
    redrawn = proposal.rows[:, None].repeat(1, len(draws), 1)
    with torch.inference_mode():
        for rows, problem, actions in _acting(case, proposal, optimizer_of):
            redrawn[rows] = problem.redraw(actions.rows, actions.sets, actions.values, draws)
    return Spread.of(case.x, proposal.rows, redrawn, is_number)


def _acting(
    case: Case, proposal: Proposal, optimizer_of: OptimizerOf
) -> Iterator[tuple[Tensor, SearchProblem, Decoded]]:
    """Rows, (q,), that act on the same set and change, with their problem and their actions."""
    changed = (proposal.rows != case.x).any(1).nonzero()[:, 0]
    for optimizer, i, rows in by_set(proposal.direct, changed, optimizer_of):
        problem = replace(optimizer.problem(case.select(rows)), redrawn=True)
        reached, sets = proposal.rows[rows], torch.full((len(rows),), i)
        values = reached.gather(1, problem.sets.positions[sets])
        yield rows, problem, Decoded(torch.arange(len(rows)), reached, sets, values)
