"""Shares: the expected probabilities of categories that do not flip but come nearer to it."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from dear_plugin.data.schema import Schema
from dear_plugin.decoders import Decoder
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.results.describe import level
from dear_plugin.results.proposal import Proposal

# What `describe` says of categories that do not flip: the few that change most.
MOST_SHARES = 2
LEAST_TILT = 0.05


def shares_of(
    case: Case,
    proposal: Proposal,
    position: int,
    sets: ActionSets,
    decoder: Decoder,
    schema: Schema,
) -> Mapping[str, tuple[float, float]]:
    """P(second value) before and after the action, of binary features that do not flip, by name.

    Args:
        case: the rows.
        proposal: what is proposed for them.
        position: which of them.
        sets: the sets that the decoder knows; nothing is said of others.
        decoder: fitted on the sets.
        schema: the features.
    """
    row, direct = proposal.rows[position], proposal.direct[position]
    at = (sets.masks == direct).all(1).nonzero()[:1, 0]
    if not len(at):
        return {}
    x, where = case.x[position], sets.positions[at]
    shares = decoder.flip_probabilities(x[None], torch.stack([x[where], row[where]], 1), at)
    free = case.feasible.floor[position] < case.feasible.ceiling[position]
    still = (row == x) & ~direct & free
    leaning = sorted(((abs(b - a), j) for j, (a, b) in shares.items() if still[j]), reverse=True)
    return {
        level(schema.features[j]): shares[j]
        for tilt, j in leaning[:MOST_SHARES]
        if tilt >= LEAST_TILT
    }
