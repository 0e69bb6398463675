"""DEAR's counterfactuals through DiCE and through Alibi, for the model of an experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.demo.experiment import Experiment
from dear_plugin.demo.wrappings import OnAlibi, OnDice


def through_dice(experiment: Experiment) -> pd.DataFrame:
    """The counterfactuals through DiCE; the model returns probabilities of DiCE's encoding."""
    import dice_ml

    import dear_dice

    data, schema, within = experiment.data, experiment.schema, experiment.within
    reach: list[Any] = [within.ranges or {}, within.categories or {}]
    module = OnDice(experiment.model, schema)
    explainer = dear_dice.DiceDEAR(
        dice_ml.Data(
            dataframe=experiment.train,
            continuous_features=[*schema.numbers],
            outcome_name=data.target,
        ),
        dice_ml.Model(model=module, backend="PYT", func="ohe-min-max"),
        immutable=data.immutable,
        increasing=data.increasing,
        tiers=data.tiers,
        **experiment.how,
    )
    query = experiment.refused[list(schema.names)]
    result = explainer.generate_counterfactuals(
        query,
        total_CFs=1,
        desired_class="opposite",
        features_to_vary=[name for name in schema.names if name not in within.frozen],
        permitted_range=reach[0] | reach[1],
    )
    found = [each.final_cfs_df for each in result.cf_examples_list]
    rows = [query.iloc[[i]] if f is None else f.iloc[:1] for i, f in enumerate(found)]
    return pd.concat(rows)[list(query.columns)].set_axis(query.index)


def through_alibi(experiment: Experiment) -> pd.DataFrame:
    """The counterfactuals through Alibi; the model is a function of label-encoded rows."""
    import dear_alibi

    data, predictor = experiment.data, OnAlibi(experiment.model, experiment.schema)
    explainer = dear_alibi.DEAR(
        predictor,
        list(experiment.schema.names),
        category_map=predictor.category_map,
        immutable_features=list(data.immutable),
        ranges={n: [0.0, 1.0] for n in data.increasing},
        tiers=data.tiers,
        **experiment.how,
    ).fit(predictor.array(experiment.train))
    X = predictor.array(experiment.refused)
    found = explainer.explain(X, Y_t=1, C=_conditions(experiment))
    return predictor.frame(np.asarray(found.data["cf"]["X"]), experiment.refused.index)


def _conditions(experiment: Experiment) -> list[dict[str, Any]]:
    """The values that each row can reach, in Alibi's form: steps of numbers, and categories.

    A number outside of its range keeps its value, like a frozen one.
    """
    within: Any = experiment.within
    alike: dict[str, Any] = {
        name: [0, 0] if name in experiment.schema.numbers else [] for name in within.frozen
    }
    alike |= within.categories or {}
    conditions = []
    for row in experiment.refused.to_dict("records"):
        steps = {n: [end - row[n] for end in ends] for n, ends in (within.ranges or {}).items()}
        own = {n: [low, high] if low <= 0 <= high else [0, 0] for n, (low, high) in steps.items()}
        conditions.append({**alike, **own})
    return conditions
