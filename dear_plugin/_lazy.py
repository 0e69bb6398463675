"""lazy: an attribute that is computed when it is first looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

import torch

T = TypeVar("T")


class lazy(Generic[T]):
    """`functools.cached_property` as it is from Python 3.12 on: without a lock.

    That of 3.11 holds one while it computes. A process forked meanwhile inherits it closed, with
    nobody to open it, and waits for ever. Threads that look at the same moment may compute twice
    here; what the first of them stored is what all get.

    Args:
        compute: the method that it decorates.
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
        # The descriptor has no __set__: what lies in the instance is found before it. A value
        # outlives whoever looks first, and is not marked by the inference mode they may be in.
        with torch.inference_mode(False):
            value: T = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value
