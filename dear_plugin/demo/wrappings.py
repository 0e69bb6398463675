"""Wrappings: a model of our encoding as a model for DiCE and as a predictor for Alibi."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Feature, Kind, Schema


class OnDice(nn.Module):
    """A logit model of our encoding as probabilities of DiCE's encoding, numbers before one-hot.

    Args:
        model: logits, (m, d) -> (m, 1).
        schema: the features.
        columns: 1 for the probability of class 1, 2 for both classes'.
    """

    def __init__(self, model: nn.Module, schema: Schema, columns: int = 1) -> None:
        super().__init__()
        self.model = model
        self.places = _places(schema)
        self.columns = columns

    def forward(self, x: Tensor) -> Tensor:
        """(..., DiCE's width) -> (..., columns)."""
        p = torch.sigmoid(self.model(x[..., self.places]))
        return p if self.columns == 1 else torch.cat([1.0 - p, p], dim=-1)


class OnAlibi:
    """A logit model of our encoding, as probabilities of label-encoded rows.

    Args:
        model: logits, (m, d) -> (m, 1).
        schema: the features.
    """

    def __init__(self, model: nn.Module, schema: Schema) -> None:
        self.model, self.encoder = model, Encoder(schema)

    @property
    def category_map(self) -> dict[int, list[str]]:
        """The categories of every categorical column, by code."""
        return {
            j: [str(c) for c in f.categories]
            for j, f in enumerate(self.encoder.schema)
            if f.kind is not Kind.NUMERIC
        }

    def array(self, frame: pd.DataFrame) -> Any:
        """(n, p) numbers in user units and category codes."""
        columns = [
            frame[f.name].to_numpy(dtype=float)
            if f.kind is Kind.NUMERIC
            else pd.Categorical(frame[f.name], categories=list(f.categories)).codes
            for f in self.encoder.schema
        ]
        return np.column_stack(columns).astype(float)

    def frame(self, x: Any, index: pd.Index | None = None) -> pd.DataFrame:
        """The inverse, with the schema's dtypes."""
        columns = {
            f.name: x[:, j]
            if f.kind is Kind.NUMERIC
            else np.array(f.categories, dtype=object)[x[:, j].astype(int)]
            for j, f in enumerate(self.encoder.schema)
        }
        dtypes = {f.name: f.dtype for f in self.encoder.schema}
        return pd.DataFrame(columns, index=index).astype(dtypes)

    def rows(self, x: Any) -> Tensor:
        """(n, p) encoder rows, computed without a frame."""
        features = list(self.encoder.schema)
        low = [f.bounds[0] if f.kind is Kind.NUMERIC else 0.0 for f in features]
        width = [f.width if f.kind is Kind.NUMERIC else 1.0 for f in features]
        return torch.from_numpy((np.asarray(x, dtype=float) - low) / width).float()

    def __call__(self, x: Any) -> Any:
        """(n, p) -> (n, 2) probabilities."""
        with torch.no_grad():
            p = torch.sigmoid(self.model(self.encoder.expand(self.rows(x)))).numpy()
        return np.concatenate([1.0 - p, p], axis=1)


def _places(schema: Schema) -> list[int]:
    """For each of our columns, the position of DiCE's."""
    numeric = [(f.name, None) for f in schema if f.kind is Kind.NUMERIC]
    levels = [(f.name, c) for f in schema if f.kind is not Kind.NUMERIC for c in f.categories]
    place: dict[tuple[str, Any], int] = {key: i for i, key in enumerate([*numeric, *levels])}
    return [place[key] for f in schema for key in _keys(f)]


def _keys(feature: Feature) -> list[tuple[str, Any]]:
    """The keys of a feature's columns: a number, or a category each."""
    if feature.kind is Kind.NUMERIC:
        return [(feature.name, None)]
    shown = feature.categories[-1:] if feature.kind is Kind.BINARY else feature.categories
    return [(feature.name, c) for c in shown]
