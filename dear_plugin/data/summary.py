"""Summary: the features of a schema in a line, and as an HTML table for notebooks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from dear_plugin import _html
from dear_plugin.data.feature import Feature
from dear_plugin.data.graph import Causes
from dear_plugin.data.relations import Lookup, Relation, in_words
from dear_plugin.data.tiers import Tiers, ranks

COLUMNS = ("feature", "kind", "values", "steps", "costs 1", "may change")
MOST_LEVELS = 6
# An end of the observed values that is so many units of cost beyond the central ones is unusual.
HEAVY = 3.0


def in_a_line(
    features: Sequence[Feature],
    tiers: Tiers,
    causes: Causes,
    relations: Sequence[Relation | Lookup],
) -> str:
    """How many features of each kind, which are restricted, the order and the relations."""
    kinds = Counter(str(feature.kind) for feature in features)
    parts = [f"{len(features)} features ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"]
    restricted = {
        "identifiers": [f.name for f in features if f.identifier],
        "immutable": [f.name for f in features if f.immutable and not f.identifier],
        "increasing": [f.name for f in features if f.direction > 0],
        "decreasing": [f.name for f in features if f.direction < 0],
        "costs": [f"{f.name} {f.cost:g}" for f in features if f.cost != 1.0],
        "levels in order": [f.name for f in features if f.ranked],
        "levels in a circle": [f.name for f in features if f.circle],
        "only some values": [f.name for f in features if f.observed and not f.ranked],
        "ranges": [f"{f.name} {_values(f)}" for f in features if f.limits],
        "steps": [f"{f.name} {f.action_step:g}" for f in features if _is_coarse(f)],
        "heavy tails": [text for f in features for text in _tails(f)],
        "causes of": [f"{name} ({', '.join(own)})" for name, own in causes if own],
    }
    parts += [f"{what}: {', '.join(names)}" for what, names in restricted.items() if names]
    if tiers:
        rest = len(features) > sum(map(len, tiers))
        named = [", ".join(tier) for tier in tiers]
        parts.append(f"tiers: {' -> '.join([*named, *['the others'] * rest])}")
    texts: dict[str, list[str]] = {}
    for how, text in in_words(relations):
        texts.setdefault(how, []).append(text)
    parts += [f"{how}: {', '.join(some)}" for how, some in texts.items()]
    return "; ".join(parts)


def as_table(features: Sequence[Feature], tiers: Tiers, causes: Causes) -> str:
    """An HTML table of the features; with tiers the number of each one's, or else its causes."""
    rows = [
        (_name(f), f.kind, _values(f), _steps(f), _costs_1(f), _may_change(f)) for f in features
    ]
    numbers = ranks(tiers, [f.name for f in features]) if tiers else []
    more = {"tier": [str(n + 1) for n in numbers], "causes": [", ".join(c) for _, c in causes]}
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
    choices = [each for each in feature.choices if each not in out]
    levels = [feature.called_level(level) or str(level) for level in choices]
    more = f" and {len(levels) - MOST_LEVELS} more" * (len(levels) > MOST_LEVELS)
    return ", ".join(levels[:MOST_LEVELS]) + more


def _may_change(feature: Feature) -> str:
    """Whether, and in which direction, a feature may change."""
    if feature.immutable:
        return "no, an identifier" if feature.identifier else "no, immutable"
    direction = {1: "up only", -1: "down only"}.get(feature.direction, "yes")
    return direction if feature.actionable else f"{direction}, but not acted on unless named"
