"""Gauge: how columns are measured for the networks and their losses."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEAST = 1e-3
# A value that this share of the rows has is one that people leave by a leap, not by degrees.
ATOM = 0.25


class ColumnScaler(nn.Module):
    """What the networks see of encoded columns, (..., d) -> (..., d), and back.

    Losses count scaled columns (mean 0, variance 1); the networks read them squashed, by asinh
    around the median: the bulk of a column with a heavy tail would otherwise be one point to them.
    Until it is set, both are the identity.

    Args:
        d: how many columns.
        squashing: squash at all.

    Attributes:
        atom: (d,) the encoded value that many people share, infinite where there is none.
        leap: (d,) how far from it the others are, on average.
    """

    centre: Tensor
    spread: Tensor
    middle: Tensor
    unit: Tensor
    atom: Tensor
    leap: Tensor

    def __init__(self, d: int, squashing: bool) -> None:
        super().__init__()
        self.squashing = squashing
        for name in ("centre", "middle"):
            self.register_buffer(name, torch.zeros(d))
        for name in ("spread", "unit", "leap"):
            self.register_buffer(name, torch.ones(d))
        self.register_buffer("atom", torch.full((d,), torch.inf))

    def set_by(self, x: Tensor, number: Tensor) -> None:
        """Measure training rows, (n, d); columns that are no number, (d,), are left alone."""
        self.centre.copy_(torch.where(number, x.mean(0), 0.0))
        self.spread.copy_(torch.where(number, x.std(0, correction=0).clamp_min(LEAST), 1.0))
        z = self.scale(x)
        self.middle.copy_(torch.where(number, z.median(0).values, 0.0))
        self.unit.copy_(torch.where(number, _typical((z - self.middle).abs()), 1.0))
        atom, leap = _atoms(x)
        self.atom.copy_(torch.where(number, atom, torch.inf))
        self.leap.copy_(torch.where(self.atom.isinf(), 1.0, leap))

    def scale(self, x: Tensor) -> Tensor:
        """Encoded columns as losses count them."""
        return (x - self.centre) / self.spread

    def unscale(self, z: Tensor) -> Tensor:
        """The inverse of `scale`."""
        return z * self.spread + self.centre

    def asinh_scale(self, z: Tensor, columns: Tensor | None = None) -> Tensor:
        """Scaled columns as the networks read them.

        Args:
            z: (..., d), or (s, n, w) where columns are given.
            columns: (s, w) which columns they are.
        """
        if not self.squashing:
            return z
        middle, unit = self.middle, self.unit
        if columns is not None:
            middle, unit = middle[columns][:, None], unit[columns][:, None]
        return torch.asinh((z - middle) / unit)


def _typical(gap: Tensor) -> Tensor:
    """(d,) the median distance of those who are away at all: half of the rows may not be."""
    away = torch.where(gap > LEAST**2, gap, torch.nan)
    return away.nanmedian(0).values.nan_to_num(1.0)


def _atoms(x: Tensor) -> tuple[Tensor, Tensor]:
    """(d,) the value of many, infinite where there is none, and the others' mean distance."""
    value = x.mode(0).values
    share = (x == value).float().mean(0)
    away = (x - value).abs().mean(0) / (1.0 - share)
    return torch.where((share >= ATOM) & (share < 1.0), value, torch.inf), away
