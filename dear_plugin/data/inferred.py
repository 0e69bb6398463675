"""Inferred: training rows, and what a user says of them, in; their schema out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, cast

import pandas as pd

from dear_plugin._threads import one_thread
from dear_plugin.data import graph
from dear_plugin.data.definitions import infer_relations
from dear_plugin.data.given import Given
from dear_plugin.data.inference import feature_names, infer_features, with_stated
from dear_plugin.data.kinds import dummies
from dear_plugin.data.relations import without_computed
from dear_plugin.data.rule import Condition, Rule
from dear_plugin.errors import SchemaError, argument, shown


class Inferred:
    """What a schema is inferred from."""

    @classmethod
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
        causes: graph.Stated | None = None,
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
        cyclic: Mapping[str, int | Sequence[Any]] | None = None,
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
            cyclic: `{feature: period}` of categories that go around, or all their levels in order,
                `{"hour": 24, "month": range(1, 13), "day": ["Mon", "Tue", ...]}`: 23 to 1 are 2
                hours. The way to the opposite level costs 1.
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
        order = tuple(rules), tiers, causes, tuple(names)
        schema: Any = cast(Any, cls)(features, target, relations, *order)
        graph.tell(schema.causes, schema.mutable)
        return cast(Self, schema)
