"""Predictor: what Alibi's users predict with, as a model of the engine, and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_alibi.table import Array, Table
from dear_plugin import DEAR, Target, errors

Output = Literal["logits", "probabilities"]


@dataclass(frozen=True)
class LabelEncoded:
    """A predictor of label-encoded rows, as a model of frames.

    Attributes:
        predictor: a function of label-encoded rows (m, p) -> (m, c), or an object that has one as
            `predict_proba`.
        table: the columns.
        dtype: of the rows that it was trained on.
    """

    predictor: Any
    table: Table
    dtype: np.dtype[Any]

    @property
    def classes_(self) -> Array:
        """(c,) the labels of the predictor's classes, where it has some."""
        return np.asarray(self.predictor.classes_)

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        """The output, (m, c), on a frame."""
        return _function_of(self.predictor)(self.table.array(frame, self.dtype))

    @property
    def predict(self) -> Callable[[pd.DataFrame], Any]:
        """The predictor's own decision on a frame, where it has `predict` and `predict_proba`."""
        both = [getattr(self.predictor, name, None) for name in ("predict", "predict_proba")]
        if not all(map(callable, both)):
            raise AttributeError("the predictor has no decision besides its output")
        return lambda frame: self.predictor.predict(self.table.array(frame, self.dtype))


def checked(predictor: Any) -> Any:
    """The predictor; `ModelError` if it cannot be called."""
    if not callable(_function_of(predictor)):
        raise errors.ModelError(
            "predictor must be a torch module or a function of label-encoded rows; got"
            f" {type(predictor).__name__}"
        )
    return predictor


def bound(
    engine: DEAR,
    predictor: Any,
    copies: Sequence[Any],
    *,
    output: Output | None,
    table: Table,
    dtype: np.dtype[Any],
) -> DEAR:
    """The engine with a predictor and its copies; dtype is that of the training rows."""
    if isinstance(predictor, nn.Module):
        return engine.with_model(predictor, output=output, copies=copies)
    model, *others = (LabelEncoded(each, table, dtype) for each in (predictor, *copies))
    return engine.with_model(model, output=output or "probabilities", copies=others)


@dataclass(frozen=True)
class Prediction:
    """The predictor's output on n rows.

    Attributes:
        classes: (n, 1) int64, the decision: the predictor's own, where it has one besides its
            probabilities.
        proba: (n, c) float64, the probability of every class.
    """

    classes: Array
    proba: Array

    @classmethod
    def of(cls, engine: DEAR, frame: pd.DataFrame, scores: Tensor | None = None) -> Prediction:
        """The output of the engine's model on a frame, whose scores may be known, (n, c)."""
        scores = engine.classifier.frame_scores(frame) if scores is None else scores
        classes = range(max(scores.shape[1], 2))
        goals = [Target.of_class(c).resolve(len(frame), None) for c in classes]
        proba = torch.stack([goal.score(scores) for goal in goals], 1)
        decisions = engine.classifier.decisions(frame)
        if decisions is None:
            decisions = torch.stack([g.accepts(scores) for g in goals], 1).long().argmax(1)
        return cls(decisions[:, None].numpy(), proba.double().numpy())


def _function_of(predictor: Any) -> Any:
    return getattr(predictor, "predict_proba", predictor)
