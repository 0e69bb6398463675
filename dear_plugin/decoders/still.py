"""Still: the decoder without indirect changes; rows in, the same rows with new x_S out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dear_plugin.decoders.protocol import Decoder, Members
from dear_plugin.decoders.registry import register
from dear_plugin.decoders.sample import Sample


@register
class Still(Decoder):
    """Independent changes: no other feature moves when x_S moves."""

    def settings(self) -> dict[str, Any]:
        """No settings."""
        return {}

    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Keep the set; nothing is learned."""
        self._acted = list(acted)

    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """No latents, (m, 0)."""
        return x[:, :0]

    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """The rows with new values of x_S, (m, c, p); see `Decoder.decode`."""
        out = x[:, None].repeat(1, values.shape[1], 1)
        out[..., self._acted] = values
        return out
