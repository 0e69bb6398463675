"""Networks: the paper's classifiers stored as weights, and retrained on bootstrap samples."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dear_plugin.demo.classifiers import HIDDEN, Kind, Recipe, recipe, trained


def network(
    path: Path, dataset: str, kind: Kind, x: Tensor, labels: Tensor, seed: int
) -> nn.Sequential:
    """A trained classifier, read from its file if that exists.

    Args:
        path: of its weights.
        dataset: whose recipe it has.
        kind: "ann" or "lr".
        x: (n, d) encoded training rows.
        labels: (n,) 0 or 1.
        seed: of weights and batches.
    """
    how, like = _like(dataset, kind, x, labels, seed)
    (found,) = _stored(path, like, lambda: [trained(kind, x, labels, how, seed)])
    return found


def networks_again(
    path: Path, dataset: str, kind: Kind, x: Tensor, labels: Tensor, seed: int, count: int
) -> list[nn.Sequential]:
    """As many classifiers trained on bootstrap samples; the other arguments are of `network`."""
    how, like = _like(dataset, kind, x, labels, seed)
    path = path.with_name(f"{path.stem}-again.safetensors")
    make = lambda: retrained(kind, x, labels, how, count=count, seed=seed)  # noqa: E731
    return _stored(path, like, make)


def retrained(
    kind: Kind, x: Tensor, labels: Tensor, recipe: Recipe, *, count: int, seed: int
) -> list[nn.Sequential]:
    """Classifiers of a recipe trained on bootstrap samples, with other initial weights.

    They are trained as one stack, since the time of small networks is mostly overhead per call.

    Args:
        kind: "ann" or "lr".
        x: (n, d) encoded training rows.
        labels: (n,) 0 or 1.
        recipe: the recipe.
        count: the number of classifiers (r).
        seed: of samples, weights and batches; global generators are not used.
    """
    rng = torch.Generator().manual_seed(seed)
    stack = _Stack((x.shape[1], *HIDDEN[kind], 1), count, rng)
    optimiser = torch.optim.Adam(stack.parameters(), lr=recipe.rate)
    n = len(x)
    rows = torch.randint(n, (count, n), generator=rng)
    y, loss_of = labels.float(), nn.BCEWithLogitsLoss(reduction="none")
    for _ in range(recipe.epochs):
        order = torch.rand(count, n, generator=rng).argsort(1)
        for batch in rows.gather(1, order).split(recipe.batch, 1):
            optimiser.zero_grad(set_to_none=True)
            # The sum over networks of their mean losses: their gradients do not interact.
            loss_of(stack(x[batch])[..., 0], y[batch]).mean(1).sum().backward()
            optimiser.step()
    like = trained(kind, x[:1], labels[:1], replace(recipe, epochs=0))
    return [stack.network(i, like) for i in range(count)]


class _Stack(nn.Module):
    """Networks of the same shape, evaluated in one batch.

    Args:
        widths: of the layers.
        count: the number of networks (r).
        rng: draws initial weights from PyTorch's distribution for linear layers.
    """

    def __init__(self, widths: tuple[int, ...], count: int, rng: torch.Generator) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for a, b in pairwise(widths):
            bound = 1.0 / math.sqrt(a)
            for parameters, shape in ((self.weights, (count, a, b)), (self.biases, (count, 1, b))):
                drawn = torch.rand(shape, generator=rng)
                parameters.append(nn.Parameter((2.0 * drawn - 1.0) * bound))

    def forward(self, x: Tensor) -> Tensor:
        """(r, m, d) -> (r, m, 1) logits."""
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            x = x if i == last else x.relu()
        return x

    def network(self, at: int, like: nn.Sequential) -> nn.Sequential:
        """One of them as a separate network."""
        net = copy.deepcopy(like)
        linear = [layer for layer in net if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            for layer, weight, bias in zip(linear, self.weights, self.biases, strict=True):
                layer.weight.copy_(weight[at].T)
                layer.bias.copy_(bias[at, 0])
        return net


def _like(
    dataset: str, kind: Kind, x: Tensor, labels: Tensor, seed: int
) -> tuple[Recipe, nn.Sequential]:
    """The recipe of a data set, and an untrained classifier."""
    how = recipe(dataset)
    return how, trained(kind, x[:1], labels[:1], replace(how, epochs=0), seed)


def _stored(
    path: Path, like: nn.Sequential, make: Callable[[], list[nn.Sequential]]
) -> list[nn.Sequential]:
    """Networks from a file, which is written if it does not exist."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        nets = enumerate(make())
        save_file({f"{i}.{k}": v for i, net in nets for k, v in net.state_dict().items()}, path)
    weights = load_file(path)
    read = []
    for i in range(1 + max(int(name.partition(".")[0]) for name in weights)):
        net, prefix = copy.deepcopy(like), f"{i}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        net.load_state_dict(own)
        read.append(net.eval())
    return read
