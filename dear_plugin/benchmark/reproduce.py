"""Reproduce: the paper's method to the letter, over the settings that the paper leaves open.

python -m dear_plugin.benchmark reproduce --out results/reproduce
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.paper import file_name
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.decoders import PAPER_LAYERS, Autoencoder, Training
from dear_plugin.evaluation.metrics import neighbours
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import DescentSchedule, Search

LITERAL = Search.cheapest(solver="paper", max_features=1)
# Held-out rows of the fidelity.
ROWS = 2000


@dataclass(frozen=True)
class Variant:
    """One line of the tables.

    Attributes:
        name: of the line.
        search: the search settings.
        hessian: the weight of the Hessian penalty.
        training: of the autoencoder; None is that of the preset.
    """

    name: str
    search: Search = LITERAL
    hessian: float = 0.1
    training: Training | None = None

    @property
    def fit_name(self) -> str:
        """What identifies the autoencoders."""
        return f"hessian {self.hessian:g}{'' if self.training is None else ', 500 steps'}"


def _literal(**schedule: Any) -> Search:
    return replace(LITERAL, schedule=DescentSchedule(**schedule))


PRESET = Variant("to the letter")
LINE_SEARCH = Variant("line search", Search.cheapest(max_features=1))
STEPS, TARGETS = (0.01, 0.05, 0.2), (0.0, 0.5, 2.0, 5.0)
WEIGHTS, HESSIANS = (0.0, 0.1, 0.5), (0.0, 1.0)
# The sweep: all steps with all target scores, then one other setting at a time.
SWEEP = (
    *(
        Variant(f"step {step:g}, s {target:g}", _literal(step=step, target=target))
        for step in STEPS
        for target in TARGETS
        if (step, target) != (DescentSchedule.step, DescentSchedule.target)
    ),
    *(Variant(f"lambda {w:g}", _literal(weights=(w,))) for w in WEIGHTS),
    *(Variant(f"Hessian weight {w:g}", hessian=w) for w in HESSIANS),
    Variant("trained for 500 steps (0.1.0)", training=Training()),
)
VARIANTS = {variant.name: variant for variant in SWEEP}


@dataclass(frozen=True)
class Fits:
    """The fitted autoencoders of a run; each is stored, and trained once for both classifiers.

    Attributes:
        folder: where they are stored.
    """

    folder: Path

    def dear(self, cell: Cell, variant: Variant) -> DEAR:
        """DEAR with the autoencoders of a variant and the model of a cell."""
        home = self.folder / file_name(f"{cell.dataset} {cell.seed} {variant.fit_name}")
        if not (home / "training.json").exists():
            dear, record = _fitted(cell, variant)
            dear.save(home)
            (home / "training.json").write_text(json.dumps(record), encoding="utf8")
        return DEAR.load(home, cell.model).with_search(variant.search)

    def records(self) -> Iterator[dict[str, Any]]:
        """How each was trained."""
        for path in sorted(self.folder.glob("*/training.json")):
            yield json.loads(path.read_text(encoding="utf8"))


def runs(
    cell: Cell, variants: Sequence[Variant], rows: int, fits: Fits, folder: Path
) -> Iterator[pd.DataFrame]:
    """The rows of every variant on a cell; stored runs are read.

    Args:
        cell: data set, classifier and seed.
        variants: the lines.
        rows: the largest number of rejected rows.
        fits: the autoencoders.
        folder: where the rows are stored.
    """
    for variant in variants:
        path = folder / f"{cell.key}-{rows}" / f"{file_name(variant.name)}.csv"
        if not path.exists():
            table = _answers(cell, variant, rows, fits)
            path.parent.mkdir(parents=True, exist_ok=True)
            # Renamed when complete: an interrupted run leaves no part of a table.
            table.to_csv(path.with_suffix(".part"), index=False, na_rep="nan")
            path.with_suffix(".part").replace(path)
        known = {"dataset": cell.dataset, "classifier": cell.kind, "seed": cell.seed}
        yield pd.read_csv(path).assign(variant=variant.name, **known)


def _answers(cell: Cell, variant: Variant, rows: int, fits: Fits) -> pd.DataFrame:
    """One line per rejected row: success, costs, violations, yNN, and if the action is zero."""
    dear = fits.dear(cell, variant)
    recourses = dear.generate(cell.refused.iloc[:rows])
    success = recourses.outcome["success"].to_numpy()
    protected = list(cell.schema.index(cell.protected))
    costs = ["success", "cost", "direct_cost", "indirect_cost"]
    return recourses.outcome[costs].assign(
        zero=success & ~recourses.acts.numpy(),
        violations=recourses.changed[:, protected].sum(1).numpy(),
        ynn=np.where(success, neighbours(recourses, cell.all_rows, cell.classifier), np.nan),
    )


def _fitted(cell: Cell, variant: Variant) -> tuple[DEAR, dict[str, Any]]:
    """The trained autoencoders of a variant, and how they were trained."""
    decoder = Autoencoder.paper(PAPER_LAYERS[cell.dataset], seed=cell.seed)
    decoder.design = replace(decoder.design, hessian=variant.hessian)
    decoder.training = variant.training or decoder.training
    start = time.process_time()
    dear = DEAR(cell.model, cell.schema, decoder=decoder).fit(cell.train)
    seconds = time.process_time() - start
    report = dear.diagnose(cell.test.iloc[:ROWS])
    losses = [epoch["held_out"] for epoch in decoder.history.epochs]
    return dear, {
        "dataset": cell.dataset,
        "seed": cell.seed,
        "autoencoders": variant.fit_name,
        "epochs": len(losses),
        "stopped": decoder.history.stopped,
        "held_out": min(losses),
        "round_trip": report.round_trip,
        "dependence": report.fidelity,
        "entanglement": float(report.entanglement.median()),
        "fit_cpu_s": seconds,
    }
