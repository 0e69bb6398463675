"""Relations of a schema: whether they hold in rows, and the repair of those that break one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import is_special

# Twice: the repair of one relation may break another.
ROUNDS = 2


@dataclass(frozen=True)
class Relations:
    """The r relations of a schema, as bounds on weighted sums of up to three numbers.

    Attributes:
        members: (r, 3) int64, the features; a shorter relation repeats its last one.
        weights: (r, 3) double, 1 for the first; 0 for a repeated one.
        logs: (r,) bool, sums of logarithms.
        low: (r,) double, the least sum.
        high: (r,) double, the greatest sum.
        mixed: (r,) bool, whether some numbers of a row may be positive and others not.
    """

    members: Tensor
    weights: Tensor
    logs: Tensor
    low: Tensor
    high: Tensor
    mixed: Tensor

    @classmethod
    def of(cls, encoder: Encoder) -> Relations:
        """The relations of a schema."""
        found = encoder.schema.relations
        members = [[*encoder.schema.index(each.members)] for each in found]
        members = [[*each, each[-1]][:3] for each in members]
        weights = [[1.0, *(-w for w in each.weights), 0.0][:3] for each in found]
        ends = [(each.constant + each.low, each.constant + each.high) for each in found]
        low, high = torch.tensor(ends, dtype=torch.float64).view(-1, 2).T
        return cls(
            torch.tensor(members, dtype=torch.int64).view(-1, 3),
            torch.tensor(weights, dtype=torch.float64).view(-1, 3),
            torch.tensor([each.log for each in found], dtype=torch.bool),
            low,
            high,
            torch.tensor([each.mixed or not each.log for each in found], dtype=torch.bool),
        )

    def __len__(self) -> int:
        """The number of relations (r)."""
        return len(self.low)

    def select(self, k: int) -> Relations:
        """Relation k alone."""
        each = (self.members, self.weights, self.logs, self.low, self.high, self.mixed)
        return Relations(*(part[k : k + 1] for part in each))

    def hold(self, rows: Tensor, numbers: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """(..., r) bool: the relations that hold in rows, (..., p), or have no value there.

        Args:
            rows: the rows.
            numbers: values, (..., q), of features, (q,), in user units.
        """
        parts = self._parts(rows, numbers)
        total, special = parts.sum(-1), is_special(rows[..., self.members]).any(-1)
        some = parts.isnan().any(-1) & ~parts.isnan().all(-1) & ~special & ~self.mixed
        outside: Tensor = (total < self.low) | (total > self.high) | some
        return ~outside

    def repair(
        self,
        x: Tensor,
        out: Tensor,
        free: Tensor,
        numbers: Callable[[Tensor, Tensor], Tensor],
        nearest: Callable[[Tensor, int], Tensor],
        bounds: tuple[Tensor, Tensor],
    ) -> None:
        """Set free features of rows, (m, c, p), so that relations keep the factual's sums.

        Args:
            x: (m, p) the factual rows.
            out: (m, c, p) the rows, which are written to.
            free: (m, p) bool, features that are not acted on.
            numbers: as of `hold`.
            nearest: the row values nearest to numbers, (m, c), of a feature.
            bounds: (m, p) each, the least and greatest value of the features.
        """
        required = self.hold(x, numbers)
        for _ in range(ROUNDS):
            broken = ~self.hold(out, numbers) & required[:, None]
            for k in broken.any(0).any(0).nonzero()[:, 0].tolist():
                self.select(k)._repair(x, out, free, numbers, nearest, bounds)

    def _repair(
        self,
        x: Tensor,
        out: Tensor,
        free: Tensor,
        numbers: Callable[[Tensor, Tensor], Tensor],
        nearest: Callable[[Tensor, int], Tensor],
        bounds: tuple[Tensor, Tensor],
    ) -> None:
        """`repair` of a single relation."""
        own = self._parts(x, numbers).sum(-1)
        wanted = torch.where(own.isnan(), (self.low + self.high) / 2.0, own)
        broken = ~self.hold(out, numbers)[..., 0] & self.hold(x, numbers)
        for i, j in enumerate(self.members[0].tolist()):
            weight = float(self.weights[0, i])
            if weight == 0.0 or not bool(broken.any()):
                continue
            parts = self._parts(out, numbers)[..., 0, :]
            parts[..., self.members[0] == j] = 0.0
            number = (wanted - parts.sum(-1)) / weight
            value = nearest(number.exp() if bool(self.logs) else number, j)
            inside = (value >= bounds[0][:, j, None]) & (value <= bounds[1][:, j, None])
            use = broken & free[:, j, None] & inside
            before = out[..., j].clone()
            out[..., j] = torch.where(use, value, before)
            failed = use & ~self.hold(out, numbers)[..., 0]
            out[..., j] = torch.where(failed, before, out[..., j])
            broken &= ~use | failed

    def _parts(self, rows: Tensor, numbers: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """(..., r, 3) the parts of sums of rows, (..., p); NaN for no number or no logarithm."""
        flat = self.members.flatten()
        values = torch.where(
            is_special(rows[..., flat]), torch.nan, numbers(rows[..., flat], flat)
        )
        values = values.unflatten(-1, self.members.shape)
        positive = torch.where(values > 0.0, values, torch.nan)
        scaled = torch.where(self.logs[:, None], positive.log(), values)
        out: Tensor = torch.where(
            self.weights == 0.0, scaled.clamp(0.0, 0.0), scaled * self.weights
        )
        return out
