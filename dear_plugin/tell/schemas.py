"""A schema as text: a TOML file to edit, a line, and an HTML table for notebooks.

The file states what `Schema.infer` takes.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from dear_plugin import _html
from dear_plugin.data.causes import ranks
from dear_plugin.data.feature import Feature, Kind, attributes
from dear_plugin.data.relations import Relation, in_words
from dear_plugin.data.schema import Schema
from dear_plugin.errors import SchemaError, unknown

# The attributes of features by what the file calls them, and the arguments of `Schema.infer` that
# state them: of lists by what the table of a feature says, of others {feature: value}.
FIELDS = {f.metadata["key"]: f for f in attributes() if f.metadata["key"]}
STATED = [(key, each) for key, field in FIELDS.items() for each in field.metadata["stated"]]
LISTS = {(key, each.value): each.name for key, each in STATED if each.is_list}
MAPPINGS = {key: each.name for key, each in STATED if not each.is_list}
# What else these may be is what says nothing: false, or "", or what is usual.
CHOICES = {key: [v for k, v in LISTS if k == key] for key, _ in LISTS}
# What the kind of a column of numbers is stated as; one of two values has none.
KINDS = {Kind.NUMERIC: "number", Kind.CATEGORICAL: "category"}
# The other arguments stand at the top of the file.
WHOLE = ("target", "tiers", "causes", "orders", "exactly_one", "definitions", "within", "central")
# A program's own table, such as that of `dear-plugin letters`.
OWN = "letters"
# Attributes of a feature that no argument of `Schema.infer` states, or one does not undo.
MORE = [key for key, f in FIELDS.items() if not f.metadata["stated"] or f.default is True]
MORE.remove("levels")

HEAD = """\
What `Schema.infer` takes, to edit; lines that start with # are not read. It is read by
Schema.from_toml(path, frame) and by `dear-plugin letters --schema`. At its end may stand what
that command is to do: [letters], and below it index = "case" and act_on = ["income"]."""
TIERS = """\
The earliest causes first: tiers = [["age"], ["education", "job"]]. An action changes no feature
of an earlier tier: what gives way to it is in the same or a later one. Without tiers, what follows
an action is an association, not an effect."""
ORDERS = "a <= b in every row, as pairs [a, b]. Delete those that only happen to hold."
ONE = "Columns of which exactly one is 1."
DEFINED = 'What others determine by definition: by their names, or by a formula, "a / (b + c)".'
FEATURE = """
# A feature may have: label = "what texts call it", unit = "dollars", cost = 3 (see below),
# step = 500 (of actions; 0: any value), range = [low, high], immutable = true,
# direction = "increasing" or "decreasing", kind = "category" or "number",
# special = [codes that are no amounts], ordered = [levels, the least first],
# observed = [the only values of a number],
# excluded = [levels that nothing changes to], identifier = true,
# levels = { "0" = "no", "1" = "yes" } (what texts call them).
# Where the log says immutable=['a'], special={'a': [1]} or categorical=['a'], write below
# [features.a] what is "immutable = true", "special = [1]" or 'kind = "category"' here.
# Answers are those of the least cost. "cost = 1 # of ..." says which change of a feature costs 1:
# where people find it easier, state less (0.2), where harder, more (3), without the # in front.
"""
COST = "cost = 1 # of {}"
SYNTAX = (
    'texts, and names with other characters than a to z, 0 to 9, "_" and "-", stand in quotes, and'
    " a name once in a table"
)


def read(path: str | Path) -> dict[str, Any]:
    """The tables of a file.

    Raises:
        SchemaError: it cannot be read, or has no tables where these are needed.
    """
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise SchemaError(f"{path}: expected a TOML file, {error}; {SYNTAX}") from error
    for key in ("features", OWN):
        if not isinstance(found := tables.get(key, {}), Mapping):
            raise SchemaError(f"{path}: {key} must be a table, [{key}], got {found!r}")
    return tables


def arguments(
    tables: Mapping[str, Any], frame: pd.DataFrame
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The arguments of `Schema.infer`, and what `Schema.replace` adds: {feature: attributes}.

    Args:
        tables: of the file.
        frame: training rows, whose levels the file names as texts.

    Raises:
        SchemaError: an unknown key, or a choice that is none.
    """
    known = (*WHOLE, "features", OWN)
    if wrong := [key for key in tables if key not in known]:
        raise SchemaError(f"schema file: {unknown('keys', wrong, known)}")
    given: dict[str, Any] = {key: tables[key] for key in WHOLE if key in tables}
    more: dict[str, dict[str, Any]] = {}
    named, columns = tables.get("features", {}), [*map(str, frame)]
    # The feature of several dummies begins as these do, or as the first of them; so may others.
    alike = {n for n in named for c in columns if c.startswith(n) or n.startswith(c)}
    if wrong := [name for name in named if name not in alike]:
        raise SchemaError(f"[features]: {unknown('features', wrong, columns)}")
    for name, table in named.items():
        _check(name, table)
        for key, argument in MAPPINGS.items():
            # The file of a number that is stated to be a category has the values of the number.
            if key in table and not (key == "observed" and table.get("kind") == "category"):
                given.setdefault(argument, {})[name] = _read(key, table[key])
        for (key, value), argument in LISTS.items():
            if key in table and table[key] == value:
                given.setdefault(argument, []).append(name)
        if texts := _texts(table, frame, name):
            given.setdefault("labels", {})[name] = texts
        if attributes := {key: table[key] for key in MORE if key in table}:
            more[name] = attributes
    return given, more


def _check(name: str, table: Any) -> None:
    if not isinstance(table, Mapping):
        raise SchemaError(f"features.{name} must be a table of its attributes, got {table!r}")
    if wrong := [key for key in table if key not in FIELDS]:
        raise SchemaError(f"features.{name}: {unknown('keys', wrong, FIELDS)}")
    for key, (one, *others) in CHOICES.items():
        choices = (True, False) if isinstance(one, bool) else (one, *others, "")
        if table.get(key, one) not in choices:
            raise SchemaError(f"features.{name}.{key} must be in {choices}, got {table[key]!r}")


def _read(key: str, value: Any) -> Any:
    """A value of the file as `Schema.infer` takes it: it has no None, and its infinity is open."""
    if key == "step":
        return value or None
    if key == "range" and isinstance(value, list):
        return tuple(None if end in (float("inf"), float("-inf")) else end for end in value)
    return value


def _texts(table: Mapping[str, Any], frame: pd.DataFrame, name: str) -> Any:
    """The label of a feature, with those of its levels where the file has some."""
    label, named = table.get("label", ""), table.get("levels", {})
    if not named:
        return label
    found = frame[name].dropna().unique().tolist() if name in frame else ()
    levels = {_as_text(level): level for level in found}
    return {"": label, **{levels.get(text, text): to for text, to in named.items()}}


def _as_text(level: Any) -> str:
    """A level as a key of the file: 1.0 as "1", True as "true"."""
    if isinstance(level, float) and level.is_integer():
        return str(int(level))
    return str(level).lower() if isinstance(level, bool) else str(level)


def written(schema: Schema) -> str:
    """The file of a schema that was inferred: with the same frame it leads to an equal one."""
    import tomlkit

    document, defined, tables = tomlkit.document(), tomlkit.table(), tomlkit.table(True)
    relations = schema.relations
    _say(HEAD, document)
    if schema.target is not None:
        document["target"] = schema.target
    _say(TIERS, document)
    document["central"] = schema.central
    if schema.causes:
        document["causes"] = {name: [*causes] for name, causes in schema.causes}
    else:
        document["tiers"] = [[*tier] for tier in schema.tiers]
    _say(ORDERS, document)
    document["orders"] = [[*each.members[::-1]] for each in relations if each.is_order]
    _say(ONE, document)
    document["exactly_one"] = [[*group] for group in schema.exactly_one]
    _say(DEFINED, defined)
    for name in dict.fromkeys(each.name for each in relations if not each.is_order):
        own = [each for each in relations if each.name == name and not each.is_order]
        others = [getattr(each, "formula", "") or [*each.members[1:]] for each in own]
        defined[name] = others if len(own) > 1 else others[0]
        defined[name].comment(_plain("; ".join(each.text for each in own)))
    document["definitions"] = defined
    formulas = (r for r in relations if isinstance(r, Relation) and r.formula)
    if near := {each.name: each.high for each in formulas if each.high}:
        document["within"] = near
    parts = {name for group in schema.exactly_one for name in group}
    for feature in (each for f in schema for each in (*f.members, *[f] * bool(f.dummies))):
        tables[feature.name] = table = tomlkit.table()
        _say(_plain(described(feature)), table)
        table.update(stated(feature))
        if feature.actionable and not feature.immutable and feature.name not in parts:
            _say_cost(feature, table)
    return f"{tomlkit.dumps(document)}\n{FEATURE}\n{tomlkit.dumps({'features': tables})}"


def _say_cost(feature: Feature, table: Any) -> None:
    """Say what a change of a feature costs, as a line to edit."""
    what = of_cost_1(feature)
    if "cost" in table:
        table["cost"].comment(_plain(f"of {what}"))
    else:
        _say(COST.format(what), table)


def _say(words: str, to: Any) -> None:
    """Add lines of a comment to a table."""
    from tomlkit import comment

    for line in words.split("\n"):
        to.add(comment(_plain(line)))


def _plain(text: str) -> str:
    """A text as a comment may have it: without line breaks and other control characters."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)


def stated(feature: Feature) -> dict[str, Any]:
    """The lines of a feature: its kind, and what is not usual."""
    numeric = pd.api.types.is_numeric_dtype(pd.api.types.pandas_dtype(feature.dtype))
    number = numeric and not feature.dummies and not feature.identifier
    named = zip(feature.choices, feature.level_labels, strict=False)
    stated_order = bool(feature.stored) or feature.dtype != "category"
    own = {
        "kind": KINDS.get(feature.kind, "") if number else "",
        "precision": None,
        "immutable": feature.immutable and not feature.identifier,
        "direction": ("", "increasing", "decreasing")[feature.direction],
        "range": feature.limits,
        "ordered": feature.ranked or feature.levels * stated_order,
        "observed": () if feature.ranked else feature.observed,
        "actionable": feature.actionable or feature.identifier,
        "levels": {_as_text(level): text for level, text in named if text},
    }
    every = {key: own.get(key, getattr(feature, field.name)) for key, field in FIELDS.items()}
    usual = {key: value for key, value in every.items() if value in (FIELDS[key].default, "", {})}
    lines = {key: value for key, value in every.items() if key not in usual}
    return {key: [*v] if isinstance(v, tuple) else v for key, v in lines.items()}


COLUMNS = ("feature", "kind", "values", "steps", "costs 1", "may change")
MOST_LEVELS = 6
# An end of the observed values that is so many units of cost beyond the central ones is unusual.
HEAVY = 3.0


def in_a_line(schema: Schema) -> str:
    """How many features of each kind, which are restricted, the order and the relations."""
    features, tiers = schema.features, schema.tiers
    kinds = Counter(str(feature.kind) for feature in features)
    parts = [f"{len(features)} features ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"]
    restricted = {
        "identifiers": [f.name for f in features if f.identifier],
        "immutable": [f.name for f in features if f.immutable and not f.identifier],
        "increasing": [f.name for f in features if f.direction > 0],
        "decreasing": [f.name for f in features if f.direction < 0],
        "costs": [f"{f.name} {f.cost:g}" for f in features if f.cost != 1.0],
        "levels in order": [f.name for f in features if f.ranked],
        "only some values": [f.name for f in features if f.observed and not f.ranked],
        "ranges": [f"{f.name} {_values(f)}" for f in features if f.limits],
        "steps": [f"{f.name} {f.action_step:g}" for f in features if _is_coarse(f)],
        "heavy tails": [text for f in features for text in _tails(f)],
        "causes of": [f"{name} ({', '.join(own)})" for name, own in schema.causes if own],
    }
    parts += [f"{what}: {', '.join(names)}" for what, names in restricted.items() if names]
    if tiers:
        rest = len(features) > sum(map(len, tiers))
        named = [", ".join(tier) for tier in tiers]
        parts.append(f"tiers: {' -> '.join([*named, *['the others'] * rest])}")
    texts: dict[str, list[str]] = {}
    for how, text in in_words(schema.relations):
        texts.setdefault(how, []).append(text)
    parts += [f"{how}: {', '.join(some)}" for how, some in texts.items()]
    return "; ".join(parts)


def as_table(schema: Schema) -> str:
    """An HTML table of the features; with tiers the number of each one's, or else its causes."""
    rows = [(_name(f), f.kind, _values(f), _steps(f), _costs_1(f), _may_change(f)) for f in schema]
    numbers = ranks(schema.tiers, schema.names) if schema.tiers else []
    causes = [", ".join(own) for _, own in schema.causes]
    more = {"tier": [str(n + 1) for n in numbers], "causes": causes}
    shown = {heading: column for heading, column in more.items() if column}
    table = [tuple(row) for row in zip(*zip(*rows, strict=True), *shown.values(), strict=True)]
    return _html.STYLE + _html.table((*COLUMNS, *shown), table)


def described(feature: Feature) -> str:
    """The kind of a feature, its values, and the steps of actions on it, as a line."""
    kind = "levels in order" if feature.ranked else feature.kind
    steps = _steps(feature)
    return f"{kind}: {_values(feature)}{steps and f'; steps of {steps}'}"


def _name(feature: Feature) -> str:
    """The column, and its label if it has one."""
    return f"{feature.name} ({feature.label})" if feature.label else feature.name


def _is_coarse(feature: Feature) -> bool:
    """Whether actions move a number by more than its last decimal."""
    last = 0.0 if feature.precision is None else 10.0**-feature.precision
    return feature.action_step > 1.5 * last


def _tails(feature: Feature) -> list[str]:
    """The ends of a number that are far beyond its central values."""
    if not feature.central:
        return []
    most = HEAVY * feature.unit_of_cost
    names = ("the least value", "the 1st percentile"), ("the largest value", "the 99th percentile")
    far = zip(names, feature.bounds, feature.central, strict=True)
    return [
        f"{feature.name} ({name} is {end:.6g}, {central} {inner:.6g}; {feature.unit_of_cost:.3g}"
        " costs 1)"
        for (name, central), end, inner in far
        if abs(end - inner) > most
    ]


def _steps(feature: Feature) -> str:
    """The step of actions on a number, if it has one."""
    return f"{feature.action_step:,.6g}" if feature.action_step else ""


def of_cost_1(feature: Feature) -> str:
    """The change of a feature that costs 1, or what is stated of it, in words."""
    if feature.categories:
        return "a change to another level"
    if feature.ranked:
        return f"a change by {feature.unit_of_cost:,.4g} levels"
    return f"a change by {_short(feature.unit_of_cost)} {feature.unit}".rstrip()


def _costs_1(feature: Feature) -> str:
    """The change of a number that costs 1; nothing of categories, of which another one does."""
    if feature.categories:
        return ""
    return f"{_short(feature.unit_of_cost / feature.cost)} {feature.unit}".rstrip()


def _short(value: float) -> str:
    """A value with four significant digits, and no exponent: 263,600."""
    return f"{float(f'{value:.4g}'):,.15g}"


def _values(feature: Feature) -> str:
    """The range of a number with its unit, or the first levels of a category."""
    if not feature.choices:
        low, high = feature.limits or feature.bounds
        return f"{low:,.10g} to {high:,.10g} {feature.unit}".rstrip()
    low, high = feature.limits or (-math.inf, math.inf)
    out = [each for each in feature.ranked if not low <= feature.place(each) <= high]
    levels = [feature.called_level(e) or str(e) for e in feature.choices if e not in out]
    more = f" and {len(levels) - MOST_LEVELS} more" * (len(levels) > MOST_LEVELS)
    return ", ".join(levels[:MOST_LEVELS]) + more


def _may_change(feature: Feature) -> str:
    """Whether, and in which direction, a feature may change."""
    if feature.immutable:
        return "no, an identifier" if feature.identifier else "no, immutable"
    direction = {1: "up only", -1: "down only"}.get(feature.direction, "yes")
    return direction if feature.actionable else f"{direction}, but not acted on unless named"


# What `change` says of a number.
UP, DOWN = "up", "down"


@dataclass(frozen=True)
class Exclusion:
    """An argument of `Schema.infer` for one feature.

    Attributes:
        name: the feature.
        argument: its name; "excluded" names a level that nothing changes to.
        level: the level.
    """

    name: str
    argument: Literal["increasing", "decreasing", "immutable", "excluded"]
    level: Hashable = None

    @classmethod
    def of(cls, feature: Feature, change: str, new: Hashable) -> Exclusion:
        """What excludes a change of a feature.

        A number or two-valued feature may go the other way only, and is immutable if it may not
        go there either; of more categories, nothing changes to the new one.

        Args:
            feature: as it is.
            change: "up", "down", or anything else.
            new: the new value, of a category.
        """
        if feature.dummies:
            column = feature.dummies[feature.categories.index(str(new))]
            return cls(column.name, "decreasing", new)
        if feature.kind is Kind.CATEGORICAL:
            return cls(feature.name, "excluded", new)
        is_binary = feature.kind is Kind.BINARY
        rises = new == feature.categories[-1] if is_binary else change == UP
        if feature.direction == (1 if rises else -1) or not (is_binary or change in (UP, DOWN)):
            return cls(feature.name, "immutable")
        return cls(feature.name, "decreasing" if rises else "increasing")

    def __str__(self) -> str:
        """The argument as it is written."""
        if self.argument == "excluded":
            return f"excluded={{{self.name!r}: [{self.level!r}]}}"
        return f"{self.argument}=[{self.name!r}]"

    def applied(self, feature: Feature) -> Feature:
        """The feature with the argument."""
        if self.argument == "immutable":
            return dataclasses.replace(feature, immutable=True)
        if self.argument == "excluded" or feature.dummies:
            kept = [each for each in feature.excluded if each != self.level]
            dummies = tuple(
                dataclasses.replace(each, direction=-1) if each.name == self.name else each
                for each in feature.dummies
            )
            return dataclasses.replace(feature, excluded=(*kept, self.level), dummies=dummies)
        direction = 1 if self.argument == "increasing" else -1
        return dataclasses.replace(feature, direction=direction)


def without(features: Sequence[Feature], kinds: Any) -> tuple[Feature, ...]:
    """Features that exclude kinds of advice, one after another: see `Schema.excluding`.

    Raises:
        SchemaError: no lines of `recourses.advice()`, or an unknown feature.
    """
    if not {"feature", "change", "new"} <= set(getattr(kinds, "columns", ())):
        raise SchemaError("expected lines of recourses.advice(), such as advice.loc[[0, 2]]")
    out = {feature.name: feature for feature in features}
    for name, change, new in kinds[["feature", "change", "new"]].itertuples(index=False):
        if name not in out:
            raise SchemaError(unknown("features", [name], out))
        out[name] = Exclusion.of(out[name], change, new).applied(out[name])
    return tuple(out.values())
