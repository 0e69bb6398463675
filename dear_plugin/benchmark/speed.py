"""Speed: CPU seconds and memory of fit and generate, side by side in one run.

python -m dear_plugin.benchmark speed --out results/speed

Everything is measured on the paper's network for Adult, each method in a fresh process, in CPU
seconds of that process, for machines are shared. Rivals are asked about fewer people.
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
from dear_plugin.benchmark.contenders import CONTENDERS, Stage
from dear_plugin.benchmark.hosts import Scene, scene
from dear_plugin.benchmark.meter import REPEATS, Meter, in_fresh_process, median_s
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import load_adult
from dear_plugin.decoders import Autoencoder
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.methods.options import paired
from dear_plugin.search import Search

PEOPLE = 1000
# How many of them are also asked about one at a time.
ALONE = 50
RIVALS = ("Wachter", "REVISE", "C-CHVAE", "CLUE", "FACE-K", "FACE-E", "nearest accepted")
RIVALS_PEOPLE = 200
HOSTS_PEOPLE = 10
# Measured elsewhere, on machines like these (DESIGN, 6): CPU-ms for each person.
ELSEWHERE = {
    "JAX ReLax, VanillaCF, compiled": 0.028,
    "CARLA, C-CHVAE": 17.0,
    "CARLA, REVISE": 1114.0,
}


class BlackBox:
    """A module as somebody's web service: frames in, probabilities out.

    Args:
        model: logits of the encoded tensor.
        cell: its data set.
    """

    def __init__(self, model: nn.Module, cell: Cell) -> None:
        self.model, self.encoder = model, cell.encoder

    def __call__(self, frame: pd.DataFrame) -> Any:
        """Probabilities of class 1, (m,)."""
        with torch.no_grad():
            return torch.sigmoid(self.model(self.encoder.encode(frame)).double())[:, 0].numpy()


def methods(cell: Cell) -> Iterator[Row]:
    """Fit and generate of DEAR in several ways, and of every rival."""
    people = people_of(cell, PEOPLE)
    for name in WAYS:
        yield in_fresh_process(_way, cell, name, people)
    for name in RIVALS:
        yield in_fresh_process(_rival, cell, name, people.iloc[:RIVALS_PEOPLE])
    for name, ms in ELSEWHERE.items():
        yield {"method": f"{name} (measured elsewhere)", "warm_cpu_ms_a_row": ms}


def sizes(cell: Cell, counts: Sequence[int]) -> Iterator[Row]:
    """Every method asked about ever more people in one call, the rivals up to `PEOPLE`."""
    for name in (*SIZED, *RIVALS):
        for count in counts:
            if name in SIZED or count <= PEOPLE:
                yield in_fresh_process(_size, cell, name, count)


def on_hosts() -> Iterator[Row]:
    """The hosts' own methods, where they are installed, one row a call as DiCE does it."""
    if find_spec("dice_ml"):
        people = scene(load_adult(), HOSTS_PEOPLE)
        for name in dice.METHODS:
            yield in_fresh_process(_on_dice, people, name)
    if find_spec("alibi"):
        people = scene(load_adult("full"), RIVALS_PEOPLE, without=["fnlwgt"])
        example = Example(steps=300, epochs=10)
        (line,) = in_fresh_process(alibi.cfrl_rows, people, example)
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
    """Time and memory with many features, a set for each, and with many levels."""
    for name in WIDE:
        yield in_fresh_process(_wide, name)


CHEAPEST = Search.cheapest()
# How DEAR is asked; each option of the two searches beside the other.
WAYS: dict[str, dict[str, Any]] = {
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
    """One of `WAYS`, not yet fitted."""
    options = dict(WAYS[name])
    model = BlackBox(cell.model, cell) if options.pop("black_box", False) else cell.model
    if options.pop("pairs", False):
        options["act_on"] = paired(cell.schema, None)
    return DEAR(model, cell.schema, **options)


def _way(cell: Cell, name: str, people: pd.DataFrame) -> Row:
    dear = _dear(cell, name)
    row = _timed(name, dear, cell, people)
    alone = singles_s(dear, people.iloc[:ALONE])
    return {**row, "one_person_cpu_ms": 1000.0 * float(np.median(alone))}


def singles_s(dear: DEAR, people: pd.DataFrame, rounds: int = 1) -> list[float]:
    """CPU seconds of people asked about one a call.

    Args:
        dear: fitted.
        people: the people.
        rounds: how often each is asked about and timed.
    """
    calls = [partial(dear.generate, people.iloc[[i]]) for i in range(len(people))]
    return [median_s(call, 1) for call in calls for _ in range(rounds)]


def _rival(cell: Cell, name: str, people: pd.DataFrame) -> Row:
    """A rival that trains all it needs, a VAE too."""
    stage = Stage(cell)
    row = _timed(name, CONTENDERS[name].learn(stage), cell, people)
    return {**row, "fit_cpu_s": stage.ready(CONTENDERS[name])[1]}


def _timed(name: str, method: Any, cell: Cell, people: pd.DataFrame) -> Row:
    """Fit, the first call and warm ones."""
    with Meter() as fit:
        method.fit(cell.train)
    with Meter() as first:
        found = method.generate(people)
    # Without the meter: it gives freed memory back, which a program that goes on keeps.
    warm = median_s(lambda: method.generate(people), REPEATS if isinstance(method, DEAR) else 1)
    return {
        "method": name,
        "rows": len(people),
        "success": float(found.outcome["success"].mean()),
        "fit_cpu_s": fit.cpu_s,
        "fit_peak_mib": fit.peak_mib,
        "first_cpu_ms": 1000.0 * first.cpu_s,
        "warm_cpu_ms": 1000.0 * warm,
        "warm_cpu_ms_a_row": 1000.0 * warm / len(people),
        "peak_mib": first.peak_mib,
    }


def _on_dice(people: Scene, name: str) -> Row:
    """One of DiCE's methods on a few rows."""
    with Meter() as whole:
        found = dice.Contest(people, dice.HELD[people.name]).incumbent(name)
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
    """DEAR in one of `WAYS`, or a rival; fitted."""
    if name in WAYS:
        return _dear(cell, name).fit(cell.train)
    return Stage(cell).ready(CONTENDERS[name])[0]


def _size(cell: Cell, name: str, count: int) -> Row:
    method = _method(cell, name)
    method.generate(people_of(cell, 10))
    people = people_of(cell, count)
    with Meter() as call:
        found = method.generate(people)
    # As in `_timed`: of few people, what the meter does to memory would be much of it.
    cpu_s = median_s(lambda: method.generate(people), 3) if count <= PEOPLE else call.cpu_s
    return {
        "method": name,
        "rows": count,
        "success": float(found.outcome["success"].mean()),
        "cpu_s": cpu_s,
        "cpu_us_a_row": 1e6 * cpu_s / count,
        "peak_mib": call.peak_mib,
        "data_mib": float(people.memory_usage(deep=True).sum()) / 2**20,
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
    people = frame[frame["x0"] <= 1.0].iloc[:PEOPLE]
    with Meter() as call:
        found = dear.generate(people)
    return {
        "data": name,
        "sets": len(dear.sets),
        "rows": len(people),
        "success": float(found.outcome["success"].mean()),
        "fit_cpu_s": fit.cpu_s,
        "fit_peak_mib": fit.peak_mib,
        "cpu_s": call.cpu_s,
        "peak_mib": call.peak_mib,
    }


def _above(frame: pd.DataFrame) -> Any:
    """A black box that looks at one feature."""
    return (frame["x0"] > 1.0).to_numpy(dtype=float)


def people_of(cell: Cell, count: int) -> pd.DataFrame:
    """Refused test rows, over and over where there are too few."""
    refused = cell.refused[list(cell.schema.names)]
    return refused.iloc[np.resize(np.arange(len(refused)), count)].reset_index(drop=True)
