"""lazy: a cached property, computed at first access."""

from __future__ import annotations

from collections.abc import Callable
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
