"""Predictor: what Alibi's users predict with, as a model that the engine can ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

import dear_plugin
from dear_alibi.table import Array, Table
from dear_plugin import DEAR, evaluating, logits_of

Preprocess = Callable[[Array], Any]
Output = Literal["logits", "probabilities"]
ModelError = dear_plugin.errors.ModelError


@dataclass(frozen=True)
class LabelEncoded:
    """A predictor of label-encoded rows, asked with frames.

    Attributes:
        ask: label-encoded rows (m, p) -> answers (m, c).
        table: what the columns mean.
        dtype: of the rows that it was trained on.
        decide: label-encoded rows (m, p) -> the columns that it decides for, (m,); None where it
            decides by its answers.
    """

    ask: Callable[[Array], Any]
    table: Table
    dtype: np.dtype[Any]
    decide: Decision | None = None

    def __call__(self, frame: pd.DataFrame) -> Any:
        """The answers, (m, c), on a frame."""
        return self.ask(self.table.array(frame, self.dtype))

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        """The same, under the name by which the engine knows a classifier."""
        return self(frame)

    @property
    def predict(self) -> Callable[[pd.DataFrame], Any]:
        """The predictor's own decision, (m,), on a frame; only where it has one."""
        if self.decide is None:
            raise AttributeError("the predictor has no decision but its answers")
        return self._decided

    def _decided(self, frame: pd.DataFrame) -> Any:
        return self.decide and self.decide(self.table.array(frame, self.dtype))


@dataclass(frozen=True)
class Decision:
    """What a predictor with `predict` beside `predict_proba` decides.

    Attributes:
        predictor: the object.
    """

    predictor: Any

    @classmethod
    def of(cls, predictor: Any) -> Decision | None:
        """The decision of a predictor; None where it has none but its answers."""
        both = (getattr(predictor, name, None) for name in ("predict", "predict_proba"))
        return cls(predictor) if all(map(callable, both)) else None

    def __call__(self, rows: Array) -> list[Any]:
        """The columns, (m,), of its classes on label-encoded rows; unknown classes stay."""
        labels = np.asarray(getattr(self.predictor, "classes_", ())).tolist()
        known = {label: i for i, label in enumerate(labels)}
        told = np.asarray(self.predictor.predict(rows)).reshape(-1).tolist()
        return [known.get(label, label) for label in told]


@dataclass(frozen=True)
class Preprocessed:
    """A torch module on the user's own preprocessed rows.

    Attributes:
        module: preprocessed rows, as a tensor (m, e) -> answers (m, c).
        preprocess: label-encoded rows (m, p) -> an array (m, e), dense or sparse.
        stated: whether the user has said what the module returns.
    """

    module: nn.Module
    preprocess: Preprocess
    stated: bool

    def __call__(self, rows: Array) -> Array:
        """The answers, (m, c), on label-encoded rows."""
        home = next((p for p in self.module.parameters() if p.is_floating_point()), torch.empty(0))
        x = torch.from_numpy(_dense(self.preprocess(rows))).to(home.device, home.dtype)
        with torch.no_grad(), evaluating(self.module):
            answer = self.module(x) if self.stated else logits_of(lambda: self.module(x))
        made: Array = answer.cpu().numpy()
        return made


@dataclass(frozen=True)
class PredictorAdapter:
    """How predictors are to be asked, whichever it is.

    Attributes:
        preprocess: what a torch module's rows go through; None is the engine's encoding.
        output: "logits" or "probabilities"; None is the kind's own.
        device: where a torch module is put; None leaves it where it is.
    """

    preprocess: Preprocess | None = None
    output: Output | None = None
    device: int | str | torch.device | None = None

    def __post_init__(self) -> None:
        """Refuse an output that is neither."""
        if self.output not in (None, "logits", "probabilities"):
            raise ModelError(f"output must be 'logits' or 'probabilities', {self.output!r} came")

    def accepted(self, predictor: Any) -> Any:
        """The predictor, where it is to be.

        Raises:
            ModelError: it is not callable, or a black box beside a preprocessor.
        """
        if not callable(_ask(predictor)):
            raise ModelError(
                "predictor must be a torch module or a function of label-encoded rows;"
                f" {type(predictor).__name__} came"
            )
        if isinstance(predictor, nn.Module):
            return predictor if self.device is None else predictor.to(self.device)
        if self.preprocess is not None:
            raise ModelError(
                "preprocessor= is for torch modules: a black box receives label-encoded rows, as"
                " CounterfactualRLTabular's does, so let it preprocess them itself"
            )
        return predictor

    def bound(self, engine: DEAR, predictor: Any, table: Table, dtype: np.dtype[Any]) -> DEAR:
        """The engine, asking a predictor.

        Args:
            engine: DEAR with any model.
            predictor: a torch module, or a black box on label-encoded rows.
            table: what the columns mean.
            dtype: of the training rows.
        """
        module = isinstance(predictor, nn.Module)
        output = self.output or ("logits" if module else "probabilities")
        if module and self.preprocess is None:
            return engine.with_model(predictor, output=self.output)
        stated = self.output is not None
        prepared = self.preprocess and Preprocessed(predictor, self.preprocess, stated)
        decide = None if module else Decision.of(predictor)
        model = LabelEncoded(prepared or _ask(predictor), table, dtype, decide)
        return engine.with_model(model, output=output)


def preprocess_of(preprocessor: Any) -> Preprocess | None:
    """The function in a preprocessor: a callable, a fitted transformer, or Alibi's pair of both.

    Raises:
        InputError: none of these.
    """
    forward = preprocessor[0] if isinstance(preprocessor, tuple | list) else preprocessor
    found: Preprocess | None = getattr(forward, "transform", forward)
    if found is not None and not callable(found):
        raise dear_plugin.errors.InputError(
            "preprocessor must be a function of arrays, a fitted transformer, or the pair that"
            f" get_he_preprocessor returns; {type(preprocessor).__name__} came"
        )
    return found


def _ask(predictor: Any) -> Any:
    return getattr(predictor, "predict_proba", predictor)


def _dense(made: Any) -> Array:
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
