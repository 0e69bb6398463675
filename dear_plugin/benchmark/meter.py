"""CPU time and peak memory of a block of code, and calls in a fresh process."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

import numpy as np
import pandas as pd

from dear_plugin.methods.base import RecourseMethod

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MIB = 2.0**20
REPEATS = 15
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
    repeats: int = REPEATS,
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
