"""Frugality: how often the model is asked, the machine's rate, one person alone, the import.

A part of `python -m dear_plugin.benchmark speed`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.benchmark.meter import REPEATS, Meter, in_fresh_process, median_s
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.benchmark.speed import PEOPLE, BlackBox, people_of, singles_s
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.schema import Kind
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import Search

SIDE = 1024
# How many people are asked about one at a time, and how often all of them.
SINGLES = 100
ROUNDS = 3
SEARCHES: Mapping[str, Search] = {"default": Search(), "cheapest": Search.cheapest()}


class Counts(nn.Module):
    """A model that counts the rows it is asked about, and in how many calls.

    Args:
        model: who answers.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.rows = self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        """The model's answer, (m, d) -> (m, c)."""
        self.rows, self.calls = self.rows + len(x), self.calls + 1
        answer: Tensor = self.model(x)
        return answer

    def asked(self, work: Callable[[], object]) -> tuple[int, int]:
        """About how many rows some work asks it, and in how many calls."""
        self.rows = self.calls = 0
        work()
        return self.rows, self.calls


def frugality(cell: Cell) -> Iterator[Row]:
    """What else is promised: evaluations, the machine's rate, one person, import."""
    return iter(in_fresh_process(_frugality, cell))


def _frugality(cell: Cell) -> list[Row]:
    people = people_of(cell, PEOPLE)
    counted = Counts(cell.model)
    dear = DEAR(counted, cell.schema).fit(cell.train)
    timed = dear.with_model(cell.model)
    ways = {name: timed.with_search(search) for name, search in SEARCHES.items()}
    singles: dict[str, list[float]] = {name: [] for name in ways}
    _time_singles(singles, ways, people)
    asked, _ = counted.asked(lambda: dear.generate(people))
    seconds = median_s(lambda: timed.generate(people))
    rate, flops = _matrix_rate(), _flops(cell.model)
    _time_singles(singles, ways, people)
    first, *later = (_support_s(dear, people) for _ in range(REPEATS + 1))
    plain, ours = (_import_s(code) for code in ("import torch, pandas", "import dear_plugin"))
    rows = list(_evaluations(cell, counted, people))
    _time_singles(singles, ways, people)
    return [
        *rows,
        {"what": "matrix products of this machine, GFLOP/s", "measured": rate / 1e9},
        {"what": "share of that rate, default", "measured": asked * flops / seconds / rate},
        *(row for name, found in singles.items() for row in _spread(name, found)),
        {"what": f"support of {PEOPLE:,} answers, CPU-ms", "measured": 1000.0 * np.median(later)},
        {"what": "the same, the first time after fit", "measured": 1000.0 * first},
        {"what": "import, times that of torch and pandas", "measured": ours / plain},
    ]


def _time_singles(
    singles: dict[str, list[float]], ways: Mapping[str, DEAR], people: pd.DataFrame
) -> None:
    """Add the CPU seconds of people asked about one a call, each way."""
    for name, dear in ways.items():
        singles[name] += singles_s(dear, people.iloc[:SINGLES], ROUNDS)


def _spread(name: str, singles: Sequence[float]) -> Iterator[Row]:
    slow, median, quick = np.quantile(singles, [0.9, 0.5, 0.1])
    yield {"what": f"one person, {name}, CPU-ms", "measured": 1000.0 * median}
    yield {"what": "the same, a tenth is quicker than", "measured": 1000.0 * quick}
    yield {"what": "the same, a tenth is slower than", "measured": 1000.0 * slow}


def _evaluations(cell: Cell, counted: Counts, people: pd.DataFrame) -> Iterator[Row]:
    """About how many rows a black box is asked, and in how many calls, for each search."""
    fitted = DEAR(BlackBox(counted, cell), cell.schema).fit(cell.train)
    for name, search in SEARCHES.items():
        dear, count = fitted.with_search(search), PEOPLE * len(fitted.sets)
        first, _ = counted.asked(partial(dear.generate, people))
        asked, calls = counted.asked(partial(dear.generate, people))
        yield {
            "what": f"evaluations of a black box, {name}, a person",
            "measured": asked / PEOPLE,
            "of": f"{len(dear.sets)} sets",
        }
        yield {"what": "the same, a person and feature", "measured": asked / count}
        yield {"what": "the same, once after fit, for all people", "measured": first - asked}
        yield {"what": f"the same, in how many calls for {PEOPLE:,} people", "measured": calls}
        alone = _asked_alone(cell, counted, people.iloc[:SINGLES], replace(search, groups=False))
        for solved, said in ((True, "solved"), (False, "not solved")):
            counts = alone[alone["success"] == solved]["asked"]
            yield {"what": f"one numeric set alone, {name}, {said}", "measured": counts.mean()}
            yield {"what": "the same, nine of ten take at most", "measured": counts.quantile(0.9)}
            yield {"what": "the same, all take at most", "measured": counts.max()}


def _asked_alone(
    cell: Cell, counted: Counts, people: pd.DataFrame, search: Search
) -> pd.DataFrame:
    """Evaluations of each person who may act on one number, and whether it solves them."""
    told = []
    for feature in cell.schema:
        if feature.kind is not Kind.NUMERIC or feature.immutable:
            continue
        box = BlackBox(counted, cell)
        dear = DEAR(box, cell.schema, act_on=[feature.name], search=search).fit(cell.train)
        # What is asked about training rows, once after fit, is nobody's.
        dear.generate(people.iloc[[0]])
        for i in range(len(people)):
            counted.rows = 0
            # Not `actions`: what answers are worth is found out when these are looked at.
            done = bool(dear.generate(people.iloc[[i]]).outcome["success"].iloc[0])
            told.append({"success": done, "asked": counted.rows})
    return pd.DataFrame(told)


def _support_s(dear: DEAR, people: pd.DataFrame) -> float:
    """CPU seconds to read the support of answers, without finding them."""
    found = dear.generate(people)
    with Meter() as reading:
        _ = found.support
    return reading.cpu_s


def _matrix_rate() -> float:
    """Floating-point operations per CPU second of a large matrix product."""
    a, b = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    return 2.0 * SIDE**3 / median_s(lambda: a @ b)


def _flops(model: nn.Module) -> float:
    """Multiplications and additions of one row."""
    return 2.0 * sum(p.numel() for p in model.parameters() if p.ndim == 2)


def _import_s(code: str) -> float:
    """CPU seconds of an import in a fresh interpreter, the least of three."""
    told = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    command = [sys.executable, "-c", told]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
    return min(float(run.stdout) for run in runs)
