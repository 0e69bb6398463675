"""CPU seconds and memory of fit and generate, in a fresh process for each method.

The model is the paper's network for Adult; the table `kinds` has other models, on frames of
several widths. CPU seconds are measured, since machines are shared. Slow methods explain fewer
rows.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.benchmark.fits import BASELINES, baseline
from dear_plugin.benchmark.metrics import decision
from dear_plugin.benchmark.runner import Cell, Option, Spec, grid
from dear_plugin.benchmark.splits import (
    CELLS,
    NETWORKS,
    SETTINGS,
    TREES,
    DataSplit,
    ScoredModel,
    Setting,
    case_of,
    own_rules,
)
from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import Dataset
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import Search

# Rows in calls of one row, and repeats of a call of DEAR and of a baseline.
SINGLE_ROWS, REPEATS, FEW = 20, 3, 1
FEWER_ROWS = 100
# Rows of a call beside busy cores.
BESIDE_ROWS = 40
# The largest call that is repeated, and that baselines are measured on.
SMALL = 1_000
CHEAPEST = Search.cheapest()
# The lines of DEAR.
LINES: Mapping[str, Mapping[str, Any]] = {
    "DEAR": {},
    "DEAR, cheapest": {"search": CHEAPEST},
    "DEAR, pairs from the start": {"pairs": True},
    "DEAR, black box": {"black_box": True},
    "DEAR, cheapest, black box": {"black_box": True, "search": CHEAPEST},
    "DEAR, support 1": {"search": Search(min_support=1.0)},
}
# The method that is timed beside busy cores, and methods that explain all requested rows.
USUAL = "DEAR"
FAST = (USUAL, "DEAR, cheapest", "DEAR, black box", "DEAR, cheapest, black box")
# Columns of whole numbers that some parts lack.
COUNTS = ("columns", "acted on")
# The parts: calls of many rows and of one row, calls of several sizes, wide data, kinds of models.
METHODS, SIZES, WIDE_DATA, MODELS = "methods", "sizes", "wide", "kinds"


class BlackBox:
    """A module as a black box on frames that counts the rows that it scores.

    Args:
        model: a module that returns logits of encoded columns.
        encode: a function from frames to encoded columns.
    """

    def __init__(self, model: nn.Module, encode: Callable[[pd.DataFrame], Tensor]) -> None:
        self.model, self.encode, self.rows = model, encode, 0

    def __call__(self, frame: pd.DataFrame) -> Any:
        """The probabilities of class 1, (m,)."""
        self.rows += len(frame)
        with torch.no_grad():
            return torch.sigmoid(self.model(self.encode(frame)).double())[:, 0].numpy()


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MIB = 2.0**20
# A program that is busy until its parent ends.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@dataclass
class Meter:
    """CPU time and peak memory of a `with` block.

    Attributes:
        cpu_s: CPU seconds of all threads of this process.
        peak_mib: the peak memory above the level before. Only Linux can reset an earlier peak;
            elsewhere a rise below it is not measured.
    """

    cpu_s: float = float("nan")
    peak_mib: float = float("nan")
    _level: float = float("nan")
    _start: float = float("nan")

    def __enter__(self) -> Self:
        """Reset the peak and start."""
        gc.collect()
        _reset_peak()
        self._level, self._start = _peak(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        """Store both measurements."""
        self.cpu_s = time.process_time() - self._start
        self.peak_mib = _peak() - self._level


def median_s(
    work: Callable[[], object],
    repeats: int,
    *,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """The median seconds of repeats, CPU seconds by default; one more first call is not timed."""
    seconds = []
    for _ in range(repeats + 1):
        start = clock()
        work()
        seconds.append(clock() - start)
    return statistics.median(seconds[1:])


def one_row_ms(method: RecourseMethod, rows: pd.DataFrame) -> float:
    """The median CPU time of a call for one row, in ms; NaN for no rows."""
    calls = [partial(method.generate, rows.iloc[[i]]) for i in range(len(rows))]
    return 1000.0 * statistics.median([median_s(call, 1) for call in calls] or [math.nan])


def repeated(refused: pd.DataFrame, count: int) -> pd.DataFrame:
    """So many rejected rows, repeated if there are too few."""
    return refused.iloc[np.resize(np.arange(len(refused)), count)].reset_index(drop=True)


@contextmanager
def busy_cores() -> Iterator[None]:
    """A context in which another process keeps each core busy."""
    command = [sys.executable, "-c", BUSY]
    others = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def in_fresh_process(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """The result of a module-level function, called in a new process.

    Args:
        work: the function.
        *args: its arguments; they and the result must be picklable.
        **kwargs: its keyword arguments.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def _reset_peak() -> None:
    """Reset the peak to the present level, after returning freed memory; on Linux only."""
    switch = Path("/proc/self/clear_refs")
    if switch.exists():
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        switch.write_text("5", encoding="ascii")


def _peak() -> float:
    """The peak resident memory, MiB."""
    if sys.platform == "win32":
        return float("nan")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / MIB if sys.platform == "darwin" else most * 1024 / MIB


def cells(options: Namespace) -> Iterator[Cell]:
    """Every method on many rows; some on increasing numbers of rows; wide data."""
    common = {"cell": [options.cell]}
    for method in options.methods:
        rows = options.rows if method in FAST else min(options.rows, FEWER_ROWS)
        yield from grid(part=[METHODS], method=[method], rows=[rows], **common)
    sizes = [10**i for i in range(1, 7) if 10**i <= options.most]
    for method, rows in ((m, n) for m in options.sized for n in sizes):
        if method in LINES or rows <= SMALL:
            yield from grid(part=[SIZES], method=[method], rows=[rows], **common)
    few = [min(options.rows, FEWER_ROWS)]
    yield from grid(part=[WIDE_DATA], method=options.wide, rows=few, cell=[""])
    rows = [min(options.rows, KIND_ROWS)]
    yield from grid(part=[MODELS], method=options.kinds, rows=rows, cell=options.frames)


def measure(folder: Path, *, part: str, method: str, rows: int, cell: str) -> pd.DataFrame:
    """One line: the CPU time and memory of a method."""
    work = {METHODS: _timed, SIZES: _sized, WIDE_DATA: _wide, MODELS: _of_kind}[part]
    return pd.DataFrame([in_fresh_process(work, folder, method, rows, cell)])


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """A table for each part, with the columns that it has."""
    for part, own in found.groupby("part", sort=False):
        known = own.dropna(axis=1, how="all").columns.drop(["part", "cell"])
        own = own.astype({name: int for name in COUNTS if name in known})
        columns = sorted(known, key=lambda name: name not in ("method", "model", "rows"))
        yield ("speed" if part == METHODS else str(part)), own[columns].to_dict("records")


def _method(data: DataSplit, model: ScoredModel, name: str) -> RecourseMethod:
    """A line of DEAR that is not fitted, or a fitted baseline."""
    if name in BASELINES:
        return baseline(data, model, name)
    options = dict(LINES[name])
    if options.pop("pairs", False):
        names = data.act_on or data.schema.actionable
        options["act_on"] = [*names, *combinations(names, 2)]
    scores = model.model
    if options.pop("black_box", False):
        scores = BlackBox(scores, data.encoder.encode)
    return DEAR(scores, data.schema, **options)


def _timed(folder: Path, name: str, rows: int, cell: str) -> Row:
    """The times of the fit, of the first and later calls, and of calls of one row."""
    data, model = case_of(folder, cell)
    frame, train = repeated(model.refused, rows), data.parts[0]
    with Meter() as fit:
        method = _method(data, model, name).fit(train)
    with Meter() as first:
        found = method.generate(frame)
    sets = len(method.sets) if isinstance(method, DEAR) else 0
    box = method.classifier.model
    before, repeats = getattr(box, "rows", 0), REPEATS if sets else FEW
    # The meter returns freed memory to the system, which takes time.
    warm = median_s(lambda: method.generate(frame), repeats)
    evaluated = (getattr(box, "rows", 0) - before) / (repeats + 1)
    return {
        "success": float(found.actions["success"].mean()),
        "fit CPU-s": fit.cpu_s,
        "fit peak MiB": fit.peak_mib,
        "first call CPU-ms": 1000.0 * first.cpu_s,
        "later calls CPU-ms": 1000.0 * warm,
        "CPU-ms a row": 1000.0 * warm / rows,
        "peak MiB": first.peak_mib,
        "one row CPU-ms": one_row_ms(method, frame.iloc[: SINGLE_ROWS if sets else 0]),
        "model rows a row and feature": evaluated / (rows * sets) if evaluated else np.nan,
        "threads, beside busy cores": (
            _beside(partial(method.generate, frame.iloc[:BESIDE_ROWS]))
            if name == USUAL
            else np.nan
        ),
    }


def _beside(call: Callable[[], object]) -> float:
    """The wall time of a call with a thread for each core over that with one thread."""
    seconds = []
    with busy_cores():
        for count in (os.cpu_count() or 1, 1):
            torch.set_num_threads(count)
            seconds.append(median_s(call, REPEATS, clock=time.perf_counter))
    return seconds[0] / seconds[1]


def _sized(folder: Path, name: str, rows: int, cell: str) -> Row:
    """The time and memory of one call; up to 1,000 rows the median of three."""
    data, model = case_of(folder, cell)
    method = _method(data, model, name).fit(data.parts[0])
    method.generate(repeated(model.refused, 10))
    frame = repeated(model.refused, rows)
    with Meter() as call:
        found = method.generate(frame)
    # With few rows, the memory operations of the meter dominate.
    cpu_s = median_s(lambda: method.generate(frame), 3) if rows <= SMALL else call.cpu_s
    return {
        "success": float(found.actions["success"].mean()),
        "CPU-s": cpu_s,
        "CPU-us a row": 1e6 * cpu_s / rows,
        "peak MiB": call.peak_mib,
        "data MiB": float(frame.memory_usage(deep=True).sum()) / 2**20,
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


def _wide(folder: Path, name: str, rows: int, cell: str) -> Row:
    """The time and memory with many features, or with many categories."""
    frame = WIDE[name](np.random.default_rng(0))
    dear = DEAR(_above, Schema.infer(frame))
    with Meter() as fit:
        dear.fit(frame)
    rejected = frame[frame["x0"] <= 1.0].iloc[:rows]
    with Meter() as call:
        found = dear.generate(rejected)
    return {
        "sets": len(dear.sets),
        "success": float(found.actions["success"].mean()),
        "fit CPU-s": fit.cpu_s,
        "fit peak MiB": fit.peak_mib,
        "first call CPU-s": call.cpu_s,
        "peak MiB": call.peak_mib,
    }


def _above(frame: pd.DataFrame) -> Any:
    """A black box that uses one feature."""
    return (frame["x0"] > 1.0).to_numpy(dtype=float)


PIPELINE = "pipeline"
KINDS: Mapping[str, str] = {
    "linear, a module": "lr",
    "network": "ann",
    "boosted trees": TREES,
    "linear, a scikit-learn pipeline": PIPELINE,
}
# Rows of a call, rows in calls of one row; rows of the drawn frame.
KIND_ROWS, KIND_SINGLE, DRAWN = 200, 3, 5_000


def _drawn(count: int) -> Dataset:
    """A data set of numbers that share a cause; the sum of five of them decides."""
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(DRAWN, count)) + rng.normal(size=(DRAWN, 1))).round(3)
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(count)])
    good = (values[:, :5].sum(1) + rng.normal(size=DRAWN) > 2.0).astype(int)
    names = tuple(frame.columns)
    return Dataset(name="drawn", frame=frame.assign(good=good), target="good", act_on=names)


FRAMES: Mapping[str, Setting] = {
    "loan": SETTINGS["loan"],
    "adult": SETTINGS["adult-own"],
    "drawn": Setting("drawn", partial(_drawn, 25), (*NETWORKS, TREES), own_rules, "drawn"),
}


def _of_kind(folder: Path, name: str, rows: int, cell: str) -> Row:
    """The CPU times of calls of many rows and of one row, with a kind of model."""
    data = DataSplit(FRAMES[cell], folder)
    model, refused = _model_of(data, KINDS[name])
    frame = repeated(refused, rows)
    dear = DEAR(model, data.schema, act_on=data.act_on).fit(data.parts[0])
    with Meter() as first:
        found = dear.generate(frame)
    many = median_s(lambda: dear.generate(frame), FEW)
    return {
        "data": cell,
        "columns": len(data.schema),
        "acted on": len(data.act_on or data.schema.actionable),
        "success": float(found.actions["success"].mean()),
        "first call CPU-s": first.cpu_s,
        "CPU-ms a row": 1000.0 * many / rows,
        "one row CPU-ms": one_row_ms(dear, frame.iloc[:KIND_SINGLE]),
    }


def _model_of(data: DataSplit, kind: str) -> tuple[Any, pd.DataFrame]:
    """A model for `DEAR`, and the test rows that it rejects."""
    if kind != PIPELINE:
        scored = data.model(kind)
        return scored.model, scored.refused
    train, test = data.parts
    names = list(data.schema.names)
    model = _pipeline(train[names]).fit(train[names], train[data.data.target])
    return model, test[~decision(model, data.schema)(test)][names]


def _pipeline(frame: pd.DataFrame) -> Any:
    """A pipeline of dummies, scaled numbers and a logistic regression."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = list(frame.select_dtypes("number").columns)
    others = [name for name in frame.columns if name not in numbers]
    columns = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others)
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1_000))


ALL = (*LINES, *BASELINES)
QUICK = ("DEAR, cheapest", "DEAR, cheapest, black box", "nearest accepted")
SPEED = Spec(
    "speed",
    "CPU seconds and memory of fit and generate",
    {
        "methods": Option("methods", QUICK, ALL),
        "sized": Option("methods with increasing numbers of rows", QUICK[:1], ALL, ALL[:1]),
        "wide": Option("wide data", (), WIDE),
        "kinds": Option("kinds of models", (), KINDS),
        "frames": Option("frames of these models", ("loan",), FRAMES),
        "cell": Option("data set and classifier", "loan lr", CELLS, "adult ann"),
        "rows": Option("rows in a call", 4, preset=1_000),
        "most": Option("rows in the largest call", 10, preset=10_000),
    },
    cells,
    measure,
    tables,
)
