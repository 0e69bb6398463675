"""Cutoffs: the margins from which on a model's `predict` decides for a class.

A model with `predict` and `predict_proba` need not predict the likeliest class: scikit-learn's
`FixedThresholdClassifier` and `TunedThresholdClassifierCV` do not. A search evaluates
probabilities alone, so it needs the margin at which the prediction changes. It is estimated from
training rows, so that a row's counterfactual does not depend on the other rows of its batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.goals import ClassGoal
from dear_plugin.problem.scores import most_likely

# The number of training rows that are predicted first, and if `predict` is not the likeliest class
# for all of them.
SOME_ROWS, MOST_ROWS = 2_000, 20_000
# The refinement: rounds of new rows, recombined column by column from rows near the cutoff.
PARENTS, CHILDREN, ROUNDS = 40, 500, 5
# The cutoff is set at most this far below the first accepted margin, in log-odds. The search aims
# slightly above it, and must not skip a score that many rows share, as scores of trees are.
BEFORE = 2e-4
# The distance of the cutoff from the outermost row if all rows lie on one side, in log-odds.
FAR = 1.0
# The second cutoff is followed by at least so many accepted rows.
RUN = 50

Ends = tuple[float, float]


def cutoffs(classifier: Classifier, rows: Tensor) -> Tensor | None:
    """(2, c) double, per class the least margin at which the model predicts it.

    The first is the cutoff with the fewest errors; no row just above the second is rejected. They
    are equal if the prediction depends on the margin alone. None if the model has no `predict`, or
    predicts the likeliest class.

    Args:
        classifier: the model.
        rows: (n, p) training rows.
    """
    if not classifier.has_decisions:
        return None
    rng = torch.Generator().manual_seed(0)
    order = torch.randperm(len(rows), generator=rng)
    sample = _Predicted.of(classifier, rows[order[:SOME_ROWS]])
    if bool((most_likely(sample.scores) == sample.decisions).all()):
        return None
    if len(rows) > SOME_ROWS:
        sample = _Predicted.of(classifier, rows[order[:MOST_ROWS]])
    classes = max(sample.scores.shape[1], 2)
    pairs = [_cutoff(classifier, sample, label, rng) for label in range(classes)]
    return torch.tensor(pairs, dtype=torch.float64).T


@dataclass(frozen=True)
class _Predicted:
    """The scores, (m, c), and the decisions, (m,), of m rows, (m, p)."""

    rows: Tensor
    scores: Tensor
    decisions: Tensor

    @classmethod
    def of(cls, classifier: Classifier, rows: Tensor) -> _Predicted:
        """Evaluate rows."""
        frame = classifier.encoder.frame(rows)
        scores = classifier.frame_scores(frame)
        return cls(rows, scores, classifier.decided(frame, scores))

    def joined(self, other: _Predicted) -> _Predicted:
        """The rows of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Predicted(*map(torch.cat, pairs))


def _cutoff(
    classifier: Classifier, sample: _Predicted, label: int, rng: torch.Generator
) -> tuple[float, float]:
    """The cutoff of a class with the fewest errors, and the strict one.

    Training rows may be sparse near the cutoff, or all on one side of it: rows on both sides are
    recombined in several rounds until the cutoff is bracketed closely.
    """
    order, position, ends, strict = _scan(sample, label)
    for _ in range(ROUNDS):
        if ends[1] - ends[0] <= BEFORE:
            break
        before = ends
        near = sample.rows[order[max(0, position - PARENTS) : position + PARENTS]]
        picks = torch.randint(len(near), (CHILDREN, near.shape[1]), generator=rng)
        sample = sample.joined(_Predicted.of(classifier, near.gather(0, picks)))
        order, position, ends, strict = _scan(sample, label)
        if ends == before:
            break
    return _between(*ends), _between(*strict)


def _scan(sample: _Predicted, label: int) -> tuple[Tensor, int, Ends, Ends]:
    """Rows by margin, (m,); the place of the cutoff; the margins around it, and the strict one."""
    goal = ClassGoal(torch.full((len(sample.rows),), label))
    margin, order = goal.margin(sample.scores).double().sort()
    rejected = (sample.decisions != label)[order].long()
    # (m + 1,) errors of a cutoff before each row, and after the last.
    above = pad(rejected.flip(0).cumsum(0).flip(0), (0, 1))
    errors = above + pad((1 - rejected).cumsum(0), (1, 0))
    position = _least(errors, margin)
    strict = above - pad(above[RUN:], (0, min(RUN, len(above))))
    strict[:position] = RUN
    return order, position, _around(margin, position), _around(margin, _least(strict, margin))


def _least(errors: Tensor, margin: Tensor) -> int:
    """The place with the fewest errors, (m + 1,), not between equal margins, (m,)."""
    tied = pad(margin[1:] == margin[:-1], (1, 1))
    return int(errors.masked_fill(tied, torch.iinfo(torch.int64).max).argmin())


def _around(margin: Tensor, position: int) -> Ends:
    """The margins before and after a place, `FAR` apart at either end."""
    low = float(margin[position - 1]) if position else float(margin[0]) - FAR
    return low, float(margin[position]) if position < len(margin) else low + FAR


def _between(low: float, high: float) -> float:
    """The cutoff between two margins."""
    return max((low + high) / 2.0, high - BEFORE)
