"""Trained: training rows and a model, with facts of them, each computed when first needed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.special_values import without_special
from dear_plugin.evaluation.agreement import Agreement
from dear_plugin.evaluation.consistency import Consistency
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.plausibility import Plausibility
from dear_plugin.evaluation.support import Support
from dear_plugin.models.classifier import Classifier
from dear_plugin.models.cutoffs import cutoffs

logger = logging.getLogger(__name__)

# Training rows in the sample of scores that gives the unit of the margin.
SCORED_ROWS = 2_000
# The range of the central nine tenths of a normal distribution, in standard deviations.
NORMAL = 3.29


class Trained:
    """Facts of the training rows, each computed when it is first needed.

    A fit makes a new one.

    Args:
        rows: (n, p) the training rows.
        classifier: the model.
        copies: of the model, trained again.
    """

    def __init__(
        self, rows: Tensor, classifier: Classifier, copies: Sequence[Classifier] = ()
    ) -> None:
        self.rows, self.classifier, self.copies = rows, classifier, copies

    def __getstate__(self) -> dict[str, Any]:
        """What is computed on first access is computed again."""
        return {"rows": self.rows, "classifier": self.classifier, "copies": self.copies}

    @lazy
    def advised(self) -> bool:
        """Advise to state tiers; once, on first access."""
        logger.warning(
            "some answers count on indirect changes, which are associations unless"
            " tiers=[[...], [...]] or causes={...} (in Schema.infer, DiCE and Alibi) states an"
            " order of causes"
        )
        return True

    @lazy
    def neighbours(self) -> Neighbours:
        """The nearest of the training rows."""
        return Neighbours(self.rows, self.classifier.encoder)

    @lazy
    def plausibility(self) -> Plausibility:
        """How unusual a row is among them."""
        return Plausibility(self.rows, self.classifier.encoder)

    @lazy
    def support(self) -> Support:
        """Whether the nearest of them are accepted."""
        return Support(self.neighbours, self.classifier)

    @property
    def agreement(self) -> Agreement:
        """Whether copies of the model accept a row."""
        return Agreement(self.copies)

    @lazy
    def consistency(self) -> Consistency:
        """Whether the model rewards a kind of change in general."""
        return Consistency(self.scored[0], self.classifier)

    @property
    def scores(self) -> Tensor:
        """(m, c) scores of some of them; their spread is the unit of the margin."""
        return self.scored[1]

    @lazy
    def scored(self) -> tuple[Tensor, Tensor]:
        """(m, p) some of them in random order, complete ones if need be, and their scores."""
        rng = torch.Generator().manual_seed(0)
        some = self.rows[torch.randperm(len(self.rows), generator=rng)[:SCORED_ROWS]]
        scored = self.classifier.score_training_rows(some)
        self.classifier.tell_of_labels(scored[1])
        return scored

    @lazy
    def deviations(self) -> Tensor:
        """(p,) their standard deviations in units of cost, whatever the extreme values."""
        found = torch.tensor([robust_deviation(without_special(each)) for each in self.rows.T])
        return found / self.classifier.encoder.unit

    @lazy
    def cutoffs(self) -> Tensor | None:
        """The margins from which on the model decides for a class, see `cutoffs`; None for 0."""
        return cutoffs(self.classifier, self.rows)


def robust_deviation(values: Tensor) -> float:
    """The standard deviation of values, (n,), by their central nine tenths if these vary."""
    low, high = np.quantile(values.numpy(), (0.05, 0.95))
    return float(high - low) / NORMAL or float(values.std(correction=0))
