"""Bootstrap: a classifier trained again on rows drawn with replacement, several times at once."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from dear_plugin.benchmark.classifiers import HIDDEN, Kind, Recipe, trained


def retrained(
    kind: Kind, x: Tensor, labels: Tensor, how: Recipe, *, count: int, seed: int
) -> list[nn.Sequential]:
    """The same recipe on as many bootstrap samples, from other initial weights.

    The networks are trained as one stack: tiny ones cost their overhead, which they share.

    Args:
        kind: "ann" or "lr".
        x: (n, d) encoded training rows.
        labels: (n,) 0 or 1.
        how: the recipe.
        count: r, how many.
        seed: of samples, weights and batches; nothing global is seeded.
    """
    rng = torch.Generator().manual_seed(seed)
    stack = _Stack((x.shape[1], *HIDDEN[kind], 1), count, rng)
    optimiser = torch.optim.Adam(stack.parameters(), lr=how.rate)
    n = len(x)
    rows = torch.randint(n, (count, n), generator=rng)
    wanted, loss_of = labels.float(), nn.BCEWithLogitsLoss(reduction="none")
    for _ in range(how.epochs):
        order = torch.rand(count, n, generator=rng).argsort(1)
        for batch in rows.gather(1, order).split(how.batch, 1):
            optimiser.zero_grad(set_to_none=True)
            # A sum over networks of their own means: each learns as if it were alone.
            loss_of(stack(x[batch])[..., 0], wanted[batch]).mean(1).sum().backward()
            optimiser.step()
    return [stack.network(i, kind, x, labels, how) for i in range(count)]


class _Stack(nn.Module):
    """Several networks of the same shape, side by side.

    Args:
        widths: of the layers.
        count: r, how many networks.
        rng: draws the initial weights, PyTorch's own for linear layers.
    """

    def __init__(self, widths: tuple[int, ...], count: int, rng: torch.Generator) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for a, b in pairwise(widths):
            bound = 1.0 / math.sqrt(a)
            for kept, shape in ((self.weights, (count, a, b)), (self.biases, (count, 1, b))):
                drawn = torch.rand(shape, generator=rng)
                kept.append(nn.Parameter((2.0 * drawn - 1.0) * bound))

    def forward(self, x: Tensor) -> Tensor:
        """(r, m, d) -> (r, m, 1) logits."""
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            x = x if i == last else x.relu()
        return x

    def network(
        self, at: int, kind: Kind, x: Tensor, labels: Tensor, how: Recipe
    ) -> nn.Sequential:
        """One of them as a network of its own."""
        net = trained(kind, x[:1], labels[:1], replace(how, epochs=0))
        linear = [layer for layer in net if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            for layer, weight, bias in zip(linear, self.weights, self.biases, strict=True):
                layer.weight.copy_(weight[at].T)
                layer.bias.copy_(bias[at, 0])
        return net
