"""The encoders e and decoders g of s fits, perceptrons in one batched module."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.protocol import Members
from dear_plugin.paper.autoencoder.design import ACTIVATIONS, Design
from dear_plugin.paper.autoencoder.scaling import ColumnScaler


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


class Networks(nn.Module):
    """e and g of s action sets.

    Args:
        encoder: the encoder, for the categorical blocks.
        sets: the features of each of the s sets.
        scaler: the scaling of columns of each set's own training rows.
        design: the layers, of which the last one is k, and the activation.
        generator: of the initial weights.

    Attributes:
        k: the number of latents.
        mask: (s, 1, d) which columns are in S.
        columns: (s, w) the columns of S; the rest of a smaller set is other columns.
        valid: (s, 1, w) which of these are the set's own.
    """

    mask: Tensor
    columns: Tensor
    valid: Tensor

    def __init__(
        self,
        encoder: Encoder,
        sets: Sequence[Members],
        scaler: ColumnScaler,
        design: Design,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        layers, activation = design.layers, ACTIVATIONS[design.activation]
        self.encoder, self.k = encoder, layers[-1]
        own = torch.stack([torch.isin(encoder.feature_of, torch.tensor(m)) for m in sets])
        s, d, w = len(own), encoder.d, int(own.sum(1).max())
        self.e = StackedMLP(s, (d, *layers), activation, generator)
        self.g = StackedMLP(s, (self.k + w, *layers[-2::-1], d), activation, generator)
        self.scaler = scaler
        first = own.float().argsort(dim=1, descending=True, stable=True)[:, :w]
        self.register_buffer("columns", first)
        self.register_buffer("valid", own.gather(1, first)[:, None].float(), persistent=False)
        self.register_buffer("mask", own[:, None].float(), persistent=False)

    def state_of(self, i: int) -> dict[str, Tensor]:
        """The parameters and buffers of one set, as if it had been the only one."""
        width = int(self.valid[i].sum())
        state = {name: t[i : i + 1].clone() for name, t in self.state_dict().items()}
        # The columns that the set does not have are zero: their weights have no effect.
        narrowed = {
            "columns": state["columns"][:, :width],
            "g.0.weight": state["g.0.weight"][:, : self.k + width],
        }
        return {**state, **narrowed}

    def encoded(self, rows: Tensor) -> Tensor:
        """Rows, (..., p), as encoded columns, (..., d), in the dtype of the parameters."""
        return self.encoder.expand(rows).to(self.valid)

    def latents(self, x: Tensor) -> Tensor:
        """`v = e(x)`, (n, d) or (s, n, d) -> (s, n, k)."""
        v: Tensor = self.e(self.scaler.asinh_scale(self.scaler.scale(x)))
        return v

    def generate(self, v: Tensor, x_s: Tensor) -> Tensor:
        """`g(v, x_S)`, (s, n, k) and (n, d) or (s, n, d) -> (s, n, d); of x_S it reads S."""
        return self.scaler.unscale(self.generate_scaled(v, self.gather(self.scaler.scale(x_s))))

    def gather(self, z: Tensor) -> Tensor:
        """The columns of S, (s, n, d) -> (s, n, w)."""
        return z.gather(2, self._index(z)) * self.valid

    def inputs(self, z_s: Tensor) -> Tensor:
        """Scaled columns of S as g reads them, (s, n, w)."""
        return self.scaler.asinh_scale(z_s, self.columns) * self.valid

    def generate_scaled(self, v: Tensor, z_s: Tensor) -> Tensor:
        """Scaled outputs of g, of scaled columns, (s, n, k) and (s, n, w) -> (s, n, d)."""
        raw = self.g(torch.cat([v, self.inputs(z_s)], 2))
        raw = raw.scatter_add(2, self._index(raw), z_s)
        return map_blocks(self.encoder, raw, lambda block: block.softmax(-1))

    def _index(self, x: Tensor) -> Tensor:
        return self.columns[:, None].expand(-1, x.shape[1], -1)


def map_blocks(encoder: Encoder, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Encoded columns, (..., d), with a function applied to every categorical block."""
    blocks = encoder.blocks.nonzero()[:, 0].tolist()
    if not blocks:
        return x
    parts = list(x.split([f.columns for f in encoder.schema], -1))
    for j in blocks:
        parts[j] = function(parts[j])
    return torch.cat(parts, -1)
