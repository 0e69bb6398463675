"""The CPU time of a row by the kind of model and the number of columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.meter import Meter, median_s, one_row_ms, repeated
from dear_plugin.benchmark.metrics import decision
from dear_plugin.benchmark.splits import (
    NETWORKS,
    SETTINGS,
    TREES,
    DataSplit,
    Setting,
    own_rules,
)
from dear_plugin.benchmark.tables import Row
from dear_plugin.datasets import Dataset
from dear_plugin.methods.dear import DEAR

PIPELINE = "pipeline"
KINDS: Mapping[str, str] = {
    "linear, a module": "lr",
    "network": "ann",
    "boosted trees": TREES,
    "linear, a scikit-learn pipeline": PIPELINE,
}
# Rows of a call, rows in calls of one row, repeats of a call; rows of the drawn frame.
KIND_ROWS, SINGLE_ROWS, REPEATS = 200, 3, 1
DRAWN = 5_000


def drawn(count: int) -> Dataset:
    """A data set of numbers that share a cause; the sum of five of them decides."""
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(DRAWN, count)) + rng.normal(size=(DRAWN, 1))).round(3)
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(count)])
    good = (values[:, :5].sum(1) + rng.normal(size=DRAWN) > 2.0).astype(int)
    names = tuple(frame.columns)
    return Dataset(name="drawn", frame=frame.assign(good=good), target="good", act_on=names)


FRAMES: Mapping[str, Setting] = {
    "loan": SETTINGS["loan"],
    "adult": SETTINGS["adult-own"],
    "drawn": Setting("drawn", partial(drawn, 25), (*NETWORKS, TREES), own_rules, "drawn"),
}


def of_kind(folder: Path, name: str, rows: int, cell: str) -> Row:
    """The CPU times of calls of many rows and of one row, with a kind of model."""
    data = DataSplit(FRAMES[cell], 0, folder)
    model, refused = _model(data, KINDS[name])
    frame = repeated(refused, rows)
    dear = DEAR(model, data.schema, act_on=data.act_on).fit(data.parts[0])
    with Meter() as first:
        found = dear.generate(frame)
    many = median_s(lambda: dear.generate(frame), REPEATS)
    return {
        "data": cell,
        "columns": len(data.schema),
        "acted on": len(data.act_on or data.schema.actionable),
        "success": float(found.actions["success"].mean()),
        "first call CPU-s": first.cpu_s,
        "CPU-ms a row": 1000.0 * many / rows,
        "one row CPU-ms": one_row_ms(dear, frame.iloc[:SINGLE_ROWS]),
    }


def _model(data: DataSplit, kind: str) -> tuple[Any, pd.DataFrame]:
    """A model for `DEAR`, and the test rows that it rejects."""
    if kind != PIPELINE:
        scored = next(data.models(kind))
        return scored.model, scored.refused
    train, test = data.parts
    names = list(data.schema.names)
    model = _pipeline(train[names]).fit(train[names], train[data.data.target])
    return model, test[~decision(model, data.schema)(test)][names]


def _pipeline(frame: pd.DataFrame) -> Any:
    """A pipeline of dummies, scaled numbers and a logistic regression."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = list(frame.select_dtypes("number").columns)
    others = [name for name in frame.columns if name not in numbers]
    columns = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others)
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1_000))
