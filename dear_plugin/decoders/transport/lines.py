"""Lines (step 6): locations and scales of smooth features; rows in, residuals and rows out.

A smooth feature moves by the change of its location and keeps its residual, rescaled:
`x_j' = x_j + (phi(a) - phi(x_S)) beta + v_j (exp((phi(a) - phi(x_S)) gamma) - 1)`; phi are the
terms of x_S (see `terms`), beta and gamma those of `least_squares`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.transport.terms import Terms, phi

# The largest logarithm of a scale.
MOST_SCALE = 1.5


@dataclass(frozen=True)
class Lines:
    """The locations of smooth features in r samples.

    Attributes:
        features: (f,) their positions.
        held: the held features, and
        beside: their terms.
        terms: of each feature of S.
        weights: (r, 1 + h + q, f) a constant, the weights of the held features' columns, and beta.
        scale: (q, f) gamma, of the sample itself.
    """

    features: Tensor
    held: list[int]
    beside: tuple[Terms, ...]
    terms: tuple[Terms, ...]
    weights: Tensor
    scale: Tensor

    @lazy
    def slope(self) -> Tensor:
        """(r, q, f) beta."""
        return self.weights[:, self.weights.shape[1] - len(self.scale) :]

    def residual(self, x: Tensor, own: Tensor, draws: Tensor) -> Tensor:
        """(r, m, f) what the locations of r samples, (r,), leave of rows.

        Args:
            x: (m, p) the rows.
            own: (m, w) their x_S.
            draws: (r,) the samples.
        """
        columns = torch.cat([phi(self.beside, x[:, self.held]), phi(self.terms, own)], 1)
        weights = self.weights[draws]
        return x.index_select(1, self.features) - columns @ weights[:, 1:] - weights[:, :1]

    def move(self, x: Tensor, v: Tensor, own: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(r, m, c, f) the values of the features when x_S changes.

        Args:
            x: (m, p) the rows.
            v: (r, m, f) their residuals.
            own: (m, w) their x_S.
            values: (m, c, w) the new ones.
            draws: (r,) the samples.
        """
        change = phi(self.terms, values) - phi(self.terms, own)[:, None]
        out = (change @ self.slope[draws, None]).add_(x[:, None, self.features])
        if self._scaled:
            scale = (change @ self.scale).clamp_(-MOST_SCALE, MOST_SCALE)
            out += v[:, :, None] * scale.expm1_()
        return out

    @lazy
    def _scaled(self) -> bool:
        return bool((self.scale != 0.0).any())
