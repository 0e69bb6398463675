"""Rules: the rules of a schema; rows in, which of them hold, and rows in which they do, out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.rule import Cells, Rule, Stated
from dear_plugin.data.special_values import or_nan
from dear_plugin.problem.formulas import Order, formula

# The repair of one rule may break another.
ROUNDS = 4
# (q, p) each: which features are free, and their least and greatest values.
Bounds = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Rules:
    """The r rules of a schema in their order: its relations and lookups, then the user's.

    Attributes:
        encoder: of the rows.
        every: the rules.
    """

    encoder: Encoder
    every: tuple[Rule, ...]

    @classmethod
    def of(cls, encoder: Encoder) -> Rules:
        """The rules of a schema, which may have none."""
        schema = encoder.schema
        related = [formula(encoder, each) for each in schema.relations]
        stated = [each if isinstance(each, Rule) else Stated(each) for each in schema.rules]
        return cls(encoder, (*related, *stated))

    def __len__(self) -> int:
        """The number of rules (r)."""
        return len(self.every)

    @lazy
    def forces(self) -> Tensor:
        """(r,) bool, the rules that an action alone must keep, too."""
        return torch.tensor([rule.forces for rule in self.every], dtype=torch.bool)

    @property
    def names(self) -> list[str]:
        """(r,) what messages call the rules."""
        return [rule.text for rule in self.every]

    def hold(self, rows: Tensor) -> Tensor:
        """(m, r) bool: the rules that hold in rows, (m, p), or have no value there."""
        return self._hold(rows, range(len(self)))

    def repair(
        self,
        x: Tensor,
        reached: Tensor,
        free: Tensor,
        bounds: tuple[Tensor, Tensor],
        required: Tensor,
    ) -> Tensor:
        """(m, c, p) rows of which free features are set so that broken rules hold again.

        The rules come in their order, up to `ROUNDS` times, as one may break another. What a row
        becomes depends on that row alone. What changes here is forced by the action.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the rows to repair.
            free: (m, p) bool, features that are not acted on.
            bounds: (m, p) each, the least and greatest value of the features.
            required: (m, r) bool, the rules that hold in the factual rows.
        """
        out, known = reached, [k for k, rule in enumerate(self.every) if rule.members]
        for _ in range(ROUNDS if known else 0):
            broken = required[:, None, known] & ~self._hold(out, known)
            which = broken.flatten(0, 1).any(0).nonzero()[:, 0].tolist()
            out = out.clone() if which and out is reached else out
            for k in which:
                rule = self.every[known[k]]
                row, at = broken[..., k].nonzero(as_tuple=True)
                still = ~rule.holds(self._cells(out[row, at]))
                row, at = row[still], at[still]
                limits = free[row], bounds[0][row], bounds[1][row]
                out[row, at] = self._repaired(rule, x[row], out[row, at], limits)
            if not which:
                break
        return out

    @lazy
    def _at(self) -> dict[str, int]:
        """The position of each feature."""
        return {name: j for j, name in enumerate(self.encoder.schema.names)}

    @lazy
    def _orders(self) -> Tensor:
        """(2, r) the positions of the lower and upper numbers of orders; 0 for other rules."""
        pairs = [each.at if isinstance(each, Order) else (0, 0) for each in self.every]
        return torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T

    def _cells(self, rows: Tensor) -> Cells:
        return Cells(rows, self._at, self.encoder.frame)

    def _hold(self, rows: Tensor, some: range | list[int]) -> Tensor:
        """(..., q) bool, which of some rules hold in rows, (..., p)."""
        lower, upper = self._orders[:, list(some)]
        above = rows[..., upper]  # all orders at once: there may be hundreds
        out: Tensor = ~(rows[..., lower] > or_nan(above))
        cells = self._cells(rows)
        for i, k in enumerate(some):
            if not isinstance(self.every[k], Order):
                out[..., i] = self.every[k].holds(cells)
        return out

    def _repaired(self, rule: Rule, x: Tensor, rows: Tensor, bounds: Bounds) -> Tensor:
        """Rows, (q, p), that break a rule, with the first of some tries in which it holds."""
        out, done = rows, torch.zeros(len(rows), dtype=torch.bool)
        for tried in self._tries(rule, x, rows, bounds):
            holds = rule.holds(self._cells(tried)) & ~done
            out, done = torch.where(holds[:, None], tried, out), done | holds
            if bool(done.all()):
                break
        return out

    def _tries(self, rule: Rule, x: Tensor, rows: Tensor, bounds: Bounds) -> Iterator[Tensor]:
        """Rows, (q, p), with one free member set; with several, to their ends; with none moved."""
        (free, low, high), members = bounds, [self._at[name] for name in rule.members]
        for name, j in zip(rule.members, members, strict=True):
            value = self._value(rule, x, rows, name)
            fits = ((value >= low[:, j]) & (value <= high[:, j])) | (value == x[:, j])
            yield self._with(j, value, rows, fits & free[:, j])
        several = rows
        for name, j in zip(rule.members, members, strict=True):
            value = self._value(rule, x, several, name).clamp(low[:, j], high[:, j])
            several = self._with(j, value, several, free[:, j])
            yield several
        undone = rows.clone()
        undone[:, members] = torch.where(free, x, rows)[:, members]
        yield undone

    def _value(self, rule: Rule, x: Tensor, rows: Tensor, name: str) -> Tensor:
        """(q,) the value of a member with which a rule holds, on the grid or the factual one."""
        value, j = rule.repair(self._cells(rows), self._cells(x), name), self._at[name]
        return torch.where(value == x[:, j], value, self.encoder.grid.round(value, j))

    def _with(self, j: int, value: Tensor, rows: Tensor, where: Tensor) -> Tensor:
        """Rows, (q, p), with a number, (q,), as feature j where it may be set."""
        if j in self.encoder.observed:
            where = where & torch.isin(value, self.encoder.observed[j])
        where = where & or_nan(value).isfinite()
        column = torch.where(where, value, rows[:, j])
        return rows.index_copy(1, torch.tensor([j]), column[:, None])
