"""Still: the decoder without indirect changes; rows in, the same rows with new x_S out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dear_plugin.decoders.protocol import DifferentiableDecoder, Members, register
from dear_plugin.decoders.sample import Sample


@register
class Still(DifferentiableDecoder):
    """Independent changes: no other feature moves when x_S moves."""

    def settings(self) -> dict[str, Any]:
        """No settings."""
        return {}

    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Keep the set; nothing is learned."""
        of = sample.encoder.feature_of
        self._acted, self._own = list(acted), torch.isin(of, torch.tensor(acted))
        self._columns = torch.cat([(of == j).nonzero()[:, 0] for j in acted])

    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """No latents, (m, 0)."""
        return x[:, :0]

    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """The rows with new values of x_S, (m, c, p); see `Decoder.decode`."""
        out = x[:, None].repeat(1, values.shape[1], 1)
        out[..., self._acted] = values
        return out

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """The rows with the columns of S from a, (n, d); see `DifferentiableDecoder.follow`."""
        return torch.where(self._own, a, x)

    def jacobians(self, rows: Tensor, train: Tensor) -> tuple[Tensor, Tensor]:
        """One on the columns of S, zero elsewhere; see `DifferentiableDecoder.jacobians`."""
        given = torch.eye(len(self._own))[:, self._columns].repeat(len(rows), 1, 1)
        return given, torch.zeros_like(given)

    def latent_jacobians(self, rows: Tensor) -> Tensor:
        """There are no latents, (n, d, 0)."""
        return torch.zeros(len(rows), len(self._own), 0)

    def entanglement(self, rows: Tensor) -> Tensor:
        """Zeros, (n,)."""
        return torch.zeros(len(rows))
