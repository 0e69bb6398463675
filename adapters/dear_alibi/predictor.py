"""Predictor: what Alibi's users predict with, as a model that the engine can ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

import dear_plugin
from dear_alibi.table import Array, Table

Preprocess = Callable[[Array], Any]


@dataclass(frozen=True)
class LabelEncoded:
    """A predictor of label-encoded rows, asked with frames.

    Attributes:
        ask: label-encoded rows (m, p) -> answers (m, c).
        table: what the columns mean.
        dtype: of the rows that it was trained on.
    """

    ask: Callable[[Array], Any]
    table: Table
    dtype: np.dtype[Any]

    def __call__(self, frame: pd.DataFrame) -> Any:
        """The answers, (m, c), on a frame."""
        return self.ask(self.table.array(frame, self.dtype))


@dataclass(frozen=True)
class Preprocessed:
    """A torch module on the user's own preprocessed rows.

    Attributes:
        module: preprocessed rows, as a tensor (m, e) -> answers (m, c).
        preprocess: label-encoded rows (m, p) -> an array (m, e), dense or sparse.
    """

    module: nn.Module
    preprocess: Preprocess

    def __call__(self, rows: Array) -> Array:
        """The answers, (m, c), on label-encoded rows."""
        made = self.preprocess(rows)
        x = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
        home = next((p for p in self.module.parameters() if p.is_floating_point()), torch.empty(0))
        with _evaluating(self.module):
            answer: torch.Tensor = self.module(torch.from_numpy(x).to(home.device, home.dtype))
        return answer.cpu().numpy()


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


def check(predictor: Any, preprocess: Preprocess | None) -> None:
    """Refuse what cannot predict.

    Raises:
        ModelError: not callable, or a black box with a preprocessor of its own.
    """
    module = isinstance(predictor, nn.Module)
    if not callable(_ask(predictor)):
        raise dear_plugin.errors.ModelError(
            "predictor must be a torch module or a function of label-encoded rows;"
            f" {type(predictor).__name__} came"
        )
    if preprocess is not None and not module:
        raise dear_plugin.errors.ModelError(
            "preprocessor= is for torch modules: a black box receives label-encoded rows, as"
            " CounterfactualRLTabular's does, so let it preprocess them itself"
        )


def bridge(
    predictor: Any, preprocess: Preprocess | None, table: Table, dtype: np.dtype[Any]
) -> Any:
    """The model that the engine asks.

    Args:
        predictor: a torch module, or a black box on label-encoded rows.
        preprocess: what a torch module's rows go through; None is the engine's encoding.
        table: what the columns mean.
        dtype: of the training rows.
    """
    if not isinstance(predictor, nn.Module):
        return LabelEncoded(_ask(predictor), table, dtype)
    if preprocess is None:
        return predictor
    return LabelEncoded(Preprocessed(predictor, preprocess), table, dtype)


def _ask(predictor: Any) -> Any:
    return getattr(predictor, "predict_proba", predictor)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """No gradients and no dropout for a while; every flag is put back."""
    training = [m for m in module.modules() if m.training]
    for m in training:
        m.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for m in training:
            m.training = True
