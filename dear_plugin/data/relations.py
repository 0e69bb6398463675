"""Relations: what holds between the columns of a row: definitions, near-functions and orders."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Relation:
    """Bounds on a number given others; exact ones define it, and `a <= b` bounds b from below.

    `low <= t(y) - constant - sum(weights * t(others)) <= high`, but for a rounding error, where t
    is the logarithm or the number itself.

    Attributes:
        name: the number y.
        others: the other numbers, those that vary most first.
        constant: of the sum; 0 for an order.
        weights: one for each of the others.
        log: whether t is the logarithm; then the relation holds for positive numbers.
        low: the least residual.
        high: the greatest residual; infinite for an order.
        mixed: whether, with logarithms, some numbers of a row may be positive and others not.
        shift: of y = log(other + shift), where t of y is y; None for any other relation.
        error: the rounding error of y.
    """

    name: str
    others: tuple[str, ...]
    constant: float = 0.0
    weights: tuple[float, ...] = (1.0,)
    log: bool = False
    low: float = 0.0
    high: float = math.inf
    mixed: bool = False
    shift: float | None = None
    error: float = 0.0

    @property
    def members(self) -> tuple[str, ...]:
        """The number and the others."""
        return (self.name, *self.others)

    @property
    def is_order(self) -> bool:
        """Whether it is the order of two numbers."""
        return self.high == math.inf

    @property
    def is_definition(self) -> bool:
        """Whether the others determine the number."""
        return self.low == self.high

    @property
    def text(self) -> str:
        """What reasons call it: a formula if it is a definition."""
        if self.is_order:
            return f"{self.others[0]} <= {self.name}"
        if not self.is_definition:
            return f"the relation of {self.name} to {' and '.join(self.others)}"
        return f"{self.name} = {self._formula}"

    @property
    def _formula(self) -> str:
        pairs = [*zip(self.others, self.weights, strict=True)]
        if self.shift is not None:
            inner = f"{pairs[0][0]} + {self.shift:g}" if self.shift else pairs[0][0]
            start = f"{self.constant:.4g} + " if self.constant else ""
            return f"{start}log({inner})"
        if self.log:
            factor = math.exp(self.constant)
            start = f"{factor:.4g}" if abs(factor - 1.0) > 1e-9 else "1"
            powers = [(name if abs(w) == 1 else f"{name}^{abs(w):g}", w) for name, w in pairs]
            text = start + "".join(f" {'*' if w > 0 else '/'} {name}" for name, w in powers)
            return text.removeprefix("1 * ")
        terms = [(w, name if abs(w) == 1 else f"{abs(w):.4g} {name}") for name, w in pairs]
        terms += [(self.constant, f"{abs(self.constant):.6g}")] if self.constant else []
        terms.sort(key=lambda term: term[0] < 0)
        text = "".join(f" {'+' if w > 0 else '-'} {term}" for w, term in terms)
        return text.removeprefix(" + ").strip()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity: the `high` of an order is None."""
        return {**asdict(self), "high": None if self.is_order else self.high}


@dataclass(frozen=True)
class Lookup:
    """A column that is a function of another one, such as an index of the city.

    Attributes:
        name: the column that the other one determines.
        other: the column that determines it: a category, or a number of few values.
        table: pairs of a value of the other, and the value of the column.
    """

    name: str
    other: str
    table: tuple[tuple[Hashable, Hashable], ...] = field(repr=False)

    is_order = False
    is_definition = True

    @property
    def members(self) -> tuple[str, ...]:
        """The column and the other one."""
        return self.name, self.other

    @property
    def text(self) -> str:
        """What reasons call it."""
        return f"{self.name} is a function of {self.other}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def from_dict(values: Mapping[str, Any]) -> Relation | Lookup:
    """The inverse of the `to_dict` of a relation or lookup, from lists or tuples."""
    if "table" in values:
        return Lookup(**{**values, "table": tuple(map(tuple, values["table"]))})
    tuples = {k: tuple(values[k]) for k in ("others", "weights")}
    high = math.inf if values["high"] is None else values["high"]
    return Relation(**{**values, **tuples, "high": high})
