"""Relations of a schema: whether they hold in rows, and the repair of those that break one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.grid import Grid
from dear_plugin.data.special_values import is_special

# Twice: the repair of one relation may break another.
ROUNDS = 2


@dataclass(frozen=True)
class Relations:
    """The r relations of a schema, as bounds on weighted sums of up to three numbers.

    Attributes:
        grid: the decimals of the features.
        members: (r, 3) int64, the features; a shorter relation repeats its last one.
        weights: (r, 3) double, 1 for the first; 0 for a repeated one.
        logs: (r,) bool, sums of logarithms.
        bounds: (r, 2) double, the least and greatest sum.
        mixed: (r,) bool, whether some numbers of a row may be positive and others not.
    """

    grid: Grid
    members: Tensor
    weights: Tensor
    logs: Tensor
    bounds: Tensor
    mixed: Tensor

    @classmethod
    def of(cls, encoder: Encoder) -> Relations:
        """The relations of a schema."""
        found = [each for each in encoder.schema.relations if not each.is_order]
        members = [[*encoder.schema.index(each.members)] for each in found]
        members = [[*each, each[-1]][:3] for each in members]
        weights = [[1.0, *(-w for w in each.weights), 0.0][:3] for each in found]
        bounds = [(each.constant + each.low, each.constant + each.high) for each in found]
        return cls(
            encoder.grid,
            torch.tensor(members, dtype=torch.int64).view(-1, 3),
            torch.tensor(weights, dtype=torch.float64).view(-1, 3),
            torch.tensor([each.log for each in found], dtype=torch.bool),
            torch.tensor(bounds, dtype=torch.float64).view(-1, 2),
            torch.tensor([each.mixed or not each.log for each in found], dtype=torch.bool),
        )

    def __len__(self) -> int:
        """The number of relations (r)."""
        return len(self.logs)

    def hold(self, rows: Tensor, which: slice = slice(None)) -> Tensor:
        """(..., r) bool: the relations that hold in rows, (..., p), or have no value there."""
        parts = self._parts(rows, which)
        total, missing = parts.sum(-1), parts.isnan()
        some = missing.any(-1) & ~missing.all(-1) & ~self.mixed[which]
        if bool(some.any()):
            some &= ~is_special(rows[..., self.members[which]]).any(-1)
        low, high = self.bounds[which].T
        outside: Tensor = (total < low) | (total > high) | some
        return ~outside

    def repair(
        self,
        x: Tensor,
        reached: Tensor,
        free: Tensor,
        bounds: tuple[Tensor, Tensor],
        required: Tensor,
    ) -> Tensor:
        """(m, c, p) rows whose free features are set so that sums are those of the factual.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the rows to repair.
            free: (m, p) bool, features that are not acted on.
            bounds: (m, p) each, the least and greatest value of the features.
            required: (m, r) bool, the relations that hold in the factual rows.
        """
        out = reached
        for _ in range(ROUNDS if len(self) else 0):
            broken = required[:, None] & ~self.hold(out)
            for k in broken.any(0).any(0).nonzero()[:, 0].tolist():
                out = reached.clone() if out is reached else out
                still = required[:, k, None] & ~self.hold(out, slice(k, k + 1))[..., 0]
                row, at = still.nonzero(as_tuple=True)
                limits = free[row], bounds[0][row], bounds[1][row]
                out[row, at] = self._repaired(k, x[row], out[row, at], limits)
        return out

    def _repaired(
        self, k: int, x: Tensor, rows: Tensor, limits: tuple[Tensor, Tensor, Tensor]
    ) -> Tensor:
        """Rows, (q, p), that break relation k, repaired where one free feature can do so.

        Args:
            k: the relation.
            x: (q, p) the factual rows.
            rows: the rows.
            limits: (q, p) each, which features are free, their least and greatest values.
        """
        which, (free, low, high) = slice(k, k + 1), limits
        own = self._parts(x, which).sum(-1)[:, 0]
        wanted = torch.where(own.isnan(), self.bounds[k].mean(), own)
        done = torch.zeros(len(rows), dtype=torch.bool)
        for j, weight in zip(self.members[k].tolist(), self.weights[k].tolist(), strict=True):
            if weight == 0.0:
                continue
            parts = self._parts(rows, which)[:, 0]
            parts[:, self.members[k] == j] = 0.0
            number = (wanted - parts.sum(-1)) / weight
            value = self.grid.round(number.exp() if bool(self.logs[k]) else number, j)
            tried = rows.index_copy(1, torch.tensor([j]), value[:, None])
            fits = free[:, j] & (value >= low[:, j]) & (value <= high[:, j])
            fits &= ~done & self.hold(tried, which)[:, 0]
            rows = torch.where(fits[:, None], tried, rows)
            done |= fits
        return rows

    def _parts(self, rows: Tensor, which: slice) -> Tensor:
        """(..., r, 3) the parts of sums of rows, (..., p); NaN for no number or no logarithm."""
        members, weights = self.members[which], self.weights[which]
        cells = rows[..., members.flatten()]
        values = cells.masked_fill(is_special(cells), torch.nan).unflatten(-1, members.shape)
        logs = values.masked_fill(values <= 0.0, torch.nan).log()
        scaled = torch.where(self.logs[which, None], logs, values)
        # A repeated member has no part, unless it has no value.
        out: Tensor = torch.where(weights == 0.0, scaled.clamp(0.0, 0.0), scaled * weights)
        return out
