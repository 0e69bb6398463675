"""The hosts: one model, as users of DiCE and of Alibi wrap it, and what DEAR answers there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dear_plugin.benchmark.wrappings import OnAlibi, OnDice
from dear_plugin.data.schema import Kind
from dear_plugin.demo.stage import Demo, Stage
from dear_plugin.search import Search


def through_dice(stage: Stage, plan: Demo, search: Search | None = None) -> pd.DataFrame:
    """The same model as a DiCE user wraps it: probabilities of DiCE's own encoding."""
    import dice_ml

    import dear_dice

    numeric = [f.name for f in stage.schema if f.kind is Kind.NUMERIC]
    data = dice_ml.Data(
        dataframe=stage.train, continuous_features=numeric, outcome_name=stage.data.target
    )
    model = dice_ml.Model(
        model=OnDice(stage.model, stage.schema), backend="PYT", func="ohe-min-max"
    )
    explainer = dear_dice.DiceDEAR(
        data,
        model,
        act_on=stage.data.act_on,
        immutable=stage.data.immutable,
        increasing=stage.data.increasing,
        decoder=plan.decoder,
        search=search,
    )
    query = stage.refused[list(stage.schema.names)]
    result = explainer.generate_counterfactuals(query, total_CFs=1, desired_class="opposite")
    rows = [
        example.final_cfs_df.iloc[:1] if len(example.final_cfs_df) else query.iloc[[i]]
        for i, example in enumerate(result.cf_examples_list)
    ]
    return pd.concat(rows)[list(query.columns)].set_axis(query.index)


def through_alibi(stage: Stage, plan: Demo, search: Search | None = None) -> pd.DataFrame:
    """The same model as an Alibi user wraps it: numpy rows of category numbers."""
    import dear_alibi

    predictor = OnAlibi(stage.model, stage.schema)
    explainer = dear_alibi.DEAR(
        predictor,
        list(stage.schema.names),
        category_map=predictor.category_map,
        act_on=list(stage.data.act_on),
        immutable_features=list(stage.data.immutable),
        ranges={n: [0.0, 1.0] for n in stage.data.increasing},
        decoder=plan.decoder,
        search=search,
    ).fit(predictor.array(stage.train))
    found = explainer.explain(predictor.array(stage.refused), Y_t=1)
    return predictor.frame(np.asarray(found.data["cf"]["X"]), stage.refused.index)
