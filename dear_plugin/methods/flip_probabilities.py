"""Flip probabilities of binary features that do not change, before and after an action."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from dear_plugin.data.schema import Schema
from dear_plugin.decoders import Decoders
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.wording import level

# `describe` names the few features whose probability changes most.
MOST_NAMED = 2
LEAST_CHANGE = 0.05


def flip_probabilities(
    case: Case,
    proposal: Proposal,
    position: int,
    decoders: Decoders,
    schema: Schema,
) -> Mapping[str, tuple[float, float]]:
    """P(second value) before and after the action, of binary features that do not flip, by name.

    Args:
        case: the rows.
        proposal: for them.
        position: of one row.
        decoders: of the sets.
        schema: the features.
    """
    row, direct = proposal.rows[position], proposal.direct[position]
    where = direct.nonzero()[:, 0]
    if not len(where):
        return {}
    x, decoder = case.x[position], decoders.of(tuple(where.tolist()))
    probabilities = decoder.flip_probabilities(x[None], torch.stack([x[where], row[where]]))
    free = case.feasible.floor[position] < case.feasible.ceiling[position]
    unchanged = (row == x) & ~direct & free
    changes = ((abs(b - a), j) for j, (a, b) in probabilities.items() if unchanged[j])
    return {
        level(schema.features[j]): probabilities[j]
        for change, j in sorted(changes, reverse=True)[:MOST_NAMED]
        if change >= LEAST_CHANGE
    }
