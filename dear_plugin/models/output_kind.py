"""Ending: whether a torch module made its answer with a sigmoid or a softmax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from dear_plugin.errors import ModelError

# How they are called on their way to torch, however the module calls them.
SQUASHING = ("sigmoid", "sigmoid_", "special_expit", "expit", "softmax")


def logits_of(ask: Callable[[], Any]) -> Any:
    """What a module answers that has not said what it returns.

    It watches how the answer is made; the values say nothing.

    Args:
        ask: the call of the module.

    Raises:
        ModelError: the answer is what a sigmoid or a softmax gave: these are no logits.
    """
    with _Watch() as watch:
        raw = ask()
    maker = watch.maker(raw)
    if maker:
        raise ModelError(
            f"the module ends in a {maker}, and what a module returns is read as logits unless it"
            " is said to be something else: say output='probabilities'"
        )
    return raw


class _Watch(TorchFunctionMode):
    """Remembers what squashing functions gave; it holds in this thread alone."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, Tensor]] = []

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
            self.made.append((name.strip("_").removeprefix("special_"), out))
        return out

    def maker(self, raw: Any) -> str:
        """The function that gave an answer or that of which it is a view; "" where none did."""
        if not isinstance(raw, Tensor):
            return ""
        home = raw.untyped_storage().data_ptr()
        return next((n for n, o in self.made if o.untyped_storage().data_ptr() == home), "")
