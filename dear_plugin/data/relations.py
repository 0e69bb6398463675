"""Relations: what holds between the columns of a row: definitions, near-functions and orders."""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dear_plugin.data.feature import Feature
from dear_plugin.errors import SchemaError, unknown

logger = logging.getLogger(__name__)


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
        unit: what y is rounded to, where that is more than its last decimal; else 0.
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
    unit: float = 0.0

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
        """The sum or product, its constant first."""
        is_product, names = self.log and self.shift is None, self.others
        plus, minus = ("*", "/") if is_product else ("+", "-")
        if self.shift is not None:
            names = (f"log({names[0]}{f' + {self.shift:g}' if self.shift else ''})",)
        first = math.exp(self.constant) if is_product else self.constant
        terms = [(first, f"{abs(first):.6g}")] * (round(first, 9) != is_product)
        for weight, name in zip(self.weights, names, strict=True):
            size = "" if round(abs(weight), 9) == 1 else f"{abs(weight):.6g}"
            terms.append((weight, f"{name}^{size}" if is_product else f"{size} {name}"))
        terms.sort(key=lambda term: term[0] < 0)
        text = " ".join(f"{plus if w > 0 else minus} {t.strip(' ^')}" for w, t in terms)
        return text.removeprefix(f"{plus} ") if terms[0][0] > 0 else f"{'1 ' * is_product}{text}"

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


def in_words(relations: Iterable[Relation | Lookup]) -> Iterator[tuple[str, str]]:
    """How each relation holds, and its text."""
    for each in relations:
        exact = "by definition" if each.is_definition else "nearly"
        yield "in every row" if each.is_order else exact, each.text


def checked(
    relations: Iterable[Relation | Lookup], features: Sequence[Feature]
) -> tuple[Relation | Lookup, ...]:
    """Relations as a tuple.

    Raises:
        SchemaError: members that are no features, or of a sum or order no numbers or flags.
    """
    relations = tuple(relations)
    numbers = [f.name for f in features if f.is_flag or not f.choices]
    for each in relations:
        known = [f.name for f in features] if isinstance(each, Lookup) else numbers
        if wrong := [name for name in each.members if name not in known]:
            what = "features" if isinstance(each, Lookup) else "numeric features"
            raise SchemaError(f"{each.text}: {unknown(what, wrong, known)}")
    return relations


def without_computed(
    features: Sequence[Feature], relations: Iterable[Relation | Lookup]
) -> tuple[Feature, ...]:
    """Features of which those that others determine are not acted on unless named.

    A number whose parts cannot be acted on may be. The log says which are not.
    """
    free = {f.name for f in features if f.actionable and not f.immutable}
    parts: dict[str, set[str]] = {}
    for each in (each for each in relations if each.is_definition):
        others = {*each.members[1:]}
        while found := others & parts.keys():
            others = others.difference(found).union(*(parts[name] for name in found))
        others.discard(each.name)
        if each.name in free and (others & free or isinstance(each, Lookup)):
            free.discard(each.name)
            parts[each.name] = others
    if parts:
        logger.info(
            "not acted on unless act_on names them, as others determine them: %s", [*parts]
        )
    return tuple(replace(f, actionable=f.actionable and f.name not in parts) for f in features)


def from_dict(values: Mapping[str, Any]) -> Relation | Lookup:
    """The inverse of the `to_dict` of a relation or lookup, from lists or tuples."""
    if "table" in values:
        return Lookup(**{**values, "table": tuple(map(tuple, values["table"]))})
    tuples = {k: tuple(values[k]) for k in ("others", "weights")}
    high = math.inf if values["high"] is None else values["high"]
    return Relation(**{**values, **tuples, "high": high})
