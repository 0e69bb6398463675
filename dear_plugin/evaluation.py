"""Evaluation: a torch module's evaluation mode, shared by all threads that ask it at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


class _Askers:
    """How many are asking each module that somebody left in training mode.

    It counts modules one by one, for one network may be asked alone and inside another.
    """

    def __init__(self) -> None:
        self.counts: dict[nn.Module, int] = {}
        self.lock = threading.Lock()

    def enter(self, module: nn.Module) -> list[nn.Module]:
        """Switch a module to evaluation; what somebody has switched already is counted."""
        with self.lock:
            parts = [m for m in module.modules() if m.training or m in self.counts]
            for part in parts:
                self.counts[part] = self.counts.get(part, 0) + 1
                part.training = False
        return parts

    def leave(self, parts: list[nn.Module]) -> None:
        """Put the flags back that nobody else still needs."""
        with self.lock:
            while parts:
                part = parts.pop()
                self.counts[part] -= 1
                if not self.counts[part]:
                    del self.counts[part]
                    part.training = True

    def renew(self) -> None:
        """In a forked child only this thread lives on: nobody else would open the lock."""
        self.lock = threading.Lock()


_ASKERS = _Askers()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_ASKERS.renew)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while: dropout off, batch norm fixed; every flag is put back.

    The first of several threads switches it on and the last one off, so that none of them meets
    the dropout of another that has just finished.

    Args:
        module: any torch module, in training or not.
    """
    parts = _ASKERS.enter(module)
    try:
        yield
    finally:
        try:
            _ASKERS.leave(parts)
        except KeyboardInterrupt:  # it came on the way out: what is left is put back first
            _ASKERS.leave(parts)
            raise
