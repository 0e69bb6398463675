"""Hosts: the first comparison, of DEAR with DiCE's and Alibi's methods on the same refused rows.

The hosts' methods are wrapped: their answers keep the constraints, are rounded and scored by the
model, and evaluated by the engine, as DEAR's are. They have no indirect changes: all they change
has to be done. Every method is asked for a few rows a call, whose CPU time is measured.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from dear_plugin.benchmark.cfrl import Example, Rows, explainer, networks, train
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
from dear_plugin.data.schema import Kind, Schema
from dear_plugin.datasets import Dataset, load_adult
from dear_plugin.demo.wrappings import OnAlibi, OnDice
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.comparison import compare
from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.constraints import Constraints
from dear_plugin.search import Search

# The default, and the one that compares by what has to be done.
DEAR_LINES: Mapping[str, Search] = {
    "DEAR": Search(),
    "DEAR, least effort": Search(indirect_weight=0.0, prefer_alone=0.0),
}
# The fastest sparsity option of each method of DiCE; none for `gradient`, which needs 20 seconds
# per row with it. Two columns of probabilities for methods that misinterpret a single one.
DICE: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "DiCE random": (1, {"posthoc_sparsity_algorithm": "binary"}),
    "DiCE genetic": (2, {"posthoc_sparsity_algorithm": "binary"}),
    "DiCE kdtree": (2, {"posthoc_sparsity_algorithm": "binary"}),
    "DiCE gradient": (1, {"posthoc_sparsity_param": None}),
}
CFRL = "Alibi CFRL"
METHODS = (*DEAR_LINES, *DICE, CFRL)
PACKAGES = {"dice_ml": "dice-ml", "alibi": "alibi"}
# Rows of a call; and of methods that take seconds for each, in all.
CALL = 10
FEWER = {("adult", "DiCE genetic"): 20, ("adult", "DiCE gradient"): 20}
# `genetic` may search its first generation without end.
MOST_CPU_S = 20.0


def asked(data: Dataset) -> dict[str, Any]:
    """The constraints of Alibi's Adult example, with the country, the survey weight and tiers."""
    never = ("marital-status", "relationship", "race", "sex", "native-country", "fnlwgt")
    return {**own_rules(data), "immutable": never, "increasing": ("age", "education-num")}


DATA: Mapping[str, tuple[Setting, str]] = {
    "adult": (Setting("adult", load_adult, ("ann",), asked, "adult"), "ann"),
    "loan": (SETTINGS["loan"], TREES),
}


def cells(options: Namespace) -> Iterator[Cell]:
    """Every data set, and the methods of installed hosts that take its model."""
    for name in options.data:
        for method in options.methods:
            host = "dice_ml" if method in DICE else "alibi" if method == CFRL else "torch"
            takes = name == "adult" or method != "DiCE gradient"
            if takes and find_spec(host):
                rows = min(options.rows, FEWER.get((name, method), options.rows))
                steps = options.steps if method == CFRL else 0
                yield {"data": name, "method": method, "rows": rows, "steps": steps}


def measure(folder: Path, *, data: str, method: str, rows: int, steps: int) -> pd.DataFrame:
    """One line per rejected row: the answer of a method, as `compare` evaluates it."""
    split = _split(folder, data)
    model, within = scored_model(split, DATA[data][1]), Constraints(act_on=split.act_on)
    with silent():
        start = time.process_time()
        fitted = _method(split, model, method, steps)
        fit_cpu_s = time.process_time() - start
        calls = [model.refused.iloc[i : min(i + CALL, rows)] for i in range(0, rows, CALL)]
        found = [compare({method: fitted}, c, within=within, progress=False) for c in calls]
    return pd.concat([each.table for each in found]).assign(fit_cpu_s=fit_cpu_s)


@lru_cache(maxsize=1)
def _split(folder: Path, name: str) -> DataSplit:
    return DataSplit(DATA[name][0], 0, folder)


def _method(data: DataSplit, model: ScoredModel, name: str, steps: int) -> RecourseMethod:
    """A fitted method by its name in the tables."""
    if name in DEAR_LINES:
        search = DEAR_LINES[name]
        dear = DEAR(model.model, data.schema, act_on=data.act_on, search=search)
        return dear.fit(data.parts[0])
    rules = data.setting.rules(data.data)
    rules = {rule: rules[rule] for rule in ("immutable", "increasing")}
    if name in DICE:
        return _dice(data, model.model, name, rules)
    return _cfrl(data, model.model, Example(steps=steps), rules)


def _dice(data: DataSplit, model: Any, name: str, rules: Mapping[str, Any]) -> RecourseMethod:
    """One of DiCE's own methods."""
    import dice_ml

    import dear_dice

    columns, arguments = DICE[name]
    numbers = [f.name for f in data.schema if f.kind is Kind.NUMERIC]
    rows = dice_ml.Data(
        dataframe=data.parts[0], continuous_features=numbers, outcome_name=data.data.target
    )
    if isinstance(model, nn.Module):
        module = OnDice(model, data.schema, columns)
        wrapped = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    else:
        wrapped = dice_ml.Model(model=model, backend="sklearn")
    limited = Limited(dice_ml.Dice(rows, wrapped, method=name.removeprefix("DiCE ")))
    return dear_dice.wrap_dice(limited, **rules, **arguments).fit(data.parts[0])


def _cfrl(data: DataSplit, model: Any, how: Example, rules: Mapping[str, Any]) -> RecourseMethod:
    """CounterfactualRLTabular and its autoencoder, as in Alibi's example."""
    import dear_alibi

    kind = OnAlibi if isinstance(model, nn.Module) else TreesOnAlibi
    predictor, frame = kind(model, data.schema), data.parts[0][list(data.schema.names)]
    whole = [f.name for f in data.schema if f.kind is Kind.NUMERIC and f.precision == 0]
    rows = Rows(predictor.array(frame), list(frame), predictor.category_map, whole)
    nets = networks(rows, how)
    train(nets, rows, how)
    agent = explainer(rows, predictor, nets, how, **rules)
    agent.fit(rows.X)
    return dear_alibi.wrap_alibi(agent).fit(frame)


class TreesOnAlibi(OnAlibi):
    """A model of frames as probabilities of label-encoded rows; arguments as of `OnAlibi`."""

    def __init__(self, model: Any, schema: Schema) -> None:
        super().__init__(model, schema)
        self.trees = model

    def __call__(self, x: Any) -> Any:
        """(n, p) -> (n, 2) probabilities."""
        return self.trees.predict_proba(self.frame(x))


@dataclass(frozen=True)
class Limited:
    """An explainer of DiCE whose calls raise `TimeoutError` after some CPU seconds.

    Attributes:
        explainer: the explainer.
    """

    explainer: Any

    def __getattr__(self, name: str) -> Any:
        """All else is the explainer's."""
        return getattr(self.explainer, name)

    def generate_counterfactuals(self, query: pd.DataFrame, **arguments: Any) -> Any:
        """The explainer's answer for one row."""
        with at_most(MOST_CPU_S):
            return self.explainer.generate_counterfactuals(query, **arguments)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after some CPU seconds, where the platform supports it."""
    main = threading.current_thread() is threading.main_thread()
    if not (main and hasattr(signal, "setitimer")):
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError(f"no answer within {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def silent() -> Iterator[None]:
    """Suppress the warnings, progress bars and messages of a host."""
    quiet = redirect_stdout(StringIO()), redirect_stderr(StringIO())
    with warnings.catch_warnings(), quiet[0], quiet[1]:
        warnings.simplefilter("ignore")
        yield


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
