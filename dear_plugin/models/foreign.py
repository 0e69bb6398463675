"""Contexts around calls of the user's model, and a check that a module returns logits."""

from __future__ import annotations

import io
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dear_plugin._threads import users_threads
from dear_plugin.errors import ModelError

# The names of these functions as torch dispatches them.
SQUASHING = ("sigmoid", "sigmoid_", "special_expit", "expit", "softmax")

_LOCK = threading.Lock()
# The running calls, with their threads, of each submodule that was in training mode: a network may
# be called alone and inside another one.
_CALLS: dict[nn.Module, dict[object, int]] = {}


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A context in which a module is in evaluation mode; training flags are restored after it.

    The first of several threads starts evaluation mode and the last one ends it, so that dropout
    stays off for all. A forked child keeps the flags that its own thread needs.

    Args:
        module: a torch module, in training mode or not.

    Example:
        >>> dropout = nn.Dropout()
        >>> with evaluating(dropout):
        ...     dropout.training
        False
    """
    call = object()
    try:
        with _LOCK:
            for part in [m for m in module.modules() if m.training or m in _CALLS]:
                _CALLS.setdefault(part, {})[call] = threading.get_ident()
                part.training = False
        with users_threads():
            yield
    finally:
        try:
            _leave(call)
        except KeyboardInterrupt:  # interrupted while leaving: restore the flags first
            _leave(call)
            raise


def _leave(call: object) -> None:
    """End a call; a second time, do nothing."""
    with _LOCK:
        _keep(lambda other, _: other is not call)


def _keep(kept: Callable[[object, int], bool]) -> None:
    """Drop the calls that are not kept, and restore the flags that no call needs."""
    for part, calls in list(_CALLS.items()):
        _CALLS[part] = {call: thread for call, thread in calls.items() if kept(call, thread)}
        if not _CALLS[part]:
            part.training = True
            del _CALLS[part]


def _renew() -> None:
    """In a forked child, replace the lock and drop the calls of other threads."""
    global _LOCK
    _LOCK = threading.Lock()
    own = threading.get_ident()
    _keep(lambda _, thread: thread == own)


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def isolated(seed: int | None = None) -> Iterator[None]:
    """A context that hides output, and restores the states of global generators after it.

    Args:
        seed: the seed of Python's, numpy's and torch's global generators in the context; None
            keeps their states.

    Example:
        >>> with isolated(seed=0):
        ...     print("hidden")
    """
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with (
            torch.random.fork_rng(devices=[]),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
            users_threads(),
        ):
            if seed is not None:
                random.seed(seed)
                np.random.seed(seed)
                torch.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def logits_of(call: Callable[[], Any]) -> Any:
    """The output of a module, which must not be that of a sigmoid or a softmax.

    The check records the torch functions that are called; it does not depend on values.

    Args:
        call: a function that calls the module.

    Raises:
        ModelError: a sigmoid or a softmax returned the output.

    Example:
        >>> logits_of(lambda: torch.nn.Linear(2, 1)(torch.zeros(3, 2))).shape
        torch.Size([3, 1])
    """
    with _Recorder() as recorder:
        raw = call()
    source = recorder.source_of(raw)
    if source:
        raise ModelError(
            f"the module ends in a {source}, but outputs of modules are read as logits by default:"
            " state output='probabilities'"
        )
    return raw


class _Recorder(TorchFunctionMode):
    """Records the outputs of squashing functions in the current thread."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs: list[tuple[str, Tensor]] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in SQUASHING and isinstance(out, Tensor):
            self.outputs.append((name.strip("_").removeprefix("special_"), out))
        return out

    def source_of(self, raw: Any) -> str:
        """The recorded function that returned a tensor, or the base of this view; "" for none."""
        if not isinstance(raw, Tensor):
            return ""
        memory = raw.untyped_storage().data_ptr()
        return next((n for n, o in self.outputs if o.untyped_storage().data_ptr() == memory), "")
