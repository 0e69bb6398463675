"""Alibi's predictor as a model of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from torch import nn

from dear_alibi.table import Table
from dear_plugin import errors

Output = Literal["logits", "probabilities"]


@dataclass(frozen=True)
class LabelEncoded:
    """A predictor of label-encoded rows, as a model of frames; it has what the predictor has.

    Attributes:
        predictor: a function of label-encoded rows (m, p) -> (m, c), or an object that has one as
            `predict_proba`, and perhaps `predict`, its own decision, and `classes_`.
        table: the columns.
        dtype: of the rows that it was trained on.
    """

    predictor: Any
    table: Table
    dtype: np.dtype[Any]

    def __call__(self, frame: pd.DataFrame) -> Any:
        """The output of a function, (m, c), on a frame."""
        return self.predictor(self.table.array(frame, self.dtype))

    def __getattr__(self, name: str) -> Any:
        """The classes, or a method of label-encoded rows as one of frames."""
        if name not in ("classes_", "predict", "predict_proba"):
            raise AttributeError(name)
        own = getattr(self.predictor, name)
        return own if name == "classes_" else LabelEncoded(own, self.table, self.dtype)


def checked(predictor: Any) -> Any:
    """The predictor; `ModelError` if it cannot be called."""
    if not callable(getattr(predictor, "predict_proba", predictor)):
        raise errors.ModelError(
            "predictor must be a torch module or a function of label-encoded rows; got"
            f" {type(predictor).__name__}"
        )
    return predictor


def model_of(predictor: Any, table: Table, dtype: np.dtype[Any]) -> Any:
    """A predictor as a model of the engine; a torch module is one."""
    return predictor if isinstance(predictor, nn.Module) else LabelEncoded(predictor, table, dtype)
