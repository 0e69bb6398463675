"""Rules: what holds between the columns of a possible row, and rows mended so that it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.columns import FLOAT_STEP
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import is_special
from dear_plugin.errors import SchemaError

# Of a step, what rounding leaves open.
OPEN = 1e-3


@dataclass(frozen=True)
class Rules:
    """The q orders `a <= b` between numbers and the r rules of a schema.

    Attributes:
        encoder: translates rows to frames.
        lower: (q,) int64, the features a.
        upper: (q,) int64, the features b.
    """

    encoder: Encoder
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, encoder: Encoder) -> Rules | None:
        """The rules of a schema; None where it has none."""
        schema = encoder.schema
        if not schema.orders and not schema.rules:
            return None
        pairs = [schema.index(pair) for pair in schema.orders]
        where = torch.tensor(pairs, dtype=torch.int64).view(-1, 2)
        return cls(encoder, where[:, 0], where[:, 1])

    def kept(self, rows: Tensor) -> Tensor:
        """(m, q + r) bool: which orders and rules hold in rows, (m, p)."""
        return torch.cat([self._ordered(rows), self._ruled(rows)], 1)

    def broken_text(self, rows: Tensor, asked: Tensor) -> list[str]:
        """(m,) what rows, (m, p), break of what is asked of them, (m, q + r) bool, in words."""
        names = [f"{a} <= {b}" for a, b in self.encoder.schema.orders]
        names += [getattr(rule, "__name__", repr(rule)) for rule in self.encoder.schema.rules]
        return [
            ", ".join(name for name, is_broken in zip(names, row, strict=True) if is_broken)
            for row in (asked & ~self.kept(rows)).tolist()
        ]

    def mend(
        self, x: Tensor, reached: Tensor, free: Tensor, ends: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Rows, (m, c, p), in which features that are free keep the orders that the factual kept.

        A feature that breaks one goes back to its own value; where that breaks it too, it moves to
        the value of the other feature.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) where they go.
            free: (m, p) bool, features that are not acted on.
            ends: the least and greatest value that each may take, (m, p) each.
        """
        kept = self._ordered(x)
        if bool((self._ordered(reached) | ~kept[:, None]).all()):
            return reached
        out = reached.clone()
        for k, pair in enumerate(zip(self.lower.tolist(), self.upper.tolist(), strict=True)):
            bad = kept[:, k, None] & ~self._holds(out, k)
            if not bool(bad.any()):
                continue
            for j in pair:
                before = out[..., j].clone()
                self._take(out, x[:, None, j].expand_as(bad), j, bad & free[:, j, None])
                bad &= ~self._holds(out, k)
                # Where its own value does not help, the feature stays where it was.
                self._take(out, before, j, bad)
            for j, other, side in ((*pair, -1.0), (*pair[::-1], 1.0)):
                value = self._beside(out[..., other], other, j, side)
                inside = (value >= ends[0][:, j, None]) & (value <= ends[1][:, j, None])
                self._take(out, value, j, bad & free[:, j, None] & inside)
                bad &= ~self._holds(out, k)
        return out

    @staticmethod
    def _take(out: Tensor, value: Tensor, feature: int, where: Tensor) -> None:
        """Write values, (m, c), of one feature into rows, (m, c, p), where wanted, (m, c)."""
        out[..., feature] = torch.where(where, value, out[..., feature])

    def _holds(self, rows: Tensor, k: int) -> Tensor:
        """(...) bool: whether rows, (..., p), keep one order."""
        low, high = rows[..., self.lower[[k]]], rows[..., self.upper[[k]]]
        gap = self._number(high, self.upper[[k]]) - self._number(low, self.lower[[k]])
        holds: Tensor = (gap >= -self._slack[k]) | is_special(low) | is_special(high)
        return holds[..., 0]

    def _ordered(self, rows: Tensor) -> Tensor:
        """(..., q) bool: whether a <= b in rows, (..., p), or either has no value."""
        low, high = rows[..., self.lower], rows[..., self.upper]
        gap = self._number(high, self.upper) - self._number(low, self.lower)
        ordered: Tensor = (gap >= -self._slack) | is_special(low) | is_special(high)
        return ordered

    def _number(self, values: Tensor, features: Tensor) -> Tensor:
        """Row values (..., q) of q features in user units, rounded to the schema's precision."""
        low, width, unit = (each[features] for each in self._scale)
        raw = values.double() * width + low
        return torch.where(unit.isnan(), raw, (raw / unit).round() * unit)

    def _beside(self, values: Tensor, other: int, feature: int, side: float) -> Tensor:
        """The values of one feature, (m, c), nearest to those of another, below (-1) or above."""
        low, width, unit = (each[feature] for each in self._scale)
        number = self._number(values[..., None], torch.tensor([other]))[..., 0]
        if bool(unit.isnan()):
            same = all(bool(each[other] == each[feature]) for each in self._scale[:2])
            return values if same else ((number - low) / width + side * 2.0 * FLOAT_STEP).float()
        steps = number / unit
        whole = (steps + OPEN).floor() if side < 0 else (steps - OPEN).ceil()
        return ((whole * unit - low) / width).float()

    def _ruled(self, rows: Tensor) -> Tensor:
        """(m, r) bool: which of the user's rules hold in rows, (m, p)."""
        rules = self.encoder.schema.rules
        if not rules or not len(rows):
            return torch.ones(len(rows), len(rules), dtype=torch.bool)
        frame = self.encoder.frame(rows, keep_off_grid=True)
        answers = [np.asarray(rule(frame.copy())) for rule in rules]
        for rule, answer in zip(rules, answers, strict=True):
            if answer.shape != (len(rows),) or answer.dtype.kind not in "bO":
                raise SchemaError(
                    f"a rule must return {len(rows)} truth values for a frame of {len(rows)} rows,"
                    f" got shape {answer.shape} of {answer.dtype} from {rule!r}"
                )
        return torch.from_numpy(np.stack(answers, 1).astype(bool))

    @lazy
    def _scale(self) -> tuple[Tensor, Tensor, Tensor]:
        """(p,) double each: the number that is 0 in rows, the width to 1, the unit or NaN."""
        features = self.encoder.schema.features
        units = [np.nan if f.precision is None else 10.0**-f.precision for f in features]
        return (
            torch.tensor([f.bounds[0] for f in features], dtype=torch.float64),
            torch.tensor([f.width for f in features], dtype=torch.float64),
            torch.tensor(units, dtype=torch.float64),
        )

    @lazy
    def _slack(self) -> Tensor:
        """(q,) double: by how much a may exceed b, which is what rounding leaves open."""
        low, width, unit = self._scale
        size = 8.0 * FLOAT_STEP * (width + low.abs())
        sizes = torch.where(unit.isnan(), size, unit * OPEN)
        return torch.maximum(sizes[self.lower], sizes[self.upper])
