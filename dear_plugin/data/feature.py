"""Feature: the kind, scale and allowed changes of one column of the user's frame."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from dear_plugin._validation.settings import Named, Rule
from dear_plugin.data.attributes import RULES, Kind, with_infinity
from dear_plugin.data.column import Column
from dear_plugin.data.kinds import remedies
from dear_plugin.data.kinds.cells import Array, Reading, unboxed
from dear_plugin.errors import SchemaError, SettingError, unknown

# The largest usual step as a share of the unit of cost, and rounding errors of it.
SHARE, ROUNDED = 0.01, 1.0 + 1e-9


@dataclass(frozen=True)
class Feature(Named, Column):
    """One feature of the user's frame; an instance is of the subclass of its kind, in `kinds`.

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
        scale: the change that costs 1 before `cost` counts; 0 for the range of `bounds`.
        step: actions set multiples of it; None for `usual_step`, 0 for any value.
        cost: what a change by `scale`, or to another category, costs an applicant.
        dummies: of a category whose cells are spread over several columns of frames, these: the
            i-th one is 1 where the row has the i-th category.
        cyclic: of a category, whether its levels go around: after the last comes the first.

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
    cyclic: bool = False

    # The last one that is defined comes first where attributes are taken.
    kinds: ClassVar[list[type[Feature]]] = []
    # What else the attributes of a kind may be.
    _rules: ClassVar[Mapping[str, Rule]] = {}

    def __init_subclass__(cls) -> None:
        """A kind of column, or what some share."""
        if "takes" in vars(cls):
            Feature.kinds.insert(0, cls)

    def __new__(cls, *given: Any, **attributes: Any) -> Feature:
        """An instance of the kind that takes these attributes."""
        if not (given or attributes):  # of a copy, which has the attributes later
            return object.__new__(cls)
        kind = attributes.get("kind", given[1] if len(given) > 1 else None)
        own = next(each for each in Feature.kinds if each.takes(kind, attributes))
        if issubclass(own, cls):
            super().__new__(Feature, *given, **attributes)  # refuses what is no attribute
            return object.__new__(own)
        return own(*given, **attributes)  # of `replace` with attributes of another kind

    def __post_init__(self) -> None:
        """Validate the attributes; numpy numbers become Python's, which JSON can hold."""
        for name, rule in {**RULES, **self._rules}.items():
            try:
                value = rule(f"feature {self.name!r}: {name}", getattr(self, name))
            except SettingError as error:
                raise SchemaError(str(error)) from None
            object.__setattr__(self, name, value)
        if self.levels and not {c for c in self.categories if c is not None} <= set(self.levels):
            raise SchemaError(f"feature {self.name!r}: its categories must be among its levels")
        for what in ("special", "excluded"):
            some = getattr(self, what)
            if what not in self._rules and not set(some) <= set(self.categories):
                where = f"{what}[{self.name!r}]"
                raise SchemaError(f"{where}: {unknown('values', some, self.categories)}")
        if complaint := self.complaint:
            raise SchemaError(complaint)

    @property
    def complaint(self) -> str:
        """What else keeps it from being a feature of its kind; "" for nothing."""
        return ""

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
    def choices(self) -> tuple[Hashable, ...]:
        """The labels that a cell may have: its categories, or levels with an order."""
        return self.categories

    @property
    def known(self) -> tuple[Hashable, ...]:
        """The labels that cells may have, a missing one as None, by position."""
        return self.choices

    @property
    def ranked(self) -> tuple[Hashable, ...]:
        """The levels that have an order, the least first; () where it has none."""
        return ()

    @property
    def answers(self) -> list[Hashable]:
        """The labels that an action may set."""
        barred = {None, *self.special, *self.excluded}
        return [label for label in self.choices if label not in barred]

    @property
    def few(self) -> list[Any]:
        """The few cells that an action may set; [] where it may set any number."""
        return self.answers or [*self.observed]

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
        return 0.0, float(max(len(self.categories) - 1, 0))

    @property
    def unit_of_cost(self) -> float:
        """The change of a number that costs 1 where `cost` is 1."""
        return self.scale or self.width

    @property
    def usual_step(self) -> float:
        """1, 2 or 5 times 10^k: at most 1 % of the unit of cost, at least the last decimal."""
        last = 0.0 if self.precision is None else 10.0**-self.precision
        most = max(SHARE * self.unit_of_cost, last)
        power = 10.0 ** math.floor(math.log10(most))
        return max(each * power for each in (1.0, 2.0, 5.0) if each * power <= most * ROUNDED)

    @property
    def members(self) -> tuple[Feature, ...]:
        """The columns of frames that hold its cells: one, or its dummies."""
        return self.dummies or (self,)

    @property
    def missing_value(self) -> float:
        """The row value of a missing cell; NaN where no training row has one."""
        return float(self.special_values[-1]) if self.missing else math.nan

    def read_frame(
        self, frame: pd.DataFrame, accepted: Array | None = None, before: Array | None = None
    ) -> Reading:
        """The row values of its columns of a frame; see `read`.

        Args:
            frame: of n rows.
            accepted: (n,) bool, the rows that may have a label that no training row has.
            before: (n,) the row values that another package changed; of several columns, of which
                it may set one to 1 and leave another at 1, the one that it sets counts.
        """
        return self.read(frame[self.name], accepted)

    def read(self, column: pd.Series, accepted: Array | None = None) -> Reading:
        """The row values of a column, with a complaint if it has unreadable cells.

        Args:
            column: (n,) its cells.
            accepted: (n,) bool, the rows that may have a label that no training row has.
        """
        if isinstance(column.dtype, pd.SparseDtype):
            return Reading(np.empty(0), remedies.complaint(self.name, column))
        return self.read_cells(column, accepted)

    def typed(self, cells: Array) -> pd.Series | Array:
        """Cells, (n,), that its dtype can hold, as a column of it, or an array."""
        dtype = self.dtype
        if dtype == "float64" or (dtype == "int64" and not self.missing):
            return cells.astype(dtype)  # much faster than a Series
        return pd.Series(cells, dtype=object if dtype == "object" else None).astype(dtype)

    def has_dtype(self, dtype: Any) -> bool:
        """Whether a dtype is that of the training column, its levels and their order included."""
        if str(dtype) != "category":
            return str(dtype) == self.dtype
        own = self.dtype, self.ordered, list(self.dtype_levels)
        return bool((str(dtype), dtype.ordered, dtype.categories.tolist()) == own)

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
        own = {"kind": self.kind.value, "limits": limits}
        return {**plain, **own, "dummies": [each.to_dict() for each in self.dummies]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Feature:
        """The inverse of `to_dict`."""
        ends = values["limits"]
        limits = None if ends is None else with_infinity(*ends)
        dummies = tuple(map(cls.from_dict, values["dummies"]))
        return cls(**{**values, "limits": limits, "dummies": dummies})
