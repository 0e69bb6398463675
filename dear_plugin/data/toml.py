"""Toml: a schema as a file to edit, and back; it states what `Schema.infer` takes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.data.attributes import Kind
from dear_plugin.data.feature import Feature
from dear_plugin.data.given import ARGUMENTS
from dear_plugin.data.relations import Lookup, Relation
from dear_plugin.data.summary import described, of_cost_1
from dear_plugin.errors import SchemaError, unknown

# What a feature's table may say: the argument of `Schema.infer` that is {feature: value}, and
# where it is a list of features the argument by what the table says.
MAPPINGS = {each.key: name for name, each in ARGUMENTS.items() if each.value is None}
LISTS = {
    (each.key, each.value): name for name, each in ARGUMENTS.items() if each.value is not None
}
# What else these may be is what says nothing: false, or "".
CHOICES = {key: [v for k, v in LISTS if k == key] for key, _ in LISTS}
# What the kind of a column of numbers is stated as; one of two values has none.
KINDS = {Kind.NUMERIC: "number", Kind.CATEGORICAL: "category"}
# The other arguments stand at the top of the file.
WHOLE = ("target", "tiers", "causes", "orders", "exactly_one", "definitions", "central")
# A program's own table, such as that of `dear-plugin letters`.
OWN = "letters"
# Attributes of a feature that no argument of `Schema.infer` states.
MORE = ("precision", "actionable", "enter_special", "leave_special")
KEYS = (*CHOICES, *MAPPINGS, *MORE, "levels")

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
DEFINED = "What others determine: an action changes it with them, by definition."
FEATURE = """
# A feature may have: label = "what texts call it", unit = "dollars", cost = 3 (see below),
# step = 500 (of actions; 0: any value), range = [low, high], immutable = true,
# direction = "increasing" or "decreasing", kind = "category" or "number",
# special = [codes that are no amounts], ordered = [levels, the least first],
# excluded = [levels that nothing changes to], identifier = true,
# cyclic = [levels that go around] (or their number, 24 for hours),
# levels = { "0" = "no", "1" = "yes" } (what texts call them).
# Where the log says immutable=['a'], special={'a': [1]} or categorical=['a'], write below
# [features.a] what is "immutable = true", "special = [1]" or 'kind = "category"' here.
# Answers are those of the least cost. "cost = 1 # of ..." says which change of a feature costs 1:
# where people find it easier, state less (0.2), where harder, more (3), without the # in front.
"""
COST = "cost = 1 # of {}"
RULES = (
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
        raise SchemaError(f"{path}: expected a TOML file, {error}; {RULES}") from error
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
    named = tables.get("features", {})
    # The feature of several dummies begins as these do.
    if wrong := [name for name in named if not any(str(c).startswith(name) for c in frame)]:
        raise SchemaError(f"[features]: {unknown('features', wrong, frame.columns)}")
    for name, table in named.items():
        _check(name, table)
        for key, argument in MAPPINGS.items():
            if key in table:
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
    if wrong := [key for key in table if key not in KEYS]:
        raise SchemaError(f"features.{name}: {unknown('keys', wrong, KEYS)}")
    for key, (one, *others) in CHOICES.items():
        choices = one, *others, type(one)()
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


def written(
    features: Iterable[Feature],
    relations: Iterable[Relation | Lookup],
    order: Mapping[str, Any],
    *,
    target: str | None,
    exactly_one: Sequence[Sequence[str]],
) -> str:
    """The file of a schema that was inferred: with the same frame it leads to an equal one.

    Args:
        features: with a table each.
        relations: orders, and definitions with a comment each.
        order: the `tiers` or `causes`.
        target: the column that is no feature.
        exactly_one: groups of dummies.
    """
    import tomlkit

    document, defined, tables = tomlkit.document(), tomlkit.table(), tomlkit.table(True)
    _say(HEAD, document)
    if target is not None:
        document["target"] = target
    _say(TIERS, document)
    document.update(order)
    _say(ORDERS, document)
    document["orders"] = [[*each.members[::-1]] for each in relations if each.is_order]
    _say(ONE, document)
    document["exactly_one"] = [[*group] for group in exactly_one]
    _say(DEFINED, defined)
    for each in relations:
        if not each.is_order:
            defined[each.name] = [*each.members[1:]]
            defined[each.name].comment(each.text)
    document["definitions"] = defined
    parts = {name for group in exactly_one for name in group}
    for feature in features:
        tables[feature.name] = table = tomlkit.table()
        _say(described(feature), table)
        table.update(stated(feature))
        if feature.actionable and not feature.immutable and feature.name not in parts:
            _say_cost(feature, table)
    document["features"] = tables
    head, start, rest = tomlkit.dumps(document).partition("[features.")
    return f"{head}{FEATURE}\n{start}{rest}"


def _say_cost(feature: Feature, table: Any) -> None:
    """Say what a change of a feature costs, as a line to edit."""
    what = of_cost_1(feature)
    if "cost" in table:
        table["cost"].comment(f"of {what}")
    else:
        _say(COST.format(what), table)


def _say(words: str, to: Any) -> None:
    """Add lines of a comment to a table."""
    from tomlkit import comment

    for line in words.splitlines():
        to.add(comment(line))


def stated(feature: Feature) -> dict[str, Any]:
    """The lines of a feature: its kind, and what is not usual."""
    numeric = pd.api.types.is_numeric_dtype(pd.api.types.pandas_dtype(feature.dtype))
    number = numeric and not feature.dummies
    named = zip(feature.choices, feature.level_labels, strict=False)
    table = {
        "label": feature.label,
        "levels": {_as_text(level): text for level, text in named if text},
        "identifier": feature.identifier,
        "kind": KINDS.get(feature.kind, "") if number and not feature.identifier else "",
        "immutable": feature.immutable and not feature.identifier,
        "direction": ("", "increasing", "decreasing")[feature.direction],
        "unit": feature.unit,
        "range": [*(feature.limits or ())],
        "special": [*feature.special],
        "ordered": [*feature.ranked],
        "excluded": [*feature.excluded],
        "cyclic": [*feature.circle],
        "enter_special": feature.enter_special,
        "leave_special": feature.leave_special,
    }
    lines = {key: value for key, value in table.items() if value}
    if feature.step is not None:
        lines["step"] = feature.step
    if feature.cost != 1.0:
        lines["cost"] = feature.cost
    return lines if feature.actionable or feature.identifier else {**lines, "actionable": False}
