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

from dear_plugin._lazy import lazy
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
    """The scores and decisions of m rows.

    Attributes:
        rows: (m, p).
        scores: (m, c).
        decisions: (m,) int64.
    """

    rows: Tensor
    scores: Tensor
    decisions: Tensor

    @classmethod
    def of(cls, classifier: Classifier, rows: Tensor) -> _Predicted:
        """Evaluate rows."""
        frame = classifier.encoder.frame(rows)
        scores, decisions = classifier.frame_scores(frame), classifier.decisions(frame)
        return cls(rows, scores, most_likely(scores) if decisions is None else decisions)

    def joined(self, other: _Predicted) -> _Predicted:
        """The rows of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Predicted(*map(torch.cat, pairs))


@dataclass(frozen=True)
class _Ranked:
    """Rows sorted by their margin for one class.

    Attributes:
        order: (m,) the rows, by ascending margin.
        margin: (m,) double, their margins.
        rejected: (m,) int64, 1 where the model predicts another class.
    """

    order: Tensor
    margin: Tensor
    rejected: Tensor

    @classmethod
    def of(cls, sample: _Predicted, label: int) -> _Ranked:
        """Sort rows for one class."""
        goal = ClassGoal(torch.full((len(sample.rows),), label))
        margin, order = goal.margin(sample.scores).double().sort()
        return cls(order, margin, (sample.decisions != label)[order].long())

    @lazy
    def rejected_above(self) -> Tensor:
        """(m + 1,) the number of rejected rows from each position on."""
        counts = self.rejected.flip(0).cumsum(0).flip(0)
        return torch.cat([counts, self.rejected.new_zeros(1)])

    @lazy
    def position(self) -> int:
        """The position of the cutoff with the fewest errors."""
        accepted = 1 - self.rejected
        accepted_below = torch.cat([accepted.new_zeros(1), accepted.cumsum(0)])
        return self._argmin(accepted_below + self.rejected_above)

    @lazy
    def ends(self) -> tuple[float, float]:
        """The margins before and after that position."""
        return self._around(self.position)

    @lazy
    def strict(self) -> float:
        """The least margin from which on none of the next `RUN` rows is rejected."""
        above = self.rejected_above
        ahead = torch.cat([above[RUN:], above.new_zeros(min(RUN, len(above)))])
        rejected = above - ahead
        rejected[: self.position] = RUN
        return _between(*self._around(self._argmin(rejected)))

    def _argmin(self, errors: Tensor) -> int:
        """The position with the fewest errors, (m + 1,), not between equal margins."""
        tied = torch.cat([torch.zeros(1, dtype=torch.bool), self.margin[1:] == self.margin[:-1]])
        most = torch.iinfo(torch.int64).max
        return int(errors.masked_fill(torch.cat([tied, tied[:1]]), most).argmin())

    def _around(self, position: int) -> tuple[float, float]:
        """The margins before and after a position, `FAR` apart at either end."""
        low = float(self.margin[position - 1]) if position else float(self.margin[0]) - FAR
        high = float(self.margin[position]) if position < len(self.margin) else low + FAR
        return low, high


def _cutoff(
    classifier: Classifier, sample: _Predicted, label: int, rng: torch.Generator
) -> tuple[float, float]:
    """The cutoff of a class with the fewest errors, and the strict one.

    Training rows may be sparse near the cutoff, or all on one side of it: rows on both sides are
    recombined in several rounds until the cutoff is bracketed closely.
    """
    ranked = _Ranked.of(sample, label)
    for _ in range(ROUNDS):
        before, at = ranked.ends, ranked.position
        if before[1] - before[0] <= BEFORE:
            break
        near = sample.rows[ranked.order[max(0, at - PARENTS) : at + PARENTS]]
        picks = torch.randint(len(near), (CHILDREN, near.shape[1]), generator=rng)
        sample = sample.joined(_Predicted.of(classifier, near.gather(0, picks)))
        ranked = _Ranked.of(sample, label)
        if ranked.ends == before:
            break
    return _between(*ranked.ends), ranked.strict


def _between(low: float, high: float) -> float:
    return max((low + high) / 2.0, high - BEFORE)
