"""The paper's DEAR and the default, with one departure at a time between them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pandas as pd

from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.tables import Table
from dear_plugin.decoders import Decoder
from dear_plugin.demo.experiment import Demo, Experiment, make_experiment
from dear_plugin.methods.dear import DEAR
from dear_plugin.paper import Autoencoder
from dear_plugin.search import Search

PAPER = Autoencoder.paper((8, 10, 5))
REMAINDER = Autoencoder(replace(PAPER.design, reconstruct="remainder"))
LINE = Search.cheapest(max_features=1)
LITERAL = Search.cheapest(solver="paper", max_features=1)
# Each configuration is the one before it with one more departure.
WAYS: Mapping[str, tuple[Decoder | str, Search]] = {
    "the paper's method": (PAPER, LITERAL),
    "... with the line search": (PAPER, LINE),
    "... and the factual's remainder": (REMAINDER, LINE),
    "... and latents independent of x_S": (Autoencoder(), LINE),
    "ranks in place of networks": ("transport", Search.cheapest()),
    "credible answers, the default": ("transport", Search()),
}


def measure(folder: Path, *, way: str, rows: int) -> pd.DataFrame:
    """One line: success, costs, fidelity and times of a configuration, on the loan data."""
    case, (decoder, search) = _experiment(rows), WAYS[way]
    fitted, fit_cpu_s = _fitted(rows, decoder)
    dear, start = fitted.with_search(search), time.process_time()
    actions = dear.generate(case.refused).actions
    generate_cpu_s = time.process_time() - start
    report, done = dear.diagnose(case.test), actions[actions["success"]]
    found = {
        "success": actions["success"].mean(),
        "cost": done["cost"].median(),
        "direct": done["direct_cost"].median(),
        "indirect": done["indirect_cost"].median(),
        "round_trip": report.round_trip,
        "fidelity": report.fidelity,
        "distribution": report.distribution_fidelity,
        "fit_cpu_s": fit_cpu_s,
        "cpu_ms_a_row": 1000 * generate_cpu_s / len(actions),
    }
    return pd.DataFrame([found])


@lru_cache(maxsize=1)
def _fitted(rows: int, decoder: Decoder | str) -> tuple[DEAR, float]:
    """DEAR with a decoder, which configurations share, and the CPU seconds of its fit."""
    case, start = _experiment(rows), time.process_time()
    schema = replace(case.schema, tiers=())  # the paper states no order of causes
    dear = DEAR(case.model, schema, act_on=case.data.act_on, decoder=decoder)
    return dear.fit(case.train), time.process_time() - start


@lru_cache(maxsize=1)
def _experiment(rows: int) -> Experiment:
    return make_experiment(Demo(rows=rows))


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The table of all configurations."""
    columns = ["way", *found.columns.drop(["way", "rows"])]
    yield "departures", found[columns].to_dict("records")


DEPARTURES = Spec(
    "departures",
    "from the paper's method to the default, one departure at a time",
    {
        "ways": Option("departures", tuple(WAYS)[-2:], WAYS),
        "rows": Option("rejected rows", 8, preset=300),
    },
    lambda options: grid(way=options.ways, rows=[options.rows]),
    measure,
    tables,
)
