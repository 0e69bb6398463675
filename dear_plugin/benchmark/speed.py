"""Speed: CPU seconds and memory of fit and generate, of all methods in one run.

python -m dear_plugin.benchmark speed --out results/speed

The model is the paper's network for Adult. Each method runs in a fresh process, and its CPU
seconds are measured, since machines are shared. Baselines explain fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from dear_plugin.benchmark import alibi, dice
from dear_plugin.benchmark.cfrl import Example
from dear_plugin.benchmark.experiment import Experiment, make_experiment
from dear_plugin.benchmark.meter import REPEATS, Meter, in_fresh_process, median_s
from dear_plugin.benchmark.method_specs import METHOD_SPECS, FittedMethods
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import load_adult
from dear_plugin.decoders import Autoencoder
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.methods.options import paired
from dear_plugin.search import Search

ROWS = 1000
# Rows that are also explained one per call.
SINGLE_ROWS = 50
BASELINES = ("Wachter", "REVISE", "C-CHVAE", "CLUE", "FACE-K", "FACE-E", "nearest accepted")
BASELINE_ROWS = 200
HOST_ROWS = 10
# Published measurements on similar machines: CPU-ms per row.
PUBLISHED = {
    "JAX ReLax, VanillaCF, compiled": 0.028,
    "CARLA, C-CHVAE": 17.0,
    "CARLA, REVISE": 1114.0,
}


class BlackBox:
    """A module as a black box: frames in, probabilities out.

    Args:
        model: logits of the encoded tensor.
        cell: the cell of its encoder.
    """

    def __init__(self, model: nn.Module, cell: Cell) -> None:
        self.model, self.encoder = model, cell.encoder

    def __call__(self, frame: pd.DataFrame) -> Any:
        """Probabilities of class 1, (m,)."""
        with torch.no_grad():
            return torch.sigmoid(self.model(self.encoder.encode(frame)).double())[:, 0].numpy()


def methods(cell: Cell) -> Iterator[Row]:
    """Fit and generate of DEAR in all configurations, and of all baselines."""
    frame = refused_rows(cell, ROWS)
    for name in CONFIGURATIONS:
        yield in_fresh_process(_configuration, cell, name, frame)
    for name in BASELINES:
        yield in_fresh_process(_baseline, cell, name, frame.iloc[:BASELINE_ROWS])
    for name, ms in PUBLISHED.items():
        yield {"method": f"{name} (measured elsewhere)", "warm_cpu_ms_a_row": ms}


def sizes(cell: Cell, counts: Sequence[int]) -> Iterator[Row]:
    """Every method with increasing numbers of rows in one call, baselines up to `ROWS`."""
    for name in (*SIZED, *BASELINES):
        for count in counts:
            if name in SIZED or count <= ROWS:
                yield in_fresh_process(_size, cell, name, count)


def on_hosts() -> Iterator[Row]:
    """The hosts' own methods, if installed; DiCE's with one row per call."""
    if find_spec("dice_ml"):
        experiment = make_experiment(load_adult(), HOST_ROWS)
        for name in dice.METHODS:
            yield in_fresh_process(_on_dice, experiment, name)
    if find_spec("alibi"):
        experiment = make_experiment(load_adult("full"), BASELINE_ROWS, without=["fnlwgt"])
        example = Example(steps=300, epochs=10)
        (line,) = in_fresh_process(alibi.cfrl_rows, experiment, example)
        row = line.row
        yield {
            "method": "Alibi CFRL, 300 steps, its autoencoder 10 epochs",
            "rows": row["rows"],
            "success": row["validity"],
            "fit_cpu_s": row["fit_cpu_s"] + row["autoencoder_cpu_s"],
            "first_cpu_ms_a_row": row["first_cpu_ms_a_row"],
            "warm_cpu_ms_a_row": row["cpu_ms_a_row"],
            "peak_mib": row["explain_peak_mib"],
        }


def wide() -> Iterator[Row]:
    """Time and memory with many features, one set for each, and with many categories."""
    for name in WIDE:
        yield in_fresh_process(_wide, name)


CHEAPEST = Search.cheapest()
# The configurations of DEAR: each option with both searches.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "DEAR, default": {},
    "DEAR, cheapest": {"search": CHEAPEST},
    "DEAR, default, pairs from the start": {"pairs": True},
    "DEAR, cheapest, pairs from the start": {"pairs": True, "search": CHEAPEST},
    "DEAR, default, black box": {"black_box": True},
    "DEAR, cheapest, black box": {"black_box": True, "search": CHEAPEST},
    "DEAR, default, support 1": {"search": Search(min_support=1.0)},
    "DEAR, default, autoencoder": {"decoder": Autoencoder()},
    "DEAR, cheapest, autoencoder": {"decoder": Autoencoder(), "search": CHEAPEST},
}
SIZED = ("DEAR, default", "DEAR, cheapest")


def _dear(cell: Cell, name: str) -> DEAR:
    """DEAR in one of `CONFIGURATIONS`, not yet fitted."""
    options = dict(CONFIGURATIONS[name])
    model = BlackBox(cell.model, cell) if options.pop("black_box", False) else cell.model
    if options.pop("pairs", False):
        options["act_on"] = paired(cell.schema, None)
    return DEAR(model, cell.schema, **options)


def _configuration(cell: Cell, name: str, frame: pd.DataFrame) -> Row:
    dear = _dear(cell, name)
    row = _timed(name, dear, cell, frame)
    seconds = singles_s(dear, frame.iloc[:SINGLE_ROWS])
    return {**row, "one_row_cpu_ms": 1000.0 * float(np.median(seconds))}


def singles_s(dear: DEAR, frame: pd.DataFrame, rounds: int = 1) -> list[float]:
    """CPU seconds of each row in a call of its own.

    Args:
        dear: fitted.
        frame: the rows.
        rounds: the number of timed calls for each row.
    """
    calls = [partial(dear.generate, frame.iloc[[i]]) for i in range(len(frame))]
    return [median_s(call, 1) for call in calls for _ in range(rounds)]


def _baseline(cell: Cell, name: str, frame: pd.DataFrame) -> Row:
    """A baseline; its fit includes the training of a VAE."""
    fitted = FittedMethods(cell)
    row = _timed(name, METHOD_SPECS[name].make(fitted), cell, frame)
    return {**row, "fit_cpu_s": fitted.fitted(METHOD_SPECS[name])[1]}


def _timed(name: str, method: Any, cell: Cell, frame: pd.DataFrame) -> Row:
    """Fit, the first call and later ones."""
    with Meter() as fit:
        method.fit(cell.train)
    with Meter() as first:
        found = method.generate(frame)
    # Without the meter, which returns freed memory to the system.
    warm = median_s(lambda: method.generate(frame), REPEATS if isinstance(method, DEAR) else 1)
    return {
        "method": name,
        "rows": len(frame),
        "success": float(found.outcome["success"].mean()),
        "fit_cpu_s": fit.cpu_s,
        "fit_peak_mib": fit.peak_mib,
        "first_cpu_ms": 1000.0 * first.cpu_s,
        "warm_cpu_ms": 1000.0 * warm,
        "warm_cpu_ms_a_row": 1000.0 * warm / len(frame),
        "peak_mib": first.peak_mib,
    }


def _on_dice(experiment: Experiment, name: str) -> Row:
    """One of DiCE's methods on a few rows."""
    with Meter() as whole:
        found = dice.DiceComparison(experiment, dice.FROZEN[experiment.name]).dice_method(name)
    return {
        "method": f"DiCE {name}",
        "rows": len(found.solved),
        "success": float(found.solved.mean()),
        "fit_cpu_s": found.build,
        "first_cpu_ms_a_row": 1000.0 * found.calls[0],
        "warm_cpu_ms_a_row": 1000.0 * float(np.mean(found.calls[1:])),
        "peak_mib": whole.peak_mib,
    }


def _method(cell: Cell, name: str) -> RecourseMethod:
    """DEAR in one of `CONFIGURATIONS`, or a baseline; fitted."""
    if name in CONFIGURATIONS:
        return _dear(cell, name).fit(cell.train)
    return FittedMethods(cell).fitted(METHOD_SPECS[name])[0]


def _size(cell: Cell, name: str, count: int) -> Row:
    method = _method(cell, name)
    method.generate(refused_rows(cell, 10))
    frame = refused_rows(cell, count)
    with Meter() as call:
        found = method.generate(frame)
    # As in `_timed`: with few rows the memory operations of the meter would dominate.
    cpu_s = median_s(lambda: method.generate(frame), 3) if count <= ROWS else call.cpu_s
    return {
        "method": name,
        "rows": count,
        "success": float(found.outcome["success"].mean()),
        "cpu_s": cpu_s,
        "cpu_us_a_row": 1e6 * cpu_s / count,
        "peak_mib": call.peak_mib,
        "data_mib": float(frame.memory_usage(deep=True).sum()) / 2**20,
    }


def _many_features(rng: np.random.Generator) -> pd.DataFrame:
    base = rng.normal(size=(5000, 200)) + rng.normal(size=(5000, 1))
    return pd.DataFrame(base.round(3), columns=[f"x{i}" for i in range(200)])


def _many_levels(rng: np.random.Generator) -> pd.DataFrame:
    n, towns = 20_000, np.array([f"town {i}" for i in range(1000)])
    levels, effect = rng.integers(0, 1000, n), rng.normal(size=1000)
    x0, x1 = effect[levels] + rng.normal(size=n), rng.normal(size=n)
    return pd.DataFrame({"x0": x0.round(2), "x1": x1.round(2), "town": towns[levels]})


WIDE = {"200 features": _many_features, "1,000 levels": _many_levels}


def _wide(name: str) -> Row:
    frame = WIDE[name](np.random.default_rng(0))
    dear = DEAR(_above, Schema.infer(frame))
    with Meter() as fit:
        dear.fit(frame)
    rejected = frame[frame["x0"] <= 1.0].iloc[:ROWS]
    with Meter() as call:
        found = dear.generate(rejected)
    return {
        "data": name,
        "sets": len(dear.sets),
        "rows": len(rejected),
        "success": float(found.outcome["success"].mean()),
        "fit_cpu_s": fit.cpu_s,
        "fit_peak_mib": fit.peak_mib,
        "cpu_s": call.cpu_s,
        "peak_mib": call.peak_mib,
    }


def _above(frame: pd.DataFrame) -> Any:
    """A black box that uses one feature."""
    return (frame["x0"] > 1.0).to_numpy(dtype=float)


def refused_rows(cell: Cell, count: int) -> pd.DataFrame:
    """Rejected test rows, repeated if there are too few."""
    refused = cell.refused[list(cell.schema.names)]
    return refused.iloc[np.resize(np.arange(len(refused)), count)].reset_index(drop=True)
