"""Timed explainer: an explainer of DiCE with the CPU time of its calls and a time limit."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

# `genetic` may search its first generation without end; other methods need far less.
MOST_CPU_S = 120.0


@dataclass
class TimedExplainer:
    """An explainer of DiCE with measured calls.

    Attributes:
        explainer: the explainer.
        frozen: the features that must not change.
        seconds: CPU time of each call.
        changed: the number of frozen cells that its answers change.
    """

    explainer: Any
    frozen: tuple[str, ...]
    seconds: list[float] = field(default_factory=list)
    changed: int = 0

    @property
    def model(self) -> Any:
        """The explainer's model interface."""
        return self.explainer.model

    @property
    def data_interface(self) -> Any:
        """The explainer's data interface."""
        return self.explainer.data_interface

    def generate_counterfactuals(self, query: pd.DataFrame, **arguments: Any) -> Any:
        """The explainer's answer for one row."""
        start = time.process_time()
        try:
            with at_most(MOST_CPU_S):
                found = self.explainer.generate_counterfactuals(query, **arguments)
        finally:
            self.seconds.append(time.process_time() - start)
        for example in found.cf_examples_list:
            self.changed += differences(query, example, self.frozen)
        return found


def differences(query: pd.DataFrame, example: Any, frozen: Sequence[str]) -> int:
    """The number of frozen cells that a DiCE example changes."""
    sparse = example.final_cfs_df_sparse
    found = example.final_cfs_df if sparse is None else sparse
    if found is None or not len(found):
        return 0
    names = list(frozen)
    before, after = (frame[names].iloc[0].astype(str) for frame in (query, found))
    return int((before.to_numpy() != after.to_numpy()).sum())


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after some CPU seconds, where the platform supports it."""
    main = threading.current_thread() is threading.main_thread()
    if not (main and hasattr(signal, "setitimer")):
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError(f"no answer within {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
