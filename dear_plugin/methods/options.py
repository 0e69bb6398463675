"""Options: single keyword arguments of a host, turned into a search and into action sets."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from dear_plugin._validation.settings import boolean, require_instance
from dear_plugin.data.schema import Schema
from dear_plugin.data.sensitive import warn_of_actions
from dear_plugin.errors import SettingError
from dear_plugin.problem.action_sets import ActOn
from dear_plugin.search import Search

__all__ = ["boolean", "paired", "search_of", "warn_of_actions"]


def search_of(
    search: Search | None,
    *,
    min_confidence: float | None = None,
    max_reliance: float | None = None,
    min_plausibility: float | None = None,
) -> Search:
    """The search settings from a host's arguments: a `Search`, or single criteria.

    Args:
        search: the settings; None is `Search()`, whose answers are credible.
        min_confidence: as in `Search`; None is its default.
        max_reliance: likewise.
        min_plausibility: likewise.

    Raises:
        SettingError: a search together with any of the others, or an invalid value.
    """
    options: dict[str, Any] = {
        "min_confidence": min_confidence,
        "max_reliance": max_reliance,
        "min_plausibility": min_plausibility,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if search is None:
        return Search(**given)
    require_instance("search", search, Search)
    if given:
        criteria = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise SettingError(
            f"got search= together with {', '.join(given)}: set them in one place, as"
            f" search=Search({criteria}, ...) or without search="
        )
    return search


def paired(schema: Schema, act_on: ActOn | None) -> list[tuple[str, ...]]:
    """The sets of `act_on`, and all pairs of its single features.

    Args:
        schema: the features.
        act_on: as in `DEAR`; None is every actionable feature.
    """
    if act_on is None:
        warn_of_actions(schema)
        act_on = schema.actionable
    sets = [(each,) if isinstance(each, str) else tuple(each) for each in act_on]
    known = {frozenset(each) for each in sets}
    pairs = combinations([each[0] for each in sets if len(each) == 1], 2)
    return [*sets, *(pair for pair in pairs if frozenset(pair) not in known)]
