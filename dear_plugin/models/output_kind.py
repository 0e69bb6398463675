"""Output kind: detects whether a torch module's output comes from a sigmoid or a softmax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from dear_plugin.errors import ModelError

# The names of these functions as torch dispatches them.
SQUASHING = ("sigmoid", "sigmoid_", "special_expit", "expit", "softmax")


def logits_of(call: Callable[[], Any]) -> Any:
    """The output of a module, checked to be logits by the functions called, not by its values.

    Args:
        call: calls the module.

    Raises:
        ModelError: the output is that of a sigmoid or a softmax.
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
