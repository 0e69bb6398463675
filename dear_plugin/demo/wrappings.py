"""A module on encoded columns as a model for DiCE, and as a predictor for Alibi."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin import Encoder, Schema
from dear_plugin.data.feature import with_cells


class OnDice(nn.Module):
    """A logit model on encoded columns as a model on DiCE's encoding: numbers, then one-hot.

    Args:
        model: a module that returns logits, (m, d) -> (m, 1).
        schema: the features.
        columns: 1 for the probability of class 1, 2 for those of both classes.
    """

    def __init__(self, model: nn.Module, schema: Schema, columns: int = 1) -> None:
        super().__init__()
        self.model, self.columns = model, columns
        # A binary feature has one encoded column here and two in DiCE; numbers have no levels.
        ordered = sorted(schema, key=lambda f: f.name not in schema.numbers)
        levels = {f.name: [*f.categories, *[None] * (f.name in schema.numbers)] for f in schema}
        theirs = [(f.name, level) for f in ordered for level in levels[f.name]]
        ours = [(f.name, level) for f in schema for level in levels[f.name][-f.columns :]]
        self.places = [theirs.index(column) for column in ours]

    def forward(self, x: Tensor) -> Tensor:
        """The probabilities, (..., columns), of DiCE's encoded rows."""
        p = torch.sigmoid(self.model(x[..., self.places]))
        return p if self.columns == 1 else torch.cat([1.0 - p, p], dim=-1)


class OnAlibi:
    """A logit model on encoded columns as a function of label-encoded rows.

    Args:
        model: a module that returns logits, (m, d) -> (m, 1).
        schema: the features.
    """

    def __init__(self, model: nn.Module, schema: Schema) -> None:
        self.model, self.encoder = model, Encoder(schema)
        self.categorical = {j: f for j, f in enumerate(schema) if f.name not in schema.numbers}

    @property
    def category_map(self) -> dict[int, list[str]]:
        """The categories of every categorical column, by code."""
        return {j: [str(c) for c in f.categories] for j, f in self.categorical.items()}

    def array(self, frame: pd.DataFrame) -> Any:
        """The rows of a frame, (n, p): numbers in user units, and category codes."""
        codes = {
            f.name: pd.Categorical(frame[f.name], categories=list(f.categories)).codes
            for f in self.categorical.values()
        }
        return with_cells(frame, codes)[list(self.encoder.schema.names)].to_numpy(dtype=float)

    def frame(self, x: Any, index: pd.Index | None = None) -> pd.DataFrame:
        """The frame of label-encoded rows, (n, p), with the schema's dtypes."""
        labels = {
            f.name: np.array(f.categories, dtype=object)[x[:, j].astype(int)]
            for j, f in self.categorical.items()
        }
        schema = self.encoder.schema
        out = with_cells(pd.DataFrame(x, index, list(schema.names)), labels)
        return out.astype({f.name: f.dtype for f in schema})

    def rows(self, x: Any) -> Tensor:
        """The encoder's rows, (n, p), of label-encoded rows."""
        return torch.tensor(np.asarray(x, dtype=float))

    def __call__(self, x: Any) -> Any:
        """The probabilities of both classes, (n, 2), of rows, (n, p)."""
        with torch.no_grad():
            p = torch.sigmoid(self.model(self.encoder.expand(self.rows(x)))).numpy()
        return np.concatenate([1.0 - p, p], axis=1)
