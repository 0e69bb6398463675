"""Stack: s networks as one batched module, (s, n, a) -> (s, n, b)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

Generate = Callable[[Tensor, Tensor], Tensor]


class Tanh(nn.Module):
    """The hyperbolic tangent as a sigmoid, which torch computes several times faster on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        """Entry by entry."""
        return 2.0 * torch.sigmoid(2.0 * x) - 1.0


class StackedLinear(nn.Module):
    """s independent linear maps, (s, n, a) -> (s, n, b).

    Args:
        s: how many.
        a: columns in.
        b: columns out.
        generator: of the initial weights.
    """

    def __init__(self, s: int, a: int, b: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(a)
        weight = torch.rand(s, a, b, generator=generator) * 2.0 - 1.0
        shift = torch.rand(s, 1, b, generator=generator) * 2.0 - 1.0
        self.weight = nn.Parameter(weight * bound)
        self.bias = nn.Parameter(shift * bound)

    def forward(self, x: Tensor) -> Tensor:
        """One product for all networks."""
        return torch.baddbmm(self.bias, x, self.weight)


class StackedMLP(nn.Sequential):
    """s independent perceptrons, (s, n, layers[0]) -> (s, n, layers[-1]).

    Args:
        s: how many.
        layers: the width of every layer, input and output included.
        activation: between layers.
        generator: of the initial weights.
    """

    def __init__(
        self,
        s: int,
        layers: Sequence[int],
        activation: type[nn.Module],
        generator: torch.Generator,
    ) -> None:
        steps: list[nn.Module] = []
        for a, b in pairwise(layers):
            steps += [StackedLinear(s, a, b, generator), activation()]
        super().__init__(*steps[:-1])
