"""Cutoffs: from which margin on a model that has a decision of its own decides for a class.

A model with `predict` beside `predict_proba` need not decide for the likeliest class:
scikit-learn's `FixedThresholdClassifier` and `TunedThresholdClassifierCV` do not. A search reads
probabilities alone, many thousands of them, so it must know beforehand which are enough. That is
learned from training rows: they are the same whoever asks, so that a row's answer does not depend
on the other rows of its batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.goals import ClassGoal
from dear_plugin.problem.scores import most_likely

# As many rows show whether `predict` is the likeliest class; where it is not, more are looked at.
SOME_ROWS, MOST_ROWS = 2_000, 20_000
# Then rows near the cut-off are combined column by column, some of them so many times.
PARENTS, CHILDREN, ROUNDS = 40, 500, 5
# How far before the first margin that the model accepts the cut-off is set, in log-odds: a search
# aims a little past it, and must not pass over a score that many rows share, as trees give them.
BEFORE = 2e-4
# Where it may lie if no row that was asked about lies beyond it, in log-odds.
FAR = 1.0
# So many rows in a row are not refused above a cut-off that is sure.
RUN = 50


def cutoffs(classifier: Classifier, rows: Tensor) -> Tensor | None:
    """(2, c) double, per class the least margin at which the model decides for it.

    The first row separates best; right above the second no row is refused. They are the same where
    the decision depends on the margin alone. None where the model has no decision but its scores,
    or decides for the likeliest class.

    Args:
        classifier: the model.
        rows: (n, p) training rows.
    """
    if not classifier.has_decisions:
        return None
    rng = torch.Generator().manual_seed(0)
    order = torch.randperm(len(rows), generator=rng)
    asked = _Asked.of(classifier, rows[order[:SOME_ROWS]])
    if bool((most_likely(asked.scores) == asked.decided).all()):
        return None
    if len(rows) > SOME_ROWS:
        asked = _Asked.of(classifier, rows[order[:MOST_ROWS]])
    count = max(asked.scores.shape[1], 2)
    found = [_cutoff(classifier, asked, label, rng) for label in range(count)]
    return torch.tensor(found, dtype=torch.float64).T


@dataclass(frozen=True)
class _Asked:
    """What the model says of m rows.

    Attributes:
        rows: (m, p).
        scores: (m, c).
        decided: (m,) int64.
    """

    rows: Tensor
    scores: Tensor
    decided: Tensor

    @classmethod
    def of(cls, classifier: Classifier, rows: Tensor) -> _Asked:
        """Ask about rows."""
        frame = classifier.encoder.frame(rows)
        scores, decided = classifier.frame_scores(frame), classifier.decisions(frame)
        return cls(rows, scores, most_likely(scores) if decided is None else decided)

    def joined(self, other: _Asked) -> _Asked:
        """What it says of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Asked(*map(torch.cat, pairs))


@dataclass(frozen=True)
class _Ranked:
    """Rows by their margin for one class.

    Attributes:
        order: (m,) the rows, by ascending margin.
        margin: (m,) double, their margins.
        refused: (m,) int64, 1 where the model decides otherwise.
    """

    order: Tensor
    margin: Tensor
    refused: Tensor

    @classmethod
    def of(cls, asked: _Asked, label: int) -> _Ranked:
        """What was said, as one class sees it."""
        goal = ClassGoal(torch.full((len(asked.rows),), label))
        margin, order = goal.margin(asked.scores).double().sort()
        return cls(order, margin, (asked.decided != label)[order].long())

    @lazy
    def above(self) -> Tensor:
        """(m + 1,) how many rows from each one on are refused."""
        return torch.cat([self.refused.flip(0).cumsum(0).flip(0), self.refused.new_zeros(1)])

    @lazy
    def place(self) -> int:
        """How many rows lie below the cut-off with the fewest errors."""
        accepted = 1 - self.refused
        below = torch.cat([accepted.new_zeros(1), accepted.cumsum(0)])
        return int(self._apart(below + self.above).argmin())

    @lazy
    def ends(self) -> tuple[float, float]:
        """The margins between which that lies."""
        return self._around(self.place)

    @lazy
    def sure(self) -> float:
        """The least margin from which on none of the next rows is refused."""
        ahead = torch.cat([self.above[RUN:], self.above.new_zeros(min(RUN, len(self.above)))])
        refused = self.above - ahead
        refused[: self.place] = RUN
        return _between(*self._around(int(self._apart(refused).argmin())))

    def _apart(self, errors: Tensor) -> Tensor:
        """(m + 1,) errors; equal margins cannot be told apart."""
        again = torch.cat([torch.zeros(1, dtype=torch.bool), self.margin[1:] == self.margin[:-1]])
        most = torch.iinfo(torch.int64).max
        return errors.masked_fill(torch.cat([again, again[:1]]), most)

    def _around(self, at: int) -> tuple[float, float]:
        """The margins before and after a place; one is far away where there is no row."""
        low = float(self.margin[at - 1]) if at else float(self.margin[0]) - FAR
        return low, float(self.margin[at]) if at < len(self.margin) else low + FAR


def _cutoff(
    classifier: Classifier, asked: _Asked, label: int, rng: torch.Generator
) -> tuple[float, float]:
    """The margins that separate best, and surely, what the model decides is of a class.

    Training rows may be few there, or none of them of the class. So rows on both sides of it are
    combined, and their combinations, until it is known well.
    """
    ranked = _Ranked.of(asked, label)
    for _ in range(ROUNDS):
        before, at = ranked.ends, ranked.place
        if before[1] - before[0] <= BEFORE:
            break
        near = asked.rows[ranked.order[max(0, at - PARENTS) : at + PARENTS]]
        picks = torch.randint(len(near), (CHILDREN, near.shape[1]), generator=rng)
        asked = asked.joined(_Asked.of(classifier, near.gather(0, picks)))
        ranked = _Ranked.of(asked, label)
        if ranked.ends == before:
            break
    return _between(*ranked.ends), ranked.sure


def _between(low: float, high: float) -> float:
    return max((low + high) / 2.0, high - BEFORE)
