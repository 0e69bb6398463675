"""What is computed at first access: a cached property, and values by key."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, Generic, Self, TypeVar, overload

import torch

from dear_plugin._threads import one_thread

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
