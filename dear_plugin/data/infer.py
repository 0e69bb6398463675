"""`Schema.infer`: the features of training rows, with what a user states of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Self, cast

import numpy as np
import pandas as pd

from dear_plugin._threads import one_thread
from dear_plugin._validation import suggesting
from dear_plugin.data import (
    dummies,
)
from dear_plugin.data.causes import StatedCauses, tell_causes
from dear_plugin.data.definitions import infer_relations
from dear_plugin.data.feature import Feature, as_numbers, complaint, line, with_infinity
from dear_plugin.data.labels import (
    Labels,
    Levels,
    as_stored,
    order_of_ranges,
    stated_order,
    stored_in,
)
from dear_plugin.data.lint import Given, evidence, inspect, warn_of_names
from dear_plugin.data.numbers import Number
from dear_plugin.data.relations import Condition, Rule, without_computed
from dear_plugin.errors import SchemaError, argument, shown, unknown


class Inferred:
    """What a schema is inferred from."""

    @classmethod
    @suggesting
    @one_thread()
    def infer(
        cls,
        frame: pd.DataFrame,
        target: str | None = None,
        *,
        immutable: Iterable[str] = (),
        increasing: Iterable[str] = (),
        decreasing: Iterable[str] = (),
        categorical: Iterable[str] = (),
        numeric: Iterable[str] = (),
        ranges: Mapping[str, tuple[float | None, float | None]] | None = None,
        special: Mapping[str, Sequence[Any]] | None = None,
        rules: Iterable[Rule | Condition] = (),
        tiers: Iterable[Iterable[str]] = (),
        causes: StatedCauses | None = None,
        exactly_one: Iterable[Iterable[str]] | None = None,
        orders: Iterable[tuple[str, str]] | None = None,
        definitions: Mapping[str, Sequence[str]] | None = None,
        ordered: Mapping[str, Sequence[Any]] | None = None,
        identifiers: Iterable[str] = (),
        excluded: Mapping[str, Sequence[Any]] | None = None,
        labels: Mapping[str, Any] | None = None,
        units: Mapping[str, str] | None = None,
        costs: Mapping[str, float] | None = None,
        steps: Mapping[str, float | None] | None = None,
        central: float = 0.98,
    ) -> Self:
        """Infer a schema from a frame, (n, p), with or without the target.

        Object, bool, string and category columns are categorical, those of more than two levels
        with an order are numbers (`ordered`; by default ranges, "<1", "10-49"); any column with at
        most two values is binary; other numbers are numeric, with the precision of their
        decimals, or with the common step of few values.
        Constant columns are immutable. A missing value is a separate level. What is true by
        definition, or nearly, becomes `relations`. The log tells what is concluded, and asks.

        Args:
            frame: training rows in user units.
            target: the column that is no feature.
            immutable: features that never change.
            increasing: numeric or binary features that may only increase.
            decreasing: numeric or binary features that may only decrease.
            categorical: numeric columns to be read as categories.
            numeric: amounts, though they have two values only or look like identifiers.
            identifiers: further columns that say which row it is; nothing moves them.
            excluded: `{feature: levels}` that no category changes to.
            ranges: `{feature: (low, high)}` in user units, None for an open end; a range
                restricts, it never scales.
            special: `{feature: codes}` of numbers that are no amounts, such as -9: each is a
                separate level. Of categories, the levels that say that a value is not known, such
                as "?", by default the usual names. Nothing enters or leaves a special level.
            rules: callables, frame of the features -> (n,) bool, True for a possible row; or a
                `Rule`, which can also set what follows from an action.
            tiers: lists of features, the earliest causes first, `[["age"], ["education", "job"]]`:
                an action changes no feature of an earlier tier.
            causes: instead, `{feature: its causes}` or a `networkx.DiGraph`; only effects follow.
            exactly_one: lists of binary columns of which exactly one is 1; None infers them.
            orders: pairs (a, b) of numbers with a <= b in every row; None infers them.
            definitions: `{feature: others}` that determine it, `{"total": ["part", "rest"],
                "rate": ["city"]}`, in the form that fits; None infers them. What they determine is
                not acted on unless `act_on` names it, or nothing of what determines it can be.
            ordered: `{feature: levels}` of categories with an order, the least first, as
                `pd.Categorical(..., ordered=True)` has it; `categorical` ignores an order.
            labels: `{feature: text}`, what texts call it, `{"loan_amount": "the loan"}`; for its
                levels, too, `{"works": {"": "the work", 0: "no", 1: "yes"}}`.
            units: `{feature: text}`, the unit of a number in texts, `{"loan_amount": "euros"}`.
            costs: `{feature: number}`, what a unit of it, or another category, costs an
                applicant, `{"income": 3}`; 1 for the others. One column of `exactly_one` stands
                for all.
            steps: `{feature: step}`, of which actions set multiples, `{"loan_amount": 500}`; None
                for any value. By default 1, 2 or 5 times 10^k, at most 1 % of the unit of cost.
            central: the share of the training values of a number that are central. Their range is
                the unit of cost: a change by it costs 1. Actions do not leave it. The standard
                deviation is the unit where the range is zero, and the range of all of few, even
                values. 1.0, as in the paper: from the least to the greatest value.

        Raises:
            SchemaError: unknown names, duplicate columns, an empty frame, infinite values, dtypes
                that are neither numbers nor categories; all complaints at once.
        """
        given = Given(locals())
        for what, some in {"orders": orders, "exactly_one": exactly_one, "rules": rules}.items():
            if some is not None and not isinstance(some, Iterable):
                raise SchemaError(f"{argument(what)} must be a list, got {shown(some)}")
        names = feature_names(frame, target)
        own, whole = given.apart(names)
        marked = infer_features(frame, names, own, central)
        features = dummies.together(marked, dummies.infer(frame, marked, exactly_one))
        features = with_stated(features, whole, names)
        others = [feature for feature in features if not feature.identifier]
        relations = infer_relations(
            dummies.labelled(frame, features), others, pairs=orders, stated=definitions
        )
        features = without_computed(features, relations)
        order = tuple(rules), tiers, causes, tuple(names), central
        schema: Any = cast(Any, cls)(features, target, relations, *order)
        tell_causes(schema.causes, schema.mutable)
        return cast(Self, schema)


# In the order in which they are tried for a training column.
KINDS: tuple[type[Feature], ...] = (Levels, Labels, Number)
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
    names = [n for n in frame.columns if n != target]
    others = [n for n in names if not isinstance(n, str)]
    if others:
        raise SchemaError(
            f"column names must be strings, got {others[:5]}: rename them with"
            " frame.columns = frame.columns.map(str)"
        )
    return names


def with_stated(
    features: Sequence[Feature], given: Given, names: Sequence[str]
) -> tuple[Feature, ...]:
    """Features with what a user says of those of several columns, by the names of these.

    Args:
        features: of all columns.
        given: what names no column, see `Given.apart`.
        names: the columns.

    Raises:
        SchemaError: names of no feature, or what does not fit one.
    """
    several = [feature.name for feature in features if feature.dummies]
    given.check([*names, *several])
    return tuple(_marked(f, given) if f.name in several else f for f in features)


def infer_features(
    frame: pd.DataFrame, names: Sequence[str], given: Given, central: float
) -> list[Feature]:
    """The features of a frame's columns, (n, p), with what a user says of them.

    The log says what is suspicious.

    Args:
        frame: training rows.
        names: its feature columns.
        given: what a user says of them.
        central: the share of the values of a number that are central.

    Raises:
        SchemaError: names that are no features, unreadable columns, or what does not fit them.
    """
    if isinstance(central, bool) or not isinstance(central, Real) or not 0.0 < central <= 1.0:
        raise SchemaError(f"central must be a share above 0, at most 1, got {shown(central)}")
    given.check(names)
    features, complaints = [], []
    for name in names:
        try:
            features.append(_infer(frame[name], name, given))
        except SchemaError as error:
            complaints.append(str(error))
    if complaints:
        raise SchemaError("; ".join(complaints))
    inspected = inspect(frame, features, given)
    measured = [feature.with_central(frame[feature.name], central) for feature in inspected]
    marked = [_marked(feature, given) for feature in measured]
    warn_of_names(marked, given.names("immutable"))
    return marked


def _infer(column: pd.Series, name: str, given: Given) -> Feature:
    """The feature of a column, (n,), without the user's constraints on changes.

    Raises:
        SchemaError: a column of no kind.
    """
    if advice := complaint(name, column):
        raise SchemaError(advice)
    is_amount = name in given.names("numeric")
    special = given.of("special", name, () if is_amount else None)
    codes = None if special is None else tuple(special)
    as_category, order = name in given.names("categorical"), given.of("ordered", name)
    if order is None and codes is None and not as_category:
        order = order_of_ranges(column)
        # "t0037" of each row is no range, although "10 t" of many rows is.
        order = None if order and evidence(column, name, False) else order
    if order is not None and stored_in(column) == ((*order,), True):
        order = None
    ranked = stated_order(column, name, order)
    every = (kind.infer(ranked, codes, as_category) for kind in KINDS)
    feature = next(each for each in every if each is not None)
    if is_amount and feature.categories:
        fix = line(name, as_numbers(column))
        raise SchemaError(f"numeric= names {name!r}: expected numbers, got categories: {fix}")
    return feature if order is None else as_stored(feature, column)


def _marked(feature: Feature, given: Given) -> Feature:
    """A feature with the user's constraints on changes, and its texts."""
    name, label = feature.name, given.of("labels", feature.name, {})
    texts = label if isinstance(label, Mapping) else {"": label}
    if unnamed := [level for level in texts if level not in {"", *feature.choices}]:
        known = feature.choices or "categories (categorical= makes some of numbers)"
        raise SchemaError(f"labels[{name!r}]: expected levels among {known}, got {unnamed}")
    levels = tuple(texts.get(c, "") for c in feature.choices) if {*texts} - {""} else None
    is_up, is_down = (name in given.names(what) for what in ("increasing", "decreasing"))
    return dataclasses.replace(
        feature,
        immutable=feature.immutable or name in given.names("immutable"),
        excluded=(*dict.fromkeys((*feature.excluded, *given.of("excluded", name, ()))),),
        direction=is_up - is_down,
        limits=_limits_of(feature, given.of("ranges", name)),
        label=texts.get("", feature.label),
        level_labels=feature.level_labels if levels is None else levels,
        unit=given.of("units", name, ""),
        step=_step_of(feature, given),
        cost=given.of("costs", name, feature.cost),
    )


def _step_of(feature: Feature, given: Given) -> float | None:
    """The step that is stated of a number; None where none is, 0 for any value."""
    if feature.name not in given.names("steps"):
        return None
    if feature.choices:
        raise SchemaError(f"steps[{feature.name!r}]: expected a numeric feature, got categories")
    return given.of("steps", feature.name) or 0.0


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
