"""Meter: CPU time and memory of a stretch of work, in a process of its own where that matters."""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MIB = 2.0**20
REPEATS = 15


@dataclass
class Meter:
    """What the work inside a `with` costs.

    Attributes:
        cpu_s: CPU seconds of all threads of this process.
        peak_mib: how far memory rose above the level before. Where the system cannot forget an
            earlier peak (it can on Linux), a rise below that peak is not seen.
    """

    cpu_s: float = float("nan")
    peak_mib: float = float("nan")
    _level: float = float("nan")
    _start: float = float("nan")

    def __enter__(self) -> Self:
        """Forget what was before."""
        gc.collect()
        _forget()
        self._level, self._start = _highest(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        """Read both."""
        self.cpu_s = time.process_time() - self._start
        self.peak_mib = _highest() - self._level


def median_s(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median CPU seconds of some repeats, after one that is not counted."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds[1:])


def in_fresh_process(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """What a function of a module returns, called where nothing else was before.

    Args:
        work: the function.
        *args: its arguments, which travel by pickle, as its result does.
        **kwargs: more of them.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def _forget() -> None:
    """Let the highest level be the present one, freed memory given back: Linux can do that."""
    switch = Path("/proc/self/clear_refs")
    if switch.exists():
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        switch.write_text("5", encoding="ascii")


def _highest() -> float:
    """The highest level of resident memory, MiB."""
    if sys.platform == "win32":
        return float("nan")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / MIB if sys.platform == "darwin" else most * 1024 / MIB
