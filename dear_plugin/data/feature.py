"""Feature: the kind, scale and allowed changes of one column of the user's frame."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import pandas as pd

from dear_plugin._validation.settings import Named
from dear_plugin.data.attributes import CODES, RULES, converted
from dear_plugin.errors import SchemaError, SettingError, unknown

_TUPLES = (  # lists in JSON
    *("bounds", "categories", "levels", "stored", "special", "excluded", "observed"),
    "level_labels",
)
# The largest usual step as a share of the unit of cost, and rounding errors of it.
SHARE, ROUNDED = 0.01, 1.0 + 1e-9


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


@dataclass(frozen=True)
class Feature(Named):
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
        observed: of a number of few values with gaps or a common step, the only values that it may
            take, in user units; empty where it may take others.
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
        scale: the change of a number that costs 1 before `cost` counts; 0 for the range of
            `bounds`.
        step: actions set multiples of it; None for `usual_step`, 0 for any value.
        cost: what a change by `scale`, or to another category, costs a person who acts on it.
        dummies: of a category whose cells are spread over several columns of frames, these: the
            i-th one is 1 where the row has the i-th category.

    Raises:
        SchemaError: an attribute has an invalid value.

    Example:
        >>> from dear_plugin import Feature, Kind
        >>> Feature("income", Kind.NUMERIC, bounds=(10.0, 90.0), direction=+1).width
        80.0
    """

    name: str
    kind: Kind
    bounds: tuple[float, float] = (0.0, 1.0)
    categories: tuple[Hashable, ...] = ()
    precision: int | None = None
    dtype: str = "float64"
    immutable: bool = False
    direction: int = 0
    limits: tuple[float, float] | None = None
    levels: tuple[Hashable, ...] = ()
    stored: tuple[Hashable, ...] = ()
    ordered: bool = False
    special: tuple[Any, ...] = ()
    excluded: tuple[Any, ...] = ()
    observed: tuple[float, ...] = ()
    missing: Literal["", "nan", "none"] = ""
    enter_special: bool = False
    leave_special: bool = False
    actionable: bool = True
    identifier: bool = False
    label: str = ""
    level_labels: tuple[str, ...] = ()
    unit: str = ""
    central: tuple[float, float] | None = None
    scale: float = 0.0
    step: float | None = None
    cost: float = 1.0
    dummies: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        """Validate the attributes; numpy numbers become Python's, which JSON can hold."""
        kind = converted(f"one of {[str(kind) for kind in Kind]}", Kind)
        for name, rule in {"kind": kind, **RULES}.items():
            if name == "special" and self.is_number:
                rule = CODES
            try:
                value = rule(f"feature {self.name!r}: {name}", getattr(self, name))
            except SettingError as error:
                raise SchemaError(str(error)) from None
            object.__setattr__(self, name, value)
        number = pd.api.types.is_numeric_dtype(pd.api.types.pandas_dtype(self.dtype))
        if self.holds_numbers and not number:
            raise SchemaError(f"feature {self.name!r}: a number cannot have dtype {self.dtype!r}")
        if self.levels and not {c for c in self.categories if c is not None} <= set(self.levels):
            raise SchemaError(f"feature {self.name!r}: its categories must be among its levels")
        for what in ("special", "excluded"):
            some = getattr(self, what)
            codes = self.is_number and what == "special"
            if not codes and not set(some) <= set(self.categories):
                where = f"{what}[{self.name!r}]"
                raise SchemaError(f"{where}: {unknown('values', some, self.categories)}")
        if self.direction and self.kind is Kind.CATEGORICAL:
            raise SchemaError(
                f"{self.name!r} has {len(self.categories)} categories without an order: it cannot"
                f" be increasing or decreasing; ordered={{{self.name!r}: [...]}} states one"
            )
        if not math.isfinite(self.width):
            raise SchemaError(
                f"column {self.name!r} has the range {self.bounds}, which overflows a float: use"
                " larger units"
            )
        if self.step and not self.is_on_grid(self.step):
            raise SchemaError(
                f"feature {self.name!r}: step {self.step:g} must be a multiple of its last"
                f" decimal, {10.0 ** -(self.precision or 0):g}; schema.replace({self.name!r},"
                " precision=...) states another one"
            )

    def is_on_grid(self, value: float) -> bool:
        """Whether a number has no more decimals than the feature."""
        return self.precision is None or math.isclose(value, round(value, self.precision))

    @property
    def called(self) -> str:
        """What a sentence calls it: its label, or its name."""
        return self.label or self.name

    @property
    def title(self) -> str:
        """What a heading calls it: "Loan" for the label "the loan", or its name."""
        start = self.label.removeprefix("the ")
        return f"{start[:1].upper()}{start[1:]}" or self.name

    @property
    def is_number(self) -> bool:
        """Whether rows have numbers: its own, or the places of levels with an order."""
        return self.kind is Kind.NUMERIC

    @property
    def holds_numbers(self) -> bool:
        """Whether its cells are numbers, and neither categories nor levels with an order."""
        return self.is_number and not self.levels

    @property
    def choices(self) -> tuple[Hashable, ...]:
        """The labels that a cell may have: its categories, or levels with an order."""
        return self.categories or (self.levels if self.is_number else ())

    @property
    def answers(self) -> list[Hashable]:
        """The labels that an action may set."""
        barred = {None, *self.special, *self.excluded}
        return [label for label in self.choices if label not in barred]

    @property
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
        return self.bounds if self.is_number else (0.0, float(max(len(self.categories) - 1, 0)))

    @property
    def width(self) -> float:
        """The range that is scaled to [0, 1]; 1 for constants and categories."""
        low, high = self.bounds
        return high - low if self.is_number and high > low else 1.0

    @property
    def unit_of_cost(self) -> float:
        """The change of a number that costs 1 where `cost` is 1."""
        return self.scale or self.width

    @property
    def usual_step(self) -> float:
        """How exactly people name it: 1, 2 or 5 times 10^k, at most 1 % of the unit of cost.

        It is at least the last decimal.
        """
        last = 0.0 if self.precision is None else 10.0**-self.precision
        most = max(SHARE * self.unit_of_cost, last)
        power = 10.0 ** math.floor(math.log10(most))
        return max(each * power for each in (1.0, 2.0, 5.0) if each * power <= most * ROUNDED)

    @property
    def action_step(self) -> float:
        """The step of actions on it; 0 where there is none: any value, or the observed ones."""
        if not self.holds_numbers or self.observed:
            return 0.0
        return self.usual_step if self.step is None else self.step

    @property
    def special_levels(self) -> int:
        """The number of special levels of a number; a missing value is the last one."""
        return len(self.special) + bool(self.missing) if self.is_number else 0

    @property
    def missing_category(self) -> int:
        """The index of the missing level among the categories, -1 if there is none."""
        return self.categories.index(None) if None in self.categories else -1

    @property
    def columns(self) -> int:
        """Its encoded columns: one, and one per special level of a number; one per category."""
        if self.kind is Kind.CATEGORICAL:
            return len(self.categories)
        return 1 + self.special_levels

    def place(self, label: Any) -> Any:
        """The row value of a level with an order; anything else, such as a number, as it is."""
        known = self.is_number and isinstance(label, Hashable) and label in self.levels
        return float(self.levels.index(label)) if known else label

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity: an open end of a range is None."""
        limits = self.limits and [e if math.isfinite(e) else None for e in self.limits]
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        own = {"kind": self.kind.value, "limits": limits}
        return {**plain, **own, "dummies": [each.to_dict() for each in self.dummies]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Feature:
        """The inverse of `to_dict`."""
        tuples = {k: tuple(values[k]) for k in _TUPLES if k in values}
        ends = values["limits"]
        limits = None if ends is None else with_infinity(*ends)
        dummies = tuple(map(cls.from_dict, values["dummies"]))
        return cls(**{**values, **tuples, "limits": limits, "dummies": dummies})


def with_infinity(low: float | None, high: float | None) -> tuple[float, float]:
    """A range with None as infinity."""
    return -math.inf if low is None else low, math.inf if high is None else high
