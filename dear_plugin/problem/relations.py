"""Relations of a schema: whether they hold in rows, and the repair of those that break one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import is_special
from dear_plugin.problem.formulas import Formula, Order, formula

# The repair of one relation may break another.
ROUNDS = 4


@dataclass(frozen=True)
class Relations:
    """The r relations and lookups of a schema.

    Attributes:
        formulas: of each.
        observed: the only values, ascending, of the features that take no others, by feature.
    """

    formulas: tuple[Formula, ...]
    observed: dict[int, Tensor]

    @classmethod
    def of(cls, encoder: Encoder) -> Relations:
        """The relations of a schema."""
        few = {j: sorted(f.observed) for j, f in enumerate(encoder.schema) if f.observed}
        known = {j: torch.tensor(values, dtype=torch.float64) for j, values in few.items()}
        return cls(tuple(formula(encoder, each) for each in encoder.schema.relations), known)

    def __len__(self) -> int:
        """The number of relations (r)."""
        return len(self.formulas)

    def hold(self, rows: Tensor) -> Tensor:
        """(..., r) bool: the relations that hold in rows, (..., p), or have no value there."""
        out = torch.ones(*rows.shape[:-1], len(self), dtype=torch.bool)
        orders = [k for k, each in enumerate(self.formulas) if isinstance(each, Order)]
        if orders:  # there may be hundreds
            lower, upper = torch.tensor([self.formulas[k].members for k in orders]).T
            above = rows[..., upper]
            out[..., orders] = (rows[..., lower] <= above) | is_special(above)
        for k, each in enumerate(self.formulas):
            if k not in orders:
                out[..., k] = each.hold(rows)
        return out

    def repair(
        self,
        x: Tensor,
        reached: Tensor,
        free: Tensor,
        bounds: tuple[Tensor, Tensor],
        required: Tensor,
    ) -> Tensor:
        """(m, c, p) rows of which free features are set so that broken relations hold again.

        What a row becomes depends on that row alone.

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
            which = broken.flatten(0, 1).any(0).nonzero()[:, 0].tolist()
            out = out.clone() if which and out is reached else out
            for k in which:
                row, at = broken[..., k].nonzero(as_tuple=True)
                still = ~self.formulas[k].hold(out[row, at])
                row, at = row[still], at[still]
                limits = free[row], bounds[0][row], bounds[1][row]
                out[row, at] = self._repaired(self.formulas[k], x[row], out[row, at], limits)
            if not which:
                break
        return out

    def _repaired(
        self, each: Formula, x: Tensor, rows: Tensor, limits: tuple[Tensor, Tensor, Tensor]
    ) -> Tensor:
        """Rows, (q, p), that break a formula, with the first of some tries in which it holds.

        Args:
            each: the formula.
            x: (q, p) the factual rows.
            rows: the rows.
            limits: (q, p) each, which features are free, their least and greatest values.
        """
        out, done = rows, torch.zeros(len(rows), dtype=torch.bool)
        for tried in self._tries(each, x, rows, limits):
            holds = each.hold(tried) & ~done
            out, done = torch.where(holds[:, None], tried, out), done | holds
            if bool(done.all()):
                break
        return out

    def _tries(
        self, each: Formula, x: Tensor, rows: Tensor, limits: tuple[Tensor, Tensor, Tensor]
    ) -> Iterator[Tensor]:
        """Rows, (q, p), with one free member set; with several, to their ends; with none moved."""
        free, low, high = limits
        for j in each.members:
            value = each.solved(j, x, rows)
            fits = ((value >= low[:, j]) & (value <= high[:, j])) | (value == x[:, j])
            yield self._with(j, value, rows, fits & free[:, j])
        several = rows
        for j in each.members:
            value = each.solved(j, x, several).clamp(low[:, j], high[:, j])
            several = self._with(j, value, several, free[:, j])
            yield several
        undone = rows.clone()
        members = list(each.members)
        undone[:, members] = torch.where(free, x, rows)[:, members]
        yield undone

    def _with(self, j: int, value: Tensor, rows: Tensor, where: Tensor) -> Tensor:
        """Rows, (q, p), with a number, (q,), as feature j where it may be set."""
        if j in self.observed:
            where = where & torch.isin(value, self.observed[j])
        where = where & value.isfinite() & ~is_special(value)
        column = torch.where(where, value, rows[:, j])
        return rows.index_copy(1, torch.tensor([j]), column[:, None])
