"""Evaluation: a torch module's evaluation mode, shared by all threads that ask it at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import nn


@dataclass(frozen=True, eq=False)
class _Asker:
    """One who asks a module, in a thread."""

    thread: int = field(default_factory=threading.get_ident)


class _Askers:
    """Who is asking each module that somebody left in training mode.

    They are kept module by module, for one network may be asked alone and inside another.
    """

    def __init__(self) -> None:
        self.of: dict[nn.Module, set[_Asker]] = {}
        self.lock = threading.Lock()

    def enter(self, asker: _Asker, module: nn.Module) -> None:
        """Switch a module to evaluation; what somebody has switched already has one asker more."""
        with self.lock:
            for part in [m for m in module.modules() if m.training or m in self.of]:
                self.of.setdefault(part, set()).add(asker)
                part.training = False

    def leave(self, asker: _Asker) -> None:
        """Put the flags back that nobody else still needs; to leave twice is to leave."""
        with self.lock:
            self._only(lambda other: other is not asker)

    def renew(self) -> None:
        """In a forked child this thread alone lives on: nobody else opens the lock or leaves."""
        self.lock = threading.Lock()
        here = threading.get_ident()
        self._only(lambda asker: asker.thread == here)

    def _only(self, stays: Callable[[_Asker], bool]) -> None:
        for part, askers in list(self.of.items()):
            left = {asker for asker in askers if stays(asker)}
            if left:
                self.of[part] = left
            else:
                part.training = True
                del self.of[part]


_ASKERS = _Askers()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_ASKERS.renew)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while: dropout off, batch norm fixed; every flag is put back.

    The first of several threads switches it on and the last one off, so that none of them meets
    the dropout of another that has just finished. A child forked meanwhile has the flags that its
    own thread asked for.

    Args:
        module: any torch module, in training or not.
    """
    asker = _Asker()
    try:
        _ASKERS.enter(asker, module)
        yield
    finally:
        try:
            _ASKERS.leave(asker)
        except KeyboardInterrupt:  # it came on the way out: what is left is put back first
            _ASKERS.leave(asker)
            raise
