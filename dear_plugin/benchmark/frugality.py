"""Frugality: evaluations of the model, the machine's rate, one row per call, the import.

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
from dear_plugin.benchmark.speed import ROWS, BlackBox, refused_rows, singles_s
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.schema import Kind
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import Search

SIDE = 1024
# Rows that are explained one per call, and the number of calls for each.
SINGLES = 100
ROUNDS = 3
SEARCHES: Mapping[str, Search] = {"default": Search(), "cheapest": Search.cheapest()}


class CountingModel(nn.Module):
    """A model that counts its rows and calls.

    Args:
        model: the model.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.rows = self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        """The output of the model, (m, d) -> (m, c)."""
        self.rows, self.calls = self.rows + len(x), self.calls + 1
        output: Tensor = self.model(x)
        return output

    def count(self, work: Callable[[], object]) -> tuple[int, int]:
        """The numbers of rows and calls that some work evaluates."""
        self.rows = self.calls = 0
        work()
        return self.rows, self.calls


def frugality(cell: Cell) -> Iterator[Row]:
    """Evaluations, the machine's rate, one row per call, support and import."""
    return iter(in_fresh_process(_frugality, cell))


def _frugality(cell: Cell) -> list[Row]:
    frame = refused_rows(cell, ROWS)
    counting = CountingModel(cell.model)
    dear = DEAR(counting, cell.schema).fit(cell.train)
    timed = dear.with_model(cell.model)
    searches = {name: timed.with_search(search) for name, search in SEARCHES.items()}
    singles: dict[str, list[float]] = {name: [] for name in searches}
    _time_singles(singles, searches, frame)
    evaluated, _ = counting.count(lambda: dear.generate(frame))
    seconds = median_s(lambda: timed.generate(frame))
    rate, flops = _matrix_rate(), _flops(cell.model)
    _time_singles(singles, searches, frame)
    first, *later = (_support_s(dear, frame) for _ in range(REPEATS + 1))
    reference, own = (_import_s(code) for code in ("import torch, pandas", "import dear_plugin"))
    rows = list(_evaluations(cell, counting, frame))
    _time_singles(singles, searches, frame)
    return [
        *rows,
        {"quantity": "matrix products of this machine, GFLOP/s", "value": rate / 1e9},
        {"quantity": "share of that rate, default", "value": evaluated * flops / seconds / rate},
        *(row for name, found in singles.items() for row in _spread(name, found)),
        {"quantity": f"support of {ROWS:,} answers, CPU-ms", "value": 1000.0 * np.median(later)},
        {"quantity": "the same, the first time after fit", "value": 1000.0 * first},
        {"quantity": "import, relative to torch and pandas", "value": own / reference},
    ]


def _time_singles(
    singles: dict[str, list[float]], searches: Mapping[str, DEAR], frame: pd.DataFrame
) -> None:
    """Add the CPU seconds of rows in calls of their own, for each search."""
    for name, dear in searches.items():
        singles[name] += singles_s(dear, frame.iloc[:SINGLES], ROUNDS)


def _spread(name: str, singles: Sequence[float]) -> Iterator[Row]:
    slow, median, fast = np.quantile(singles, [0.9, 0.5, 0.1])
    yield {"quantity": f"one row per call, {name}, CPU-ms", "value": 1000.0 * median}
    yield {"quantity": "the same, 10th percentile", "value": 1000.0 * fast}
    yield {"quantity": "the same, 90th percentile", "value": 1000.0 * slow}


def _evaluations(cell: Cell, counting: CountingModel, frame: pd.DataFrame) -> Iterator[Row]:
    """The evaluated rows and the calls of a black box, for each search."""
    fitted = DEAR(BlackBox(counting, cell), cell.schema).fit(cell.train)
    for name, search in SEARCHES.items():
        dear, count = fitted.with_search(search), ROWS * len(fitted.sets)
        first, _ = counting.count(partial(dear.generate, frame))
        evaluated, calls = counting.count(partial(dear.generate, frame))
        yield {
            "quantity": f"evaluations of a black box, {name}, per row",
            "value": evaluated / ROWS,
            "of": f"{len(dear.sets)} sets",
        }
        yield {"quantity": "the same, per row and feature", "value": evaluated / count}
        yield {"quantity": "the same, once after fit, for all rows", "value": first - evaluated}
        yield {"quantity": f"calls for {ROWS:,} rows", "value": calls}
        alone = _evaluated_alone(
            cell, counting, frame.iloc[:SINGLES], replace(search, max_features=1)
        )
        for solved, name_of in ((True, "solved"), (False, "not solved")):
            counts = alone[alone["success"] == solved]["evaluated"]
            yield {"quantity": f"one numeric set alone, {name}, {name_of}", "value": counts.mean()}
            yield {"quantity": "the same, 90th percentile", "value": counts.quantile(0.9)}
            yield {"quantity": "the same, maximum", "value": counts.max()}


def _evaluated_alone(
    cell: Cell, counting: CountingModel, frame: pd.DataFrame, search: Search
) -> pd.DataFrame:
    """Evaluations of each row with one numeric feature to act on, and whether it is solved."""
    lines = []
    for feature in cell.schema:
        if feature.kind is not Kind.NUMERIC or feature.immutable:
            continue
        box = BlackBox(counting, cell)
        dear = DEAR(box, cell.schema, act_on=[feature.name], search=search).fit(cell.train)
        # The first call after fit also evaluates training rows.
        dear.generate(frame.iloc[[0]])
        for i in range(len(frame)):
            counting.rows = 0
            # Not `actions`, whose credibility evaluates the model again.
            solved = bool(dear.generate(frame.iloc[[i]]).outcome["success"].iloc[0])
            lines.append({"success": solved, "evaluated": counting.rows})
    return pd.DataFrame(lines)


def _support_s(dear: DEAR, frame: pd.DataFrame) -> float:
    """CPU seconds of the support of answers, without the search."""
    found = dear.generate(frame)
    with Meter() as meter:
        _ = found.support
    return meter.cpu_s


def _matrix_rate() -> float:
    """Floating-point operations per CPU second of a large matrix product."""
    a, b = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    return 2.0 * SIDE**3 / median_s(lambda: a @ b)


def _flops(model: nn.Module) -> float:
    """Multiplications and additions of one row."""
    return 2.0 * sum(p.numel() for p in model.parameters() if p.ndim == 2)


def _import_s(code: str) -> float:
    """CPU seconds of an import in a fresh interpreter, the minimum of three."""
    program = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    command = [sys.executable, "-c", program]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
    return min(float(run.stdout) for run in runs)
