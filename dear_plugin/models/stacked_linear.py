"""Chain: small linear layers one after another, multiplied out with people side by side.

A layer of few units is slow to multiply where each person's few numbers lie together: BLAS takes
half the time for the same products with the many people along memory. They may be added up in
another order, so the last digits may be others: it is for searching, not for what a user is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every

# From about so many units on a layer is as quick either way.
NARROW = 32
# They change every number by itself, wherever it lies in memory.
ELEMENTWISE = (
    nn.ELU,
    nn.GELU,
    nn.Hardtanh,
    nn.LeakyReLU,
    nn.ReLU,
    nn.SELU,
    nn.SiLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Tanh,
)
# They do nothing in evaluation.
IDLE = (nn.AlphaDropout, nn.Dropout, nn.Identity)


def links(model: nn.Module) -> Sequence[nn.Module]:
    """The layers of a module that is such a chain and nothing else; () if it is not."""
    layers = [] if _watched() else list(_layers(model))
    if not layers or type(layers[0]) is not nn.Linear or not all(map(_plain, layers)):
        return ()
    return [layer for layer in layers if type(layer) not in IDLE]


def chained(layers: Sequence[nn.Module], x: Tensor) -> Tensor:
    """What links make of encoded rows, (m, d) -> (m, c), in evaluation; x is only read."""
    across = x.t()
    for layer in layers:
        across = _DONE.get(type(layer), _changed)(layer, across)
    return across.t()


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """The layers of nested sequences in their order, one that stands there twice twice."""
    if type(module) is nn.Sequential and _untouched(module):
        for part in module:
            yield from _layers(part)
    else:
        yield module


def _plain(layer: nn.Module) -> bool:
    """Whether a layer does what its kind does, and may be asked otherwise."""
    known = type(layer) in _FORWARD and _untouched(layer)
    return known and (not isinstance(layer, nn.Linear) or _narrow(layer))


def _narrow(layer: nn.Linear) -> bool:
    """Whether a linear layer has few units, and weights that are no more than numbers."""
    units, own = layer.out_features, layer._parameters
    shapes = {"weight": (units, layer.in_features), "bias": (units,)}
    return (units <= NARROW and own.keys() == shapes.keys()) and all(
        each is None or (type(each) is nn.Parameter and each.shape == shapes[name])
        for name, each in own.items()
    )


def _untouched(module: nn.Module) -> bool:
    """Nobody listens to its calls or has put another `forward` in its place."""
    kind, listened = type(module), module._forward_hooks or module._forward_pre_hooks
    own = vars(module).keys().isdisjoint(("forward", "_call_impl"))
    as_ever = kind.forward is _FORWARD[kind] and kind.__call__ is _CALL
    return own and as_ever and not listened


def _watched() -> bool:
    """Whether somebody listens to all modules, or multiplies out in another way."""
    listened = every._global_forward_hooks or every._global_forward_pre_hooks
    return bool(listened) or nn.functional.linear is not _LINEAR


def _multiplied(layer: nn.Linear, across: Tensor) -> Tensor:
    """A linear layer of columns, (i, m) -> (o, m)."""
    if layer.bias is None:
        return layer.weight @ across
    return torch.addmm(layer.bias[:, None], layer.weight, across)


def _changed(layer: nn.Module, across: Tensor) -> Tensor:
    """An elementwise layer of columns, (o, m)."""
    changed: Tensor = layer(across)
    return changed


# What torch itself does, as it was when we came.
_CALL, _LINEAR = nn.Module.__call__, nn.functional.linear
_FORWARD: Mapping[type[nn.Module], Any] = {
    kind: kind.forward for kind in (nn.Linear, nn.Sequential, *ELEMENTWISE, *IDLE)
}
# What was multiplied out is nobody else's: what can be changed in place is.
_DONE: Mapping[type[nn.Module], Callable[[Any, Tensor], Tensor]] = {
    nn.Linear: _multiplied,
    nn.ReLU: lambda _, across: across.relu_(),
    nn.Sigmoid: lambda _, across: across.sigmoid_(),
    nn.Tanh: lambda _, across: across.tanh_(),
}
