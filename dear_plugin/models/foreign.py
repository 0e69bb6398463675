"""Contexts in which the user's model is called, and a check that a module returns logits."""

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
# The running calls of each module that was in training mode, with their threads: by submodule,
# since a network may be called alone and inside another.
_CALLS: dict[nn.Module, dict[object, int]] = {}


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
    """End a call; idempotent."""
    with _LOCK:
        _keep(lambda other, _: other is not call)


def _keep(kept: Callable[[object, int], bool]) -> None:
    """Drop the other calls, and restore the flags that no call needs."""
    for part, calls in list(_CALLS.items()):
        _CALLS[part] = {call: thread for call, thread in calls.items() if kept(call, thread)}
        if not _CALLS[part]:
            part.training = True
            del _CALLS[part]


def _renew() -> None:
    """In a forked child, replace the lock and drop the calls of threads that do not exist."""
    global _LOCK
    _LOCK = threading.Lock()
    own = threading.get_ident()
    _keep(lambda _, thread: thread == own)


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def isolated(seed: int | None = None) -> Iterator[None]:
    """A context in which the output is hidden, and after which global generators are as before.

    Args:
        seed: of Python's, numpy's and torch's global generators in the context; None leaves their
            state.

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
    """The output of a module, checked to be logits by the functions called, not by its values.

    Args:
        call: calls the module.

    Raises:
        ModelError: the output is that of a sigmoid or a softmax.

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
            " say output='probabilities'"
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
        """The function that returned a tensor or one that it is a view of; "" if there is none."""
        if not isinstance(raw, Tensor):
            return ""
        memory = raw.untyped_storage().data_ptr()
        return next((n for n, o in self.outputs if o.untyped_storage().data_ptr() == memory), "")
