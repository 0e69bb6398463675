"""Spread: answers in; their confidence under resamples, and ranges of their changes, out.

The resamples of the decoders are others than those that a search evaluates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Joinable, Proposal
from dear_plugin.search import SearchProblem
from dear_plugin.search.asking import answered, together
from dear_plugin.search.credibility import Decoded, by_share, confidence, unseen

# Resamples, of half of the rows, differ from an estimate sqrt(2) times as much as the truth does:
# 95 % of the truths are between these quantiles of means; and 95 % of the rows between those.
OF_MEANS, OF_PEOPLE = 0.166, 0.025
# `describe` names the features that do not flip whose probability changes most, by how much.
MOST_FLIPS, LEAST_FLIP = 2, 0.05
# Rows of other individuals that are decoded at a time.
ROWS_AT_A_TIME = 1 << 16

Amounts = Callable[..., Tensor]


@dataclass(frozen=True)
class Spread(Joinable):
    """What m answers do under resamples of the decoder, none of which a search has seen.

    Attributes:
        confidence: (m,) double, the share of resamples under which an answer succeeds.
        reliance: (m,) double, the least share of the indirect change from which on it succeeds.
        alone: (m,) bool, whether the model accepts the action alone, with what it forces.
        gain: (m,) double, 1 where the action itself helps, see `Shares`.
        least: (m, p) the row with the share of the indirect change that is the reliance.
        moved: (m, p) int64, the number of resamples in which a feature changes.
        count: the number of resamples; 0 without any.
    """

    confidence: Tensor
    reliance: Tensor
    alone: Tensor
    gain: Tensor
    least: Tensor
    moved: Tensor
    count: int

    @classmethod
    def of(cls, x: Tensor, rows: Tensor, resampled: Tensor) -> Spread:
        """The spread of answers over r resamples.

        Confidence is 1 and reliance 0 here, as where all changes are direct.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            resampled: (m, r, p) the counterfactuals under the resamples.
        """
        moved, one = (resampled != x[:, None]).sum(1), torch.ones(len(x), dtype=torch.float64)
        none, alone = torch.zeros_like(one), torch.ones(len(x), dtype=torch.bool)
        return cls(one, none, alone, one, rows, moved, resampled.shape[1])


@dataclass(frozen=True)
class Ranges(Joinable):
    """Between which ends numbers change in m answers, in user units; 0 for categories.

    The change in the answer itself is in both ranges. Without resamples it is both of their ends.

    Attributes:
        low: (m, p) of the mean change of people like this, which 95 % of such ranges contain.
        high: (m, p) likewise.
        low_one: (m, p) of one person's change, which 95 % of such ranges contain.
        high_one: (m, p) likewise.
    """

    low: Tensor
    high: Tensor
    low_one: Tensor
    high_one: Tensor

    @classmethod
    def of(
        cls, x: Tensor, rows: Tensor, resampled: Tensor, amounts: Amounts, expected: Tensor
    ) -> Ranges:
        """The ranges of answers over r resamples of q individuals each.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            resampled: (m, q, r, p) the counterfactuals under the resamples.
            amounts: says which cells are amounts in all of some rows.
            expected: (m, e, p) the counterfactuals of e individuals in the sample itself.
        """
        own = _steps(x, rows[:, None, None], amounts)[0][:, 0, 0]
        if not resampled.numel():
            return cls(own, own, own, own)
        one = ends(_steps(x, resampled, amounts)[0].flatten(1, 2), OF_PEOPLE)
        means, middle = (_mean(x, each, amounts) for each in (resampled, expected[:, :, None]))
        both = around(means, middle[:, 0]), one
        found = ((low.minimum(own), high.maximum(own)) for low, high in both)
        return cls(*(end for pair in found for end in pair))


def spread(case: Case, proposal: Proposal, trained: Trained) -> Spread:
    """What becomes of answers under resamples; without decoders there are none.

    Args:
        case: m rows.
        proposal: their answers.
        trained: the training rows, with the decoders and the model.
    """
    draws = torch.arange(0) if trained.decoders is None else unseen(trained.decoders.decoder)
    still = proposal.rows[:, None].expand(-1, len(draws), -1)
    out, rows = Spread.of(case.x, proposal.rows, still), _acting(case, proposal)
    if trained.decoders is None or not len(rows):
        return out
    with torch.inference_mode():
        problem, actions = _problem(case, proposal, rows, trained)
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


def ranges(case: Case, proposal: Proposal, trained: Trained) -> Ranges:
    """Between which ends numbers change in answers; arguments as of `spread`.

    Of other individuals than confidence is, in the same resamples.
    """
    none, amounts = case.x[:, None, None][:, :, :0], trained.classifier.encoder.amounts
    out = Ranges.of(case.x, proposal.rows, none, amounts, none[:, 0])
    if trained.decoders is None:
        return out
    decoder, rows = trained.decoders.decoder, _acting(case, proposal)
    turns = torch.arange(1, decoder.people + 1) if decoder.people > 1 else torch.zeros(1).long()
    draws = unseen(decoder) + 2 * decoder.draws * turns[:, None]
    for at in rows.split(max(1, ROWS_AT_A_TIME // draws.numel())) if len(rows) else ():
        with torch.inference_mode():
            problem, actions = _problem(case, proposal, at, trained)
            acts = actions.rows, actions.sets, actions.values
            after = problem.resample(*acts, draws.flatten()).unflatten(1, draws.shape)
            expected = actions.reached[:, None]
            if decoder.people > 1:
                expected = problem.resample(*acts, torch.arange(1 - decoder.draws, 1))
            known = Ranges.of(problem.x, actions.reached, after, amounts, expected)
        out = out.merged(known, at)
    return out


def flip_probabilities(
    case: Case, proposal: Proposal, position: int, trained: Trained
) -> dict[int, tuple[float, float]]:
    """The probabilities of binary features of a row that do not flip, which change most."""
    x, row, direct = case.x[position], proposal.rows[position], proposal.direct[position]
    where = direct.nonzero()[:, 0]
    if trained.decoders is None or not len(where):
        return {}
    decoder = trained.decoders.of(tuple(where.tolist()))
    found = decoder.flip_probabilities(x[None], torch.stack([x[where], row[where]]))
    free = case.feasible.limits.floor[position] < case.feasible.limits.ceiling[position]
    unchanged = (row == x) & ~direct & free
    changes = sorted(((abs(b - a), j) for j, (a, b) in found.items() if unchanged[j]))
    named = [j for change, j in changes[::-1][:MOST_FLIPS] if change >= LEAST_FLIP]
    return {j: found[j] for j in named}


def _acting(case: Case, proposal: Proposal) -> Tensor:
    """(q,) the positions of answers that act."""
    return ((proposal.rows != case.x).any(1) & proposal.direct.any(1)).nonzero()[:, 0]


def _problem(
    case: Case, proposal: Proposal, rows: Tensor, trained: Trained
) -> tuple[SearchProblem, Decoded]:
    """The answers at positions, (q,), as actions of a search problem."""
    part, acted = proposal.select(rows), proposal.direct[rows]
    sets, which = ActionSets.acted_on(acted, trained.classifier.encoder.schema)
    problem = SearchProblem.of(case.select(rows), sets, trained)
    values = part.rows.gather(1, sets.positions[which])
    return problem, Decoded(torch.arange(len(rows)), part.rows, which, values)


def around(values: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
    """(m, p) twice, the ends of the range of a mean that is about some middle, (m, p).

    So far from the middle as the values, (m, r, p), of resamples are, on either side: as far as
    they are biased, the middle may be (Hall 1988).
    """
    far = ends((values - middle[:, None]).abs(), OF_MEANS)[1]
    return middle - far, middle + far


def ends(values: Tensor, outer: float) -> tuple[Tensor, Tensor]:
    """(m, p) twice, between which all but an outer share of a distribution is on either side.

    Args:
        values: (m, r, p) a sample of it, of which the i-th smallest is at i / (r + 1).
        outer: the share.
    """
    ordered, last = values.sort(1).values, values.shape[1] - 1
    place = min(max(outer * (last + 2) - 1.0, 0.0), last / 2.0)
    at, part = int(place), place - int(place)
    low, high = (
        torch.lerp(each[:, at], each[:, min(at + 1, last)], part)
        for each in (ordered, ordered.flip(1))
    )
    return low, high


def _mean(x: Tensor, rows: Tensor, amounts: Amounts) -> Tensor:
    """(m, r, p) the mean changes over q individuals, (m, q, r, p), of those that are known."""
    steps, known = _steps(x, rows, amounts)
    return steps.sum(1) / known.sum(1).clamp_min(1)


def _steps(x: Tensor, rows: Tensor, amounts: Amounts) -> tuple[Tensor, Tensor]:
    """(m, q, r, p) the changes of numbers, 0 from or to a special value; and where not, bool."""
    here = x[:, None, None]
    known = amounts(here, rows)
    return torch.where(known, rows - here, 0.0), known
