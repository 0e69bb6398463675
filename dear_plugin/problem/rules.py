"""Rules: constraints between the columns of a row, and the repair of rows that violate them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import is_special
from dear_plugin.errors import SchemaError
from dear_plugin.problem.one_hot import OneHot
from dear_plugin.problem.relations import Relations


@dataclass(frozen=True)
class Rules:
    """The q orders, r relations between numbers, u rules of the user and g groups of a schema.

    Attributes:
        encoder: converts rows to frames.
        lower: (q,) int64, the features a.
        upper: (q,) int64, the features b of the orders `a <= b`.
        relations: numbers that are nearly a function of others.
        one_hot: the g groups of features of which exactly one is 1.
    """

    encoder: Encoder
    lower: Tensor
    upper: Tensor
    relations: Relations
    one_hot: OneHot

    @classmethod
    def of(cls, encoder: Encoder) -> Rules:
        """The rules of a schema, which may have none."""
        schema = encoder.schema
        pairs = [schema.index(pair) for pair in schema.orders]
        positions = torch.tensor(pairs, dtype=torch.int64).view(-1, 2)
        groups = OneHot.of(schema.groups, encoder.p)
        return cls(encoder, positions[:, 0], positions[:, 1], Relations.of(encoder), groups)

    def satisfied(self, rows: Tensor) -> Tensor:
        """(m, q + r + u + g) bool: orders, relations, rules, groups that rows satisfy."""
        related, groups = self.relations.hold(rows), self.one_hot.kept(rows)
        return torch.cat([self._in_order(rows), related, self._user_rules(rows), groups], 1)

    def broken_text(self, rows: Tensor, required: Tensor) -> list[str]:
        """(m,) the names of what is required, (m, q + r + u + g) bool, and violated by rows."""
        names = [f"{a} <= {b}" for a, b in self.encoder.schema.orders]
        names += [each.text for each in self.encoder.schema.relations if not each.is_order]
        names += [getattr(rule, "__name__", repr(rule)) for rule in self.encoder.schema.rules]
        names += [f"exactly one of {group.name}" for group in self.encoder.schema.groups]
        return [
            ", ".join(name for name, is_broken in zip(names, row, strict=True) if is_broken)
            for row in (required & ~self.satisfied(rows)).tolist()
        ]

    def repair(
        self,
        x: Tensor,
        reached: Tensor,
        free: Tensor,
        bounds: tuple[Tensor, Tensor],
        required: Tensor,
    ) -> Tensor:
        """(m, c, p) rows whose free features satisfy what the factual satisfies.

        A feature of a violated relation is set so that the residual is that of the factual. A
        feature that violates an order is set back to its factual value. Where that violates the
        order too, it is set to the value of the other feature.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the rows to repair.
            free: (m, p) bool, features that are not acted on.
            bounds: (m, p) each, the least and greatest value of the features.
            required: (m, q + r + u + g) bool, what the factual satisfies, see `satisfied`.
        """
        q, r = len(self.lower), len(self.relations)
        related, required = required[:, q : q + r], required[:, :q]
        out = self.relations.repair(x, reached, free, bounds, related)
        if bool((self._in_order(out) | ~required[:, None]).all()):
            return out
        out = out.clone() if out is reached else out
        for k, pair in enumerate(zip(self.lower.tolist(), self.upper.tolist(), strict=True)):
            broken = required[:, k, None] & ~self._holds(out, k)
            if not bool(broken.any()):
                continue
            for j in pair:
                before = out[..., j].clone()
                _assign(out, x[:, None, j].expand_as(broken), j, broken & free[:, j, None])
                broken &= ~self._holds(out, k)
                # Where the factual value does not help, the feature keeps its change.
                _assign(out, before, j, broken)
            for j, other, side in ((*pair, 0), (*pair[::-1], 1)):
                value = self._nearest_to(out[..., other], j, side)
                inside = (value >= bounds[0][:, j, None]) & (value <= bounds[1][:, j, None])
                _assign(out, value, j, broken & free[:, j, None] & inside)
                broken &= ~self._holds(out, k)
        return out

    def _holds(self, rows: Tensor, k: int) -> Tensor:
        """(...) bool: whether rows, (..., p), satisfy order k."""
        return self._in_order(rows, slice(k, k + 1))[..., 0]

    def _in_order(self, rows: Tensor, which: slice = slice(None)) -> Tensor:
        """(..., q) bool: whether a <= b in rows, (..., p), or either has no value."""
        lower, upper = self.lower[which], self.upper[which]
        low, high = rows[..., lower], rows[..., upper]
        in_order: Tensor = (low <= high) | is_special(low) | is_special(high)
        return in_order

    def _nearest_to(self, values: Tensor, feature: int, side: int) -> Tensor:
        """(m, c) the values of a feature nearest to another's, below (side 0) or above (1)."""
        return self.encoder.grid.inward(values, values, feature)[1 - side]

    def _user_rules(self, rows: Tensor) -> Tensor:
        """(m, u) bool: the user-defined rules that rows, (m, p), satisfy."""
        rules = self.encoder.schema.rules
        if not rules or not len(rows):
            return torch.ones(len(rows), len(rules), dtype=torch.bool)
        frame = self.encoder.frame(rows)
        results = [np.asarray(rule(frame.copy())) for rule in rules]
        for rule, result in zip(rules, results, strict=True):
            if result.shape != (len(rows),) or result.dtype.kind not in "bO":
                raise SchemaError(
                    f"a rule must return {len(rows)} truth values for a frame of {len(rows)} rows,"
                    f" got shape {result.shape} of {result.dtype} from {rule!r}"
                )
        return torch.from_numpy(np.stack(results, 1).astype(bool))


def _assign(out: Tensor, value: Tensor, feature: int, mask: Tensor) -> None:
    """Write values, (m, c), of one feature into rows, (m, c, p), where mask, (m, c), holds."""
    out[..., feature] = torch.where(mask, value, out[..., feature])
