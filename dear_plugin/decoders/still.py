"""Still: the decoder without indirect changes; rows in, the same rows with new x_S out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.registry import register
from dear_plugin.problem.action_sets import ActionSets


@register
class Still(Decoder):
    """Independent changes: no other feature moves when x_S moves."""

    def __init__(self) -> None:
        self._positions = torch.empty(0, 0, dtype=torch.int64)
        self._own = torch.empty(0, 1, 0, dtype=torch.bool)

    def settings(self) -> dict[str, Any]:
        """No settings."""
        return {}

    @classmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `settings`."""
        return cls(**settings)

    def tensors(self) -> dict[str, Tensor]:
        """No tensors: nothing is learned."""
        return {}

    def load_state(
        self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> None:
        """Keep the sets; nothing is learned."""
        self._positions = sets.positions
        self._own = sets.masks[:, encoder.feature_of][:, None]

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Keep the sets; nothing is learned."""
        self.load_state({}, encoder, sets)

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """No latents, (n, s, 0)."""
        return rows.new_empty(len(rows), len(self._positions), 0)

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """The rows with new values of x_S, (m, c, p); see `Decoder.decode`."""
        positions = self._positions[sets][:, None].expand(values.shape)
        return x[:, None].repeat(1, values.shape[1], 1).scatter_(2, positions, values)

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """The rows with the columns of S from a, (s, n, d); see `Decoder.follow`."""
        return torch.where(self._own, a, x)
