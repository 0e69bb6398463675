"""Still: nothing else moves when x_S moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.problem.action_sets import ActionSets


class Still(Decoder):
    """Independent changes: a decoder that has nothing to learn."""

    def __init__(self) -> None:
        self._positions = torch.empty(0, 0, dtype=torch.int64)
        self._own = torch.empty(0, 1, 0, dtype=torch.bool)

    def settings(self) -> dict[str, Any]:
        """Nothing: there is nothing to set."""
        return {}

    @classmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `settings`."""
        return cls(**settings)

    def tensors(self) -> dict[str, Tensor]:
        """Nothing: nothing is learned."""
        return {}

    def load_state(
        self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> None:
        """Take note of the sets."""
        self._positions = sets.positions
        self._own = sets.masks[:, encoder.feature_of][:, None]

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Take note of the sets."""
        self.load_state({}, encoder, sets)

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """No latents, (n, s, 0): everything else stays as it is."""
        return rows.new_empty(len(rows), len(self._positions), 0)

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """The rows with new values of x_S, (m, c, p); see `Decoder.decode`."""
        positions = self._positions[sets][:, None].expand(values.shape)
        return x[:, None].repeat(1, values.shape[1], 1).scatter_(2, positions, values)

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """The rows with the columns of S from a, (s, n, d); see `Decoder.follow`."""
        return torch.where(self._own, a, x)
