"""DEAR compared with DiCE's and Alibi's methods on the same rejected rows.

The hosts' methods are wrapped. Like DEAR's answers, theirs keep the constraints, are rounded and
scored by the model, and evaluated by the engine. All their changes are direct. Every call has a
few rows, and its CPU time is measured.
"""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import lru_cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.benchmark.hosts_tables import tables
from dear_plugin.benchmark.runner import Cell, Option, Spec
from dear_plugin.benchmark.splits import (
    SETTINGS,
    TREES,
    DataSplit,
    ScoredModel,
    Setting,
    own_rules,
    scored_model,
)
from dear_plugin.datasets import Dataset, load_adult
from dear_plugin.demo.rivals import DICE, of_alibi, of_dice
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.constraints import Constraints
from dear_plugin.rivals.comparison import compare
from dear_plugin.search import Search

# The default, and a search that compares answers by effort alone.
DEAR_LINES: Mapping[str, Search] = {
    "DEAR": Search(),
    "DEAR, least effort": Search(indirect_weight=0.0, prefer_alone=0.0),
}
CFRL = "Alibi CFRL"
OF_DICE = {f"DiCE {name}": name for name in DICE}
METHODS = (*DEAR_LINES, *OF_DICE, CFRL)
PACKAGES = {"dice_ml": "dice-ml", "alibi": "alibi"}
# Rows of a call; rows of each host's method, and of methods that take seconds for a row.
CALL, HOST_ROWS = 10, 100
FEWER = {("adult", "DiCE genetic"): 10, ("adult", "DiCE gradient"): 10}
# The share of the training steps of Alibi's method for each data set.
STEPS = {"adult": 1.0, "loan": 0.3}


def own(data: Dataset) -> dict[str, Any]:
    """The constraints of Alibi's Adult example, and tiers; country and weight are immutable."""
    never = ("marital-status", "relationship", "race", "sex", "native-country", "fnlwgt")
    return {**own_rules(data), "immutable": never, "increasing": ("age", "education-num")}


DATA: Mapping[str, tuple[Setting, str]] = {
    "adult": (Setting("adult", load_adult, ("ann",), own, "adult"), "ann"),
    "loan": (SETTINGS["loan"], TREES),
}


def cells(options: Namespace) -> Iterator[Cell]:
    """Every data set, with the methods of installed hosts that support its model."""
    for name in options.data:
        for method in options.methods:
            host = "dice_ml" if method in OF_DICE else "alibi" if method == CFRL else "torch"
            takes = name == "adult" or method != "DiCE gradient"
            if takes and find_spec(host):
                most = options.rows if method in DEAR_LINES else HOST_ROWS
                rows = min(options.rows, FEWER.get((name, method), most))
                steps = round(STEPS[name] * options.steps) if method == CFRL else 0
                yield {"data": name, "method": method, "rows": rows, "steps": steps}


def measure(folder: Path, *, data: str, method: str, rows: int, steps: int) -> pd.DataFrame:
    """One line per rejected row: the answer of a method, as `compare` evaluates it."""
    split = _split(folder, data)
    model, within = scored_model(split, DATA[data][1]), Constraints(act_on=split.act_on)
    # Hide the warnings, progress bars and messages of a host.
    quiet = redirect_stdout(StringIO()), redirect_stderr(StringIO())
    with warnings.catch_warnings(action="ignore"), quiet[0], quiet[1]:
        start = time.process_time()
        fitted = _method(split, model, method, steps)
        fit_cpu_s = time.process_time() - start
        calls = [model.refused.iloc[i : min(i + CALL, rows)] for i in range(0, rows, CALL)]
        found = [compare({method: fitted}, c, within=within, progress=False) for c in calls]
    return pd.concat([each.table for each in found]).assign(fit_cpu_s=fit_cpu_s)


@lru_cache(maxsize=1)
def _split(folder: Path, name: str) -> DataSplit:
    return DataSplit(DATA[name][0], folder)


def _method(data: DataSplit, model: ScoredModel, name: str, steps: int) -> RecourseMethod:
    """A fitted method by its name in the tables."""
    if name in DEAR_LINES:
        search = DEAR_LINES[name]
        dear = DEAR(model.model, data.schema, act_on=data.act_on, search=search)
        return dear.fit(data.parts[0])
    train, target = data.parts[0], data.data.target
    if name in OF_DICE:
        return of_dice(OF_DICE[name], model.model, data.schema, train, target=target)
    return of_alibi(model.model, data.schema, train, steps=steps)


HOSTS = Spec(
    "hosts",
    "the first comparison, with the methods of DiCE and Alibi",
    {
        "data": Option("data sets and models", ("loan",), DATA),
        "methods": Option("methods", ("DEAR", "DiCE random", CFRL), METHODS),
        "rows": Option("rejected rows", 4, preset=200),
        "steps": Option("training steps of Alibi's method", 5, preset=10_000),
    },
    cells,
    measure,
    tables,
    tuple(PACKAGES[name] for name in PACKAGES if find_spec(name)),
)
