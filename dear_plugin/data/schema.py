"""The schema: the features of a frame and what is known of them together.

A host may write 1, 1.0 or True where the training rows have "1" or "True". Row values are the
same, so that what was fitted holds for such frames, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor

from dear_plugin._threads import lazy, one_thread
from dear_plugin._validation import completed
from dear_plugin.data import dummies
from dear_plugin.data.causes import (
    CausalOrder,
    Causes,
    StatedCauses,
    Tiers,
    checked_causes,
    checked_tiers,
    tell_causes,
)
from dear_plugin.data.feature import Feature, Kind, with_cells
from dear_plugin.data.infer import OF_SEVERAL, inferred, stating
from dear_plugin.data.relations import (
    Condition,
    Lookup,
    Relation,
    Rule,
    check_rules,
    checked_relations,
    from_dict,
)
from dear_plugin.errors import DearError, SchemaError, require_known, shown

__all__ = ["Feature", "Kind", "Schema"]


def _consistent(_: type, given: dict[str, Any]) -> None:
    """Check that features, relations, rules and causes are consistent, and complete them."""
    features, target = given["features"], given["target"]
    names, owners = [feature.name for feature in features], owners_of(features)
    given["relations"] = checked_relations(given["relations"], features)
    check_rules(given["rules"], names)
    if twice := {n for n in names if names.count(n) > 1}:
        raise SchemaError(f"duplicate feature names: {sorted(twice)}; rename them")
    given["tiers"] = checked_tiers(given["tiers"], owners, target)
    given["causes"] = checked_causes(given["causes"], owners, given["relations"], target)
    if given["tiers"] and given["causes"]:
        raise SchemaError("both tiers and causes are given: state the order by one of them")
    columns = tuple(column.name for feature in features for column in feature.members)
    given["column_names"] = given["column_names"] or columns


def owners_of(features: Iterable[Feature]) -> dict[str, str]:
    """The feature that each name stands for: its own, or that of one of its columns."""
    return {each.name: f.name for f in features for each in (f, *f.members)}


@completed(_consistent)
@dataclass(frozen=True)
class Schema:
    """The features of a frame, its target and rules between columns; see `Schema.infer`.

    Attributes:
        features: the features in frame order; one that has several columns is where the first is.
        target: the target column, if any.
        relations: what is true by definition or nearly so, and orders, `a <= b`.
        rules: each a `Rule`, or a callable of a frame of the features, (n, p), that returns (n,)
            bool: whether each row is possible. A counterfactual must satisfy every relation and
            rule that its factual satisfies.
        tiers: names of features in tiers, the earliest first: nothing in a tier is a cause of
            anything in an earlier one. The other features form one more tier at the end.
        causes: each feature with its causes, if they are stated in place of tiers.
        column_names: of frames, in their order; () for that of the features.
        central: the share of the values of numbers that is central.

    Example:
        >>> from dear_plugin import Schema
        >>> from dear_plugin.datasets import load_loan
        >>> schema = Schema.infer(load_loan(200).frame, target="approved", immutable=["gender"])
        >>> schema.names
        ('gender', 'age', 'education', 'loan_amount', 'duration', 'income', 'savings')
    """

    features: tuple[Feature, ...]
    target: str | None = None
    relations: tuple[Relation | Lookup, ...] = ()
    rules: tuple[Rule | Condition, ...] = ()
    tiers: Tiers = ()
    causes: Causes = ()
    column_names: tuple[str, ...] = ()
    central: float = 0.98

    @classmethod
    @stating
    @one_thread()
    def infer(
        cls,
        frame: pd.DataFrame,
        target: str | None = None,
        *,
        guess: bool = True,
        rules: Iterable[Rule | Condition] = (),
        tiers: Iterable[Iterable[str]] = (),
        causes: StatedCauses | None = None,
        exactly_one: Iterable[Iterable[str]] | None = None,
        orders: Iterable[tuple[str, str]] | None = None,
        definitions: Mapping[str, Any] | None = None,
        within: Mapping[str, float] | None = None,
        central: float = 0.98,
        **of_features: Any,
    ) -> Schema:
        """Infer a schema from a frame, (n, p), with or without the target.

        Object, bool, string and category columns are categorical, those of more than two levels
        with an order are numbers (`ordered`); any column with at most two values is binary; other
        numbers are numeric, with the precision of their decimals. Constant columns are immutable.
        A missing value is a separate level. The other arguments that are not given are guessed,
        see `dear_plugin.look`; the log tells them with their evidence, and asks.

        Args:
            frame: training rows in user units.
            target: the column that is no feature.
            guess: whether `look` guesses what is not stated; if not, nothing is added.
            immutable: features that never change.
            increasing: numeric or binary features that may only increase.
            decreasing: numeric or binary features that may only decrease.
            categorical: numeric columns to be read as categories.
            numeric: amounts, though they have two values only or look like identifiers.
            identifiers: columns that say which row it is; nothing moves them.
            only_named: features that are acted on only where `act_on` names them.
            excluded: `{feature: levels}` that no category changes to.
            ranges: `{feature: (low, high)}` in user units, None for an open end; a range
                restricts, it never scales.
            special: `{feature: codes}` of numbers that are no amounts, such as -9: each is a
                separate level. Of categories, the levels that say that a value is not known, such
                as "?". Nothing enters or leaves a special level.
            observed: `{feature: values}`, the only ones that a number may take.
            rules: callables, frame of the features -> (n,) bool, True for a possible row; or a
                `Rule`, which can also set what follows from an action.
            tiers: lists of features, the earliest causes first, `[["age"], ["education", "job"]]`:
                an action changes no feature of an earlier tier.
            causes: instead, `{feature: its causes}` or a `networkx.DiGraph`; only effects follow.
            exactly_one: lists of binary columns of which exactly one is 1; None guesses them.
            orders: pairs (a, b) of numbers with a <= b in every row; None guesses them.
            definitions: `{feature: others}` that determine it, `{"total": ["part", "rest"],
                "rate": ["city"]}`, in the form that fits; None guesses them. What they determine
                is not acted on unless `act_on` names it, or nothing of what determines it can be.
                A text is a formula, `{"share": "rent / (wage + other)", "most": "max(a, b)"}`.
            within: `{feature: number}`, how far such a formula may be off; by default it is exact,
                or within what nine in ten rows keep.
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
            **of_features: the arguments on features, of which each names an attribute of theirs.
            central: the share of the training values of a number that are central. Their range is
                the unit of cost: a change by it costs 1. Actions do not leave it. The standard
                deviation is the unit where the range is zero, and the range of all of few, even
                values. 1.0, as in the paper: from the least to the greatest value.

        Raises:
            SchemaError: unknown names, duplicate columns, an empty frame, infinite values, dtypes
                that are neither numbers nor categories; all complaints at once.
        """
        if not isinstance(rules, Iterable):
            raise SchemaError(f"rules must be a list, got {shown(rules)}")
        several = exactly_one, orders, definitions, within
        stated = {**dict(zip(OF_SEVERAL, several, strict=True)), **of_features}
        features, relations = inferred(frame, target, stated, central=central, guess=guess)
        names = tuple(name for name in frame.columns if target is None or name != target)
        order: Any = tuple(rules), tiers, causes, names, central
        schema = cls(features, target, relations, *order)
        tell_causes(schema.causes, schema.mutable)
        return schema

    def __len__(self) -> int:
        """The number of features (p)."""
        return len(self.features)

    def __repr__(self) -> str:
        """The features in a line; a notebook shows them as a table."""
        from dear_plugin.tell import schemas

        return f"Schema({schemas.in_a_line(self)})"

    def _repr_html_(self) -> str:
        """The features as a table, for notebooks."""
        from dear_plugin.tell import schemas

        return schemas.as_table(self)

    def __iter__(self) -> Iterator[Feature]:
        """The features in frame order."""
        return iter(self.features)

    @lazy
    def names(self) -> tuple[str, ...]:
        """The feature names in frame order."""
        return tuple(f.name for f in self.features)

    @lazy
    def places(self) -> dict[str, int]:
        """The position of each feature by name."""
        return {name: j for j, name in enumerate(self.names)}

    @lazy
    def definitions(self) -> tuple[Relation | Lookup, ...]:
        """The relations that determine a feature by others."""
        return tuple(each for each in self.relations if each.is_definition)

    @lazy
    def numbers(self) -> dict[str, Feature]:
        """The columns of frames whose cells are numbers, not labels, by name."""
        return {column.name: column for column in self.columns if not column.choices}

    @property
    def mutable(self) -> tuple[str, ...]:
        """The features that may change."""
        return tuple(f.name for f in self.features if not f.immutable)

    @property
    def actionable(self) -> tuple[str, ...]:
        """The features acted on when `act_on` is not given.

        They are the mutable ones but categories of many levels, and what others determine.
        """
        return tuple(f.name for f in self.features if f.actionable and not f.immutable)

    @property
    def steps(self) -> dict[str, float]:
        """The step of the actions on each number that has one."""
        return {f.name: f.action_step for f in self.features if f.action_step}

    @property
    def orders(self) -> tuple[tuple[str, str], ...]:
        """The pairs (a, b) of the relations `a <= b`."""
        return tuple((each.members[1], each.name) for each in self.relations if each.is_order)

    @lazy
    def causal_order(self) -> CausalOrder:
        """What may follow an action set, and what it is conditioned on, by tiers or causes."""
        return CausalOrder(self.features, self.tiers, self.causes)

    @lazy
    def columns(self) -> tuple[Feature, ...]:
        """(q,) the columns of frames: a feature whose cells are spread has several."""
        known = {member.name: member for f in self for member in f.members}
        return tuple(known[name] for name in self.column_names)

    @property
    def owner(self) -> tuple[int, ...]:
        """(q,) the position of the feature of each column of frames."""
        return self.index(self.column_names)

    def of_columns(self, features: Tensor) -> npt.NDArray[Any]:
        """(n, q) what is known of the columns of frames, by that of their features, (n, p)."""
        return features.numpy()[:, list(self.owner)]

    @property
    def exactly_one(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each feature that has several, of which exactly one is 1."""
        return tuple(tuple(each.name for each in f.dummies) for f in self if f.dummies)

    def with_columns(self, columns: Iterable[Feature]) -> Schema:
        """This schema with other columns, (q,); those of a feature stay those of one."""
        features = dummies.together(tuple(columns), self.exactly_one)
        return dataclasses.replace(self, features=dummies.kept(features, self.features))

    def as_written(self, frame: pd.DataFrame) -> Schema:
        """This schema for frames that write labels in another way, as `frame` does: 1 for "1"."""
        other = self.with_columns(as_written(each, frame[each.name]) for each in self.columns)
        pairs = [(f.name, f.choices, g.choices) for f, g in zip(self, other, strict=True)]
        labels = {name: dict(zip(own, new, strict=True)) for name, own, new in pairs}
        relations = tuple(renamed(each, labels) for each in self.relations)
        return dataclasses.replace(other, relations=relations)

    def labelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame with a column of labels, too, for each feature that has several columns."""
        return dummies.labelled(frame, self.features)

    @lazy
    def _owners(self) -> dict[str, str]:
        """The feature that each name stands for."""
        return owners_of(self)

    def index(
        self, names: Iterable[str], where: str = "", error: type[DearError] = SchemaError
    ) -> tuple[int, ...]:
        """The positions of some features; one of several columns stands for its feature.

        Args:
            names: of features or columns.
            where: the argument that names them, for the error.
            error: what is raised.

        Raises:
            DearError: a name that is no feature.
        """
        names, owners = tuple(names), self._owners
        if not owners.keys() >= {*names}:
            require_known(where, "features", names, owners, error)
        return tuple([self.places[owners[n]] for n in names])

    def replace(self, name: str, **changes: Any) -> Schema:
        """A copy in which one feature has other attributes (see `Feature`)."""
        (i,) = self.index([name])
        features = list(self.features)
        features[i] = dataclasses.replace(features[i], **changes)
        return dataclasses.replace(self, features=tuple(features))

    def excluding(self, kinds: pd.DataFrame) -> Schema:
        """This schema without some kinds of advice.

        A number or two-valued feature may then go the other way only, and is immutable where it
        may not go that way either; nothing changes to the new level of a category. What follows
        an action keeps to it as well.

        Args:
            kinds: lines of `recourses.advice()`, such as `advice.loc[[0, 2]]`.

        Raises:
            SchemaError: no such lines, or an unknown feature.
        """
        from dear_plugin.tell import schemas

        return dataclasses.replace(self, features=schemas.without(self.features, kinds))

    def in_text(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame, (n, p), with categories that are numbers or booleans as text."""
        text = [column for column in self.columns if column.choices]
        cells = {f.name: frame[f.name].astype(object) for f in text}
        other = [n for n, c in cells.items() if not c.dropna().map(type).eq(str).all()]
        return with_cells(frame, {n: cells[n].map(str, na_action="ignore") for n in other})

    @classmethod
    def from_toml(
        cls, path: str | Path, frame: pd.DataFrame, *, rules: Iterable[Rule] = ()
    ) -> Schema:
        """Infer a schema from a frame, (n, p), and what a file of `to_toml` says of it.

        Args:
            path: of the file.
            frame: training rows in user units.
            rules: as in `infer`; they are code, which no file holds.

        Raises:
            SchemaError: the file cannot be read, or does not fit the frame.
        """
        from dear_plugin.tell import schemas

        tables = schemas.read(path)
        try:
            given, more = schemas.arguments(tables, frame)
            schema = cls.infer(frame, **given, rules=rules)
            schema.index(tables.get("features", ()), "[features]")
            for name, attributes in more.items():
                schema = schema.replace(name, **attributes)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from error
        return schema

    def to_toml(self, path: str | Path) -> None:
        """Write what is known of the features, with comments, as a file to edit.

        Args:
            path: of the file, which `from_toml` reads.
        """
        from dear_plugin.tell import schemas

        Path(path).write_text(schemas.written(self), encoding="utf8")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without infinity, which is None, and rules, which are code."""
        return {
            "target": self.target,
            "features": [feature.to_dict() for feature in self.features],
            "column_names": list(self.column_names),
            "central": self.central,
            "tiers": [list(tier) for tier in self.tiers],
            "causes": {name: list(causes) for name, causes in self.causes},
            "relations": [relation.to_dict() for relation in self.relations],
        }

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], rules: Iterable[Rule | Condition] = ()
    ) -> Schema:
        """The inverse of `to_dict`.

        Args:
            values: the result of `to_dict`.
            rules: the rules of the schema.
        """
        features = tuple(map(Feature.from_dict, values["features"]))
        relations = tuple(map(from_dict, values.get("relations", ())))
        order = values["tiers"], values["causes"], tuple(values["column_names"])
        whole = *order, values.get("central", 0.98)
        return cls(features, values["target"], relations, tuple(rules), *whole)


def renamed(
    relation: Relation | Lookup, labels: Mapping[str, Mapping[Any, Any]]
) -> Relation | Lookup:
    """A relation with other labels, `{feature: {label: another}}`."""
    if isinstance(relation, Relation):
        return relation
    y, x = (labels[name] for name in relation.members)
    return replace(relation, table=tuple((x.get(a, a), y.get(b, b)) for a, b in relation.table))


def as_written(feature: Feature, column: pd.Series) -> Feature:
    """A column of training rows, whose labels are text, with those and the dtype of another one.

    A category column keeps the order of its levels in training.
    """
    dtype = "category" if isinstance(column.dtype, pd.CategoricalDtype) else str(column.dtype)
    if not feature.choices:
        # What the training rows have, whole numbers need not hold.
        whole = feature.precision is not None and feature.precision <= 0
        fits = column.dtype.kind == "f" or (column.dtype.kind in "iu" and whole)
        return replace(feature, dtype=dtype if fits else "float64")
    own = _own_labels(column, feature.dtype_levels)
    labels: dict[str, Any] = {
        name: tuple(own.get(label, label) for label in getattr(feature, name))
        for name in ("categories", "levels", "stored", "special", "excluded")
    }
    if dtype == "category" and not labels["levels"]:
        labels["levels"] = tuple(label for label in labels["categories"] if label is not None)
    return replace(feature, dtype=dtype, **labels)


def _own_labels(column: pd.Series, labels: Iterable[Any]) -> Mapping[Any, Any]:
    """The column's own value for the text of each label; empty where that is the text itself."""
    category = isinstance(column.dtype, pd.CategoricalDtype)
    values = list(column.cat.categories if category else column.dropna().unique())
    if all(isinstance(value, str) for value in values):
        return {}
    own = {str(value): value for value in values}
    return {t: own.get(t, _like(values[0], t)) for t in labels if isinstance(t, str)}


def _like(sample: Any, label: str) -> Any:
    """A label's text as a value of the sample's type."""
    if isinstance(sample, bool | np.bool_):
        return label == "True"
    try:
        return type(sample)(label)
    except (TypeError, ValueError):
        return label
