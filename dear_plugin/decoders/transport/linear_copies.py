"""Copies: numbers that are a straight line of another in every row, and stay on it.

Of two columns that are equal wherever anybody looked, one says nothing about the other's tail that
is not exactly known: what is counted or fitted there would part them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.conditioning import Crowd

# Scaled values are float32: lines are met to within their rounding.
NEAR = 1e-5
LEAST_ROWS = 20


@dataclass
class Copies:
    """Which features copy what is acted on.

    Attributes:
        slope: (s, w, p) by how much a feature moves with each feature of a set; zero where it is
            no copy of it.
    """

    slope: Tensor

    @classmethod
    def of(cls, crowd: Crowd, given: Tensor) -> Copies | None:
        """Look for copies among training rows; None where there are none."""
        slopes = _slopes(crowd)
        slopes[:, given] = 0.0
        positions = crowd.sets.positions
        slope = slopes[positions]
        # A copy of several members follows the first of them.
        first = (slope != 0.0).int().cumsum(1).cumsum(1) == 1
        slope = torch.where(first, slope, 0.0)
        slope = slope.masked_fill(crowd.sets.masks[:, None], 0.0)
        return cls(slope) if bool((slope != 0.0).any()) else None

    def follow(self, out: Tensor, x: Tensor, places: Tensor, sets: Tensor) -> Tensor:
        """Put copies, (m, c, p), where what they copy is.

        Args:
            out: (m, c, p) where people would end up.
            x: (m, p) the factual rows.
            places: (m, 1 + c, w) their own x_S and the others.
            sets: (m,) the set acted on.
        """
        slope = self.slope[sets]
        some = (slope != 0.0).flatten(1).any(1).nonzero()[:, 0]
        if not len(some):
            return out
        slope, places = slope[some], places[some]
        line = torch.einsum("mcw,mwp->mcp", places, slope)
        moved = line[:, 1:] + (x[some] - line[:, 0])[:, None]
        stays = (places[:, 1:] == places[:, :1]).all(2, keepdim=True)
        copied = (slope != 0.0).any(1)[:, None] & ~stays
        own = x[some][:, None].expand(moved.shape)
        kept = (slope != 0.0).any(1)[:, None] & stays
        out[some] = torch.where(copied, moved, torch.where(kept, own, out[some]))
        return out


def _slopes(crowd: Crowd) -> Tensor:
    """(p, p) the slope of each number, a column, that is a line of another, a row; else zero."""
    x, p = crowd.rows.double(), crowd.rows.shape[1]
    out = torch.zeros(p, p)
    if len(x) < LEAST_ROWS:
        return out
    number = torch.tensor([f.kind is Kind.NUMERIC for f in crowd.encoder.schema])
    off = x - x.mean(0)
    size = off.square().sum(0)
    number &= size > 0.0
    slope = (off.T @ off) / size.clamp_min(1e-30)[:, None]
    tight = slope.square() * size[:, None] >= (1.0 - 1e-6) * size
    pairs = tight & number[:, None] & number & ~torch.eye(p, dtype=torch.bool)
    for i, j in pairs.nonzero().tolist():
        line = float(slope[i, j].float())
        line = round(line) if abs(line - round(line)) < NEAR and round(line) else line
        gap = x[:, j] - line * x[:, i]
        if float(gap.max() - gap.min()) <= NEAR:
            out[i, j] = line
    return out
