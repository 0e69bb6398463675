"""Watched: an explainer of DiCE whose calls are timed, stopped and looked at."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

# `genetic` may look for its first generation for ever; nothing else comes near this.
MOST_CPU_S = 120.0


@dataclass
class Watched:
    """An explainer of DiCE, its calls watched.

    Attributes:
        explainer: who answers.
        held: the features that are not to change.
        seconds: CPU time of each call.
        changed: how many held cells its own answers changed.
    """

    explainer: Any
    held: tuple[str, ...]
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
        """The explainer's answer to one row."""
        start = time.process_time()
        try:
            with at_most(MOST_CPU_S):
                found = self.explainer.generate_counterfactuals(query, **arguments)
        finally:
            self.seconds.append(time.process_time() - start)
        for example in found.cf_examples_list:
            self.changed += differences(query, example, self.held)
        return found


def differences(query: pd.DataFrame, example: Any, held: Sequence[str]) -> int:
    """How many held cells a DiCE example changes."""
    sparse = example.final_cfs_df_sparse
    found = example.final_cfs_df if sparse is None else sparse
    if found is None or not len(found):
        return 0
    names = list(held)
    before, after = (frame[names].iloc[0].astype(str) for frame in (query, found))
    return int((before.to_numpy() != after.to_numpy()).sum())


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Stop what takes more CPU time, where the platform can."""
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
