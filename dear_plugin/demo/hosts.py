"""The hosts: one model, as users of DiCE and of Alibi wrap it, and what DEAR answers there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.demo.stage import Demo, Stage
from dear_plugin.encoding import Encoder
from dear_plugin.schema import Feature, Kind, Schema


def through_dice(stage: Stage, plan: Demo) -> pd.DataFrame:
    """The same model as a DiCE user wraps it: probabilities of DiCE's own encoding."""
    import dice_ml

    import dear_dice

    numeric = [f.name for f in stage.schema if f.kind is Kind.NUMERIC]
    data = dice_ml.Data(
        dataframe=stage.train, continuous_features=numeric, outcome_name=stage.data.target
    )
    model = dice_ml.Model(
        model=_OnDice(stage.model, stage.schema), backend="PYT", func="ohe-min-max"
    )
    explainer = dear_dice.DiceDEAR(
        data,
        model,
        act_on=stage.data.act_on,
        immutable=stage.data.immutable,
        increasing=stage.data.increasing,
        decoder=plan.decoder,
    )
    query = stage.refused[list(stage.schema.names)]
    result = explainer.generate_counterfactuals(query, total_CFs=1, desired_class="opposite")
    rows = [
        example.final_cfs_df.iloc[:1] if len(example.final_cfs_df) else query.iloc[[i]]
        for i, example in enumerate(result.cf_examples_list)
    ]
    return pd.concat(rows)[list(query.columns)].set_axis(query.index)


class _OnDice(nn.Module):
    """A logit model of our encoding, as probabilities of DiCE's: numbers first, then one-hot."""

    def __init__(self, model: nn.Module, schema: Schema) -> None:
        super().__init__()
        self.model = model
        self.columns = _dice_columns(schema)

    def forward(self, x: Tensor) -> Tensor:
        """(m, DiCE's columns) -> (m, 1)."""
        logits: Tensor = self.model(x[:, self.columns])
        return torch.sigmoid(logits)


def _dice_columns(schema: Schema) -> list[int]:
    """For each column of ours, DiCE's."""
    numeric = [(f.name, None) for f in schema if f.kind is Kind.NUMERIC]
    levels = [(f.name, c) for f in schema if f.kind is not Kind.NUMERIC for c in f.categories]
    place: dict[tuple[str, Any], int] = {key: i for i, key in enumerate([*numeric, *levels])}
    return [place[key] for f in schema for key in _keys(f)]


def _keys(feature: Feature) -> list[tuple[str, Any]]:
    """What each of our columns stands for: a number, or a category."""
    if feature.kind is Kind.NUMERIC:
        return [(feature.name, None)]
    shown = feature.categories[-1:] if feature.kind is Kind.BINARY else feature.categories
    return [(feature.name, c) for c in shown]


def through_alibi(stage: Stage, plan: Demo) -> pd.DataFrame:
    """The same model as an Alibi user wraps it: numpy rows of category numbers."""
    import dear_alibi

    schema = stage.schema
    names = list(schema.names)
    maps = {
        j: [str(c) for c in f.categories]
        for j, f in enumerate(schema)
        if f.kind is not Kind.NUMERIC
    }
    predictor = _OnAlibi(stage.model, schema)
    explainer = dear_alibi.DEAR(
        predictor,
        names,
        category_map=maps,
        act_on=list(stage.data.act_on),
        immutable_features=list(stage.data.immutable),
        ranges={n: [0.0, 1.0] for n in stage.data.increasing},
        decoder=plan.decoder,
    ).fit(predictor.array(stage.train))
    found = explainer.explain(predictor.array(stage.refused), Y_t=1)
    return predictor.frame(np.asarray(found.data["cf"]["X"]), stage.refused.index)


class _OnAlibi:
    """A logit model of our encoding, as probabilities of label-encoded rows."""

    def __init__(self, model: nn.Module, schema: Schema) -> None:
        self.model, self.encoder = model, Encoder(schema)

    def array(self, frame: pd.DataFrame) -> Any:
        """(n, p) numbers in user units, categories by their place."""
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

    def __call__(self, x: Any) -> Any:
        """(n, p) -> (n, 2) probabilities."""
        with torch.no_grad():
            p = torch.sigmoid(self.model(self.encoder.encode(self.frame(x)))).numpy()
        return np.concatenate([1.0 - p, p], axis=1)
