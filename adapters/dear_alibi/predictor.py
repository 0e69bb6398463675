"""Predictor: what Alibi's users predict with, as a model of the engine, and its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from dear_alibi.table import Array, Table
from dear_plugin import DEAR, Target, errors, evaluating, logits_of

Preprocess = Callable[[Array], Any]
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

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        """The output, (m, c), on a frame."""
        return _function_of(self.predictor)(self.table.array(frame, self.dtype))

    @property
    def predict(self) -> Callable[[pd.DataFrame], list[Any]]:
        """The predictor's own decision on a frame, where it has `predict` and `predict_proba`."""
        both = (getattr(self.predictor, name, None) for name in ("predict", "predict_proba"))
        if not all(map(callable, both)):
            raise AttributeError("the predictor has no decision besides its output")
        return self._decisions

    def _decisions(self, frame: pd.DataFrame) -> list[Any]:
        """(m,) the columns of the predicted classes; unknown classes stay as they are."""
        predicted = self.predictor.predict(self.table.array(frame, self.dtype))
        labels = np.asarray(getattr(self.predictor, "classes_", ())).tolist()
        known = {label: i for i, label in enumerate(labels)}
        return [known.get(label, label) for label in np.asarray(predicted).reshape(-1).tolist()]


@dataclass(frozen=True)
class Preprocessed:
    """A torch module on the user's own preprocessed rows, as a function of label-encoded rows.

    Attributes:
        module: preprocessed rows, as a tensor (m, e) -> (m, c).
        preprocess: label-encoded rows (m, p) -> an array (m, e), dense or sparse.
        stated: whether the user said what the module returns.
    """

    module: nn.Module
    preprocess: Preprocess
    stated: bool

    def __call__(self, rows: Array) -> Array:
        """(m, p) -> (m, c)."""
        made = self.preprocess(rows)
        dense = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
        floats = (p for p in self.module.parameters() if p.is_floating_point())
        parameter = next(floats, torch.empty(0))
        x = torch.from_numpy(dense).to(parameter.device, parameter.dtype)
        with torch.no_grad(), evaluating(self.module):
            output = self.module(x) if self.stated else logits_of(lambda: self.module(x))
        array: Array = output.cpu().numpy()
        return array


@dataclass(frozen=True)
class PredictorAdapter:
    """How to call the predictors of an explainer.

    Attributes:
        preprocess: from label-encoded rows to the input of a torch module; None is the engine's
            encoding.
        output: "logits" or "probabilities"; None is "logits" for modules, else "probabilities".
        device: where to put a torch module; None leaves it where it is.
    """

    preprocess: Preprocess | None = None
    output: Output | None = None
    device: int | str | torch.device | None = None

    @classmethod
    def of(
        cls, preprocessor: Any, output: Output | None, device: int | str | torch.device | None
    ) -> PredictorAdapter:
        """The adapter of validated arguments; of Alibi's pair the inverse is not used."""
        forward = preprocessor[0] if isinstance(preprocessor, tuple | list) else preprocessor
        preprocess = getattr(forward, "transform", forward)
        if preprocess is not None and not callable(preprocess):
            raise errors.InputError(
                "preprocessor must be a function of arrays, a fitted transformer, or the pair that"
                f" get_he_preprocessor returns; got {type(preprocessor).__name__}"
            )
        if output not in (None, "logits", "probabilities"):
            raise errors.ModelError(f"output must be 'logits' or 'probabilities', got {output!r}")
        return cls(preprocess, output, device)

    def checked(self, predictor: Any) -> Any:
        """The predictor, on its device; `ModelError` if it is not callable."""
        if not callable(_function_of(predictor)):
            raise errors.ModelError(
                "predictor must be a torch module or a function of label-encoded rows; got"
                f" {type(predictor).__name__}"
            )
        if isinstance(predictor, nn.Module):
            return predictor if self.device is None else predictor.to(self.device)
        if self.preprocess is not None:
            raise errors.ModelError(
                "preprocessor= is for torch modules: a black box receives label-encoded rows, as"
                " CounterfactualRLTabular's does, and preprocesses them itself"
            )
        return predictor

    def bind(self, engine: DEAR, predictor: Any, table: Table, dtype: np.dtype[Any]) -> DEAR:
        """The engine with a predictor, from `checked`, as its model; dtype of training rows."""
        if not isinstance(predictor, nn.Module):
            model = LabelEncoded(predictor, table, dtype)
            return engine.with_model(model, output=self.output or "probabilities")
        if self.preprocess is None:
            return engine.with_model(predictor, output=self.output)
        prepared = Preprocessed(predictor, self.preprocess, self.output is not None)
        return engine.with_model(
            LabelEncoded(prepared, table, dtype), output=self.output or "logits"
        )


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
    def of(cls, engine: DEAR, frame: pd.DataFrame) -> Prediction:
        """The output of the engine's model on a frame."""
        scores = engine.classifier.frame_scores(frame)
        classes = range(max(scores.shape[1], 2))
        goals = [Target.of_class(c).resolve(len(frame), None) for c in classes]
        proba = torch.stack([goal.score(scores) for goal in goals], 1)
        decisions = engine.classifier.decisions(frame)
        if decisions is None:
            decisions = torch.stack([g.accepts(scores) for g in goals], 1).long().argmax(1)
        return cls(decisions[:, None].numpy(), proba.double().numpy())


def _function_of(predictor: Any) -> Any:
    return getattr(predictor, "predict_proba", predictor)
