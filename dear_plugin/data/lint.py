"""What the log reports of training columns, by their values and by their names.

What is concluded is logged as INFO; a warning names the argument that answers it. Warnings by
names change no result: `logging.getLogger("dear_plugin.data.lint.names")` switches them off.

Identifiers, columns that say which row it is, are marked by their values: nearly all are distinct,
far more than amounts of the same range would be. By its name alone a column is no identifier, and
the log asks.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Array, Feature, are_dates, as_days, as_numbers, line, parsed
from dear_plugin.data.labels import not_known, words_in_order
from dear_plugin.data.numbers import MOST_CODES, gross, suspected_codes
from dear_plugin.errors import SchemaError, argument, shown, unknown

# A category is not acted on by default if it has more than MANY_LEVELS levels, or more than
# SOME_LEVELS and fewer rows per level than ROWS_A_LEVEL.
MANY_LEVELS, SOME_LEVELS, ROWS_A_LEVEL = 100, 12, 5
# Text is suspected to be numbers if this share of its distinct values can be parsed.
PARSED = 0.9
# The most rows that a message names.
MOST_NAMED = 5

# Words, or parts of words, of names in lower case with "_" around each word, and what they say.
SENSITIVE = "have names of attributes that cannot be changed"
NAMES = {
    SENSITIVE: r"_(age|sex|gender|race|ethnic|ethnicity|nationality|religion|marital(status)?)_",
    "seem to count time, and no action makes time pass": r"since|_(age|tenure|seniority|elapsed)_"
    r"|_(birthday|dob)_|_(years?|months?|days?|yrs)_(at|in|with|on)_",
    "have names of past events, which no action undoes": r"_(delinq\w*?|late|arrears|overdue"
    r"|past_due|default(s|ed)?|bankrupt\w*?|derog\w*?|foreclosure|priors|convictions|arrests|lawsuits"
    r"|charged?_?offs?|missed_payments?|pub_rec|public_records?)_",
    "have names of marks that the decision maker gives, and a person cannot set": r"_(sub)?(grade"
    r"|score|rating|decision|limit|apr|guidelines?|int(erest)?_rate|risk_class)_",
}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

logger = logging.getLogger(__name__)
names_logger = logger.getChild("names")


def inspect(frame: pd.DataFrame, features: Sequence[Feature], given: Given) -> list[Feature]:
    """Features with identifiers and categories of many levels marked; tells of their columns.

    Args:
        frame: training rows.
        features: the inferred features of its columns.
        given: what a user says of them.
    """
    _tell_of_missing(frame, features)
    found = []
    with np.errstate(over="ignore"):  # the schema rejects a range that overflows
        for feature in features:
            marked = _with_identifier(frame[feature.name], feature, given)
            if not marked.identifier:
                tell = _category if feature.choices else _number
                marked = tell(frame[feature.name], marked, given)
            found.append(marked)
    return found


def _tell_of_missing(frame: pd.DataFrame, features: Sequence[Feature]) -> None:
    """Warn of missing values, and of columns of nothing else."""
    missing = {f.name: int(frame[f.name].isna().sum()) for f in features if f.missing}
    if empty := [name for name, count in missing.items() if count == len(frame)]:
        logger.warning("columns %s are empty, and immutable: drop them", empty)
    if some := [f"{name} {count}" for name, count in missing.items() if name not in empty]:
        logger.warning(
            "missing values, treated as a separate level that no action enters or leaves: %s of %d"
            " rows",
            ", ".join(some),
            len(frame),
        )


def _with_identifier(column: pd.Series, feature: Feature, given: Given) -> Feature:
    """A feature marked as an identifier if it is one: stated, by its values or by its name."""
    name, is_stated = feature.name, feature.name in given.names("identifiers")
    if not is_stated:
        if feature.ranked or given.says_what(name):
            return feature
        found = evidence(column, name, not feature.choices)
        if not found:
            return feature
        _tell_of_identifier(column, feature, found)
    return dataclasses.replace(feature, identifier=True, immutable=True, actionable=False)


def _tell_of_identifier(column: pd.Series, feature: Feature, found: Evidence) -> None:
    """Warn of an identifier by its values or its name."""
    name, other = feature.name, "categorical" if feature.choices else "numeric"
    by_values = found == "values"
    if by_values and _tells_of_text(column, "an identifier, which nothing moves", "[.,]"):
        return
    logger.warning(
        "column %r looks like an identifier by its %s: nothing moves it, and nothing is compared"
        " by it; state %s",
        *(name, "values" if by_values else "name alone"),
        f"{other}=[{name!r}] if it is none"
        if by_values
        else f"identifiers=[{name!r}] if it is one, {other}= if not",
    )


def _tells_of_text(column: pd.Series, read_as: str, having: str = "") -> bool:
    """Warn of more than two texts that are dates, or numbers of which one has a pattern.

    Text of whole numbers alone may be that of an identifier.
    """
    text = column.dtype == object or pd.api.types.is_string_dtype(column.dtype)
    levels = column.dropna().drop_duplicates().astype(str)
    if not text or len(levels) <= 2:
        return False
    dates, numbers = are_dates(levels), parsed(levels).notna().mean() >= PARSED
    if not (dates or (numbers and levels.str.contains(having).any())):
        return False
    what, code = ("dates", as_days(levels)) if dates else ("numbers", as_numbers(column))
    logger.warning(
        "column %r holds %s as text and is read as %s: in DiCE continuous_features=[..., %r]; for"
        " a number: %s",
        *(column.name, what, read_as, column.name, line(str(column.name), code)),
    )
    return True


def _number(column: pd.Series, feature: Feature, given: Given) -> Feature:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    known = ~np.isnan(values) & ~np.isin(values, feature.special)
    far = np.flatnonzero(known)[gross(values[known])]
    if len(far):
        _tell_of_gross(column, feature, values, far)
        known[far] = False
    if codes := suspected_codes(values[known]):
        logger.warning(
            "column %r has %s, which look like codes and not like amounts: if they are codes,"
            " declare them with special={%r: %s}",
            *(feature.name, _shown(codes), feature.name, _shown(codes)),
        )
    elif feature.observed:
        _tell_of_observed(feature, feature.name in given.names("numeric"))
    return feature


def _tell_of_gross(column: pd.Series, feature: Feature, values: Array, far: Array) -> None:
    """Warn of rows, (m,), whose values lie beyond all others by far."""
    codes = np.unique(values[far]).tolist()
    rows, more = column.index[far[:MOST_NAMED]].tolist(), ", ..." * (len(far) > MOST_NAMED)
    declared = f"; special={{{feature.name!r}: {_shown(codes)}}} declares codes"
    logger.warning(
        "column %r has values far beyond all others in %d rows, %s%s: correct or drop errors%s",
        *(feature.name, len(far), str(rows)[1:-1], more),
        declared * (len(codes) <= MOST_CODES),
    )


def _tell_of_observed(feature: Feature, is_amount: bool) -> None:
    """Say which values a number takes: a grid is a fact, codes are suspected."""
    name, observed = feature.name, feature.observed
    steps = np.diff(observed)
    if np.allclose(steps, steps[0]):
        logger.info(
            "column %r takes steps of %g: no value in between is proposed;"
            " schema.replace(%r, observed=()) allows them",
            *(name, steps[0], name),
        )
    # Rounded amounts often have a common step.
    elif not is_amount and not any(v % 1 for v in observed) and math.gcd(*map(int, observed)) == 1:
        logger.warning(
            "column %r has only the values %s: no value in between is proposed; if they are codes"
            " and not amounts, declare categorical=[%r]",
            *(name, _shown(observed), name),
        )


def _shown(values: Sequence[float]) -> list[float]:
    return [int(value) if value.is_integer() else value for value in values]


def _category(column: pd.Series, feature: Feature, given: Given) -> Feature:
    name, levels, rows = feature.name, len(feature.choices), len(column)
    if feature.ranked:
        if name not in given.names("ordered") and not feature.ordered:
            logger.info(
                "column %r holds numbers and ranges in the order %s; categorical=[%r] ignores it,"
                " ordered= states another",
                *(name, list(feature.levels), name),
            )
        return feature
    if not_known(feature.special) and name not in given.names("special"):
        _tell_of_not_known(feature)
    _tell_of_spellings(feature, [*given.of("excluded", name, ())])
    if name not in given.names("categorical"):
        _tell_of_order(feature)
        _tells_of_text(column, f"a category of {levels} levels")
    if levels <= MANY_LEVELS and (levels <= SOME_LEVELS or rows >= ROWS_A_LEVEL * levels):
        return feature
    logger.warning(
        "column %r has %d levels in %d rows: it is not acted on unless act_on names it; merge its"
        " rare levels, or state identifiers=[%r]",
        *(name, levels, rows, name),
    )
    return dataclasses.replace(feature, actionable=False)


def _tell_of_not_known(feature: Feature) -> None:
    """Say which levels of a category are neither entered nor left, and what changes that."""
    name, levels = feature.name, list(feature.special)
    logger.warning(
        "column %r has the levels %s, which say that the value is not known: nothing enters or"
        " leaves them; special={%r: %s} declares that, special={%r: []} makes them levels like"
        " others",
        *(name, levels, name, levels, name),
    )


def _tell_of_spellings(feature: Feature, excluded: Sequence[Hashable]) -> None:
    """Say which levels are most likely one, which an action must not change to another."""
    found: dict[str, list[str]] = {}
    for level in (each for each in feature.choices if each is not None and each not in excluded):
        found.setdefault("".join(str(level).casefold().split()), []).append(str(level))
    if several := [own for own in found.values() if len(own) > 1]:
        logger.warning(
            "column %r has levels that differ only in case or spaces, %s: make one of them before"
            " training the model, or state excluded={%r: [...]} with those to leave out",
            *(feature.name, several[:MOST_NAMED], feature.name),
        )


def _tell_of_order(feature: Feature) -> None:
    """Suggest the order of levels that are words of a scale."""
    if words := words_in_order([c for c in feature.categories if c is not None]):
        logger.warning(
            "column %r has levels that seem to have an order: ordered={%r: %s} states it,"
            " categorical=[%r] that there is none",
            *(feature.name, feature.name, list(words), feature.name),
        )


def warn_of_names(features: Sequence[Feature], immutable: Sequence[str]) -> None:
    """Warn of mutable features with names of what no action changes, the first reason of each.

    Those with a direction or a range are left out. A user of `immutable` knows of
    attributes that cannot be changed.
    """
    known = {f.name for f in features if f.immutable or f.direction or f.limits is not None}
    for reason in NAMES:
        if reason == SENSITIVE and immutable:
            continue
        if names := [f.name for f in features if f.name not in known and says(f.name, reason)]:
            known |= {*names}
            names_logger.warning(
                "columns %s %s: %s=%s keeps them fixed",
                *(names, reason, argument("immutable"), names),
            )


def warn_of_actions(features: Iterable[Feature]) -> None:
    """Warn of sensitive features among the actionable ones when `act_on` is not given."""
    some = [f for f in features if f.actionable and not (f.immutable or f.direction)]
    if names := [f.name for f in some if f.limits is None and says(f.name, SENSITIVE)]:
        names_logger.warning(
            "act_on is not given, and columns %s %s: act_on=[...] lists the actionable features,"
            " %s=%s those that never change",
            *(names, SENSITIVE, argument("immutable"), names),
        )


def says(name: str, reason: str) -> bool:
    """Whether a name, in camelCase, snake_case and the like, has words of a reason of `NAMES`."""
    words = "_".join(["", *WORD.findall(name), ""]).lower()
    return bool(re.search(NAMES[reason], words))


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return _is_list(value) and len([*value]) == 2


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return all(map(_is_text, value.values() if isinstance(value, Mapping) else [value]))


class Argument(NamedTuple):
    """What an argument of `Schema.infer` says of features.

    Attributes:
        key: what a file of `Schema.to_toml` calls it in the table of a feature.
        value: of the key, where it is a list of features; None where it is `{feature: value}`.
        expected: what each value of these must be.
        fits: whether a value is one.
        of_whole: whether it may also name a feature of several columns.
        says_what: whether it says what a column is, which then is no identifier.
    """

    key: str
    value: str | bool | None = None
    expected: str = ""
    fits: Callable[[Any], bool] = lambda _: True
    of_whole: bool = False
    says_what: bool = False


LEVELS = "a list of levels, the least first"
ARGUMENTS = {
    "immutable": Argument("immutable", True, of_whole=True),
    "increasing": Argument("direction", "increasing", says_what=True),
    "decreasing": Argument("direction", "decreasing", says_what=True),
    "categorical": Argument("kind", "category", says_what=True),
    "numeric": Argument("kind", "number", says_what=True),
    "identifiers": Argument("identifier", True),
    "ranges": Argument("range", None, "(low, high)", _is_pair, says_what=True),
    "special": Argument("special", None, "a list of values", _is_list),
    "ordered": Argument("ordered", None, LEVELS, _is_list, says_what=True),
    "excluded": Argument("excluded", None, "a list of levels", _is_list, of_whole=True),
    "units": Argument("unit", None, "a text", _is_text, says_what=True),
    "labels": Argument("label", None, "a text or {level: text}", _are_texts, of_whole=True),
    "costs": Argument("cost", of_whole=True),
    "steps": Argument("step"),
}
CONTRARY = (
    *(("categorical", "numeric"), ("identifiers", "numeric"), ("increasing", "decreasing")),
)


class Given:
    """What a user says of features.

    Args:
        given: the arguments; None for what is not given.

    Raises:
        SchemaError: one that is no list of features, or not `{feature: value}`.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given: dict[str, Any] = {name: _plain(name, given.get(name)) for name in ARGUMENTS}

    def names(self, what: str) -> tuple[str, ...]:
        """The features that an argument names."""
        return tuple(self._given[what])

    def of(self, what: str, name: str, default: Any = None) -> Any:
        """What an argument says of a feature; the default where it says nothing."""
        return self._given[what].get(name, default)

    def says_what(self, name: str) -> bool:
        """Whether it says what a column is."""
        return any(name in self._given[what] for what, each in ARGUMENTS.items() if each.says_what)

    def apart(self, columns: Sequence[str]) -> tuple[Given, Given]:
        """What is said of columns, and of features of several columns; all, if it is wrong."""
        own, whole = dict(self._given), dict[str, Any]()
        for what, some in self._given.items():
            if ARGUMENTS[what].of_whole:
                own[what], whole[what] = (_part(some, columns, inside) for inside in (True, False))
        found = Given(own)
        return (self, Given({})) if found.complaint(columns) else (found, Given(whole))

    def check(self, known: Sequence[str]) -> None:
        """Raise an error unless it says what features with these names can have.

        Raises:
            SchemaError: all that is wrong with names and values at once.
        """
        if complaint := self.complaint(known):
            raise SchemaError(complaint)

    def complaint(self, known: Sequence[str]) -> str:
        """What is wrong for features with these names; "" for nothing."""
        absent = {what: [n for n in some if n not in known] for what, some in self._given.items()}
        where = ", ".join(argument(what) for what, some in absent.items() if some)
        every = dict.fromkeys(name for some in absent.values() for name in some)
        wrong = [f"{where}: {unknown('features', every, known)}"] if where else []
        wrong += [
            f"{what}[{name!r}] must be {each.expected}, got {shown(value)}"
            for what, each in ARGUMENTS.items()
            if each.value is None
            for name, value in self._given[what].items()
            if not each.fits(value)
        ]
        pairs = ((each, {*self.names(each[0])} & {*self.names(each[1])}) for each in CONTRARY)
        wrong += [f"both {' and '.join(each)}: {sorted(both)}" for each, both in pairs if both]
        return "; ".join(wrong)


def _plain(what: str, given: Any) -> Any:
    """A mapping, or a list as a tuple."""
    if ARGUMENTS[what].value is None:
        if given is not None and not isinstance(given, Mapping):
            raise SchemaError(f"{what} must be {{feature: ...}}, got {shown(given)}")
        return given or {}
    if given is not None and not _is_list(given):
        raise SchemaError(f"{argument(what)} must be a list of features, got {shown(given)}")
    return () if given is None else tuple(given)


def _part(some: Any, columns: Sequence[str], inside: bool) -> Any:
    """What is said of names that are columns, or that are none."""
    kept = [name for name in some if (name in columns) == inside]
    return {name: some[name] for name in kept} if isinstance(some, Mapping) else kept


# Words of names, and endings: "customerId", "zip", "flight_no", "job_code".
NAMED = re.compile(
    r"(?<![a-z])(ids?|identifier|uuid|guid|ssn|zip|zipcode|postcode|case|flight|tailnum|barcode)"
    r"(?![a-z])|fips$|.(num|number|code|_no|_nr)$"
    r"|(school|child|person|stud\w*|dist|sch|county|p|user|cust\w*|firm)id$"
)
# The least rows; with a name, the least distinct values, or half the rows.
FEWEST, DISTINCT = 20, 30
# By values, in so many rows: text with this share of distinct values; whole numbers with this
# share of ties, and this one of the ties that chance would give.
ROWS, TEXT, TIES, BY_CHANCE = 50, 0.4, 0.03, 0.1
# Sparse numbers, where chance gives no ties: all of so many digits, and few of them round.
DIGITS, ROUND = 6, 0.25

Evidence = Literal["", "name", "values"]


def evidence(column: pd.Series, name: str, of_numbers: bool) -> Evidence:
    """What makes a column, (n,), an identifier: its values, its name alone, or "" for nothing."""
    known = column.dropna()
    n, distinct = len(known), known.nunique()
    if n < FEWEST:
        return ""
    by_values = n >= ROWS and distinct >= TEXT * n
    if of_numbers:
        values = known.to_numpy(dtype=np.float64)
        if (values % 1 != 0).any():
            return ""
        by_values = n >= ROWS and n - distinct <= TIES * n and _is_no_amount(values, n - distinct)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    by_name = bool(NAMED.search(words)) and distinct >= min(DISTINCT, n / 2)
    return "values" if by_values else "name" if by_name else ""


def _is_no_amount(values: npt.NDArray[Any], ties: int) -> bool:
    """Whether whole numbers, (n,), have fewer ties than amounts would have, or are sparse."""
    n, low, high = len(values), values.min(), values.max()
    expected = n * (n - 1) / 2.0 / (high - low + 1.0)
    digits = {len(f"{abs(end):.0f}") for end in (low, high)}
    is_sparse = len(digits) == 1 and min(digits) >= DIGITS and (values % 10 == 0).mean() < ROUND
    return bool(expected * BY_CHANCE >= max(ties, 1.0) or is_sparse)
