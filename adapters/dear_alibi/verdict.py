"""Verdict: the class that the predictor gives each row, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import torch

from dear_alibi.table import Array
from dear_plugin import DEAR, Target


@dataclass(frozen=True)
class Verdict:
    """The predictor's answer on n rows.

    Attributes:
        classes: (n, 1) int64, the decision: the predictor's own, where it has one beside its
            probabilities.
        proba: (n, c) float64, the probability of every class.
    """

    classes: Array
    proba: Array

    @classmethod
    def of(cls, engine: DEAR, frame: pd.DataFrame) -> Verdict:
        """What the engine's model says of a frame."""
        scores = engine.classifier.frame_scores(frame)
        several = range(max(scores.shape[1], 2))
        goals = [Target.of_class(c).resolve(len(frame), None) for c in several]
        proba = torch.stack([g.score(scores) for g in goals], 1)
        decided = engine.classifier.decisions(frame)
        if decided is None:
            decided = torch.stack([g.accepts(scores) for g in goals], 1).long().argmax(1)
        return cls(decided[:, None].numpy(), proba.double().numpy())
