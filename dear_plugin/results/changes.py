"""The frame `changes`: a line for each feature that changes, and its amounts as texts.

An indirect change is "expected". Within a tier, and without an order of causes, it is an
association in the data and no causal effect; otherwise it is an effect on conditions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor

from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.evaluation.trained import CLEAR

Change: TypeAlias = Literal["direct", "forced", "indirect"]
Link: TypeAlias = Literal["", "effect", "association"]
Role: TypeAlias = Literal["", "advised", "needed", "usual"]
KINDS: tuple[Change, ...] = ("direct", "forced", "indirect")
REALS = ("low", "high", "low_one", "high_one", "size", "in_sd", "consistency")
DTYPES = {
    **dict.fromkeys(("rank", "agree", "redraws"), "int64"),
    **dict.fromkeys(REALS, "float64"),
    "exact": "bool",
}


class Line(NamedTuple):
    """What changes in one feature of one row; ranges are of changes in the feature's own unit.

    `is_amount` says whether it is a change of a number, `is_needed` whether it must follow.

    Attributes:
        row: the label of the row.
        rank: 0 for the answer of `generate`, from 1 on for alternatives.
        feature: its name, which is the column's where it has one column.
        label: what texts call it.
        kind: "direct", what is acted on; "forced", what a rule between columns sets with it;
            "indirect", what is expected to follow.
        old: the value of the factual.
        new: the value of the counterfactual.
        alone: the value with the action alone, and what it forces; `old` where it does nothing.
        least: from which value on, up to `new`, an indirect change must happen; `new` where other
            values may not do, `old` where it need not happen.
        low: the least change of a number on average of such rows, see `Worth`;
            missing for categories.
        high: the largest one.
        low_one: the least change of one row.
        high_one: the largest one.
        agree: the redraws in which it changes.
        redraws: all of them; 0 for methods without any.
        size: the change in units of cost, see `Schema.infer`; negative for a fall, 1 for a
            category.
        in_sd: how large it is in standard deviations of the training rows, never negative; 1 for a
            category, and from or to a special value. It is that of the answer, not of rounded
            values.
        consistency: of what is acted on, see `Recourses.actions`; missing elsewhere.
        unit: of a number.
        exact: of what is forced, whether it must be just that value: not where an order only
            bounds it.
        link: of an indirect change, "effect" or "association", see `Schema`; "" of others.
        stated: the rounded value that a letter states: what is acted on becomes it; what is needed
            goes up to it. None where it states none.
        stated_least: the value from which on an action may be enough, or a change is needed.
        stated_usual: the value that it states of what usually follows.
        stated_forced: the value that it states of what the action alone forces.
        of: the feature; the frame has its name.
        role: what a letter does with it: it is "advised", or "needed" with that; or "usual", as it
            follows and no row is without it; "" for none of these. The frame does not have it.
    """

    row: Any
    rank: int
    feature: str
    label: str
    kind: Change
    old: Any
    new: Any
    alone: Any
    least: Any
    low: float
    high: float
    low_one: float
    high_one: float
    agree: int
    redraws: int
    size: float
    in_sd: float
    consistency: float
    unit: str
    exact: bool
    link: Link
    stated: Any
    stated_least: Any
    stated_usual: Any
    stated_forced: Any
    of: Feature
    role: Role

    @property
    def is_amount(self) -> bool:
        """Whether both values are numbers, neither codes nor missing: only these have a range."""
        return not math.isnan(self.low)

    @property
    def is_uncertain(self) -> bool:
        """Whether a category changes in less than half of the redraws."""
        return not self.is_amount and 2 * self.agree < self.redraws

    @property
    def is_unknown(self) -> bool:
        """Whether the range of a number's change says nothing: it is wider than a usual range."""
        return self.high - self.low > self.of.unit_of_cost

    @property
    def is_open(self) -> bool:
        """Whether it is open if the number of a row rises or falls, or if a category changes."""
        return self.low_one < 0.0 < self.high_one or self.is_uncertain or self.is_unknown

    @property
    def is_needed(self) -> bool:
        """Whether an indirect change is needed, at least a part of it."""
        return self.kind == "indirect" and not same(self.least, self.old)

    @property
    def is_advised(self) -> bool:
        """Whether a letter asks the applicant for it."""
        return self.role == "advised" and self.stated is not None

    @property
    def goes_on(self) -> bool:
        """Whether what follows moves it from where the action alone leaves it."""
        return not same(self.alone, self.new)

    @property
    def is_forced(self) -> bool:
        """Whether the action alone moves what is not acted on."""
        return self.kind != "direct" and not same(self.alone, self.old)


COLUMNS = Line._fields[:-2]


class Hindrance(NamedTuple):
    """What stands in the way of stating an answer as advice.

    Attributes:
        sentence: the name of the letter's sentence that says it; "" for nothing.
        features: which features that sentence names, in words.
        nearest: in their place, what comes nearest to the wanted decision, in `stated` amounts.
        beside: what is said besides.
    """

    sentence: str = ""
    features: Sequence[str] = ()
    nearest: Sequence[Line] = ()
    beside: Sequence[Hindrance] = ()


def is_stated(lines: Iterable[Line]) -> bool:
    """Whether a letter states an answer."""
    return any(line.kind == "direct" and line.stated is not None for line in lines)


def followers(lines: Iterable[Line]) -> list[Line]:
    """The indirect changes of a row, the largest in standard deviations first."""
    some = (line for line in lines if line.kind == "indirect")
    return sorted(some, key=lambda line: -line.in_sd)


def needed_changes(lines: Iterable[Line]) -> list[Line]:
    """The changes that are needed, the largest first."""
    return [line for line in followers(lines) if line.is_needed]


def unclear_changes(lines: Iterable[Line]) -> dict[str, float]:
    """What is acted on that the model does not clearly favour, with the consistency."""
    return {line.label: line.consistency for line in lines if line.consistency < CLEAR}


def frame(lines: Iterable[Line]) -> pd.DataFrame:
    """Lines as a frame; cells of features have the dtype object, whatever they are."""
    columns = list(zip(*lines, strict=True)) or [()] * len(Line._fields)
    each = zip(COLUMNS, columns, strict=False)
    out = pd.DataFrame({n: pd.Series(list(c), dtype=DTYPES.get(n, object)) for n, c in each})
    return out.assign(row=out["row"].infer_objects())


def only(frame: pd.DataFrame, schema: Schema, kept: Tensor) -> pd.DataFrame:
    """A frame, missing where features are not kept, (n, p) bool."""
    where = dict(zip(schema.column_names, schema.of_columns(kept).T, strict=True))
    none = np.zeros(len(frame), dtype=bool)
    columns = [_only(frame[name], where.get(name, none)) for name in frame]
    return pd.concat(columns, axis=1).set_axis(frame.columns, axis=1)


def is_amount(feature: Feature, *values: Any) -> bool:
    """Whether values are numbers, and neither codes nor missing."""
    return all(map(feature.is_amount, values))


def same(one: Any, other: Any) -> bool:
    """Whether two cells are equal; missing ones are."""
    return one is other or bool(one == other) or (one != one and other != other)


def _only(column: pd.Series, kept: npt.NDArray[np.bool_]) -> pd.Series:
    """A column, missing where not kept, (n,) bool; its dtype becomes nullable where needed."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
        column = column.convert_dtypes()
    return column.where(kept)


# Significant digits of numbers without a precision, the digits of a float64, and the size from
# which on numbers are written with an exponent.
DIGITS, MOST_DIGITS, LONGEST = 6, 17, 1e15
# The decimals of which all may be written, and what stands between thousands and before decimals,
# also in amounts, and in numbers without a unit, of which one is long.
MOST_PLACES = 12
Marks: TypeAlias = tuple[str, str]
PLAIN: Marks = ("", ".")
LONG_AMOUNT, LONG = 1_000, 10_000
# A smaller share of a feature's range is zero.
ZERO = 1e-12
# Relative resolution of float32 columns.
RESOLUTION = 2.0**-22
# Significant digits of uncertain amounts.
UNCERTAIN_DIGITS = 3
# Units that start so are read as a part of the number before them.
MULTIPLES = ("ten ", "hundred ")
# What a plural has before its ending, in lower case: "years of schooling", "square metres".
PLURAL = re.compile(
    r"([a-z ]*?(?:(?:ch|sh|ss|x)(?=es)|[a-hj-rtv-z](?=s)))e?s(?=$| (?:of|an?|per|in|for|at) )"
)
SHORTEST, VOWELS, IES = 3, {*"aeiou"}, re.compile("ie$")


def number(
    value: Any,
    places: int | None = None,
    digits: int = DIGITS,
    *,
    fixed: bool = False,
    marks: Marks = PLAIN,
) -> str:
    """A number as text: whole, with its decimals, or rounded. All texts write numbers by it.

    Args:
        value: the number.
        places: the decimals of its feature; None if it has no precision.
        digits: the significant digits of a number that does not have these decimals.
        fixed: whether zeros at the end of the decimals are written.
        marks: what stands between thousands, and before the decimals.
    """
    exact, comma, is_whole = float(value), "," * bool(marks[0]), isinstance(value, Integral)
    is_short = abs(exact) < LONGEST
    if fixed and places is not None and places <= MOST_PLACES and is_short and not is_whole:
        text = f"{round(exact, places) + 0.0:{comma}.{places}f}"
    elif is_whole or (is_short and exact.is_integer()):
        text = f"{int(value):{comma}}"
    else:
        most = _digits(exact, digits)
        if places is not None and _has_decimals(exact, places):
            exact, most = round(exact, places) + 0.0, 15
        text = f"{exact:{comma}.{most}g}"
    return text.translate({ord(","): marks[0], ord("."): marks[1]})


def marks_of(feature: Feature, *amounts: float, comma: str = ",", point: str = ".") -> Marks:
    """The marks of amounts: there is a comma in all of them, where one of them is long."""
    long = LONG_AMOUNT if feature.unit else LONG
    return comma if max(map(abs, amounts)) >= long else "", point


def one(feature: Feature, value: Any, marks: Marks = PLAIN) -> str:
    """A single value as text; a row of a frame may hold the category 1 as 1.0."""
    if pd.isna(value):
        return "missing"
    if is_amount(feature, value):
        return number(value, feature.precision, marks=marks)
    known = next((each for each in feature.choices if each == value), value)
    return feature.called_level(known) or (
        number(known) if isinstance(known, float) else str(known)
    )


def ends(feature: Feature, old: Any, new: Any, marks: Marks = PLAIN) -> tuple[str, str]:
    """The old and the new value as text, numbers with enough digits to show their difference."""
    if not is_amount(feature, old, new):
        return one(feature, old), one(feature, new)
    # The sine of 180 degrees is 1.2e-16, a rounding error.
    old, new = (each if abs(each) > ZERO * feature.width else 0.0 for each in (old, new))
    after, digits, places = new, DIGITS, feature.precision
    for digits in range(DIGITS, MOST_DIGITS + 1):
        after = _not_short(feature, old, new, digits)
        before, last = number(old, places, digits), number(after, places, digits)
        error = max(abs(float(before) - float(old)), abs(float(last) - float(new)))
        if error <= abs(float(new) - float(old)) / 10.0:
            break
    return number(old, places, digits, marks=marks), number(after, places, digits, marks=marks)


def amount_of(feature: Feature, amount: float, start: float = 0.0, marks: Marks = PLAIN) -> str:
    """The amount of a change, or what it leads to from a start, with three significant digits.

    Decimals that the feature does not have are left out.
    """
    amount, places = start + float(f"{amount:.{UNCERTAIN_DIGITS}g}"), feature.precision
    rounded = amount if places is None else round(amount, places)
    digits = DIGITS if start else UNCERTAIN_DIGITS
    return number(rounded + 0.0, places, digits, marks=marks)


def unit_of(feature: Feature, value: Any) -> str:
    """The unit of a value: of 1 without a plural's "s"; "x ten thousand dollars" of any number."""
    unit = feature.unit
    if unit.startswith(MULTIPLES):
        return f"x {unit}"
    found = PLURAL.match(unit) if float(value) == 1.0 else None
    word = found[1].rpartition(" ")[2] if found else ""
    if not found or len(word) < SHORTEST or not VOWELS & {*word}:  # "ms", "gas", "mbps"
        return unit
    return f"{IES.sub('y', found[1])}{unit[found.end() :]}"


def rises(feature: Feature, old: Any, new: Any) -> bool | None:
    """Whether a number, or a level that has an order, rises; None for other changes."""
    known = feature.ranked
    has_order = is_amount(feature, old, new) or (old in known and new in known)
    return bool(feature.place(new) > feature.place(old)) if has_order else None


def with_unit(feature: Feature, old: Any, new: Any, marks: Marks = PLAIN) -> tuple[str, str]:
    """Both values of a change in as many digits as tell them apart, the new one with its unit."""
    real = isinstance(new, Real) and not isinstance(new, bool | np.bool_)
    is_level = real and new in feature.categories
    has_unit = feature.unit and (is_level or is_amount(feature, old, new))
    before, after = ends(feature, old, new, marks)
    return before, f"{after} {unit_of(feature, new)}" if has_unit else after


def join(parts: Sequence[str], last: str = " and ", comma: str = ", ") -> str:
    """Parts of a sentence as "a", "a and b", or "a, b and c"."""
    return last.join(filter(None, [comma.join(parts[:-1]), *parts[-1:]]))


def _has_decimals(exact: float, places: int) -> bool:
    """Whether a number has no more than some decimals, up to the resolution of float32."""
    tolerance = min(RESOLUTION * abs(exact), 0.1 * 10.0**-places)
    return abs(exact - round(exact, places)) <= tolerance


def _digits(exact: float, digits: int) -> int:
    """The significant digits of a number: at least all those of its integer part, if not long."""
    return max(digits, len(str(int(abs(exact))))) if abs(exact) < LONGEST else digits


def _not_short(feature: Feature, old: Any, new: Any, digits: int) -> Any:
    """The new number, rounded away from the old one so that the action is not too small."""
    text, exact = number(new, feature.precision, digits), float(new)
    change = exact - float(old)
    tolerance = min(RESOLUTION * abs(exact), abs(change) / 100.0)
    if (exact - float(text)) * math.copysign(1.0, change) <= tolerance:
        return new
    unit = 10.0 ** (math.floor(math.log10(abs(exact))) + 1 - _digits(exact, digits))
    return float(text) + math.copysign(unit, change)
