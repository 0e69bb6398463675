"""Frugality: how often the model is asked, the machine's rate, one person alone, the import.

A part of `python -m dear_plugin.benchmark speed`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.benchmark.meter import REPEATS, Meter, in_fresh_process, median_s
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.benchmark.speed import PEOPLE, people_of
from dear_plugin.benchmark.tables import Row
from dear_plugin.dear import DEAR
from dear_plugin.schema import Kind
from dear_plugin.search import Search

SIDE = 1024


class Counted(nn.Module):
    """A model that counts the rows it is asked about.

    Args:
        model: who answers.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.rows = model, 0

    def forward(self, x: Tensor) -> Tensor:
        """The model's answer, (m, d) -> (m, c)."""
        self.rows += len(x)
        answer: Tensor = self.model(x)
        return answer


def frugality(cell: Cell) -> Iterator[Row]:
    """What else is promised: evaluations, the machine's rate, one person, import."""
    return iter(in_fresh_process(_frugality, cell))


def _frugality(cell: Cell) -> list[Row]:
    people = people_of(cell, PEOPLE)
    counted = Counted(cell.model)
    dear = DEAR(counted, cell.schema).fit(cell.train)
    dear.generate(people)
    counted.rows = 0
    dear.generate(people)
    asked = counted.rows
    timed, one = dear.with_model(cell.model), people.iloc[:1]
    seconds = median_s(lambda: timed.generate(people))
    rate, flops = _matrix_rate(), _flops(cell.model)
    single = median_s(lambda: timed.generate(one), 5 * REPEATS)
    first, *later = (_support_s(dear, people) for _ in range(REPEATS + 1))
    plain, ours = (_import_s(code) for code in ("import torch, pandas", "import dear_plugin"))
    sets, alone = len(dear.sets), _asked_alone(cell, counted, people)
    return [
        {"what": "model evaluations a person", "measured": asked / PEOPLE, "of": f"{sets} sets"},
        {"what": "model evaluations a person and set", "measured": asked / PEOPLE / sets},
        {"what": "the same, one numeric set alone, solved", "measured": alone[True]},
        {"what": "the same, one numeric set alone, not solved", "measured": alone[False]},
        {"what": "matrix products of this machine, GFLOP/s", "measured": rate / 1e9},
        {"what": "share of that rate", "measured": asked * flops / seconds / rate},
        {"what": "one person, CPU-ms", "measured": 1000.0 * single},
        {"what": f"support of {PEOPLE:,} answers, CPU-ms", "measured": 1000.0 * np.median(later)},
        {"what": "the same, the first time after fit", "measured": 1000.0 * first},
        {"what": "import, times that of torch and pandas", "measured": ours / plain},
    ]


def _asked_alone(cell: Cell, counted: Counted, people: pd.DataFrame) -> dict[bool, float]:
    """Evaluations a person who may act on one number, of those whom it solves and the others."""
    asked, count = {True: 0, False: 0}, {True: 0, False: 0}
    for feature in cell.schema:
        if feature.kind is not Kind.NUMERIC or feature.immutable:
            continue
        dear = DEAR(counted, cell.schema, act_on=[feature.name], search=Search(groups=False))
        done = dear.fit(cell.train).generate(people).actions["success"]
        for solved in asked:
            part = people[done == solved]
            counted.rows = 0
            if len(part):
                dear.generate(part)
            asked[solved] += counted.rows
            count[solved] += len(part)
    return {solved: asked[solved] / max(count[solved], 1) for solved in asked}


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
