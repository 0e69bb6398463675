"""Summary: the features of a schema in a line, and as an HTML table for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dear_plugin import _html
from dear_plugin.data.feature import Feature, Kind

COLUMNS = ("feature", "kind", "values", "may change")
MOST_LEVELS = 6


def in_a_line(features: Sequence[Feature]) -> str:
    """How many features of each kind, and which are restricted."""
    kinds = Counter(str(feature.kind) for feature in features)
    parts = [f"{len(features)} features ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"]
    restricted = {
        "immutable": [f.name for f in features if f.immutable],
        "increasing": [f.name for f in features if f.direction > 0],
        "decreasing": [f.name for f in features if f.direction < 0],
    }
    parts += [f"{what}: {', '.join(names)}" for what, names in restricted.items() if names]
    return "; ".join(parts)


def as_table(features: Sequence[Feature]) -> str:
    """An HTML table of the features."""
    rows = [(f.name, f.kind, _values(f), _may_change(f)) for f in features]
    return _html.STYLE + _html.table(COLUMNS, rows)


def _values(feature: Feature) -> str:
    """The range of a number, or the first levels of a category."""
    if feature.kind is Kind.NUMERIC:
        low, high = feature.limits or feature.bounds
        return f"{low:,.10g} to {high:,.10g}"
    levels = [str(level) for level in feature.categories]
    more = f" and {len(levels) - MOST_LEVELS} more" * (len(levels) > MOST_LEVELS)
    return ", ".join(levels[:MOST_LEVELS]) + more


def _may_change(feature: Feature) -> str:
    """Whether, and in which direction, a feature may change."""
    if feature.immutable:
        return "no, immutable"
    direction = {1: "up only", -1: "down only"}.get(feature.direction, "yes")
    return direction if feature.actionable else f"{direction}, but not acted on unless named"
