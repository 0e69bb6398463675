"""Decoder: the protocol of g(v, x_S); fit, encode and decode for all sets S at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.redraws import Redraws, Refitted
from dear_plugin.errors import DearError
from dear_plugin.problem.action_sets import ActionSets


class Decoder(ABC):
    """Indirect changes that follow a change of x_S: an association, not a causal effect.

    A decoder is configured by its constructor and learns in `fit`. One batch may then hold any
    rows and any of the s sets. At `values = x_S`, `decode` returns x itself (if
    `keeps_factual`).

    Example:
        >>> from dear_plugin import Decoder, Transport
        >>> isinstance(Transport(ties="score"), Decoder)
        True
    """

    pair_features: ClassVar[int] = 12
    """How many features are combined to pairs for rows that no single feature solves."""

    @property
    def given_features(self) -> Tensor:
        """(h,) int64, the features that are conditioned on besides x_S, and do not move."""
        return torch.empty(0, dtype=torch.int64)

    @property
    def keeps_factual(self) -> bool:
        """Whether `decode` returns x itself at `values = x_S`, and not a reconstruction of it."""
        return True

    def clone_unfitted(self) -> Self:
        """An unfitted copy with the same settings."""
        return type(self).with_settings(self.settings())

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments as plain values for JSON."""

    @classmethod
    @abstractmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `settings`."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What `fit` learned, by name."""

    @abstractmethod
    def load_state(
        self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> None:
        """Load what another decoder learned; the inverse of `tensors`."""

    @abstractmethod
    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Learn from training rows, (n, p)."""

    @abstractmethod
    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The latents v of rows, (n, p) -> (n, s, k), one v per set.

        Args:
            rows: the factual rows.
            generator: breaks ties at random, where the decoder has ties; None takes the middle.
        """

    @abstractmethod
    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """The rows, (m, c, p), that follow when x_S takes each of c values.

        The search calls it in `torch.inference_mode`: tensors that a decoder keeps from a call
        cannot take part in a differentiation.

        Args:
            x: (m, p) the factual rows.
            v: (m, k) their latents for the set acted on.
            values: (m, c, w) the new values of the set's features, in `ActionSets.positions`
                order.
            sets: (m,) int64, the set acted on.
        """

    def redraws(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> Redraws:
        """This decoder as other samples of the same population might have given it.

        Args:
            rows: (n, p) the rows that it was fitted on.
            encoder: the encoder, and
            sets: the sets that it was fitted with.
        """
        return Refitted(self, rows, encoder, sets=sets)

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """The rows that follow, (s, n, d), differentiable in a; slice i is of set i.

        Args:
            x: (s, n, d) encoded factual rows.
            v: (s, n, k) their latents.
            a: (s, n, d) encoded rows, of which only the columns of S are read.

        Raises:
            DearError: a decoder without derivatives.
        """
        raise DearError(f"{type(self).__name__} has no derivatives; use decoder='autoencoder'")

    def jacobians(self, rows: Tensor, train: Tensor) -> list[tuple[Tensor, Tensor]] | None:
        """Exact derivatives of g along the q encoded columns of each set.

        Args:
            rows: (n, p) where to take them.
            train: (m, p) training rows, for the least-squares slope of v on x_S.

        Returns:
            For each set `dg / dx_S` at fixed v and `dg / dv` times that slope, (n, d, q) each;
            None for a decoder without derivatives.
        """
        return None

    def latent_jacobians(self, rows: Tensor) -> list[Tensor] | None:
        """`dg / dv` at rows, (n, p), for each set (n, d, k); None without derivatives."""
        return None

    def flip_probabilities(
        self, x: Tensor, values: Tensor, sets: Tensor
    ) -> dict[int, tuple[float, float]]:
        """The probability of the second value of each binary feature, by feature.

        It is evaluated at two values of x_S; at the first, the row's own, it is 0 or 1.

        Args:
            x: (1, p) the factual row.
            values: (1, 2, w) the values before and after the action.
            sets: (1,) the set acted on.
        """
        return {}

    def entanglement(self, rows: Tensor) -> Tensor:
        """(n, s) mean size of `d2 g / dv dx_S` over outputs; NaN without derivatives."""
        return torch.full((len(rows), len(self.encode(rows[:1])[0])), torch.nan)
