"""Threads: DEAR's own operations run in one thread, foreign code in as many as the user has set.

Small operations gain little by threads. Beside processes that use the cores, the threads of each
wait for one another, and a call takes ten times as long.

Counts are set for the calling thread alone. `torch.set_num_threads` would also set that of every
thread that uses torch for the first time while another one is here, for as long as it lives.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar, TypeVarTuple

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
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

    def own(*args: *Ts) -> T:
        with one_thread():
            _THREAD.counts, _THREAD.stopped = counts or _THREAD.counts, stopped
            end_if_stopped()
            return call(*args)

    each = joblib.delayed(own)
    try:
        found: list[T] = joblib.Parallel(count, backend="threading")(each(*args) for args in items)
    except BaseException:
        stopped[-1].set()
        raise
    finally:
        _THREAD.stopped = before
    return found


def end_if_stopped() -> None:
    """End a thread of `in_threads` whose call, or one around it, was interrupted."""
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
