"""Hosts: the counterfactuals of DEAR in DiCE and in Alibi, for the model of an experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.schema import Kind
from dear_plugin.demo.experiment import Demo, Experiment
from dear_plugin.demo.wrappings import OnAlibi, OnDice
from dear_plugin.search import Search


def through_dice(experiment: Experiment, demo: Demo, search: Search | None = None) -> pd.DataFrame:
    """Counterfactuals by DiCE, with the model as probabilities of DiCE's encoding."""
    import dice_ml

    import dear_dice

    numeric = [f.name for f in experiment.schema if f.kind is Kind.NUMERIC]
    data = dice_ml.Data(
        dataframe=experiment.train,
        continuous_features=numeric,
        outcome_name=experiment.data.target,
    )
    model = dice_ml.Model(
        model=OnDice(experiment.model, experiment.schema), backend="PYT", func="ohe-min-max"
    )
    explainer = dear_dice.DiceDEAR(
        data,
        model,
        act_on=experiment.data.act_on,
        immutable=experiment.data.immutable,
        increasing=experiment.data.increasing,
        tiers=experiment.data.tiers,
        decoder=demo.decoder,
        search=search,
    )
    query = experiment.refused[list(experiment.schema.names)]
    within, names = experiment.within, experiment.schema.names
    reach: Any = within.ranges or {}, within.categories or {}
    result = explainer.generate_counterfactuals(
        query,
        total_CFs=1,
        desired_class="opposite",
        features_to_vary=[name for name in names if name not in within.frozen],
        permitted_range={**reach[0], **reach[1]},
    )
    rows = [
        example.final_cfs_df.iloc[:1] if len(example.final_cfs_df) else query.iloc[[i]]
        for i, example in enumerate(result.cf_examples_list)
    ]
    return pd.concat(rows)[list(query.columns)].set_axis(query.index)


def through_alibi(
    experiment: Experiment, demo: Demo, search: Search | None = None
) -> pd.DataFrame:
    """Counterfactuals by Alibi, with the model as a function of numpy rows with category codes."""
    import dear_alibi

    predictor = OnAlibi(experiment.model, experiment.schema)
    explainer = dear_alibi.DEAR(
        predictor,
        list(experiment.schema.names),
        category_map=predictor.category_map,
        act_on=list(experiment.data.act_on),
        immutable_features=list(experiment.data.immutable),
        ranges={n: [0.0, 1.0] for n in experiment.data.increasing},
        tiers=experiment.data.tiers,
        decoder=demo.decoder,
        search=search,
    ).fit(predictor.array(experiment.train))
    found = explainer.explain(
        predictor.array(experiment.refused),
        Y_t=1,
        C=_conditions(experiment),
    )
    return predictor.frame(np.asarray(found.data["cf"]["X"]), experiment.refused.index)


def _conditions(experiment: Experiment) -> list[dict[str, Any]]:
    """What each row can reach as Alibi takes it: the steps of its numbers, the categories.

    A number outside of its range keeps its value, as what is frozen does.
    """
    rows = experiment.refused
    ranges: Any = experiment.within.ranges or {}
    levels: Any = experiment.within.categories or {}
    frozen: Any = {
        f.name: [0, 0] if f.kind is Kind.NUMERIC else []
        for f in experiment.schema
        if f.name in experiment.within.frozen
    }
    conditions = [levels | frozen for _ in range(len(rows))]
    for name, (low, high) in ranges.items():
        for condition, value in zip(conditions, rows[name], strict=True):
            inside = low <= value <= high
            condition[name] = [low - value, high - value] if inside else [0, 0]
    return conditions
