"""Robustness: evaluates answers under resamples of the decoder that no search has seen."""

from __future__ import annotations

from dataclasses import replace

import torch

from dear_plugin.decoders import Decoders
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Spread
from dear_plugin.search import Decoded, SearchProblem, by_share, together
from dear_plugin.search.credibility import confirmed, unseen

# `describe` names the features that do not flip whose probability changes most, by how much.
MOST_FLIPS, LEAST_FLIP = 2, 0.05


def spread(
    case: Case, proposal: Proposal, *, decoders: Decoders, classifier: Classifier
) -> Spread:
    """What becomes of answers under resamples.

    Args:
        case: m rows.
        proposal: their answers.
        decoders: of any sets.
        classifier: the model.
    """
    encoder, draws = classifier.encoder, unseen(decoders.decoder)
    still = proposal.rows[:, None].expand(-1, len(draws), -1)
    out = Spread.of(case.x, proposal.rows, still, encoder.is_number)
    rows = ((proposal.rows != case.x).any(1) & proposal.direct.any(1)).nonzero()[:, 0]
    if not len(rows):
        return out
    with torch.inference_mode():
        part, acted = proposal.select(rows), proposal.direct[rows]
        sets, which = ActionSets.acted_on(acted, encoder.schema)
        problem = SearchProblem.of(
            case.select(rows), sets, decoders=decoders, classifier=classifier
        )
        values = part.rows.gather(1, sets.positions[which])
        actions = Decoded(torch.arange(len(rows)), part.rows, which, values)
        after = problem.resample(actions.rows, actions.sets, actions.values, draws)
        asks = confirmed(problem, actions, after), by_share(problem, actions)
        share, parts = together(problem.scores, asks)
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
    free = case.feasible.limits.floor[position] < case.feasible.limits.ceiling[position]
    unchanged = (row == x) & ~direct & free
    changes = sorted(((abs(b - a), j) for j, (a, b) in found.items() if unchanged[j]))
    named = [j for change, j in changes[::-1][:MOST_FLIPS] if change >= LEAST_FLIP]
    return {j: found[j] for j in named}
