"""Robustness: evaluates answers under resamples of the decoder that no search has seen."""

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
from dear_plugin.search import Decoded, SearchProblem, reliance
from dear_plugin.search.credibility import confirmed, unseen
from dear_plugin.search.settings import CRITERIA

# `describe` names the features that do not flip whose probability changes most, by how much.
MOST_FLIPS, LEAST_FLIP = 2, 0.05


def spread(
    case: Case, proposal: Proposal, optimizer_of: OptimizerOf, decoders: Decoders
) -> Spread:
    """What becomes of answers under resamples.

    Args:
        case: m rows.
        proposal: their answers; the reliance that the search has measured is not evaluated again.
        optimizer_of: the optimizer of a set, given by the positions of its features.
        decoders: of all sets.
    """
    draws, one = unseen(decoders.decoder), torch.ones(len(case), dtype=torch.float64)
    resampled = proposal.rows[:, None].repeat(1, len(draws), 1)
    share, needed = one, 1.0 - proposal.measured[:, CRITERIA.index("reliance")].double()
    with torch.inference_mode():
        changed = torch.zeros(len(case), dtype=torch.bool)
        for rows, problem, actions in _acting(case, proposal, optimizer_of):
            rows_of = problem.resample(actions.rows, actions.sets, actions.values, draws)
            resampled[rows], changed[rows] = rows_of, True
            share[rows] = confirmed(problem, actions, rows_of)
            new = needed[rows].isnan()
            needed[rows[new]] = reliance(problem, actions.part(new)).double()
    out = Spread.of(case.x, proposal.rows, resampled, decoders.sample.encoder.is_number)
    return replace(out, confidence=share, reliance=torch.where(changed, needed, 0.0))


def flip_probabilities(
    case: Case, proposal: Proposal, position: int, decoders: Decoders
) -> dict[int, tuple[float, float]]:
    """The probabilities of binary features of a row that do not flip, which change most."""
    x, row, direct = case.x[position], proposal.rows[position], proposal.direct[position]
    where = direct.nonzero()[:, 0]
    if not len(where):
        return {}
    decoder = decoders.of(tuple(where.tolist()))
    found = decoder.flip_probabilities(x[None], torch.stack([x[where], row[where]]))
    free = case.feasible.floor[position] < case.feasible.ceiling[position]
    unchanged = (row == x) & ~direct & free
    changes = sorted(((abs(b - a), j) for j, (a, b) in found.items() if unchanged[j]))
    named = [j for change, j in changes[::-1][:MOST_FLIPS] if change >= LEAST_FLIP]
    return {j: found[j] for j in named}


def _acting(
    case: Case, proposal: Proposal, optimizer_of: OptimizerOf
) -> Iterator[tuple[Tensor, SearchProblem, Decoded]]:
    """Rows, (q,), that act on the same set and change, with their problem and their actions."""
    changed = (proposal.rows != case.x).any(1).nonzero()[:, 0]
    for optimizer, i, rows in by_set(proposal.direct, changed, optimizer_of):
        problem = optimizer.problem(case.select(rows))
        reached, sets = proposal.rows[rows], torch.full((len(rows),), i)
        values = reached.gather(1, problem.sets.positions[sets])
        yield rows, problem, Decoded(torch.arange(len(rows)), reached, sets, values)
