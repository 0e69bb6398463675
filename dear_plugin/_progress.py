"""Progress: bars of work that takes seconds, and work in threads.

A bar is shown where stderr is a terminal or a notebook.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeVar

from dear_plugin._threads import end_if_stopped, in_threads

Step = TypeVar("Step")

# Seconds before a bar appears: short work shows none.
DELAY = 2.0
# The number of threads that fit.
_COUNT: ContextVar[int] = ContextVar("count", default=1)
_WANTED: ContextVar[bool] = ContextVar("wanted", default=True)


@contextmanager
def progress(wanted: bool) -> Iterator[None]:
    """A context in which bars are shown, unless they are not `wanted` in it or around it."""
    token = _WANTED.set(wanted and _WANTED.get())
    try:
        yield
    finally:
        _WANTED.reset(token)


class Bar:
    """How much of some work is done, once it has taken two seconds.

    Args:
        total: the number of its steps.
        what: is being done, in a few words.
        shown: at once, wherever stderr goes.
    """

    def __init__(self, total: int, what: str, *, shown: bool = False) -> None:
        self._total, self._what = total, what
        self._bar: Any = None
        self._wanted = shown or (_WANTED.get() and _watched())
        self._from = time.monotonic() + (0.0 if shown else DELAY)

    def at(self, done: int) -> None:
        """So many steps are done; work in a thread whose call was interrupted ends here."""
        end_if_stopped()
        if self._bar is None and self._wanted and time.monotonic() >= self._from:
            self._bar = _tqdm(total=self._total, desc=self._what, leave=False)
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def __enter__(self) -> Self:
        """The work begins."""
        return self

    def __exit__(self, *_: object) -> None:
        """It ends, and the bar is taken away."""
        if self._bar is not None:
            self._bar.close()


def bar(items: Sequence[Step], what: str, *, shown: bool = False) -> Iterator[Step]:
    """Items one by one, with a bar; the arguments are those of `Bar`."""
    with Bar(len(items), what, shown=shown) as known:
        for i, item in enumerate(items):
            known.at(i)
            yield item


@contextmanager
def fitting(count: int) -> Iterator[None]:
    """A context in which `each_in_threads` has so many of them."""
    token = _COUNT.set(count)
    try:
        yield
    finally:
        _COUNT.reset(token)


def each_in_threads(call: Callable[[Step], object], items: Sequence[Step], what: str) -> None:
    """Call a function with each item, in the threads of `fitting`, with a bar."""
    done, lock = itertools.count(1), threading.Lock()
    with Bar(len(items), what) as shown:

        def step(item: Step) -> None:
            call(item)
            with lock:
                shown.at(next(done))

        if _COUNT.get() == 1 or len(items) < 2:
            for item in items:
                step(item)
        else:
            in_threads(step, ((item,) for item in items), _COUNT.get())


def _watched() -> bool:
    """Whether somebody sees what is written to stderr: in a terminal or a notebook."""
    terminal = getattr(sys.stderr, "isatty", bool)()
    return terminal or type(sys.stderr).__module__.startswith("ipykernel")


def _tqdm(**options: Any) -> Any:
    from tqdm.auto import tqdm

    # Without tqdm's thread, which redraws bars that stand still and outlives them.
    return type("Bar", (tqdm,), {"monitor_interval": 0})(**options)
