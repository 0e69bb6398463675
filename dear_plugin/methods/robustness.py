"""Robustness: evaluates answers under resamples of the decoder that no search has seen."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dear_plugin.decoders import Decoders
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Ranges, Spread
from dear_plugin.search import SearchProblem
from dear_plugin.search.asking import answered, together
from dear_plugin.search.credibility import Decoded, by_share, confidence, unseen

# `describe` names the features that do not flip whose probability changes most, by how much.
MOST_FLIPS, LEAST_FLIP = 2, 0.05
# Rows of other individuals that are decoded at a time.
ROWS_AT_A_TIME = 1 << 16


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
    draws = unseen(decoders.decoder)
    still = proposal.rows[:, None].expand(-1, len(draws), -1)
    out, rows = Spread.of(case.x, proposal.rows, still), _acting(case, proposal)
    if not len(rows):
        return out
    with torch.inference_mode():
        problem, actions = _problem(case, proposal, rows, decoders, classifier)
        after = problem.resample(actions.rows, actions.sets, actions.values, draws)
        asks = confidence(problem, actions.rows, after), by_share(problem, actions)
        (share, _), parts = answered(problem.scores, together(asks))
        known = replace(
            Spread.of(problem.x, actions.reached, after),
            confidence=share,
            reliance=parts.reliance,
            alone=parts.alone,
            gain=parts.gain,
            least=parts.least,
        )
    return out.merged(known, rows)


def ranges(
    case: Case, proposal: Proposal, *, decoders: Decoders, classifier: Classifier
) -> Ranges:
    """Between which ends numbers change in answers; arguments as of `spread`.

    Of other individuals than confidence is, in the same resamples.
    """
    decoder, amounts = decoders.decoder, classifier.encoder.amounts
    turns = torch.arange(1, decoder.people + 1) if decoder.people > 1 else torch.zeros(1).long()
    draws = unseen(decoder) + 2 * decoder.draws * turns[:, None]
    none = case.x[:, None, None]
    out = Ranges.of(case.x, proposal.rows, none, amounts, none[:, 0])
    rows = _acting(case, proposal)
    for at in rows.split(max(1, ROWS_AT_A_TIME // draws.numel())) if len(rows) else ():
        with torch.inference_mode():
            problem, actions = _problem(case, proposal, at, decoders, classifier)
            acts = actions.rows, actions.sets, actions.values
            after = problem.resample(*acts, draws.flatten()).unflatten(1, draws.shape)
            expected = actions.reached[:, None]
            if decoder.people > 1:
                expected = problem.resample(*acts, torch.arange(1 - decoder.draws, 1))
            known = Ranges.of(problem.x, actions.reached, after, amounts, expected)
        out = out.merged(known, at)
    return out


def _acting(case: Case, proposal: Proposal) -> Tensor:
    """(q,) the positions of answers that act."""
    return ((proposal.rows != case.x).any(1) & proposal.direct.any(1)).nonzero()[:, 0]


def _problem(
    case: Case, proposal: Proposal, rows: Tensor, decoders: Decoders, classifier: Classifier
) -> tuple[SearchProblem, Decoded]:
    """The answers at positions, (q,), as actions of a search problem."""
    part, acted = proposal.select(rows), proposal.direct[rows]
    sets, which = ActionSets.acted_on(acted, classifier.encoder.schema)
    problem = SearchProblem.of(case.select(rows), sets, decoders=decoders, classifier=classifier)
    values = part.rows.gather(1, sets.positions[which])
    return problem, Decoded(torch.arange(len(rows)), part.rows, which, values)


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
