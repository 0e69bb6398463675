"""Rules, what holds between the columns of a row: definitions, orders, lookups, the user's.

All are of one kind: they hold in rows or not, and give the values of members with which they do.
Rows are numpy arrays, of many rows at once.
"""

from __future__ import annotations

import ast
import logging
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, reduce
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch

from dear_plugin._threads import lazy, users_threads
from dear_plugin.data.feature import Feature
from dear_plugin.data.numbers import NEAR, Array, Grid
from dear_plugin.errors import SchemaError, require_known, shown, unknown

# What says of a frame of features, (n, p), whether each row is possible, (n,) bool.
Condition = Callable[[pd.DataFrame], Any]


@dataclass(frozen=True)
class Cells:
    """Rows by the names of their features.

    Attributes:
        rows: (..., p) row values.
        numbers: (..., p) the numbers of features, NaN where there are none; the places of labels.
        at: the position of each feature.
        as_frame: rows, (m, p), as a frame.
    """

    rows: Array
    numbers: Array
    at: Mapping[str, int]
    as_frame: Callable[[torch.Tensor], pd.DataFrame]

    def __getitem__(self, name: str) -> Array:
        """(...) the numbers of a feature, in a new array."""
        return self.numbers[..., self.at[name]].copy()

    @lazy
    def frame(self) -> pd.DataFrame:
        """The rows, (m, p), as a frame."""
        return self.as_frame(torch.from_numpy(self.rows))


class Rule(ABC):
    """What holds between some features of a row, and what makes it hold again.

    Every answer keeps the rules that its factual keeps. After an action the members that are not
    acted on are set, within their ranges and decimals, in the order of `members`: the first alone
    with which the rule holds, else several. That is forced, no estimate: see `recourses.direct`.

    Attributes:
        members: the names of the features that may be set; () sets none, and rules answers out.
        forces: whether an action alone must keep it, too; False for what holds nearly always.
        text: what messages call it; by default the name of its class.

    Example:
        >>> import pandas as pd
        >>> from dear_plugin import DEAR, Rule, Schema
        >>> class Household(Rule):
        ...     members = ("persons", "adults", "children")
        ...
        ...     def holds(self, rows):
        ...         return rows["persons"] == rows["adults"] + rows["children"]
        ...
        ...     def repair(self, rows, before, member):
        ...         persons, adults, children = (rows[name] for name in self.members)
        ...         return {"persons": adults + children, "adults": persons - children}.get(
        ...             member, persons - adults
        ...         )
        >>> adults, children = [1, 2, 2, 3] * 25, [0, 1, 2, 3, 4] * 20
        >>> frame = pd.DataFrame({"adults": adults, "children": children, "persons": 0})
        >>> frame["persons"] = frame["adults"] + frame["children"]
        >>> schema = Schema.infer(frame, rules=[Household()], definitions={})
        >>> dear = DEAR(lambda rows: (rows["persons"] < 4) * 1.0, schema).fit(frame)
        >>> changed = dear.apply(frame[frame["persons"] == 7].head(1), {"children": 0})
        >>> changed.counterfactuals[["adults", "children", "persons"]].to_numpy().tolist()
        [[3, 0, 3]]
    """

    @property
    def members(self) -> Sequence[str]:
        """None, by default."""
        return ()

    @property
    def forces(self) -> bool:
        """Always, by default."""
        return True

    @property
    def text(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @abstractmethod
    def holds(self, rows: Cells) -> Array:
        """(...) bool: whether it holds in rows; True where a value that it needs is missing.

        Args:
            rows: `rows["income"]` is a feature's column, a numpy array, (...) double, NaN where it
                is missing.
        """

    def repair(self, rows: Cells, before: Cells, member: str) -> Array:
        """(q,) the values of a member with which it holds; NaN where there is none.

        Args:
            rows: q rows in which it is broken.
            before: the factual rows.
            member: the name of the feature.
        """
        return np.full_like(rows[member], np.nan)


class Stated(Rule):
    """A condition on frames, which no repair keeps.

    Args:
        condition: what says of a frame which rows are possible.
    """

    def __init__(self, condition: Condition) -> None:
        self.condition = condition

    @property
    def text(self) -> str:
        """The name of the function."""
        return str(getattr(self.condition, "__name__", repr(self.condition)))

    def holds(self, rows: Cells) -> Array:
        """See `Rule`; of rows, (m, p).

        Raises:
            SchemaError: it does not return one truth value a row.
        """
        count = len(rows.rows)
        if not count:
            return np.ones(0, dtype=bool)
        with users_threads():
            found = np.asarray(self.condition(rows.frame.copy()))
        if found.shape != (count,) or found.dtype.kind not in "bO":
            raise SchemaError(
                f"a rule must return {count} truth values for a frame of {count} rows, got shape"
                f" {found.shape} of {found.dtype} from {self.condition!r}"
            )
        return found.astype(bool)


def check_rules(rules: Iterable[Any], names: Sequence[str]) -> None:
    """Raise an error unless rules are rules or conditions, of features with these names.

    Raises:
        SchemaError: they are not.
    """
    for rule in rules:
        if isinstance(rule, Rule):
            require_known(f"rules, {rule.text}", "features", rule.members, names)
        elif not callable(rule):
            raise SchemaError(
                "rules must be callables of a frame that return a mask, or a Rule, got"
                f" {shown(rules)}"
            )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": lambda *each: reduce(lambda a, b: (a + b + abs(a - b)) / 2.0, each),
    "min": lambda *each: reduce(lambda a, b: (a + b - abs(a - b)) / 2.0, each),
    **{"abs": abs, "log": np.log},
}
NODES = ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Call, ast.Name, ast.Load


def expression(text: str, names: Sequence[str]) -> tuple[Callable[[Any], Any], tuple[str, ...]]:
    """A formula of columns, and these: "rent / (wage + other)", "max(a, b)", "abs(a - b)".

    It gives its values, (...), from the columns by name. Any name stands as it is in the text.

    Raises:
        SchemaError: it is none, or it has other columns.
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    found = re.compile(rf"(?<![\w.])(?:{known})(?!\w|\s*\()")
    used = tuple(dict.fromkeys(found.findall(text)))
    more = re.findall(r"(?<![\w.])[^\W\d]\w*", found.sub("", text))
    if wrong := [each for each in more if each not in FUNCTIONS]:
        raise SchemaError(f"formula {text!r}: {unknown('numeric features', wrong, names)}")
    plain = found.sub(lambda match: f"_{used.index(match[0])}", text).strip()

    def of(columns: Any) -> Any:
        """The values; all of `code` is arithmetic and `FUNCTIONS`."""
        own = {f"_{i}": columns[name] for i, name in enumerate(used)}
        return eval(code, {"__builtins__": {}, **FUNCTIONS}, own)

    try:
        tree = ast.parse(plain, mode="eval")
        for node in ast.walk(tree.body):
            value: Any = getattr(node, "value", None)
            is_number = isinstance(node, ast.Constant) and type(value) in (int, float)
            if not (used and (is_number or isinstance(node, NODES))):
                raise TypeError("not arithmetic")
            if isinstance(node, ast.Constant):
                node.value = float(value)  # a power of whole numbers may have no end
        code = compile(tree, "formula", "eval")
        of(dict.fromkeys(used, np.ones(1)))
    except (SyntaxError, TypeError, ArithmeticError) as error:
        raise SchemaError(
            f"formula {text!r}: expected columns, numbers, brackets, + - * / **, and"
            f" {', '.join(FUNCTIONS)}, such as 'rent / (wage + other)'"
        ) from error
    return of, used


@cache
def _formula(text: str, names: Sequence[str]) -> Callable[[Any], Any]:
    """What gives the values of a formula from columns."""
    return expression(text, names)[0]


logger = logging.getLogger(__name__)
# Steps to the value with which a formula holds.
SECANT = 20


@dataclass(frozen=True)
class Relation(Rule):
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
        shift: of y = log(other + shift), where t of y is y; None for any other relation.
        error: the rounding error of y.
        unit: what y is rounded to, where that is more than its last decimal; else 0.
        formula: of the others, in place of the sum, which then has no weights; "" for none.
    """

    name: str
    others: tuple[str, ...]
    constant: float = 0.0
    weights: tuple[float, ...] = (1.0,)
    log: bool = False
    low: float = 0.0
    high: float = math.inf
    shift: float | None = None
    error: float = 0.0
    unit: float = 0.0
    formula: str = ""

    @lazy
    def members(self) -> tuple[str, ...]:
        """The number and the others."""
        return (self.name, *self.others)

    @property
    def forces(self) -> bool:
        """Whether it holds in all rows."""
        return self.is_order or self.is_definition

    @lazy
    def is_order(self) -> bool:
        """Whether it is the order of two numbers."""
        return self.high == math.inf

    @lazy
    def is_definition(self) -> bool:
        """Whether the others determine the number, though a formula may be off a little."""
        return self.low == self.high or bool(self.formula)

    @property
    def text(self) -> str:
        """What reasons call it: a formula if it is a definition."""
        if self.is_order:
            return f"{self.others[0]} <= {self.name}"
        if self.formula:
            within = f" within {self.high:.4g}" if self.high else ""
            return f"{self.name} = {self.formula}{within}"
        if not self.is_definition:
            return f"the relation of {self.name} to {' and '.join(self.others)}"
        return f"{self.name} = {self._formula}"

    @property
    def _formula(self) -> str:
        """The sum or product, its constant first."""
        is_product, names = self._is_product, self.others
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

    def holds(self, rows: Cells) -> Array:
        """See `Rule`; sums of -inf and inf, as of products of zero, hold."""
        own = rows[self.name]
        if self.is_order:
            return ~(rows[self.others[0]] > own)
        total, size = self._total(rows), own
        low, high = total + self.low, total + self.high
        if self._is_product:
            low, high, size = np.exp(low), np.exp(high), np.maximum(own, 0.0)
        outside = (size < low - self.error) | (size > high + self.error)
        off = np.abs(self._whole(own) - own) if self.unit else 0.0
        return ~(outside | (off > NEAR * self.unit))

    def repair(self, rows: Cells, before: Cells, member: str) -> Array:
        """See `Rule`; with the residual of the factual row, which a definition does not have.

        Of an order the other number; orders are repaired at once, see `Rules`. Of what a formula
        is of, by the secant method, its own value where there is none.
        """
        if self.is_order:
            return rows[self.name if member != self.name else self.others[0]]
        at = self.members.index(member)
        wanted = 0.0 if self.low == self.high else self._residual(before)
        if not at:
            total = self._total(rows) + wanted
            return self._whole(np.exp(total) if self._is_product else total)
        if self.formula:
            return self._solved(rows, rows[self.name] - wanted, member)
        rest = self._first(rows) - wanted - self._total(rows, without=at)
        part = rest / self.weights[at - 1]
        return np.exp(part) - (self.shift or 0.0) if self.log else part

    def _solved(self, rows: Cells, aim: Array, member: str) -> Array:
        """(q,) the values of a member with which the formula gives an aim, (q,)."""
        each = {name: rows[name] for name in self.others}
        own = last = each[member]
        value, off = 1.01 * own + self.error, self._total(each) - aim
        for _ in range(SECANT):
            new = self._total({**each, member: value}) - aim
            step = (value - last) * new / (new - off)
            last, off, value = value, new, value - np.where(np.isfinite(step), step, 0.0)
        done = np.abs(self._total({**each, member: value}) - aim) <= self.error
        return np.where(done, value, own)

    def _residual(self, before: Cells) -> Array:
        """(q,) what factual rows leave of the number."""
        own = self._first(before) - self._total(before)
        return np.where(np.isfinite(own), own, (self.low + self.high) / 2.0)

    def _whole(self, own: Array) -> Array:
        """The number as it is rounded."""
        return np.round(own / self.unit) * self.unit if self.unit else own

    @lazy
    def _is_product(self) -> bool:
        """Whether the logarithm of the number counts, too."""
        return self.log and self.shift is None

    def _first(self, rows: Cells) -> Array:
        """(...) the number or its logarithm in rows; NaN for none, -inf for that of 0."""
        own = rows[self.name]
        return np.log(np.maximum(own, 0.0)) if self._is_product else own

    def _total(self, rows: Any, without: int = 0) -> Array:
        """(...) the formula; or the constant and the weighted parts of all other members."""
        if self.formula:
            return np.asarray(_formula(self.formula, self.others)(rows))
        total: Any = self.constant
        for at, weight in enumerate(self.weights, 1):
            if at != without:
                cells = rows[self.members[at]]
                own = np.log(np.maximum(cells + (self.shift or 0.0), 0.0)) if self.log else cells
                total = total + weight * own
        return np.asarray(total)


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

    def rule(self, features: Sequence[Feature], grid: Grid) -> Table:
        """The rule of row values; labels that no feature has are left out."""
        at = [[f.name for f in features].index(name) for name in self.members]
        name, other = (features[j] for j in at)
        pairs = [(other.place(x), name.place(y)) for x, y in self.table]
        read = sorted(pair for pair in pairs if all(isinstance(each, Real) for each in pair))
        keys, values = np.array(read, dtype=np.float64).reshape(-1, 2).T
        known = ~(np.isnan(keys) | np.isnan(values))
        return Table(**vars(self), keys=keys[known], values=grid.round(values[known], at[0]))


@dataclass(frozen=True)
class Table(Lookup, Rule):
    """A lookup as a rule of rows.

    Attributes:
        keys: (l,) ascending, row values of the other column.
        values: (l,) those of the column.
    """

    keys: Array
    values: Array

    def holds(self, rows: Cells) -> Array:
        """See `Rule`; a level that no training row has may have any value."""
        y, (known, value) = rows[self.name], self._found(rows[self.other])
        return np.asarray(~known | (value == y) | np.isnan(y))

    def repair(self, rows: Cells, before: Cells, member: str) -> Array:
        """The value of the level, or the only level with the value."""
        y, x = rows[self.name], rows[self.other]
        if member == self.name:
            known, value = self._found(x)
            return np.where(known, value, y)
        same = y[:, None] == self.values
        return np.where(same.sum(1) == 1, self.keys[same.argmax(1)], x)

    def _found(self, x: Array) -> tuple[Array, Array]:
        """Whether the table has row values, (...), and what it says of them."""
        at = np.minimum(np.searchsorted(self.keys, x), len(self.keys) - 1)
        return self.keys[at] == x, self.values[at]


def in_words(relations: Iterable[Relation | Lookup]) -> Iterator[tuple[str, str]]:
    """How each relation holds, and its text."""
    for each in relations:
        exact = "by definition" if each.is_definition else "nearly"
        yield "in every row" if each.is_order else exact, each.text


def checked_relations(
    relations: Iterable[Relation | Lookup], features: Sequence[Feature]
) -> tuple[Relation | Lookup, ...]:
    """Relations as a tuple.

    Raises:
        SchemaError: members that are no features, or of a sum or order no numbers or flags.
    """
    relations = tuple(relations)
    every = "features", [f.name for f in features]
    numbers = "numeric features", [f.name for f in features if f.is_flag or not f.choices]
    for each in relations:
        what, known = every if isinstance(each, Lookup) else numbers
        require_known(each.text, what, each.members, known)
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
    known = {k: v for k, v in values.items() if k != "mixed"}  # of 0.5
    return Relation(**{**known, **tuples, "high": high})
