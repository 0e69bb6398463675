"""Routes: one question asked in Python, through DiCE and through Alibi; all give `Answer`s."""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dear_plugin import DEAR, Constraints, Encoder, Schema
from tests.sweep.models import Net


@dataclass
class Answer:
    """What a route returned: a frame, whether each row succeeded, and why it did not."""

    frame: pd.DataFrame
    success: list[bool]
    reasons: list[str]


def python(table, model):
    """The package itself; a torch module is passed as such."""
    schema = Schema.infer(table.frame, immutable=table.immutable, increasing=["hours"])
    if isinstance(model, Net):
        model.encode = Encoder(schema).encode
        model.fit(table.frame, table.label)
    passed = model.module if isinstance(model, Net) else model
    dear = DEAR(passed, schema, act_on=table.act_on).fit(table.frame)
    result = dear.generate(table.query, within=Constraints(frozen=table.frozen))
    actions = result.actions
    return Answer(result.counterfactuals, list(actions["success"]), list(actions["reason"]))


def dice(table, model):
    """`dice_ml.Dice(..., method="dear")`, of which the first counterfactual of each row counts."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    from dear_dice import DiceDEAR

    numbers = [name for name in table.frame if name not in table.words]
    numbers = [n for n in numbers if table.frame[n].nunique() > 2]
    data = dice_ml.Data(
        dataframe=table.frame.assign(y=table.label), continuous_features=numbers, outcome_name="y"
    )
    host = dice_ml.Model(model=model, backend="sklearn")
    explainer = DiceDEAR(
        data, host, act_on=table.act_on, immutable=table.immutable, increasing=["hours"]
    )
    vary = [n for n in table.frame if n not in (*table.frozen, *table.immutable)]
    try:
        result = explainer.generate_counterfactuals(
            table.query, 1, desired_class=1, features_to_vary=vary
        )
    except UserConfigValidationException as error:
        if "No counterfactuals found" not in str(error):
            raise
        return Answer(table.query, [False] * len(table.query), [str(error)] * len(table.query))
    found = [example.final_cfs_df for example in result.cf_examples_list]
    success = [part is not None and len(part) > 0 for part in found]
    rows = [
        part.iloc[:1].drop(columns="y") if ok else table.query.iloc[i : i + 1]
        for i, (part, ok) in enumerate(zip(found, success, strict=True))
    ]
    frame = pd.concat(rows).set_axis(table.query.index)
    return Answer(frame, success, ["not asked"] * len(success))


def alibi(table, model):
    """`dear_alibi.DEAR` on label-encoded arrays."""
    from dear_alibi import DEAR as Explainer

    frame, query, names = table.frame, table.query, list(table.frame)
    codes = [n for n in names if n in table.words or pd.api.types.is_bool_dtype(frame[n].dtype)]
    levels = {n: sorted({*frame[n], *query[n]}) for n in codes}

    def encoded(rows):
        columns = [rows[n].map(levels[n].index) if n in levels else rows[n] for n in names]
        return np.column_stack([np.asarray(column, dtype=float) for column in columns])

    def decoded(X):
        columns = {n: X[:, j] for j, n in enumerate(names)}
        own = {n: [levels[n][int(code)] for code in columns[n]] for n in levels}
        return pd.DataFrame(columns | own)[names].astype(frame.dtypes.to_dict())

    explainer = Explainer(
        lambda X: model.predict_proba(decoded(X)),
        names,
        {names.index(n): list(map(str, ls)) for n, ls in levels.items()},
        immutable_features=table.immutable,
        ranges={"hours": [0.0, 1.0]},
        act_on=table.act_on,
    ).fit(encoded(frame))
    fixed = {n: [] if n in levels else [0, 0] for n in table.frozen}
    data = explainer.explain(encoded(query), Y_t=1, C=[fixed]).data
    kept = data["cf"]["X"] == encoded(query)
    cells = decoded(data["cf"]["X"]).astype(object).set_axis(query.index)
    result = cells.where(~kept, query.astype(object)).astype(query.dtypes.to_dict())
    return Answer(result, data["success"][:, 0].tolist(), data["action"]["reason"])


ROUTES = {"python": python, "dice": dice, "alibi": alibi}


def ask(route, table, model):
    """The answer of a route; warnings are its own business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ROUTES[route](table, model)
