"""Routes: one question asked in Python, through DiCE and through Alibi.

Each gives a function of rows, which gives a frame, whether each row succeeded, and why it did not.
"""

import numpy as np
import pandas as pd
import torch

from dear_plugin import DEAR, Constraints, Encoder, Schema
from tests.sweep.models import Hard, Net

# Columns in which rows may have levels that no training row has.
NEW = ("brand", "token")


def python(table, model):
    """The package itself; a torch module is passed as such."""
    schema = Schema.infer(table.frame, immutable=table.immutable, increasing=["hours"])
    if isinstance(model, Net):
        encoder, may_be_new = Encoder(schema), torch.tensor([n in NEW for n in schema.names])
        model.encode = lambda rows: encoder.expand(
            encoder.rows(rows, may_be_new.expand(len(rows), -1))
        )
        model.fit(table.frame, table.label)
    passed = model.module if isinstance(model, Net) else model
    passed = model.predict if isinstance(model, Hard) else passed
    dear = DEAR(passed, schema, act_on=table.act_on).fit(table.frame)

    def ask(query):
        own = None if table.limit is None else table.limit[table.limit.index.isin(query.index)]
        ranges = None if own is None else {"amount": (None, own)}
        within = Constraints(frozen=table.frozen, ranges=ranges)
        result = dear.generate(query, within=within)
        actions = result.actions
        return result.counterfactuals, list(actions["success"]), list(actions["reason"])

    return ask


def dice(table, model):
    """`dice_ml.Dice(..., method="dear")`, of which the first counterfactual of each row counts."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    from dear_dice import DiceDEAR

    frame = table.frame.assign(y=table.label)
    numbers = [n for n in table.frame if n not in table.words and frame[n].nunique() > 2]
    data = dice_ml.Data(dataframe=frame, continuous_features=numbers, outcome_name="y")
    host = dice_ml.Model(model=model, backend="sklearn")
    rules = {"immutable": table.immutable, "increasing": ["hours"], "act_on": table.act_on}
    vary = [n for n in table.frame if n not in (*table.frozen, *table.immutable)]
    arguments = {"desired_class": 1, "features_to_vary": vary}
    explainer = DiceDEAR(data, host, **rules)

    def ask(query):
        try:
            result = explainer.generate_counterfactuals(query, 1, **arguments)
        except UserConfigValidationException as error:
            if "No counterfactuals found" not in str(error):
                raise
            return query, [False] * len(query), [str(error)] * len(query)
        found = [example.final_cfs_df for example in result.cf_examples_list]
        success = [part is not None and len(part) > 0 for part in found]
        rows = [query.iloc[[i]] if not ok else found[i][[*query]] for i, ok in enumerate(success)]
        reasons = [example.reason for example in result.cf_examples_list]
        return pd.concat(rows).set_axis(query.index), success, reasons

    return ask


def alibi(table, model):
    """`dear_alibi.DEAR` on label-encoded arrays."""
    from dear_alibi import DEAR as Explainer

    frame, names = table.frame, list(table.frame)
    codes = {*table.words, *frame.select_dtypes("bool")}
    levels = {n: sorted({*frame[n], *table.query[n]}) for n in names if n in codes}

    def encoded(rows):
        columns = [
            rows[n].astype(object).map(levels[n].index) if n in levels else rows[n] for n in names
        ]
        return np.column_stack([np.asarray(column, dtype=float) for column in columns])

    def decoded(X):
        columns = {n: X[:, j] for j, n in enumerate(names)}
        own = {n: [levels[n][int(code)] for code in columns[n]] for n in levels}
        return pd.DataFrame(columns | own).astype(frame.dtypes.to_dict())

    asked = model.predict if isinstance(model, Hard) else model.predict_proba
    explainer = Explainer(
        lambda X: asked(decoded(X)),
        names,
        {names.index(n): list(map(str, ls)) for n, ls in levels.items()},
        immutable_features=table.immutable,
        ranges={"hours": [0.0, 1.0]},
        act_on=table.act_on,
    ).fit(encoded(frame))
    fixed = {n: [] if n in levels else [0, 0] for n in table.frozen}

    def ask(query):
        more = [{}] if table.limit is None else _changes(query, table.limit)
        data = explainer.explain(encoded(query), Y_t=1, C=[each | fixed for each in more]).data
        changed = data["cf"]["X"] != encoded(query)
        cells = decoded(data["cf"]["X"]).astype(object).set_axis(query.index)
        result = query.astype(object).mask(changed, cells).astype(query.dtypes.to_dict())
        return result, data["success"][:, 0].tolist(), data["action"]["reason"]

    return ask


def _changes(query, limit):
    """The largest changes of the amounts, as Alibi's conditions."""
    room = (limit.loc[query.index] - query["amount"]).clip(lower=0.0)
    return [{"amount": [-1e6, most]} for most in room]


ROUTES = {"python": python, "dice": dice, "alibi": alibi}
