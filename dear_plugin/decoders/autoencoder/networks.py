"""Networks: the encoders e and decoders g of all sets, from encoded rows to encoded rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.autoencoder.derivatives import mixed_derivatives
from dear_plugin.decoders.autoencoder.scaling import ColumnScaler
from dear_plugin.decoders.autoencoder.stack import StackedMLP
from dear_plugin.problem.action_sets import ActionSets


class Networks(nn.Module):
    """e and g of s sets, for each of e ensemble members: e stacks of s networks.

    Args:
        encoder: the encoder, for the categorical blocks.
        sets: the s sets.
        layers: widths of e after its input, the last one is k; g mirrors it.
        activation: between layers.
        use_asinh: whether the networks read columns through asinh.
        generator: of the initial weights.
        members: how many networks each set has.

    Attributes:
        k: how many latents a member has.
        gauge: the scaling of columns; saved under this name.
        mask: (e * s, 1, d) which columns are in S.
        columns: (e * s, w) the columns of S; the rest of a smaller set is other columns.
        valid: (e * s, 1, w) which of these are the set's own.
    """

    mask: Tensor
    columns: Tensor
    valid: Tensor

    def __init__(
        self,
        encoder: Encoder,
        sets: ActionSets,
        *,
        layers: Sequence[int],
        activation: type[nn.Module],
        use_asinh: bool,
        generator: torch.Generator,
        members: int = 1,
    ) -> None:
        super().__init__()
        self.encoder, self.sets, self.k, self.members = encoder, sets, layers[-1], members
        own = sets.masks[:, encoder.feature_of].repeat(members, 1)
        s, d, w = len(own), encoder.d, int(own.sum(1).max())
        self.e = StackedMLP(s, (d, *layers), activation, generator)
        self.g = StackedMLP(s, (self.k + w, *layers[-2::-1], d), activation, generator)
        self.gauge = ColumnScaler(d, use_asinh)
        first = own.float().argsort(dim=1, descending=True, stable=True)[:, :w]
        self.register_buffer("columns", first)
        self.register_buffer("valid", own.gather(1, first)[:, None].float())
        self.register_buffer("mask", own[:, None].float())

    def member_latents(self, x: Tensor) -> Tensor:
        """The latents of all members, (n, d) -> (s, n, e * k)."""
        return self._concatenated(self.latents(x))

    def member_outputs(self, v: Tensor, x_s: Tensor) -> Tensor:
        """The outputs of all members, (s, n, e * k) and (s, n, d) -> (s, n, e * d)."""
        e = self.members
        own = v.reshape(*v.shape[:2], e, self.k).permute(2, 0, 1, 3).flatten(0, 1)
        return self._concatenated(self.generate(own, x_s.expand(e, *x_s.shape).flatten(0, 1)))

    def member_state(self, member: int) -> dict[str, Tensor]:
        """The parameters and buffers of one member."""
        own = slice(member * len(self.sets), (member + 1) * len(self.sets))
        state = self.state_dict().items()
        return {name: t if name.startswith("gauge.") else t[own].clone() for name, t in state}

    def latents(self, x: Tensor) -> Tensor:
        """`v = e(x)`, (n, d) or (e * s, n, d) -> (e * s, n, k)."""
        inputs = self.gauge.asinh_scale(self.gauge.scale(x))
        v: Tensor = self.e(inputs.expand(len(self.mask), *inputs.shape[-2:]))
        return v

    def generate(self, v: Tensor, x_s: Tensor) -> Tensor:
        """`g(v, x_S)` of a stack, (s, n, k) and (s, n, d) -> (s, n, d); of x_S it reads S."""
        return self.gauge.unscale(self.generate_scaled(v, self.gather(self.gauge.scale(x_s))))

    def gather(self, z: Tensor) -> Tensor:
        """The columns of S, (s, n, d) -> (s, n, w)."""
        return z.gather(2, self._index(z)) * self.valid

    def inputs(self, z_s: Tensor) -> Tensor:
        """Scaled columns of S as g reads them, (s, n, w)."""
        return self.gauge.asinh_scale(z_s, self.columns) * self.valid

    def generate_scaled(self, v: Tensor, z_s: Tensor) -> Tensor:
        """Scaled outputs of g, of scaled columns, (s, n, k) and (s, n, w) -> (s, n, d)."""
        raw = self.g(torch.cat([v, self.inputs(z_s)], 2))
        raw = raw.scatter_add(2, self._index(raw), z_s)
        return map_blocks(self.encoder, raw, lambda block: block.softmax(-1))

    def entanglement(self, x: Tensor) -> Tensor:
        """(s, n) mean |d2 g / dv dx_S| over outputs, latents and columns of S, at (s, n, d)."""

        def g(v: Tensor, a: Tensor) -> Tensor:
            return self.generate(v, x.scatter(2, self._index(x), a))

        mixed = mixed_derivatives(g, self.latents(x), self.gather(x), self.valid)
        return mixed.abs().mean((1, 4)).sum(0) / self.valid.sum(2)

    def _concatenated(self, stack: Tensor) -> Tensor:
        """(e * s, n, k) -> (s, n, e * k)."""
        s = len(self.sets)
        return stack.view(self.members, s, *stack.shape[1:]).permute(1, 2, 0, 3).flatten(2)

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
