"""Lines (step 6): locations and scales of smooth features; rows in, residuals and rows out.

A smooth feature moves by the change of its location and keeps its residual, rescaled:
`x_j' = x_j + (phi(a) - phi(x_S)) beta + v_j (exp((phi(a) - phi(x_S)) gamma) - 1)`; phi are the
columns of x_S (`Columns.own`), beta and gamma those of `least_squares`. Sums are of doubles: their
order depends on the number of rows, and a row must be the same in every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.decoders.transport.columns import Columns

# The largest logarithm of a scale.
MOST_SCALE = 1.5


@dataclass(frozen=True)
class Lines:
    """The locations and scales of smooth features in r samples.

    Attributes:
        features: (f,) their positions.
        columns: phi, and those of the held features.
        held: (r, q, f) double, the weights of a constant and of the held features' columns.
        slope: (r, u, f) double, beta.
        scale: (r, u, f) double, gamma.
    """

    features: Tensor
    columns: Columns
    held: Tensor
    slope: Tensor
    scale: Tensor

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """Those of several regressions on the same columns as one."""
        weights = (
            torch.cat([getattr(each, name) for each in parts], 2)
            for name in ("held", "slope", "scale")
        )
        return cls(torch.cat([each.features for each in parts]), parts[0].columns, *weights)

    def residual(self, x: Tensor, draws: Tensor) -> Tensor:
        """(r, m, f) what the locations of r samples, (r,), leave of scaled rows, given (m, p)."""
        rows = self.columns.encoder.scaled(x)
        own = self._own(rows, rows[:, None, self.columns.acted])[:, 0]
        location = self.columns.always(rows) @ self.held[draws] + own @ self._slope[draws]
        return rows.index_select(1, self.features) - location

    def move(self, x: Tensor, v: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(r, m, c, f) the values of the features when x_S changes.

        Args:
            x: (m, p) the rows.
            v: (r, m, f) their residuals.
            values: (m, c, w) the new values of x_S.
            draws: (r,) the samples.
        """
        encoder, acted = self.columns.encoder, self.columns.acted
        rows = encoder.scaled(x)
        change = self._own(rows, encoder.scaled(values, acted))
        change = change - self._own(rows, rows[:, None, acted])
        out = change @ self._slope[draws, None]
        if self._scaled:
            scale = change @ self.scale[draws, None, : self._most]
            out += v[:, :, None] * scale.clamp_(-MOST_SCALE, MOST_SCALE).expm1_()
        return out.mul_(encoder.width[self.features]).add_(x[:, None, self.features])

    def follow(self, x: Tensor, reached: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(r, m, f) the values of the features when x_S and the earlier features change.

        Args:
            x: (m, p) the rows.
            reached: (r, m, p) the rows with the new values of the earlier features.
            values: (m, w) the new values of x_S.
            draws: (r,) the samples.
        """
        scaled, between = self.columns.encoder.scaled, self.columns.between
        moved = self.move(x, self.residual(x, draws), values[:, None], draws)[:, :, 0]
        there = between(scaled(reached.flatten(0, 1))).view(*reached.shape[:2], -1)
        change = (there - between(scaled(x))) @ self.held[draws, -there.shape[2] :]
        out: Tensor = moved + change * self.columns.encoder.width[self.features]
        return out

    def _own(self, x: Tensor, values: Tensor) -> Tensor:
        return self.columns.own(x, values, self._most)

    @lazy
    def _most(self) -> int:
        """How many columns of x_S are used, from the first on."""
        used = ((self.slope != 0.0) | (self.scale != 0.0)).any(2).any(0)
        return int(used.nonzero().max()) + 1 if bool(used.any()) else 1

    @lazy
    def _slope(self) -> Tensor:
        return self.slope[:, : self._most]

    @lazy
    def _scaled(self) -> bool:
        return bool((self.scale != 0.0).any())
