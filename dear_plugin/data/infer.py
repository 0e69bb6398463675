"""The features of training rows with what is stated of them: what `Schema.infer` is made of.

What is stated is `{argument: what it says}`: names, or `{feature: value}`, by the arguments that
the attributes of `Feature` have.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dear_plugin._validation import suggesting
from dear_plugin.data import dummies
from dear_plugin.data.cells import as_stored, kind_of, stated_order, stored_in, with_central
from dear_plugin.data.feature import (
    Argument,
    Feature,
    arguments,
    as_numbers,
    complaint,
    line,
    with_infinity,
)
from dear_plugin.data.forms import relations_of
from dear_plugin.data.relations import Lookup, Relation, without_computed
from dear_plugin.errors import SchemaError, argument, shown, unknown

# What is stated of features, by argument: the names of some, or {feature: value}.
Stated = dict[str, Any]
Call = TypeVar("Call", bound=Callable[..., Any])
# What is stated of several features at once.
OF_SEVERAL = "exactly_one", "orders", "definitions", "within"
# Of two of these arguments, a feature is named by one.
CONTRARY = ("categorical", "numeric"), ("identifiers", "numeric"), ("increasing", "decreasing")


def stating(call: Call) -> Call:
    """A function whose last parameter has the arguments on features, by their names."""
    signature = inspect.signature(call)
    *own, _ = signature.parameters.values()
    every = [_parameter(each) for each in arguments().values()]
    return suggesting(call, signature.replace(parameters=[*own, *every]))


def _parameter(each: Argument) -> inspect.Parameter:
    """An argument on features, as a signature has it."""
    of, default = ("Iterable[str]", ()) if each.is_list else ("Mapping[str, Any] | None", None)
    return inspect.Parameter(
        each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=of
    )


def inferred(
    frame: pd.DataFrame, target: str | None, stated: Stated, *, central: float, guess: bool
) -> tuple[tuple[Feature, ...], tuple[Relation | Lookup, ...]]:
    """The features and relations of a frame's columns, with what is stated.

    Args:
        frame: training rows.
        target: the column that is no feature.
        stated: of features, and `exactly_one`, `orders`, `definitions` and `within`.
        central: the share of the values of a number that are central.
        guess: whether the rest is guessed.

    Raises:
        SchemaError: names that are no features, unreadable columns, or what does not fit them.
    """
    names = feature_names(frame, target)
    stated = checked_stated(stated, names)
    if isinstance(central, bool) or not isinstance(central, Real) or not 0.0 < central <= 1.0:
        raise SchemaError(f"central must be a share above 0, at most 1, got {shown(central)}")
    columns = columns_of(frame, names, stated)
    if guess:
        from dear_plugin.look.guesses import guesses

        found = guesses(frame, columns, stated)
        found.log()
        stated = found.beside(stated)
        columns = found.columns(frame, columns, stated)
    columns = {n: with_central(each, frame[n], central) for n, each in columns.items()}
    features = features_of(columns, stated, stated["exactly_one"] or ())
    relations = relations_of(
        dummies.labelled(frame, features),
        [feature for feature in features if not feature.identifier],
        **{what: stated[what] for what in OF_SEVERAL[1:]},
    )
    return without_computed(features, relations), relations


def columns_of(frame: pd.DataFrame, names: Iterable[str], stated: Stated) -> dict[str, Feature]:
    """The features of a frame's columns by name, without the constraints on changes.

    Raises:
        SchemaError: columns of no kind; all complaints at once.
    """
    found, complaints = {}, []
    for name in names:
        try:
            found[name] = _infer(frame[name], name, stated)
        except SchemaError as error:
            complaints.append(str(error))
    if complaints:
        raise SchemaError("; ".join(complaints))
    return found


def features_of(
    columns: Mapping[str, Feature], stated: Stated, groups: Iterable[Any]
) -> tuple[Feature, ...]:
    """Features with all that is stated of them; the columns of a group are one.

    Raises:
        SchemaError: what does not fit them, or names of no feature.
    """
    own, whole = _apart(stated, columns)
    marked = [_marked(each, own) for each in columns.values()]
    features = dummies.together(marked, groups)
    several = [feature.name for feature in features if feature.dummies]
    _check(whole, [*columns, *several])
    return tuple(_marked(f, whole) if f.name in several else f for f in features)


# What makes a frame of something else.
FRAMES: dict[type, str] = {
    pd.Series: "a row is rows.loc[[label]], with two brackets",
    dict: "a row is pd.DataFrame([row])",
    list: "rows are pd.DataFrame(rows)",
    np.ndarray: "pass pd.DataFrame(array, columns=names)",
}


def misfit(frame: Any) -> str:
    """What keeps anything from being read as a frame; "" for nothing."""
    if not isinstance(frame, pd.DataFrame):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__qualname__}"
        got = f"expected a pandas DataFrame, got {kind.removeprefix('builtins.')}"
        if fix := next((text for known, text in FRAMES.items() if isinstance(frame, known)), ""):
            return f"{got}: {fix}"
        if hasattr(frame, "to_pandas"):
            return f"{got}: pass frame.to_pandas()"
        interchange = "pandas.api.interchange.from_dataframe(frame)"
        return f"{got}: pass {interchange}" if hasattr(frame, "__dataframe__") else got
    twice = frame.columns[frame.columns.duplicated()]
    if not len(twice):
        return ""
    return f"duplicate columns: {list(map(str, twice))}; rename or drop them"


def feature_names(frame: pd.DataFrame, target: str | None) -> list[str]:
    """The feature columns of a frame.

    Raises:
        SchemaError: no frame, no rows or columns, or columns without distinct names.
    """
    if complaint := misfit(frame):
        raise SchemaError(complaint)
    if len(frame) < 2 or not len(frame.columns):
        raise SchemaError(
            f"expected a frame with rows and columns, at least two rows, got shape {frame.shape}"
        )
    if target is not None and not isinstance(target, str):
        raise SchemaError(f"target must be the name of a column, got {shown(target)}")
    if target is not None and target not in frame.columns:
        raise SchemaError(unknown("target", [target], frame.columns))
    names = [n for n in frame.columns if target is None or n != target]
    others = [n for n in names if not isinstance(n, str)]
    if others:
        raise SchemaError(
            f"column names must be strings, got {others[:5]}: rename them with"
            " frame.columns = frame.columns.map(str)"
        )
    return names


def checked_stated(stated: Stated, names: Sequence[str]) -> Stated:
    """What is stated, with every argument, names as tuples.

    Raises:
        SchemaError: no list, or not `{feature: value}`; all that is wrong with what is said of
            columns.
    """
    for what in ("orders", "exactly_one"):
        some = stated.get(what)
        if some is not None and not isinstance(some, Iterable):
            raise SchemaError(f"{argument(what)} must be a list, got {shown(some)}")
    plain = {name: _plain(each, stated.get(name)) for name, each in arguments().items()}
    own, _ = _apart(plain, names)
    if _complaint(own, names):
        _check(plain, names)
    return {**{what: stated.get(what) for what in OF_SEVERAL}, **plain}


def _plain(each: Argument, given: Any) -> Any:
    """A mapping, or a list as a tuple."""
    if not each.is_list:
        if given is not None and not isinstance(given, Mapping):
            raise SchemaError(f"{each.name} must be {{feature: ...}}, got {shown(given)}")
        return given or {}
    if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise SchemaError(f"{argument(each.name)} must be a list of features, got {shown(given)}")
    return () if given is None else tuple(given)


def _apart(stated: Stated, columns: Collection[str]) -> tuple[Stated, Stated]:
    """What is stated of columns, and of features of several columns."""
    own, whole = {}, {}
    for name, each in arguments().items():
        some = stated[name]
        inside, outside = [n for n in some if n in columns], [n for n in some if n not in columns]
        own[name] = _part(some, inside) if each.of_whole else some
        whole[name] = _part(some, outside if each.of_whole else ())
    return own, whole


def _part(some: Any, names: Iterable[str]) -> Any:
    """What is stated of some names."""
    return {n: some[n] for n in names} if isinstance(some, Mapping) else tuple(names)


def _check(stated: Stated, known: Sequence[str]) -> None:
    if wrong := _complaint(stated, known):
        raise SchemaError(wrong)


def _complaint(stated: Stated, known: Sequence[str]) -> str:
    """All that is wrong with what is stated of features with these names; "" for nothing."""
    every = arguments()
    absent = {what: [n for n in stated[what] if n not in known] for what in every}
    where = ", ".join(argument(what) for what, some in absent.items() if some)
    names = dict.fromkeys(name for some in absent.values() for name in some)
    wrong = [f"{where}: {unknown('features', names, known)}"] if where else []
    wrong += [
        f"{what}[{name!r}] must be {each.fits[0]}, got {shown(value)}"
        for what, each in every.items()
        if not each.is_list
        for name, value in stated[what].items()
        if not each.fits[1](value)
    ]
    pairs = ((each, {*stated[each[0]]} & {*stated[each[1]]}) for each in CONTRARY)
    wrong += [f"both {' and '.join(each)}: {sorted(both)}" for each, both in pairs if both]
    return "; ".join(wrong)


def says_what(stated: Stated, name: str) -> bool:
    """Whether it is stated what a column is."""
    return any(name in stated[what] for what, each in arguments().items() if each.says_what)


def _infer(column: pd.Series, name: str, stated: Stated) -> Feature:
    """The feature of a column, (n,), without the user's constraints on changes.

    Raises:
        SchemaError: a column of no kind.
    """
    if advice := complaint(name, column):
        raise SchemaError(advice)
    is_amount, as_category = (name in stated[what] for what in ("numeric", "categorical"))
    special = stated["special"].get(name, () if is_amount else None)
    codes, order = None if special is None else tuple(special), stated["ordered"].get(name)
    if order is not None and stored_in(column) == ((*order,), True):
        order = None
    ranked = stated_order(column, name, order)
    feature = kind_of(ranked, codes, as_category)
    if is_amount and feature.categories:
        fix = line(name, as_numbers(column))
        raise SchemaError(f"numeric= names {name!r}: expected numbers, got categories: {fix}")
    return feature if order is None else as_stored(feature, column)


def _marked(feature: Feature, stated: Stated) -> Feature:
    """A feature with what is stated of its changes, and its texts."""
    name, label = feature.name, stated["labels"].get(feature.name, {})
    texts = label if isinstance(label, Mapping) else {"": label}
    if unnamed := [level for level in texts if level not in {"", *feature.choices}]:
        known = feature.choices or "categories (categorical= makes some of numbers)"
        raise SchemaError(f"labels[{name!r}]: expected levels among {known}, got {unnamed}")
    levels = tuple(texts.get(c, "") for c in feature.choices) if {*texts} - {""} else None
    up, down, fixed, is_id, passive = (
        name in stated[what]
        for what in ("increasing", "decreasing", "immutable", "identifiers", "only_named")
    )
    own: dict[str, Any] = {
        "immutable": feature.immutable or fixed or is_id,
        "identifier": feature.identifier or is_id,
        "actionable": feature.actionable and not (is_id or passive),
        "special": (*stated["special"].get(name, ()),) if feature.dummies else feature.special,
        "excluded": (*dict.fromkeys((*feature.excluded, *stated["excluded"].get(name, ()))),),
        "direction": up - down or feature.direction,
        "limits": _limits_of(feature, stated["ranges"].get(name)),
        "observed": _numbers_only(feature, stated, "observed", feature.observed),
        "label": texts.get("", feature.label),
        "level_labels": feature.level_labels if levels is None else levels,
        "unit": stated["units"].get(name, ""),
        "step": _numbers_only(feature, stated, "steps", 0.0)
        or (0.0 if name in stated["steps"] else None),
        "cost": stated["costs"].get(name, feature.cost),
    }
    return dataclasses.replace(feature, **own)


def _numbers_only(feature: Feature, stated: Stated, what: str, default: Any) -> Any:
    """What is stated of a number."""
    if feature.name in stated[what] and feature.choices:
        raise SchemaError(f"{what}[{feature.name!r}]: expected a numeric feature, got categories")
    return stated[what].get(feature.name, default)


def _limits_of(
    feature: Feature, pair: tuple[float | None, float | None] | None
) -> tuple[float, float] | None:
    """The range that restricts a number, with None as an open end; None where none is given."""
    if pair is None:
        return None
    if "ranges" not in feature.limited_by:
        raise SchemaError(f"ranges[{feature.name!r}]: expected a numeric feature, got categories")
    ends = with_infinity(*(feature.place(end) for end in pair))
    if any(np.ndim(end) for end in ends):
        raise SchemaError(
            f"ranges[{feature.name!r}]: expected (low, high), the same for all rows; for limits of"
            " each row: generate(rows, within=Constraints(ranges=...))"
        )
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError):
        known = f"levels among {feature.ranked}" if feature.ranked else "numbers"
        expected = f"{known}, or None for an open end"
        raise SchemaError(
            f"ranges[{feature.name!r}]: expected {expected}; got {shown(pair)}"
        ) from None
    if not low <= high:
        raise SchemaError(f"ranges[{feature.name!r}] = {pair}: low must not exceed high")
    return low, high
