"""A feature: the kind, scale and allowed changes of one column of the user's frame.

Its row values are numbers: amounts, the places of levels in order, or the positions of labels. How
cells of frames become row values, and these cells, is in `cells`.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from functools import cache, lru_cache, partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin._validation import (
    Rule,
    boolean,
    completed,
    is_listed,
    is_number,
    must_be,
    number,
    one_of,
    optional,
)
from dear_plugin.data.numbers import Array, amounts_of, known, level_of, row_value
from dear_plugin.errors import SchemaError, require_known

# The largest usual step as a share of the unit of cost, and rounding errors of it.
SHARE, ROUNDED = 0.01, 1.0 + 1e-9
# The labels of a flag.
FLAGS = {("0", "1"), ("0.0", "1.0"), ("False", "True")}


class Kind(StrEnum):
    """The kind of a feature, which determines its encoded columns.

    Example:
        >>> from dear_plugin import Kind, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> schema = Schema.infer(load_loan(200).frame, target="approved", immutable=["gender"])
        >>> [feature.name for feature in schema if feature.kind is Kind.BINARY]
        ['gender']
    """

    NUMERIC = "numeric"
    BINARY = "binary"
    CATEGORICAL = "categorical"


# The largest precision, in absolute value: 10**99 and 10**-99 are finite, nonzero floats.
MOST_DECIMALS = 99


def _is_pair(value: Any) -> bool:
    """Whether it is two numbers (low, high), low <= high."""
    low, high = value
    return isinstance(low, Real) and isinstance(high, Real) and bool(low <= high)


def _floats(value: Any) -> tuple[float, ...]:
    return tuple(map(float, value))


def _labels(value: Any) -> tuple[Hashable, ...]:
    """Categories as Python's own values."""
    return tuple(c.item() if isinstance(c, np.generic) else c for c in value)


def _are_labels(value: Any) -> bool:
    """Whether they are distinct categories that JSON can hold; None is the missing level."""
    labels = _labels(value)
    known = all(c is None or isinstance(c, str | int) or _is_finite(c) for c in labels)
    return is_listed(value) and known and len(set(labels)) == len(labels)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _are_codes(value: Any) -> bool:
    """Whether they are distinct finite numbers."""
    codes, is_array = _floats(value), isinstance(value, np.ndarray)
    distinct = len(set(codes)) == len(codes) and all(map(math.isfinite, codes))
    return distinct and (is_array or is_listed(value))


def _is_dense(value: Any) -> bool:
    """Whether it is the name of a dtype that is not sparse."""
    dtype = pd.api.types.pandas_dtype(value)
    return isinstance(value, str) and not isinstance(dtype, pd.SparseDtype)


def with_infinity(low: float | None, high: float | None) -> tuple[float, float]:
    """A range with None as infinity."""
    return -math.inf if low is None else low, math.inf if high is None else high


def _whole(most: int) -> Callable[[Any], bool]:
    """Whether a value is an integer of at most this absolute value."""
    return lambda value: is_number(value, Integral) and abs(int(value)) <= most


LABELS = must_be("a tuple of distinct strings and finite numbers", _are_labels, _labels)
CODES = must_be("a tuple of distinct finite numbers", _are_codes, _floats)
COST = must_be(
    # Sums of them are finite in single precision.
    "a finite number above 0 (and below 1e30)",
    lambda value: is_number(value) and 0.0 < float(value) < 1e30,
    float,
)
ENDS = must_be(
    "two finite numbers (low, high), low <= high",
    lambda value: _is_pair(value) and all(map(math.isfinite, value)),
    _floats,
)
RANGE = optional(must_be("None or two numbers (low, high), low <= high", _is_pair, _floats))
TEXT = must_be("a text", lambda value: isinstance(value, str), str)
TEXTS = must_be(
    "a tuple of texts", lambda value: all(isinstance(each, str) for each in value), tuple
)
KIND = must_be(f"one of {[str(kind) for kind in Kind]}", Kind, Kind)
SIGN = must_be("-1, 0 or 1", _whole(1), int)
DECIMALS = optional(must_be("a number of decimals, or None", _whole(MOST_DECIMALS), int))
DTYPE = must_be("the name of a pandas dtype that is not sparse", _is_dense)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _are_texts(value: Any) -> bool:
    every = value.values() if isinstance(value, Mapping) else [value]
    return all(isinstance(each, str) for each in every)


@dataclass(frozen=True)
class Argument:
    """An argument of `Schema.infer`, which sets an attribute of features.

    Attributes:
        name: the argument.
        value: where it is a list of features, what the file of `Schema.to_toml` says of each;
            None where it is `{feature: value}`.
        fits: what each value of these must be, and whether it is.
        of_whole: whether it may also name a feature of several columns.
        says_what: whether it says what a column is, which then is no identifier.
    """

    name: str
    value: str | bool | None = None
    fits: tuple[str, Callable[[Any], bool]] = "", lambda _: True
    of_whole: bool = False
    says_what: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it is a list of features."""
        return self.value is not None


def attribute(
    default: Any, rule: Rule, *stated: Argument, key: str = "", texts: bool = False
) -> Any:
    """An attribute of features.

    Args:
        default: its value, if it has a usual one.
        rule: what its values are.
        stated: the arguments of `Schema.infer` that state it.
        key: what the file of `Schema.to_toml` calls it in the table of a feature.
        texts: whether only texts read it.
    """
    known = {"rule": rule, "stated": stated, "key": key, "texts": texts}
    return field(default=default, metadata=known)


WHAT = partial(Argument, says_what=True)
VALUES, SOME = ("a list of values", _is_list), ("a list of levels", _is_list)
A_TEXT = "a text", lambda value: isinstance(value, str)
TEXT_OR_TEXTS = "a text or {level: text}", _are_texts
PAIR = "(low, high)", lambda value: _is_list(value) and len([*value]) == 2
IN_ORDER = "a list of levels, the least first", _is_list


def _checked(_: type, given: dict[str, Any]) -> None:
    """Attributes as they must be; numpy numbers become Python's, which JSON can hold."""
    own = {**rules(), **({"special": CODES} if given["kind"] == Kind.NUMERIC else {})}
    for name, rule in own.items():
        given[name] = rule(f"feature {given['name']!r}: {name}", given[name], SchemaError)
    # What is stated of all columns is stated of each.
    whole: dict[str, Any] = {name: given[name] for name in ("immutable", "cost", "actionable")}
    given["dummies"] = tuple(dataclasses.replace(each, **whole) for each in given["dummies"])


@completed(_checked)
@dataclass(frozen=True)
class Feature:
    """One feature of the user's frame.

    Attributes:
        name: the column's name.
        kind: numeric, binary (at most two values, one encoded column) or categorical.
        bounds: smallest and largest observed value, in user units; they scale the encoding.
        categories: the values of a binary or categorical feature, in encoding order.
        precision: decimals that a number is rounded to; None leaves it unrounded.
        dtype: the pandas dtype of the training column.
        immutable: it never changes, neither directly nor indirectly.
        direction: +1 may only increase, -1 may only decrease, 0 either.
        limits: the `(low, high)` that restricts a number; it does not scale the encoding.
        levels: of a category column, all its levels in order, unobserved ones included; models
            that use the codes depend on them.
        stored: of a category column, all its levels as its dtype has them, where these are in
            another order than `levels`; else empty.
        ordered: of a category column, whether its dtype is ordered. With three or more levels in
            order the feature is numeric, its numbers the places 0, 1, 2, ... of its levels.
        special: of a number, the codes that are no amounts (-9 for "no such account"), in user
            units; each is a separate level, as a missing value is. Of a category, the levels that
            say that the value is not known ("?").
        excluded: of a category, levels that nothing changes to; a row may leave them.
        observed: of a number of few values with gaps, a common step or no decimals that hold them,
            the only values that it may take, in user units; empty where it may take others.
        missing: how a missing value is written: "" when none were observed, "none" when an object
            column has None, else "nan". A category's missing level is its last category, None.
        enter_special: whether an action may set a special or missing level.
        leave_special: whether an action may change a special or missing value.
        actionable: whether it is acted on when `act_on` is not given; if not, as of categories of
            many levels, it is acted on only when `act_on` names it.
        identifier: it says which row it is: it is immutable, nothing is conditioned on it, and
            distances ignore it.
        label: what texts call it, "the loan"; "" for its name.
        level_labels: what texts call each of its `choices`; "" for itself. Empty for none.
        unit: the unit of a number in texts, "thousand euros"; "" for none.
        central: the ends of a number's central training values, see `Schema.infer`; None for
            `bounds`. Actions do not leave them.
        scale: the change that costs 1 before `cost` counts; 0 for the range of `bounds`.
        step: actions set multiples of it; None for `usual_step`, 0 for any value.
        cost: what a change by `scale`, or to another category, costs an applicant.
        dummies: of a category whose cells are spread over several columns of frames, these: the
            i-th one is 1 where the row has the i-th category.

    Raises:
        SchemaError: an attribute has an invalid value.

    Example:
        >>> from dear_plugin import Feature, Kind
        >>> Feature("income", Kind.NUMERIC, bounds=(10.0, 90.0), direction=+1).width
        80.0
    """

    name: str = attribute(MISSING, TEXT)
    kind: Kind = attribute(  # noqa: RUF009
        MISSING, KIND, WHAT("categorical", "category"), WHAT("numeric", "number"), key="kind"
    )
    bounds: tuple[float, float] = attribute((0.0, 1.0), ENDS)
    categories: tuple[Hashable, ...] = attribute((), LABELS)
    precision: int | None = attribute(None, DECIMALS, key="precision")
    dtype: str = attribute("float64", DTYPE)
    immutable: bool = attribute(
        False, boolean, Argument("immutable", True, of_whole=True), key="immutable"
    )
    direction: int = attribute(
        0, SIGN, *(WHAT(way, way) for way in ("increasing", "decreasing")), key="direction"
    )
    limits: tuple[float, float] | None = attribute(
        None, RANGE, WHAT("ranges", fits=PAIR), key="range"
    )
    levels: tuple[Hashable, ...] = attribute(
        (), LABELS, WHAT("ordered", fits=IN_ORDER), key="ordered"
    )
    stored: tuple[Hashable, ...] = attribute((), LABELS)
    ordered: bool = attribute(False, boolean)
    special: tuple[Any, ...] = attribute(
        (), LABELS, Argument("special", fits=VALUES, of_whole=True), key="special"
    )
    excluded: tuple[Any, ...] = attribute(
        (), LABELS, Argument("excluded", fits=SOME, of_whole=True), key="excluded"
    )
    observed: tuple[float, ...] = attribute(
        (), CODES, Argument("observed", fits=VALUES), key="observed"
    )
    missing: Literal["", "nan", "none"] = attribute("", one_of("", "nan", "none"))
    enter_special: bool = attribute(False, boolean, key="enter_special")
    leave_special: bool = attribute(False, boolean, key="leave_special")
    actionable: bool = attribute(
        True, boolean, Argument("only_named", False, of_whole=True), key="actionable"
    )
    identifier: bool = attribute(False, boolean, Argument("identifiers", True), key="identifier")
    label: str = attribute(
        "", TEXT, Argument("labels", fits=TEXT_OR_TEXTS, of_whole=True), key="label", texts=True
    )
    level_labels: tuple[str, ...] = attribute((), TEXTS, key="levels", texts=True)
    unit: str = attribute("", TEXT, WHAT("units", fits=A_TEXT), key="unit", texts=True)
    central: tuple[float, float] | None = attribute(None, optional(ENDS))
    scale: float = attribute(0.0, number())
    step: float | None = attribute(None, optional(number()), Argument("steps"), key="step")
    cost: float = attribute(1.0, COST, Argument("costs", of_whole=True), key="cost")
    dummies: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        """Check that the attributes fit one another."""
        if self.levels and not {c for c in self.categories if c is not None} <= set(self.levels):
            raise SchemaError(f"feature {self.name!r}: its categories must be among its levels")
        for what in ("excluded",) if self.has_order else ("special", "excluded"):
            some, where = getattr(self, what), f"{what}[{self.name!r}]"
            require_known(where, "values", some, self.categories)
        if complaint := _complaint(self):
            raise SchemaError(complaint)

    @lazy
    def has_order(self) -> bool:
        """Whether its row values have an order: numbers, or the places of levels."""
        return self.kind is Kind.NUMERIC

    @lazy
    def limited_by(self) -> tuple[str, ...]:
        """The arguments of `Constraints` that limit it, the usual one first."""
        return ("ranges",) * self.has_order + ("categories",) * bool(self.choices)

    @property
    def called(self) -> str:
        """What a sentence calls it: its label, or its name."""
        return self.label or self.name

    @property
    def title(self) -> str:
        """What a heading calls it: "Loan" for the label "the loan", or its name."""
        start = self.label.removeprefix("the ")
        return f"{start[:1].upper()}{start[1:]}" or self.name

    @lazy
    def choices(self) -> tuple[Hashable, ...]:
        """The labels that a cell may have: its categories, or levels with an order."""
        return self.levels if self.has_order else self.categories

    @lazy
    def known(self) -> tuple[Hashable, ...]:
        """The labels that cells may have, a missing one as None, by position."""
        return (*self.levels, None) if self.ranked else self.choices

    @lazy
    def ranked(self) -> tuple[Hashable, ...]:
        """The levels that have an order, the least first; () where it has none."""
        return self.levels if self.has_order else ()

    @property
    def answers(self) -> list[Hashable]:
        """The labels that an action may set."""
        barred = {None, *self.special, *self.excluded}
        return [label for label in self.choices if label not in barred]

    @property
    def few(self) -> list[Any]:
        """The few cells that an action may set; [] where it may set any number."""
        return self.answers or [*self.observed]

    @lazy
    def dtype_levels(self) -> tuple[Hashable, ...]:
        """All levels of a category column, as its dtype has them."""
        return self.stored or self.levels or self.categories

    def called_level(self, level: Hashable) -> str:
        """What texts call one of its choices, "yes" for True; "" for itself."""
        named = dict(zip(self.choices, self.level_labels, strict=False)).get(level, "")
        return named or (("no", "yes")[level] if isinstance(level, bool) else "")

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest row value: observed numbers, or positions of categories."""
        last = float(max(len(self.categories) - 1, 0))
        return self.bounds if self.has_order else (0.0, last)

    @lazy
    def width(self) -> float:
        """The range that is scaled to [0, 1]; 1 for constants and categories."""
        low, high = self.bounds
        return high - low if high > low and self.has_order else 1.0

    @property
    def unit_of_cost(self) -> float:
        """The change of a number that costs 1 where `cost` is 1."""
        return self.scale or self.width

    @lazy
    def usual_step(self) -> float:
        """1, 2 or 5 times 10^k: at most 1 % of the unit of cost, at least the last decimal."""
        last = 0.0 if self.precision is None else 10.0**-self.precision
        most = max(SHARE * self.unit_of_cost, last)
        power = 10.0 ** math.floor(math.log10(most))
        return max(each * power for each in (1.0, 2.0, 5.0) if each * power <= most * ROUNDED)

    @lazy
    def action_step(self) -> float:
        """The step of actions on it; 0 where there is none: any value, or the observed ones."""
        if self.observed or self.choices:
            return 0.0
        return self.usual_step if self.step is None else self.step

    @lazy
    def codes(self) -> tuple[float, ...]:
        """The numbers inside of its range that are no amounts: an action would make it unknown."""
        (low, high), (first, last) = self.bounds, self.limits or self.bounds
        low, high = min(low, first), max(high, last)
        return (
            tuple(code for code in self.special if low <= code <= high) if self.has_order else ()
        )

    @property
    def is_flag(self) -> bool:
        """Whether it is 0 or 1: as two values, words of a host, or a number of two values."""
        if self.choices:
            return self.kind is Kind.BINARY and tuple(map(str, self.categories)) in FLAGS
        return self.bounds == (0.0, 1.0) and self.precision == 0 and not self.special_levels

    @lazy
    def members(self) -> tuple[Feature, ...]:
        """The columns of frames that hold its cells: one, or its dummies."""
        return self.dummies or (self,)

    @lazy
    def special_levels(self) -> int:
        """The number of special levels of a number; a missing value is the last one."""
        return len(self.special) + bool(self.missing) if self.has_order else 0

    @property
    def columns(self) -> int:
        """The number of its encoded columns: of a number and its levels, or of labels."""
        if self.has_order:
            return 1 + self.special_levels
        return len(self.categories) if self.kind is Kind.CATEGORICAL else 1

    @property
    def special_values(self) -> Tensor:
        """(l,) double, the row values of codes, what is not known and, last, what is missing."""
        if self.has_order:
            out: Tensor = row_value(torch.arange(self.special_levels, dtype=torch.float64))
            return out
        some = (*self.special, *[None] * (None in self.categories))
        return torch.tensor([self.categories.index(each) for each in some], dtype=torch.float64)

    @property
    def label_values(self) -> Tensor:
        """(l,) double, the row values that are no amounts and that an action may set or leave.

        They are the positions of all labels, or the special levels of a number.
        """
        if self.has_order:
            return self.special_values[: None if self.enter_special or self.leave_special else 0]
        return torch.arange(len(self.categories), dtype=torch.float64)

    @property
    def missing_value(self) -> float:
        """The row value of a missing cell; NaN where no training row has one."""
        return float(self.special_values[-1]) if self.missing else math.nan

    def values(self, column: Tensor) -> Tensor:
        """(l,) ascending, the row values that an action may set, given training ones, (n,).

        They are the distinct amounts, or a single zero; or the positions of all labels.
        """
        out: Tensor = amounts_of(column).unique() if self.has_order else self.label_values
        return out.to(column)

    def changes(self, before: Tensor, after: Tensor) -> Tensor:
        """(m, 2) int64, the label before and after, (m,); of amounts -2 the less, -1 the more."""
        ends = torch.stack([before, after], 1)
        if not self.has_order:
            return ends.long()
        rises = (after > before).long()
        order = torch.stack([-1 - rises, rises - 2], 1)
        out: Tensor = torch.where(known(ends), order, level_of(ends).long())
        return out

    def place(self, cell: Any) -> Any:
        """The row value of a number or label.

        A code of a number, whose row value is another, and what it cannot read are returned as
        they are; by labels without an order, what is none of them as NaN.
        """
        if self.has_order:
            level = isinstance(cell, Hashable) and cell in self.levels
            return float(self.levels.index(cell)) if level else cell
        label = None if pd.isna(cell) is True else cell
        return float(self.categories.index(label)) if label in self.categories else math.nan

    def is_amount(self, cell: Any) -> bool:
        """Whether a cell is a number, and neither a code nor missing."""
        return not (self.choices or pd.isna(cell) or cell in self.special)

    def range_in(self, dtype: Any) -> tuple[float, float, int | None]:
        """The least and greatest row value of a column of a dtype, and its decimals.

        By the schema, and as far as the dtype can hold it; None leaves values unrounded. Of few
        observed values they are the least and the greatest inside of the limits.
        """
        if not self.has_order:
            return *self.ends, 0
        every = (ends_of(plain_dtype(dtype)), self.bounds, self.limits or self.bounds)
        lows, highs = zip(*every, strict=True)
        low, high = max(lows), min(highs)
        if self.observed:
            inside = [value for value in self.observed if low <= value <= high]
            low, high = min(inside, default=math.inf), max(inside, default=-math.inf)
        return low, high, self.decimals_in(dtype)

    def decimals_in(self, dtype: Any) -> int | None:
        """The decimals of a column of a dtype: integers have at most 0 whatever the precision."""
        places = self.precision
        return min(places or 0, 0) if plain_dtype(dtype).kind in "iu" else places

    def typed(self, cells: Array) -> pd.Series | Array:
        """Cells, (n,), that its dtype can hold, as a column of it, or an array."""
        dtype = self.dtype
        if dtype == "float64" or (dtype == "int64" and not self.missing):
            return cells.astype(dtype)  # much faster than a Series
        return pd.Series(cells, dtype=object if dtype == "object" else None).astype(dtype)

    def has_levels(self, dtype: pd.CategoricalDtype) -> bool:
        """Whether a dtype has the levels of the training column, and their order."""
        own = self.ordered, list(self.dtype_levels)
        return bool((dtype.ordered, dtype.categories.tolist()) == own)

    def cast(self, column: pd.Series) -> pd.Series:
        """A column with the dtype of the training column, or as it is if that cannot hold it.

        A label that is no level of a category column becomes a missing value.
        """
        if self.dtype == "category":
            dtype = pd.CategoricalDtype(list(self.dtype_levels), self.ordered)
            codes = dtype.categories.get_indexer(column.astype(object))
            cells = pd.Categorical.from_codes(codes, dtype=dtype)
            return pd.Series(cells, column.index, name=column.name)
        cells = column.astype(object) if self.choices else unboxed(column)
        if self.missing == "none":
            cells = cells.where(cells.notna(), None)
        try:
            out = cells.astype(self.dtype)
        except (TypeError, ValueError):  # such as a missing value among integers
            return column
        rounds = out.dtype.kind == "f"
        return out if rounds or bool(((out == cells) | cells.isna()).all()) else column

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity: an open end of a range is None."""
        limits = self.limits and [e if math.isfinite(e) else None for e in self.limits]
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        own = [each.to_dict() for each in self.dummies]
        return {**plain, "kind": self.kind.value, "limits": limits, "dummies": own}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Feature:
        """The inverse of `to_dict`."""
        values = dict(values)
        if values.pop("cyclic", False):  # of 0.5
            raise SchemaError(
                f"{values['name']!r} was saved as cyclic, which 0.6 does not have: infer the"
                " schema, fit and save again"
            )
        ends = values["limits"]
        limits = None if ends is None else with_infinity(*ends)
        dummies = tuple(map(cls.from_dict, values["dummies"]))
        return cls(**{**values, "limits": limits, "dummies": dummies})


def _complaint(feature: Feature) -> str:
    """What keeps it from being a feature of its kind; "" for nothing."""
    own = f"feature {feature.name!r}"
    if not feature.has_order:
        if not (feature.direction and feature.kind is Kind.CATEGORICAL):
            return ""
        return (
            f"{feature.name!r} has {len(feature.categories)} categories without an order: it"
            f" cannot be increasing or decreasing; ordered={{{feature.name!r}: [...]}} states one"
        )
    if not feature.levels:
        if not pd.api.types.is_numeric_dtype(feature.dtype):
            return f"{own}: a number cannot have dtype {feature.dtype!r}"
        places, step = feature.precision, feature.step or 0.0
        if places is not None and not math.isclose(step, round(step, places)):
            return (
                f"{own}: step {step:g} must be a multiple of its last decimal, {10.0**-places:g};"
                f" schema.replace({feature.name!r}, precision=...) states another one"
            )
    if math.isfinite(feature.width):
        return ""
    text = f"has the range {feature.bounds}, which overflows a float: use larger units"
    return f"column {feature.name!r} {text}"


@cache
def rules() -> dict[str, Rule]:
    """What the attributes of features may be."""
    return {each.name: each.metadata["rule"] for each in attributes()}


@cache
def arguments() -> dict[str, Argument]:
    """The arguments of `Schema.infer` on features, by name."""
    return {stated.name: stated for each in attributes() for stated in each.metadata["stated"]}


def attributes() -> list[dataclasses.Field[Any]]:
    """The attributes of features, each with what `attribute` says of it."""
    return [each for each in dataclasses.fields(Feature) if each.metadata]


# A number with a unit, and what separates its thousands and its decimals.
NUMERAL = (
    r"\s*[(+-]?\s*{0}\s*[+-]?(0|[1-9]\d*|[1-9]\d{{0,2}}({1}\d{{2,3}})*{1}\d{{3}})({2}\d+)?"
    r"\s*{0}\s*[)-]?\s*"
)
DOTTED = r"[+-]?[1-9]\d{0,2}(\.\d{3})+"
GROUPED = {
    (",", r"\."): '.str.replace(",", "", regex=False)',
    (r"\.", ","): '.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)',
    (r"[\s'’]", "[.,]"): '.str.replace(",", ".", regex=False)',
}
# What is none of a number with separators, and what makes it one.
CLEANED = {
    "−": '.str.replace("−", "-", regex=False)',
    r"\(": '.str.replace("(", "-", regex=False)',
    r"-\s*$": r'.str.replace(r"(.*)-\s*$", r"-\1", regex=True)',
    r"[^\d.,+-]": r'.str.replace(r"[^\d.,+-]", "", regex=True)',
}
DAYS = '(pd.to_datetime({0}, utc=True) - pd.Timestamp("2000-01-01", tz="UTC")).dt.days'
# By the type of its cells, what a column holds, and what makes numbers or text of it.
CONVERSIONS: dict[type, tuple[str, str]] = {
    datetime.date: ("dates", DAYS),
    datetime.timedelta: ("durations", "pd.to_timedelta({0}).dt.total_seconds() / 86400"),
    pd.Period: (
        "periods",
        '(pd.PeriodIndex({0}).to_timestamp() - pd.Timestamp("2000-01-01")).days',
    ),
    pd.Interval: ("intervals", "pd.IntervalIndex({0}).mid.astype(float)"),
    bytes: ("bytes", "{0}.map(bytes.decode, na_action='ignore')"),
    decimal.Decimal: ("decimals", "{0}.astype(float)"),
    complex: ("complex numbers, which have no order", "{0}.abs()"),
    str: ("", ""),
}
OTHERS = "values that are neither text nor numbers", "{0}.map(str)"


def complaint(name: str, column: pd.Series) -> str:
    """The error message on a column of no kind, (n,), with what makes it one; "" for others."""
    what, code = conversion(column)
    return what and f"column {name!r} holds {what} ({column.dtype}): {line(name, code)}"


def line(name: str, code: str) -> str:
    """The line that converts a column, by the code for `{0}`, if there is one."""
    cells = f"frame[{name!r}]"
    if not code:
        return "correct the text that is no number"
    return f"{cells} = {code.format(cells)}"


def conversion(column: pd.Series) -> tuple[str, str]:
    """What a column of no kind holds, and code that converts `{0}`; "" for numbers and text."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return "sparse cells", "{0}.sparse.to_dense()"
    if str(dtype).startswith("dictionary"):
        return "an Arrow dictionary", '{0}.astype(object).astype("category")'
    if isinstance(dtype, np.dtype) and dtype.kind in "iufb":  # much faster than a look at cells
        return "", ""
    cell = next(iter(column.dropna().head(1).tolist()), "")
    known = (found for kind, found in CONVERSIONS.items() if isinstance(cell, kind))
    plain = isinstance(cell, int | float | np.number | np.bool_)
    return next(known, ("", "") if plain else OTHERS)


def as_numbers(column: pd.Series) -> str:
    """Code that makes numbers of the text `{0}` of a column, (n,); "" for other text.

    It was run, and reads all text with digits; a comment says that other text gets lost.
    """
    text, coerce, lost = with_digits(column)
    code = _as_numbers(text.drop_duplicates()) if len(text) else ""
    run = f"pd.to_numeric({code}{coerce})"
    known = eval(run.format("column"), {"pd": pd, "column": column}) if code else text
    return run + lost if code and known.notna().sum() == len(text) else ""


def with_digits(column: pd.Series) -> tuple[pd.Series, str, str]:
    """The text of a column, (n,), with digits; the argument that loses other text, a comment."""
    cells = column.dropna().astype(str)
    some = cells.str.contains(r"\d")
    others = cells.index[~some]
    lost = (
        f"  # text that is no number in {len(others)} rows, first {others[:1].tolist()}, gets lost"
    )
    return cells[some], ', errors="coerce"' * bool(len(others)), lost * bool(len(others))


def _as_numbers(levels: pd.Series) -> str:
    """Code that leaves of the text `{0}` what is a number with a point; "" for other text."""
    dotted = levels.str.contains(".", regex=False)
    grouped = dotted.any() and not dotted.all() and levels[dotted].str.fullmatch(DOTTED).all()
    if not grouped and pd.to_numeric(levels, errors="coerce").notna().all():
        return "{0}"
    plain = levels.str.replace("−", "-", regex=False)
    unit, *others = plain.str.replace(r"[\d\s.,'’()+-]", "", regex=True).unique()
    if others or (unit.isalpha() and plain.str.match(r"\s*[^\W\d]").any() and not unit.isupper()):
        return ""
    for (thousands, point), code in [*GROUPED.items()][bool(grouped) :]:
        if plain.str.fullmatch(NUMERAL.format(f"({re.escape(unit)})?", thousands, point)).all():
            cleaned = (do for what, do in CLEANED.items() if levels.str.contains(what).any())
            return "".join(["{0}", *cleaned, code * bool(levels.str.contains("[,.]").any())])
    return ""


Mask = npt.NDArray[np.bool_]


def with_cells(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """A frame, (n, p), with some columns new; any name will do, where `assign` refuses "self"."""
    out = frame.copy(deep=False) if columns else frame
    for name, cells in columns.items():
        out[name] = cells
    return out


def plain_dtype(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype of a pandas or Arrow dtype; that of objects if there is none."""
    own = getattr(dtype, "numpy_dtype", dtype)
    return own if isinstance(own, np.dtype) else np.dtype(object)


@lru_cache(maxsize=32)
def ends_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and greatest float that a dtype can hold; infinite if it is none of numbers."""
    if dtype.kind not in "iuf":
        return -math.inf, math.inf
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    # The greatest 64-bit integer is not a float64; the next float above it would overflow.
    return low, high if dtype.kind == "f" or int(high) <= info.max else math.nextafter(high, 0.0)


def unboxed(column: pd.Series) -> pd.Series:
    """A column whose numbers, held as objects as a row of a frame does, are numbers again."""
    if column.dtype != object:
        return column
    cells = column.to_numpy(copy=True)
    cells[column.isna().to_numpy()] = np.nan
    return pd.Series(cells, index=column.index, name=column.name).infer_objects()
