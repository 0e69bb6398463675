"""Engine: fidelity, reliability, support and agreement of DEAR on the real data.

python -m dear_plugin.benchmark engine --seeds 3 --rows 200 --out results/engine
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark.method_specs import SUPPORTS
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import PAPER_LAYERS, Autoencoder, Decoder, Transport
from dear_plugin.evaluation.metrics import success_rate, violations, ynn, zero_actions
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

PAPER_YNN = {
    ("adult", "lr"): 0.84,
    ("adult", "ann"): 0.70,
    ("compas", "lr"): 1.0,
    ("compas", "ann"): 1.0,
    ("gmc", "lr"): 0.91,
    ("gmc", "ann"): 0.94,
}
FROZEN = ("sex", "race")
SOLVERS = {"line": "line search", "paper": "Algorithm 1"}

Row = Mapping[str, Any]


def fidelity_rows(cell: Cell) -> Iterator[Row]:
    """One row per decoder: the fidelity of its indirect changes."""
    decoders: dict[str, Callable[[], Decoder]] = {
        "transport": Transport,
        "autoencoder": Autoencoder,
        "paper": lambda: Autoencoder.paper(PAPER_LAYERS[cell.dataset]),
    }
    for name, make in decoders.items():
        start = time.process_time()
        dear = DEAR(cell.model, cell.schema, decoder=make()).fit(cell.train)
        fitted = time.process_time() - start
        report = dear.diagnose(cell.test)
        yield {
            "dataset": cell.dataset,
            "decoder": name,
            "dependence": report.fidelity,
            "distribution": report.distribution_fidelity,
            "shown": report.shown,
            "standardised": report.standardised,
            "round_trip": report.round_trip,
            "identity": report.identity,
            "joint_auc": report.joint,
            "joint_auc_independent": report.joint_independent,
            "entanglement": _median(report.entanglement),
            "fit_cpu_s": fitted,
        }


def reliability_rows(cell: Cell, rows: int) -> Iterator[Row]:
    """One row per configuration: success, violations, cost, yNN, CPU time.

    `as_default` is the share of rows with the same counterfactual as the default configuration.
    """
    refused = cell.refused.iloc[:rows]
    encoder = Encoder(cell.schema)
    all_rows = torch.cat([encoder.rows(cell.train), encoder.rows(cell.test)])
    first: pd.DataFrame | None = None
    for name, dear in _configurations(cell):
        start = time.process_time()
        recourses = dear.generate(refused)
        seconds = time.process_time() - start
        after = recourses.counterfactuals
        first = after if first is None else first
        yield {
            **_head(cell, len(refused)),
            "configuration": name,
            "as_default": float((after == first).all(axis=1).mean()),
            **_measures(recourses, all_rows, dear),
            "cpu_ms_a_row": 1000.0 * seconds / len(refused),
        }


def _configurations(cell: Cell) -> Iterator[tuple[str, DEAR]]:
    """Fitted configurations, by name; those that differ in the search share a fit."""
    default = DEAR(cell.model, cell.schema).fit(cell.train)
    yield "default", default
    yield "black box", default.with_model(_BlackBox(cell.model, Encoder(cell.schema)))
    for name, search in SUPPORTS.items():
        yield f"support {name}", default.with_search(search)
    decoder = Autoencoder.paper(PAPER_LAYERS[cell.dataset])
    paper = DEAR(cell.model, cell.schema, decoder=decoder).fit(cell.train)
    for solver, name in SOLVERS.items():
        search = Search.cheapest(solver=solver, max_features=1)
        yield f"paper, {name}", paper.with_search(search)


def _head(cell: Cell, rows: int) -> dict[str, Any]:
    return {
        "dataset": cell.dataset,
        "classifier": cell.kind,
        "seed": cell.seed,
        "accuracy": cell.accuracy,
        "plateau": cell.plateau,
        "rows": rows,
        "paper_ynn": PAPER_YNN[cell.dataset, cell.kind],
    }


def _measures(recourses: Recourses, all_rows: torch.Tensor, dear: DEAR) -> dict[str, float]:
    frozen = [name for name in FROZEN if name in dear.schema.names]
    solved = recourses.outcome[recourses.outcome["success"]]
    return {
        "success": success_rate(recourses),
        "zero_actions": zero_actions(recourses),
        "violations": violations(recourses, frozen)[0],
        "ynn": ynn(recourses, all_rows, dear.classifier),
        "median_cost": float(solved["cost"].median()) if len(solved) else np.nan,
        "median_direct": float(solved["direct_cost"].median()) if len(solved) else np.nan,
    }


def _median(column: pd.Series) -> float:
    """The median, NaN without values."""
    return float(column.median()) if column.notna().any() else np.nan


class _BlackBox:
    """The same model as a function from frames to probabilities."""

    def __init__(self, model: torch.nn.Module, encoder: Encoder) -> None:
        self.model, self.encoder = model, encoder

    def __call__(self, frame: pd.DataFrame) -> Any:
        """Probabilities of class 1, (m,)."""
        with torch.no_grad():
            return torch.sigmoid(self.model(self.encoder.encode(frame)).double())[:, 0].numpy()
