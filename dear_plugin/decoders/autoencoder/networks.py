"""Networks: e and g of all sets, and what they read of a row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.autoencoder.derivatives import mixed_derivatives
from dear_plugin.decoders.autoencoder.scaling import ColumnScaler
from dear_plugin.decoders.autoencoder.stack import StackedMLP
from dear_plugin.problem.action_sets import ActionSets


class Networks(nn.Module):
    """e and g of all s sets, of each e members of an ensemble; members are e stacks of s networks.

    Args:
        encoder: the gate, for the categorical blocks.
        sets: the s sets.
        layers: widths of e after its input, the last one is k; g mirrors it.
        activation: between layers.
        squashing: scale and squash columns, once the gauge is set.
        generator: of the initial weights.
        members: how many networks each set has.

    Attributes:
        k: how many latents a member has.
        mask: (e * s, 1, d) which columns are in S.
        columns: (e * s, w) the columns of S; a set of fewer names others in the rest.
        valid: (e * s, 1, w) which of these are its own.
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
        squashing: bool,
        generator: torch.Generator,
        members: int = 1,
    ) -> None:
        super().__init__()
        self.encoder, self.sets, self.k, self.members = encoder, sets, layers[-1], members
        own = sets.masks[:, encoder.feature_of].repeat(members, 1)
        s, d, w = len(own), encoder.d, int(own.sum(1).max())
        self.e = StackedMLP(s, (d, *layers), activation, generator)
        self.g = StackedMLP(s, (self.k + w, *layers[-2::-1], d), activation, generator)
        self.gauge = ColumnScaler(d, squashing)
        first = own.float().argsort(dim=1, descending=True, stable=True)[:, :w]
        self.register_buffer("columns", first)
        self.register_buffer("valid", own.gather(1, first)[:, None].float())
        self.register_buffer("mask", own[:, None].float())

    def known(self, x: Tensor) -> Tensor:
        """The latents of all members side by side, (n, d) -> (s, n, e * k)."""
        return self._beside(self.latents(x))

    def made(self, v: Tensor, x_s: Tensor) -> Tensor:
        """What all members make, side by side, (s, n, e * k) and (s, n, d) -> (s, n, e * d)."""
        e = self.members
        own = v.reshape(*v.shape[:2], e, self.k).permute(2, 0, 1, 3).flatten(0, 1)
        return self._beside(self.generate(own, x_s.expand(e, *x_s.shape).flatten(0, 1)))

    def alone(self, which: int) -> dict[str, Tensor]:
        """The parameters and buffers of one member."""
        own = slice(which * len(self.sets), (which + 1) * len(self.sets))
        state = self.state_dict().items()
        return {name: t if name.startswith("gauge.") else t[own].clone() for name, t in state}

    def _beside(self, stack: Tensor) -> Tensor:
        s = len(self.sets)
        return stack.view(self.members, s, *stack.shape[1:]).permute(1, 2, 0, 3).flatten(2)

    def latents(self, x: Tensor) -> Tensor:
        """`v = e(x)`, (n, d) or (e * s, n, d) -> (e * s, n, k)."""
        read = self.gauge.asinh_scale(self.gauge.scale(x))
        v: Tensor = self.e(read.expand(len(self.mask), *read.shape[-2:]))
        return v

    def generate(self, v: Tensor, x_s: Tensor) -> Tensor:
        """`g(v, x_S)` of a stack, (s, n, k) and (s, n, d) -> (s, n, d); of x_S it reads S."""
        return self.gauge.unscale(self.core(v, self.pick(self.gauge.scale(x_s))))

    def pick(self, z: Tensor) -> Tensor:
        """The columns of S, (s, n, d) -> (s, n, w)."""
        return z.gather(2, self._index(z)) * self.valid

    def seen(self, z_s: Tensor) -> Tensor:
        """Scaled columns of S as g reads them, (s, n, w)."""
        return self.gauge.asinh_scale(z_s, self.columns) * self.valid

    def core(self, v: Tensor, z_s: Tensor) -> Tensor:
        """What g is on scaled columns, (s, n, k) and (s, n, w) -> (s, n, d)."""
        raw = self.g(torch.cat([v, self.seen(z_s)], 2))
        return self._close(raw.scatter_add(2, self._index(raw), z_s))

    def entangled(self, x: Tensor) -> Tensor:
        """(s, n) mean |d2 g / dv dx_S| over outputs, latents and columns of S, at (s, n, d)."""

        def g(v: Tensor, a: Tensor) -> Tensor:
            return self.generate(v, x.scatter(2, self._index(x), a))

        mixed = mixed_derivatives(g, self.latents(x), self.pick(x), self.valid)
        return mixed.abs().mean((1, 4)).sum(0) / self.valid.sum(2)

    def _index(self, x: Tensor) -> Tensor:
        return self.columns[:, None].expand(-1, x.shape[1], -1)

    def _close(self, raw: Tensor) -> Tensor:
        """A softmax over every categorical block."""
        blocks = self.encoder.blocks.nonzero()[:, 0].tolist()
        if not blocks:
            return raw
        out = list(raw.split([f.columns for f in self.encoder.schema], -1))
        for j in blocks:
            out[j] = out[j].softmax(-1)
        return torch.cat(out, -1)
