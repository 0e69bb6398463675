"""How work runs: in which threads, with which progress bars, and what is computed once.

DEAR's own operations run in one thread, the user's model in as many as the user has set. Small
operations gain little by threads. Beside processes that use the cores, the threads of each wait
for one another, and a call takes ten times as long.

Counts are set for the calling thread alone. `torch.set_num_threads` would also set that of every
thread that uses torch for the first time while another one is here, for as long as it lives.

A progress bar is shown where stderr is a terminal or a notebook.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import RLock
from typing import Any, Generic, Self, TypeVar, TypeVarTuple, overload

import torch
from threadpoolctl import ThreadpoolController

Ts = TypeVarTuple("Ts")


class _Thread(threading.local):
    """What is known of a thread.

    Attributes:
        counts: the user's counts, while its operations are DEAR's own; else None.
        stopped: whether each of the calls of `in_threads` around it was interrupted.
    """

    counts: tuple[list[int], int] | None = None
    stopped: tuple[threading.Event, ...] = ()


_THREAD = _Thread()


@contextmanager
def one_thread() -> Iterator[None]:
    """A context, or a decorator of functions, of operations of DEAR: one thread each.

    Not of a generator function, whose caller would be in the context, too.

    Example:
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    if _THREAD.counts is not None:
        yield
        return
    try:
        _enter()
        yield
    finally:
        try:
            _leave()
        except KeyboardInterrupt:  # interrupted while leaving: restore the counts first
            _leave()
            raise


@contextmanager
def users_threads() -> Iterator[None]:
    """A context within `one_thread` in which the counts are the user's, and may be set anew."""
    if _THREAD.counts is None:
        yield
        return
    try:
        _leave()
        yield
    finally:
        if _THREAD.counts is None:
            _enter()


def in_threads(call: Callable[[*Ts], T], items: Iterable[tuple[*Ts]], count: int) -> list[T]:
    """What a function makes of each of some arguments, in so many threads; -1 for all cores.

    Each is in `one_thread`, with the user's counts of this one. Where this call is interrupted, or
    one of them fails, the others end as soon as they come to `end_if_stopped`.
    """
    import joblib

    counts, before = _THREAD.counts, _THREAD.stopped
    stopped = *before, threading.Event()

    def _own(*args: *Ts) -> T:
        with one_thread():
            _THREAD.counts, _THREAD.stopped = counts or _THREAD.counts, stopped
            end_if_stopped()
            return call(*args)

    each = joblib.delayed(_own)
    try:
        found: list[T] = joblib.Parallel(count, backend="threading")(each(*args) for args in items)
    except BaseException:
        stopped[-1].set()
        raise
    finally:
        _THREAD.stopped = before
    return found


@contextmanager
def stopped_by(event: threading.Event) -> Iterator[None]:
    """A context whose work ends with a `KeyboardInterrupt`, as by Ctrl-C, once an event is set."""
    before, _THREAD.stopped = _THREAD.stopped, (*_THREAD.stopped, event)
    try:
        end_if_stopped()
        yield
    finally:
        _THREAD.stopped = before


def end_if_stopped() -> None:
    """End the work of a thread that was interrupted, or a call around it, see `in_threads`."""
    if any(each.is_set() for each in _THREAD.stopped):
        raise KeyboardInterrupt


def _enter() -> None:
    """Keep the counts of this thread, and set them to 1."""
    torch.get_num_threads()  # gives a new thread its count
    _THREAD.counts = [each.get_num_threads() for each in _openmp()], _mkl()(1)
    for each in _openmp():
        each.set_num_threads(1)


def _leave() -> None:
    """Restore the counts of this thread; idempotent."""
    if _THREAD.counts is not None:
        counts, of_mkl = _THREAD.counts
        for each, count in zip(_openmp(), counts, strict=True):
            each.set_num_threads(count)
        _mkl()(of_mkl)
        _THREAD.counts = None


@cache
def _openmp() -> list[Any]:
    """The libraries of OpenMP that are loaded, torch's and scikit-learn's among them."""
    openmp: list[Any] = ThreadpoolController().select(user_api="openmp").lib_controllers
    return openmp


@cache
def _mkl() -> Callable[[int], int]:
    """Sets the count of torch's MKL in this thread, and returns the former; 0 is OpenMP's.

    It is OpenMP's until somebody calls `torch.set_num_threads`.
    """
    own = getattr(ctypes.CDLL(torch._C.__file__), "MKL_Set_Num_Threads_Local", None)
    return own or (lambda count: count)


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

        def _step(item: Step) -> None:
            call(item)
            with lock:
                shown.at(next(done))

        if _COUNT.get() == 1 or len(items) < 2:
            for item in items:
                _step(item)
        else:
            in_threads(_step, ((item,) for item in items), _COUNT.get())


def _watched() -> bool:
    """Whether somebody sees what is written to stderr: in a terminal or a notebook."""
    terminal = getattr(sys.stderr, "isatty", bool)()
    return terminal or type(sys.stderr).__module__.startswith("ipykernel")


def _tqdm(**options: Any) -> Any:
    from tqdm.auto import tqdm

    # Without tqdm's thread, which redraws bars that stand still and outlives them.
    return type("Bar", (tqdm,), {"monitor_interval": 0})(**options)


T = TypeVar("T")


class lazy(Generic[T]):
    """`functools.cached_property` without a lock, as from Python 3.12 on.

    Python 3.11 holds a lock while it computes; a process forked in the meantime would wait for it
    for ever. Concurrent threads may compute the value twice here; all of them get the first one
    stored.

    Args:
        compute: the decorated method.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        # Without __set__, the instance's own attribute takes precedence from now on. The value
        # outlives the caller's inference mode and must not be an inference tensor.
        with torch.inference_mode(False), one_thread():
            value: T = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value


class Once:
    """Values by key, each computed once, also by threads that ask for it together.

    A copy, or what is read from a pickle, computes them again. A lock is of this process: the
    threads that hold its parent's never open it in a fork.

    Attributes:
        values: those that were computed.
    """

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self._locks: dict[Any, RLock] = {}

    def __getstate__(self) -> dict[str, Any]:
        """The state without values and locks."""
        return {"values": {}, "_locks": {}}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key; it outlives the caller's inference mode."""
        if key not in self.values:
            self._compute(key, make)
        value: T = self.values[key]
        return value

    def _compute(self, key: Hashable, make: Callable[[], object]) -> None:
        """Compute the value of a key, unless another thread does meanwhile."""
        own = os.getpid(), key
        try:
            with self._locks.setdefault(own, RLock()), torch.inference_mode(False):
                if key not in self.values:
                    self.values.setdefault(key, make())
        finally:
            self._locks.pop(own, None)
