"""Linear copies: numeric features that are a linear function of another one in every row.

Tables and regressions of two such columns would differ in the tails, where rows are few. A copy
therefore follows its original exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.conditioning import TrainingSample

# Scaled values are float32: lines hold up to their rounding.
TOLERANCE = 1e-5
MIN_ROWS = 20


@dataclass
class LinearCopies:
    """Which features are linear copies of a feature of each set.

    Attributes:
        slope: (s, w, p) the change of a feature per unit of each feature of a set; zero where it
            is no copy of it.
    """

    slope: Tensor

    @classmethod
    def of(cls, sample: TrainingSample, given: Tensor) -> LinearCopies | None:
        """Find copies in training rows; None without any."""
        slopes = _slopes(sample)
        slopes[:, given] = 0.0
        slope = slopes[sample.sets.positions]
        # A copy of several features of a set follows the first of them.
        first = (slope != 0.0).int().cumsum(1).cumsum(1) == 1
        slope = torch.where(first, slope, 0.0)
        slope = slope.masked_fill(sample.sets.masks[:, None], 0.0)
        return cls(slope) if bool((slope != 0.0).any()) else None

    def follow(self, out: Tensor, x: Tensor, points: Tensor, sets: Tensor) -> Tensor:
        """Overwrite the copies in decoded rows, (m, c, p).

        Args:
            out: (m, c, p) the decoded rows.
            x: (m, p) the factual rows.
            points: (m, 1 + c, w) the values of x_S, the factual ones first.
            sets: (m,) the set acted on.
        """
        slope = self.slope[sets]
        some = (slope != 0.0).flatten(1).any(1).nonzero()[:, 0]
        if not len(some):
            return out
        slope, points = slope[some], points[some]
        line = torch.einsum("mcw,mwp->mcp", points, slope)
        moved = line[:, 1:] + (x[some] - line[:, 0])[:, None]
        unchanged = (points[:, 1:] == points[:, :1]).all(2, keepdim=True)
        copies = (slope != 0.0).any(1)[:, None]
        own = x[some][:, None].expand(moved.shape)
        out[some] = torch.where(copies, torch.where(unchanged, own, moved), out[some])
        return out


def _slopes(sample: TrainingSample) -> Tensor:
    """(p, p) the slope of feature j, a column, if it is a linear copy of feature i; else zero."""
    x, p = sample.rows.double(), sample.rows.shape[1]
    out = torch.zeros(p, p)
    if len(x) < MIN_ROWS:
        return out
    number = torch.tensor([f.kind is Kind.NUMERIC for f in sample.encoder.schema])
    centred = x - x.mean(0)
    size = centred.square().sum(0)
    number &= size > 0.0
    slope = (centred.T @ centred) / size.clamp_min(1e-30)[:, None]
    tight = slope.square() * size[:, None] >= (1.0 - 1e-6) * size
    pairs = tight & number[:, None] & number & ~torch.eye(p, dtype=torch.bool)
    for i, j in pairs.nonzero().tolist():
        line = float(slope[i, j].float())
        line = round(line) if abs(line - round(line)) < TOLERANCE and round(line) else line
        residual = x[:, j] - line * x[:, i]
        if float(residual.max() - residual.min()) <= TOLERANCE:
            out[i, j] = line
    return out
