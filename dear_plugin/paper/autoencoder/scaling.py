"""The scale of encoded columns that the networks and their losses read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

LEAST = 1e-3
# A value that this share of the rows has is an atom: rows leave it by a jump, not by degrees.
ATOM_SHARE = 0.25


class ColumnScaler(nn.Module):
    """The scaling of encoded columns, (n, d) or (s, n, d) -> (s, n, d), and back.

    Losses are computed on scaled columns (mean 0, variance 1). The networks read these through
    asinh around the median, which spreads out the bulk of a heavy-tailed column. Until it is
    fitted, both maps are the identity.

    Args:
        d: how many columns.
        use_asinh: whether the networks read through asinh; else columns as they are scaled.

    Attributes:
        atom: (s, 1, d) the encoded value that many rows share, infinite where there is none.
        jump: (s, 1, d) the mean jump off the atom: the mean distance of the other rows from it.
    """

    centre: Tensor
    spread: Tensor
    middle: Tensor
    unit: Tensor
    atom: Tensor
    jump: Tensor

    def __init__(self, d: int, use_asinh: bool) -> None:
        super().__init__()
        self.use_asinh = use_asinh
        for name in ("centre", "middle"):
            self.register_buffer(name, torch.zeros(1, 1, d))
        for name in ("spread", "unit", "jump"):
            self.register_buffer(name, torch.ones(1, 1, d))
        self.register_buffer("atom", torch.full((1, 1, d), torch.inf))

    @classmethod
    def stacked(cls, scalers: Sequence[Self]) -> Self:
        """S scalers as one."""
        out = cls(scalers[0].centre.shape[2], scalers[0].use_asinh)
        for name in out.state_dict():
            setattr(out, name, torch.cat([getattr(each, name) for each in scalers]))
        return out

    def fit(self, x: Tensor, numeric: Tensor) -> None:
        """Fit to training rows, (n, d); columns that are not `numeric`, (d,), stay unscaled."""
        self.centre.copy_(torch.where(numeric, x.mean(0), 0.0))
        self.spread.copy_(torch.where(numeric, x.std(0, correction=0).clamp_min(LEAST), 1.0))
        z = self.scale(x)[0]
        self.middle.copy_(torch.where(numeric, z.median(0).values, 0.0))
        self.unit.copy_(torch.where(numeric, _median_nonzero((z - self.middle[0]).abs()), 1.0))
        atom, jump = _atoms(x)
        self.atom.copy_(torch.where(numeric, atom, torch.inf))
        self.jump.copy_(torch.where(self.atom.isinf(), 1.0, jump))

    def scale(self, x: Tensor) -> Tensor:
        """Encoded columns in the units of the losses."""
        return (x - self.centre) / self.spread

    def unscale(self, z: Tensor) -> Tensor:
        """The inverse of `scale`."""
        return z * self.spread + self.centre

    def read(self, x: Tensor) -> Tensor:
        """Encoded columns, scaled and as the networks read them, (n, d) -> (s, n, 2 d)."""
        z = self.scale(x)
        return torch.cat([z, self.asinh_scale(z)], 2)

    def asinh_scale(self, z: Tensor, columns: Tensor | None = None) -> Tensor:
        """Scaled columns as the networks read them.

        Args:
            z: (s, n, d), or (s, n, w) where columns are given.
            columns: (s, w) which columns they are.
        """
        if not self.use_asinh:
            return z
        middle, unit = self.middle, self.unit
        if columns is not None:
            middle, unit = (each.gather(2, columns[:, None]) for each in (middle, unit))
        return torch.asinh((z - middle) / unit)


def _median_nonzero(distance: Tensor) -> Tensor:
    """(d,) the median of the distances above zero, which half of the rows may not have."""
    positive = torch.where(distance > LEAST**2, distance, torch.nan)
    return positive.nanmedian(0).values.nan_to_num(1.0)


def _atoms(x: Tensor) -> tuple[Tensor, Tensor]:
    """(d,) the atom, infinite where there is none, and the others' mean distance from it."""
    value = x.mode(0).values
    share = (x == value).float().mean(0)
    jump = (x - value).abs().mean(0) / (1.0 - share)
    return torch.where((share >= ATOM_SHARE) & (share < 1.0), value, torch.inf), jump
