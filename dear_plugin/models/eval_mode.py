"""Evaluation mode of torch modules, shared by all threads that call a module at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import nn


@dataclass(frozen=True, eq=False)
class _Call:
    """One call of a module, in a thread."""

    thread: int = field(default_factory=threading.get_ident)


class _Calls:
    """The running calls of each module that was in training mode.

    They are kept per submodule, since a network may be called alone and inside another.
    """

    def __init__(self) -> None:
        self.of: dict[nn.Module, set[_Call]] = {}
        self.lock = threading.Lock()

    def enter(self, call: _Call, module: nn.Module) -> None:
        """Switch a module to evaluation mode and register the call."""
        with self.lock:
            for part in [m for m in module.modules() if m.training or m in self.of]:
                self.of.setdefault(part, set()).add(call)
                part.training = False

    def leave(self, call: _Call) -> None:
        """Remove a call, and restore the flags that no other call needs; idempotent."""
        with self.lock:
            self._keep(lambda other: other is not call)

    def renew(self) -> None:
        """In a forked child, replace the lock and drop the calls of threads that do not exist."""
        self.lock = threading.Lock()
        current = threading.get_ident()
        self._keep(lambda call: call.thread == current)

    def _keep(self, kept: Callable[[_Call], bool]) -> None:
        for part, calls in list(self.of.items()):
            left = {call for call in calls if kept(call)}
            if left:
                self.of[part] = left
            else:
                part.training = True
                del self.of[part]


_CALLS = _Calls()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_CALLS.renew)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A context in which a module is in evaluation mode; every training flag is restored.

    The first of several threads switches it on and the last one off, so that dropout stays off for
    all of them. A forked child keeps the flags that its own thread needs.

    Args:
        module: any torch module, in training mode or not.

    Example:
        >>> dropout = nn.Dropout()
        >>> with evaluating(dropout):
        ...     dropout.training
        False
    """
    call = _Call()
    try:
        _CALLS.enter(call, module)
        yield
    finally:
        try:
            _CALLS.leave(call)
        except KeyboardInterrupt:  # interrupted while leaving: restore the flags first
            _CALLS.leave(call)
            raise
