"""Scores: decisions, log-odds and spread of model scores, (m, c)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349
# The largest unit of margins, as a divisor of the median margin of accepted rows.
REACHED = 0.6


def spread(values: Tensor) -> Tensor:
    """The robust standard deviation of values, (m,), from their quartiles; 0 without values."""
    if not len(values):
        return values.new_zeros(())
    low, high = values.quantile(values.new_tensor([0.25, 0.75]))
    scale: Tensor = (high - low) / NORMAL_IQR
    return scale.float()


def margin_unit(margins: Tensor, values: Tensor | None = None) -> Tensor:
    """(...) the unit of margins: what a model can reach, whatever the scale of its scores.

    The spread of the values, and at most 5/3 of the median margin of accepted rows: .3 of it is
    then at most half of that median.

    Args:
        margins: (..., m) of training rows.
        values: (m,) whose spread is taken; None takes that of the margins, (m,).
    """
    scale = spread(margins if values is None else values)
    accepted = margins.where(margins > 0.0, torch.nan)
    return (
        torch.fmin(scale, accepted.nanmedian(-1).values / REACHED) if accepted.numel() else scale
    )


def most_likely(scores: Tensor) -> Tensor:
    """(m,) int64, the column that scores, (m, c), decide for; the first of equal ones."""
    if scores.shape[1] > 2:
        return scores.argmax(1)
    return (scores[:, -1] > (scores[:, 0] if scores.shape[1] == 2 else 0.0)).long()


def log_odds(scores: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """(m,) each, log-odds of the wanted column against the likeliest other one, and all others."""
    if scores.shape[1] <= 2:
        of_one = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        odds = torch.where(wanted == 1, of_one, -of_one)
        return odds, odds
    own = scores.gather(1, wanted[:, None])[:, 0]
    others = scores.scatter(1, wanted[:, None], -math.inf)
    return own - others.amax(1), own - others.logsumexp(1)


def probabilities(scores: Tensor) -> Tensor:
    """(m, c) double, of every class; both of two, of which scores may have one column."""
    m, c = len(scores), max(scores.shape[1], 2)
    each = [log_odds(scores, torch.full((m,), label))[1] for label in range(c)]
    return torch.stack(each, 1).sigmoid().double()


def score_decides(threshold: float | None, scores: Tensor) -> bool:
    """Whether the probability alone decides: a threshold below 1/2 for one of two classes."""
    return threshold is not None and threshold < 0.5 and scores.shape[1] <= 2


def logit(p: float) -> float:
    """The log-odds of a probability."""
    return math.log(p / (1.0 - p))


def share_of(margins: Tensor, accepted: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """(m,) double, the share of r judges that accept, and (m,) how much margin is missing.

    It is missing for the judge that decides whether a share is reached; 0 where none is.

    Args:
        margins: (m, r) by judge.
        accepted: (m, r) bool.
        least: the share to reach.
    """
    count = margins.shape[-1]
    decides = min(int((1.0 - least) * count + 1e-6), count - 1) + 1
    missing = -margins.kthvalue(decides, dim=-1).values
    missing = missing.where(missing.isfinite(), 0.0).clamp_min(0.0)
    return accepted.double().mean(-1), missing
