"""The engine's own tables: fidelity, reliability, support and agreement, on the real data.

python -m dear_plugin.benchmark engine --seeds 3 --rows 200 --out results/engine
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark.contenders import SUPPORTS
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import PAPER_LAYERS, Autoencoder, Decoder, Transport
from dear_plugin.evaluation.metrics import success_rate, violations, ynn
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
HELD = ("sex", "race")

Row = Mapping[str, Any]


def fidelity_rows(cell: Cell) -> Iterator[Row]:
    """One row per decoder: how far its indirect changes can be believed."""
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
    """One row per way of using the engine: success, violations, cost, yNN, CPU time.

    `as_default` is the share of rows that get the same counterfactual as with the defaults.
    """
    refused = cell.refused.iloc[:rows]
    encoder = Encoder(cell.schema)
    everyone = torch.cat([encoder.rows(cell.train), encoder.rows(cell.test)])
    first: pd.DataFrame | None = None
    for name, dear in _ways(cell):
        dear.fit(cell.train)
        start = time.process_time()
        recourses = dear.generate(refused)
        seconds = time.process_time() - start
        after = recourses.counterfactuals
        first = after if first is None else first
        yield {
            **_head(cell, len(refused)),
            "way": name,
            "as_default": float((after == first).all(axis=1).mean()),
            **_measures(recourses, everyone, dear),
            "cpu_ms_a_row": 1000.0 * seconds / len(refused),
        }


def _ways(cell: Cell) -> Iterator[tuple[str, DEAR]]:
    paper = PAPER_LAYERS[cell.dataset]
    yield "default", DEAR(cell.model, cell.schema)
    yield "black box", DEAR(_BlackBox(cell.model, Encoder(cell.schema)), cell.schema)
    for name, search in SUPPORTS.items():
        yield f"support {name}", DEAR(cell.model, cell.schema, search=search)
    yield (
        "paper, line search",
        DEAR(
            cell.model, cell.schema, decoder=Autoencoder.paper(paper), search=Search(groups=False)
        ),
    )
    yield (
        "paper, Algorithm 1",
        DEAR(
            cell.model,
            cell.schema,
            decoder=Autoencoder.paper(paper),
            search=Search(solver="gradient", groups=False),
        ),
    )


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


def _measures(recourses: Recourses, everyone: torch.Tensor, dear: DEAR) -> dict[str, float]:
    held = [name for name in HELD if name in dear.schema.names]
    done = recourses.actions[recourses.actions["success"]]
    return {
        "success": success_rate(recourses),
        "violations": violations(recourses, held)[0],
        "ynn": ynn(recourses, everyone, dear.classifier),
        "median_cost": float(done["cost"].median()) if len(done) else np.nan,
        "median_direct": float(done["direct_cost"].median()) if len(done) else np.nan,
    }


def _median(column: pd.Series) -> float:
    """The median, NaN where nothing was measured."""
    return float(column.median()) if column.notna().any() else np.nan


class _BlackBox:
    """The same model, asked through frames and answering with probabilities."""

    def __init__(self, model: torch.nn.Module, encoder: Encoder) -> None:
        self.model, self.encoder = model, encoder

    def __call__(self, frame: pd.DataFrame) -> Any:
        """Probabilities of class 1, (m,)."""
        with torch.no_grad():
            return torch.sigmoid(self.model(self.encoder.encode(frame)).double())[:, 0].numpy()
