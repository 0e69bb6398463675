"""Robustness: evaluates answers under resamples of the decoder that no search has seen."""

from __future__ import annotations

from dataclasses import replace

import torch

from dear_plugin.decoders import Decoders
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Spread
from dear_plugin.search import Decoded, SearchProblem, by_share
from dear_plugin.search.credibility import confirmed, unseen

# `describe` names the features that do not flip whose probability changes most, by how much.
MOST_FLIPS, LEAST_FLIP = 2, 0.05


def spread(case: Case, proposal: Proposal, optimizer: Optimizer) -> Spread:
    """What becomes of answers under resamples.

    Args:
        case: m rows.
        proposal: their answers.
        optimizer: of any sets.
    """
    encoder, draws = optimizer.classifier.encoder, unseen(optimizer.decoders.decoder)
    still = proposal.rows[:, None].expand(-1, len(draws), -1)
    out = Spread.of(case.x, proposal.rows, still, encoder.is_number)
    rows = ((proposal.rows != case.x).any(1) & proposal.direct.any(1)).nonzero()[:, 0]
    if not len(rows):
        return out
    with torch.inference_mode():
        problem, actions = _acting(case.select(rows), proposal.select(rows), optimizer)
        after = problem.resample(actions.rows, actions.sets, actions.values, draws)
        share, parts = confirmed(problem, actions, after), by_share(problem, actions)
        known = replace(
            Spread.of(problem.x, actions.reached, after, encoder.is_number),
            confidence=share,
            reliance=parts.reliance,
            alone=parts.alone,
            gain=parts.gain,
            least=parts.least,
        )
    return out.merged(known, rows)


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


def _acting(case: Case, proposal: Proposal, optimizer: Optimizer) -> tuple[SearchProblem, Decoded]:
    """The actions of m rows, and their problem, whose sets are those that are acted on."""
    acting, sets = optimizer.acting(proposal.direct)
    problem, values = acting.problem(case), proposal.rows.gather(1, acting.sets.positions[sets])
    return problem, Decoded(torch.arange(len(case)), proposal.rows, sets, values)
