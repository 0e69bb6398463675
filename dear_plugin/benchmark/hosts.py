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
from torch import nn

from dear_plugin.benchmark.cfrl import Example, Rows, explainer, networks, train
from dear_plugin.benchmark.hosts_tables import DEAR_LINES, tables
from dear_plugin.benchmark.runner import Cell, Option, Spec
from dear_plugin.benchmark.splits import DataSplit, ScoredModel, Setting, scored_model
from dear_plugin.data.schema import Kind
from dear_plugin.datasets import Dataset, load_adult, load_loan
from dear_plugin.demo.wrappings import OnAlibi, OnDice
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
# Trainings of Alibi's method, the shortest for tests.
CFRL = tuple(f"CFRL, {steps} steps" for steps in (5, 300, 10_000))
PACKAGES = {"dice_ml": "dice-ml", "alibi": "alibi"}


def _full_adult() -> Dataset:
    """Adult with all categories, without the survey weight, as in Alibi's example."""
    data, weight = load_adult("full"), "fnlwgt"
    immutable = tuple(name for name in data.immutable if name != weight)
    units = {name: unit for name, unit in data.units.items() if name != weight}
    frame = data.frame.drop(columns=weight)
    return replace(data, frame=frame, immutable=immutable, units=units)


def _setting(load: Callable[[], Dataset], weights: str, **rules: Any) -> Setting:
    return Setting(weights, load, ("ann",), lambda _: rules, weights)


# Alibi's example has constraints of its own; DiCE is told in each call what to keep.
_EXAMPLE = ("marital-status", "relationship", "race", "sex")
DATA: Mapping[str, Setting] = {
    "dice adult": _setting(load_adult, "adult"),
    "dice loan": _setting(load_loan, "loan"),
    "alibi adult": _setting(
        _full_adult, "adult-unweighted", immutable=_EXAMPLE, increasing=("age",)
    ),
    "alibi loan": _setting(load_loan, "loan", immutable=("gender",), increasing=("age",)),
}
FROZEN = {"dice adult": ("sex", "race", "native-country"), "dice loan": ("gender",)}


def cells(options: Namespace) -> Iterator[Cell]:
    """Every data set of an installed host, DEAR's lines and the host's methods."""
    for name in options.data:
        on_dice = name in FROZEN
        if find_spec("dice_ml" if on_dice else "alibi"):
            own = [n for n, (_, pairs, _) in DEAR_LINES.items() if on_dice or not pairs]
            others = options.dice if on_dice else options.steps
            for method in (*own, *others):
                yield {"data": name, "method": method, "rows": options.rows}


def measure(folder: Path, *, data: str, method: str, rows: int) -> pd.DataFrame:
    """One line per rejected row: the answer of a method, as `compare` evaluates it."""
    split, frozen = _split(folder, data), FROZEN.get(data, ())
    model = scored_model(split, "ann")
    with silent():
        fitted, fit_cpu_s = _method(split, model, method, frozen)
        rejected, within = model.refused.iloc[:rows], Constraints(frozen=frozen)
        found = compare({method: fitted}, rejected, within=within, progress=False)
    return found.table.drop(columns="reason").assign(fit_cpu_s=fit_cpu_s)


@lru_cache(maxsize=1)
def _split(folder: Path, name: str) -> DataSplit:
    return DataSplit(DATA[name], 0, folder)


def _method(
    data: DataSplit, model: ScoredModel, name: str, frozen: tuple[str, ...]
) -> tuple[RecourseMethod, float]:
    """A fitted method by its name in the tables, and the CPU seconds of the fit."""
    if name in DEAR_LINES:
        search, pairs, _ = DEAR_LINES[name]
        dear, seconds = _dear(data, model, pairs, frozen)
        return dear.with_search(search), seconds
    start = time.process_time()
    make = _dice if name in DICE else _cfrl
    return make(data, model.model, name), time.process_time() - start


@lru_cache(maxsize=1)
def _dear(
    data: DataSplit, model: ScoredModel, pairs: bool, frozen: tuple[str, ...]
) -> tuple[DEAR, float]:
    """DEAR fitted on single features, or on pairs as well, and the CPU seconds of the fit."""
    start = time.process_time()
    names = [name for name in data.schema.mutable if name not in frozen]
    act_on = [*names, *combinations(names, 2)] if pairs else None
    dear = DEAR(model.model, data.schema, act_on=act_on).fit(data.parts[0])
    return dear, time.process_time() - start


def _dice(data: DataSplit, model: nn.Module, name: str) -> RecourseMethod:
    """One of DiCE's own methods."""
    import dice_ml

    import dear_dice

    columns, arguments = DICE[name]
    numbers = [f.name for f in data.schema if f.kind is Kind.NUMERIC]
    rows = dice_ml.Data(
        dataframe=data.parts[0], continuous_features=numbers, outcome_name=data.data.target
    )
    module = OnDice(model, data.schema, columns)
    wrapped = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    limited = Limited(dice_ml.Dice(rows, wrapped, method=name))
    return dear_dice.wrap_dice(limited, **arguments).fit(data.parts[0])


def _cfrl(data: DataSplit, model: nn.Module, name: str) -> RecourseMethod:
    """CounterfactualRLTabular and its autoencoder, as in Alibi's example."""
    import dear_alibi

    predictor, frame = OnAlibi(model, data.schema), data.parts[0][list(data.schema.names)]
    whole = [f.name for f in data.schema if f.kind is Kind.NUMERIC and f.precision == 0]
    rows = Rows(predictor.array(frame), list(frame), predictor.category_map, whole)
    example = Example(steps=int(name.split()[1]))
    nets = networks(rows, example)
    train(nets, rows, example)
    rules = {"immutable": (), "increasing": (), **data.setting.rules(data.data)}
    agent = explainer(rows, predictor, nets, example, **rules)
    agent.fit(rows.X)
    return dear_alibi.wrap_alibi(agent).fit(frame)


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
    "comparison with the methods of DiCE and Alibi",
    {
        "data": Option("hosts and data sets", ("dice loan", "alibi loan"), DATA, tuple(DATA)[:3]),
        "dice": Option("methods of DiCE", ("random",), DICE),
        "steps": Option("trainings of Alibi's method", CFRL[:1], CFRL, CFRL[1:]),
        "rows": Option("rejected rows", 4, preset=30),
    },
    cells,
    measure,
    tables,
    tuple(PACKAGES[name] for name in PACKAGES if find_spec(name)),
)
