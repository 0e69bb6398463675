"""The paper's experiment: its method to the letter, and a sweep of settings."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark import reproduce_tables
from dear_plugin.benchmark.fits import BASELINES, baseline, fits_of, reject_all
from dear_plugin.benchmark.reproduce_tables import ENTANGLEMENT, LINE_SEARCH, OWN, PRESET
from dear_plugin.benchmark.runner import Cell, Option, Spec, grid
from dear_plugin.benchmark.splits import NETWORKS, PAPER, DataSplit, ScoredModel, case_of
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.models.classifier import Classifier
from dear_plugin.paper import PAPER_LAYERS, Autoencoder, Training
from dear_plugin.results.recourses import Recourses
from dear_plugin.rivals.metrics import neighbours
from dear_plugin.search import DescentSchedule, Search

LITERAL = Search.cheapest(solver="paper", max_features=1)
# The number of held-out rows for the fidelity, and of training rows for the entanglement.
ROWS = 2000
KEPT = ["success", "acted_on", "cost", "direct_cost", "indirect_cost"]


@dataclass(frozen=True)
class Variant:
    """A setting of the paper's method.

    Attributes:
        search: the search settings.
        training: the training of the autoencoder; None for that of the preset.
    """

    search: Search = LITERAL
    training: Training | None = None


def _literal(**schedule: Any) -> Variant:
    return Variant(replace(LITERAL, schedule=DescentSchedule(**schedule)))


# One setting at a time that the paper leaves open; settings with the same fit are together.
VARIANTS: Mapping[str, Variant] = {
    PRESET: Variant(),
    LINE_SEARCH: Variant(Search.cheapest(max_features=1)),
    **{f"step {step:g}": _literal(step=step) for step in (0.05, 0.2)},
    **{f"s {target:g}": _literal(target=target) for target in (0.0, 2.0, 5.0)},
    **{f"lambda {weight:g}": _literal(weights=(weight,)) for weight in (0.0, 0.5)},
    "trained for 500 steps": Variant(training=Training()),
}
LINES = (*VARIANTS, OWN, *BASELINES, ENTANGLEMENT)
QUICK = ("trained for 500 steps", OWN, "nearest accepted")


def cells(options: Namespace) -> Iterator[Cell]:
    """Every data set, line and classifier; the entanglement once."""
    axes = {"dataset": options.datasets, "line": options.lines, "classifier": options.models}
    for cell in grid(**axes, rows=[options.rows]):
        if cell["classifier"] == options.models[0] or cell["line"] != ENTANGLEMENT:
            yield cell


def measure(folder: Path, *, dataset: str, classifier: str, line: str, rows: int) -> pd.DataFrame:
    """One line per rejected row: the answer and its measures, in the paper's protocol.

    Columns `before` and `after` are features. The line `ENTANGLEMENT` is the mean mixed derivative
    of the preset for each training row and set.
    """
    data, model = case_of(folder, f"{dataset} {classifier}")
    if line == ENTANGLEMENT:
        return _entanglement(*_autoencoder(data, model.seed, None))
    method, record = _method(data, model, line)
    answers = method.generate(model.refused.iloc[:rows])
    return _measured(data, model, answers).assign(seed=model.seed, **record)


def _method(
    data: DataSplit, model: ScoredModel, line: str
) -> tuple[RecourseMethod, Mapping[str, Any]]:
    """A fitted method, and the record of its autoencoders' training."""
    if line == OWN:
        return fits_of(data).whole.with_model(model.model), {}
    if line in BASELINES:
        return baseline(data, model, line), {}
    variant = VARIANTS[line]
    dear, record = _autoencoder(data, model.seed, variant.training)
    return dear.with_model(model.model).with_search(variant.search), record


@lru_cache(maxsize=2)
def _autoencoder(
    data: DataSplit, seed: int, training: Training | None
) -> tuple[DEAR, Mapping[str, Any]]:
    """DEAR with the paper's autoencoders on a data split, and the record of their training."""
    decoder = Autoencoder.paper(PAPER_LAYERS[data.setting.name], seed=seed)
    decoder.training = training or decoder.training
    start = time.process_time()
    dear = DEAR(reject_all, data.schema, decoder=decoder).fit(data.parts[0])
    seconds = time.process_time() - start
    report = dear.diagnose(data.parts[1].iloc[:ROWS])
    trained: Any = dear.decoder
    losses = [epoch["held_out"] for epoch in trained.history.epochs]
    found = (
        "500 steps" if training else "the preset",
        len(losses),
        trained.history.stopped,
        min(losses),
        report.round_trip,
        report.fidelity,
        float(report.entanglement.median()),
        seconds,
    )
    return dear, dict(zip(reproduce_tables.RECORD, found, strict=True))


def _entanglement(dear: DEAR, record: Mapping[str, Any]) -> pd.DataFrame:
    """The mean mixed derivative of each training row and set, and the dependence fidelity."""
    rows = dear.trained.rows[:ROWS]
    sets = zip(dear.sets.labels, dear.sets.members, strict=True)
    found = {
        label: dear.decoders.of(members).entanglement(rows).numpy() for label, members in sets
    }
    wide = pd.DataFrame(found).melt(var_name="set", value_name="entanglement")
    return wide.assign(dependence=record["dependence"])


def _measured(data: DataSplit, model: ScoredModel, answers: Recourses) -> pd.DataFrame:
    """One line per row: success, yNN, violations, and the row before and after."""
    names, test = list(data.schema.names), data.parts[1]
    x = torch.cat([data.rows, data.encoder.rows(test)])
    ynn = neighbours(answers, x, Classifier(model.model, data.encoder))
    success = answers.actions["success"].to_numpy(dtype=bool)
    protected = list(data.schema.index(data.data.protected))
    measured = {
        "zero": success & answers.actions["acted_on"].eq("").to_numpy(),
        "violations": answers.changed[:, protected].sum(1).numpy(),
        "ynn": np.where(success, ynn, np.nan),
        "moves_along": _moves_along(answers),
        "accuracy": float((model.accepts(test) == (test[data.data.target] == 1)).mean()),
        "plateau": _plateau(model.model, data.encoder.encode(model.refused)),
    }
    features = answers.factuals[names].add_prefix("before "), answers.counterfactuals[names]
    lines = answers.actions[KEPT].assign(**measured)
    lines = lines.join([features[0], features[1].add_prefix("after ")])
    return lines.rename_axis(index="row").reset_index()


def _moves_along(answers: Recourses) -> list[str]:
    """(n,) the feature with the largest indirect change; "" without one."""
    moved = answers.encoder.distance(answers.proposal.rows, answers.x)
    most, at = torch.where(answers.proposal.direct, 0.0, moved).max(1)
    names = answers.encoder.schema.names
    return [names[j] if m > 0.0 else "" for m, j in zip(most.tolist(), at.tolist(), strict=True)]


def _plateau(model: torch.nn.Module, x: torch.Tensor) -> float:
    """The share of rows whose gradient is exactly zero (dead ReLUs)."""
    x = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x)
    return float((gradient == 0).all(1).float().mean())


REPRODUCE = Spec(
    "reproduce",
    "the paper's experiment, its method to the letter, and a sweep",
    {
        "datasets": Option("data sets", ("compas",), PAPER),
        "models": Option("classifiers", ("lr",), NETWORKS),
        "lines": Option("the paper's method in all settings, and others", QUICK, LINES),
        "rows": Option("rejected rows of each classifier", 8, preset=50),
    },
    cells,
    measure,
    reproduce_tables.tables,
)
