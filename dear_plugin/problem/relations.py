"""Relations of a schema: whether they hold in rows, and the repair of those that break one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.grid import Grid
from dear_plugin.data.special_values import is_special

# Twice: the repair of one relation may break another.
ROUNDS = 2
# The numbers of a relation at most.
MOST = 3


@dataclass(frozen=True)
class Relations:
    """The r relations of a schema, as bounds on weighted sums of up to three numbers.

    Attributes:
        grid: the decimals of the features.
        members: (r, 3) int64, the features, in the order in which they are repaired; a shorter
            relation repeats its last one.
        weights: (r, 3) double; 0 for a repeated feature.
        logs: (r,) bool, sums of logarithms.
        bounds: (r, 2) double, the least and greatest sum; an order has no greatest.
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
        found, parts = encoder.schema.relations, []
        for each in found:
            of = encoder.schema.index(each.members)
            own = [*zip(of, (1.0, *(-weight for weight in each.weights)), strict=True)]
            own = own[::-1] if each.is_order else own
            parts.append([*own, (own[-1][0], 0.0)][:MOST])
        bounds = [(each.constant + each.low, each.constant + each.high) for each in found]
        members, weights = torch.tensor(parts, dtype=torch.float64).view(-1, MOST, 2).unbind(-1)
        return cls(
            encoder.grid,
            members.long(),
            weights,
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
        """(m, c, p) rows of which one free feature is set so that a broken relation holds again.

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
        (free, low, high), out = limits, rows
        done = torch.zeros(len(rows), dtype=torch.bool)
        for j, value in self._tries(k, x, rows):
            tried = rows.index_copy(1, torch.tensor([j]), value[:, None])
            fits = ((value >= low[:, j]) & (value <= high[:, j])) | (value == x[:, j])
            fits &= free[:, j] & ~done & self.hold(tried, slice(k, k + 1))[:, 0]
            out, done = torch.where(fits[:, None], tried, out), done | fits
        return out

    def _tries(self, k: int, x: Tensor, rows: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Features and their values, (q,), of which the first that helps repairs relation k.

        Of an order, a feature is set back to its factual value, else to the value of the other
        one. Of a relation, it is set so that the sum is that of the factual.
        """
        parts, own = (self._parts(each, slice(k, k + 1))[:, 0] for each in (rows, x))
        low, high = self.bounds[k]
        is_order, total = bool(high.isinf()), own.sum(1)
        wanted = low if is_order else total.where(~total.isnan(), (low + high) / 2.0)
        pairs = zip(self.members[k].tolist(), self.weights[k].tolist(), strict=True)
        members = [(j, weight) for j, weight in pairs if weight]
        for j, _ in members if is_order else ():
            yield j, x[:, j]
        for j, weight in members:
            others = parts.masked_fill(self.members[k] == j, 0.0).sum(1)
            number = (wanted - others) / weight
            number = number.exp() if bool(self.logs[k]) else number
            least, most = self.grid.inward(number, number, j)
            inward = least if weight > 0.0 else most
            yield j, inward if is_order else self.grid.round(number, j)

    def _parts(self, rows: Tensor, which: slice) -> Tensor:
        """(..., r, 3) the parts of sums of rows, (..., p); NaN for no number or no logarithm."""
        members, weights, logs = self.members[which], self.weights[which], self.logs[which]
        cells = rows[..., members.flatten()]
        values = cells.masked_fill(is_special(cells), torch.nan).unflatten(-1, members.shape)
        if bool(logs.any()):
            positive = values[..., logs, :]
            values[..., logs, :] = positive.masked_fill(positive <= 0.0, torch.nan).log()
        # A repeated member has no part, unless it has no value.
        out: Tensor = torch.where(weights == 0.0, values.clamp(0.0, 0.0), values * weights)
        return out
