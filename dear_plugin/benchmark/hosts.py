"""Hosts: DEAR compared with the methods of DiCE and Alibi, on the same rows of the same model.

The hosts' methods are wrapped: their answers keep the constraints, are rounded and scored by the
model, and evaluated by the engine, as DEAR's are. They have no indirect changes: all they change
has to be done, confidence 1, reliance 0. DEAR gives the same rows through either host.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from dear_plugin.benchmark.cfrl import Example, Rows, explainer, networks, train
from dear_plugin.benchmark.hosts_tables import DEAR_LINES, tables
from dear_plugin.benchmark.runner import Cell, Option, Spec
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind, Schema
from dear_plugin.datasets import Dataset, load_adult, load_loan
from dear_plugin.demo.classifiers import recipe, trained
from dear_plugin.demo.wrappings import OnAlibi, OnDice
from dear_plugin.errors import DataError
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.comparison import compare
from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.constraints import Constraints

# The fastest sparsity option of each method of DiCE; none for `gradient`, which needs 20 seconds
# per row with it. Two columns of probabilities for methods that misinterpret a single one.
DICE: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "random": (1, {"posthoc_sparsity_algorithm": "binary"}),
    "genetic": (2, {"posthoc_sparsity_algorithm": "binary"}),
    "kdtree": (2, {"posthoc_sparsity_algorithm": "binary"}),
    "gradient": (1, {"posthoc_sparsity_param": None}),
}
# `genetic` may search its first generation without end; other methods need far less for a row.
MOST_CPU_S = 120.0
CFRL = "CFRL, {} steps"
PACKAGES = {"dice_ml": "dice-ml", "alibi": "alibi"}


@dataclass(frozen=True)
class Data:
    """A data set as it is compared on.

    Attributes:
        host: "dice" or "alibi".
        load: the data set.
        frozen: features that keep their values in these calls.
        immutable: features that never change.
        increasing: numeric features that may only increase.
        without: columns that are left out.
    """

    host: str
    load: Callable[[], Dataset]
    frozen: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()
    increasing: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


# Alibi's Adult has all categories, no survey weight, and the constraints of Alibi's own example.
DATA: Mapping[str, Data] = {
    "dice adult": Data("dice", load_adult, ("sex", "race", "native-country")),
    "dice loan": Data("dice", load_loan, ("gender",)),
    "alibi adult": Data(
        "alibi",
        lambda: load_adult("full"),
        immutable=("marital-status", "relationship", "race", "sex"),
        increasing=("age",),
        without=("fnlwgt",),
    ),
    "alibi loan": Data("alibi", load_loan, immutable=("gender",), increasing=("age",)),
}


@dataclass(frozen=True, eq=False)
class Experiment:
    """A model and its rejected rows.

    Attributes:
        data: the data set and its constraints.
        target: the column of labels.
        schema: the features, with the bounds of training rows and the categories of all rows.
        train: the training rows, with labels.
        refused: the rejected test rows, without labels.
        model: logits of the encoded tensor.
    """

    data: Data
    target: str
    schema: Schema
    train: pd.DataFrame
    refused: pd.DataFrame
    model: nn.Module


@lru_cache(maxsize=1)
def experiment(name: str, seed: int = 0) -> Experiment:
    """Split the data, train the paper's network, and select the rejected test rows.

    Args:
        name: of `DATA`.
        seed: of the split and the network.

    Raises:
        DataError: no row is rejected.
    """
    host = DATA[name]
    data = host.load()
    kept, test = (part.drop(columns=list(host.without)) for part in data.split(seed=seed))
    schema = _schema(pd.concat([kept, test]), kept, data.target, host)
    x = Encoder(schema).encode(kept)
    model = trained("ann", x, torch.tensor(kept[data.target].to_numpy()), recipe(data.name), seed)
    with torch.no_grad():
        refused = test[(model(Encoder(schema).encode(test))[:, 0] <= 0).numpy()]
    if not len(refused):
        raise DataError(f"the model rejects none of {len(test)} test rows of {data.name}")
    return Experiment(host, data.target, schema, kept, refused[list(schema.names)], model)


def cells(options: Namespace) -> Iterator[Cell]:
    """Every data set of an installed host, DEAR's lines and the host's methods."""
    for name in options.data:
        host = DATA[name].host
        if find_spec({"dice": "dice_ml"}.get(host, host)):
            own = [n for n, (_, pairs, _) in DEAR_LINES.items() if host == "dice" or not pairs]
            others = options.dice if host == "dice" else options.steps
            for method in (*own, *others):
                yield {"data": name, "method": method, "rows": options.rows}


def measure(folder: Path, *, data: str, method: str, rows: int) -> pd.DataFrame:
    """One line per rejected row: the answer of a method, as `compare` evaluates it."""
    case = experiment(data)
    with silent():
        fitted, fit_cpu_s = _method(case, method)
        within = Constraints(frozen=case.data.frozen)
        found = compare({method: fitted}, case.refused.iloc[:rows], within=within, progress=False)
    return found.table.drop(columns="reason").assign(fit_cpu_s=fit_cpu_s)


def _method(case: Experiment, name: str) -> tuple[RecourseMethod, float]:
    """A fitted method by its name in the tables, and the CPU seconds of the fit."""
    if name in DEAR_LINES:
        search, pairs, _ = DEAR_LINES[name]
        dear, seconds = _dear(case, pairs)
        return dear.with_search(search), seconds
    start = time.process_time()
    method = _dice(case, name) if name in DICE else _cfrl(case, int(name.split()[1]))
    return method, time.process_time() - start


@lru_cache(maxsize=1)
def _dear(case: Experiment, pairs: bool) -> tuple[DEAR, float]:
    """DEAR fitted on single features, or on pairs as well, and the CPU seconds of the fit."""
    start = time.process_time()
    names = [name for name in case.schema.mutable if name not in case.data.frozen]
    act_on = [*names, *combinations(names, 2)] if pairs else None
    dear = DEAR(case.model, case.schema, act_on=act_on).fit(case.train)
    return dear, time.process_time() - start


def _dice(case: Experiment, name: str) -> RecourseMethod:
    """One of DiCE's own methods."""
    import dice_ml

    import dear_dice

    columns, arguments = DICE[name]
    numbers = [f.name for f in case.schema if f.kind is Kind.NUMERIC]
    data = dice_ml.Data(
        dataframe=case.train, continuous_features=numbers, outcome_name=case.target
    )
    module = OnDice(case.model, case.schema, columns)
    model = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    limited = Limited(dice_ml.Dice(data, model, method=name))
    return dear_dice.wrap_dice(limited, **arguments).fit(case.train)


def _cfrl(case: Experiment, steps: int) -> RecourseMethod:
    """CounterfactualRLTabular and its autoencoder, as in Alibi's example."""
    import dear_alibi

    predictor = OnAlibi(case.model, case.schema)
    whole = [f.name for f in case.schema if f.kind is Kind.NUMERIC and f.precision == 0]
    names = list(case.schema.names)
    rows = Rows(predictor.array(case.train), names, predictor.category_map, whole)
    example = Example(steps=steps)
    nets = networks(rows, example)
    train(nets, rows, example)
    rules = {"immutable": case.data.immutable, "increasing": case.data.increasing}
    agent = explainer(rows, predictor, nets, example, **rules)
    agent.fit(rows.X)
    return dear_alibi.wrap_alibi(agent).fit(case.train[names])


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


def _schema(every: pd.DataFrame, kept: pd.DataFrame, target: str, data: Data) -> Schema:
    """A schema with the bounds of training rows and the categories of all rows, as hosts need."""
    rules: dict[str, Any] = {"immutable": data.immutable, "increasing": data.increasing}
    seen = Schema.infer(kept, target=target, **rules)
    known = Schema.infer(every, target=target, **rules)
    pairs = zip(seen, known, strict=True)
    features = tuple(s if s.kind is Kind.NUMERIC else k for s, k in pairs)
    return replace(seen, features=features)


HOSTS = Spec(
    "hosts",
    "comparison with the methods of DiCE and Alibi",
    {
        "data": Option(
            ("dice adult", "dice loan", "alibi adult"),
            ("dice loan", "alibi loan"),
            "hosts and data sets",
            tuple(DATA),
        ),
        "dice": Option(tuple(DICE), ("random",), "methods of DiCE", tuple(DICE)),
        "steps": Option(
            (CFRL.format(10_000), CFRL.format(300)),
            (CFRL.format(5),),
            "trainings of Alibi's CounterfactualRLTabular",
            tuple(CFRL.format(n) for n in (5, 300, 10_000)),
        ),
        "rows": Option(60, 4, "rejected rows"),
    },
    cells,
    measure,
    tables,
    tuple(PACKAGES[name] for name in PACKAGES if find_spec(name)),
)
