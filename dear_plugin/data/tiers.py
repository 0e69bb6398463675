"""Tiers: an order of causes among features; names in, ranks out.

Nothing in a tier is a cause of anything in an earlier one. Features that no tier names form one
more tier at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dear_plugin.errors import SchemaError, shown, unknown

Tiers = tuple[tuple[str, ...], ...]


def lists(tiers: Iterable[Iterable[str]]) -> Tiers:
    """Tiers as tuples.

    Raises:
        SchemaError: a tier that is empty or no list.
    """
    example = 'lists of features, the earliest first, such as [["age"], ["education", "job"]]'
    if isinstance(tiers, str) or not isinstance(tiers, Iterable):
        raise SchemaError(f"tiers must be a list of {example}; got {shown(tiers)}")
    found = []
    for i, tier in enumerate(tiers):
        if isinstance(tier, str) or not isinstance(tier, Iterable):
            raise SchemaError(f"tiers[{i}] must be a list: tiers are {example}; got {shown(tier)}")
        found.append(tuple(tier))
        if not found[i]:
            raise SchemaError(f"tiers[{i}] is empty: name its features, or leave it out")
    return tuple(found)


def checked(tiers: Tiers, owners: Mapping[str, str], target: str | None = None) -> Tiers:
    """Tiers of features.

    Args:
        tiers: lists of names, the earliest first.
        owners: the feature that each name stands for: its own, or that of one of its columns.
        target: the column that is no feature.

    Raises:
        SchemaError: a tier that is empty or no list, or a name that is unknown, repeated or the
            target.
    """
    found = lists(tiers)
    named = [name for tier in found for name in tier]
    if target is not None and target in named:
        raise SchemaError(f"tiers: {target!r} is the target, which is no feature: leave it out")
    if absent := [name for name in named if name not in owners]:
        raise SchemaError(f"tiers: {unknown('features', absent, owners)}")
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise SchemaError(f"tiers: {twice} are named more than once: a feature has one tier")
    whole = [tuple(dict.fromkeys(owners[name] for name in tier)) for tier in found]
    every = [name for tier in whole for name in tier]
    if split := sorted({name for name in every if every.count(name) > 1}):
        columns = [name for name in named if owners[name] in split]
        raise SchemaError(
            f"tiers: {columns} are in several tiers, but exactly one of them is 1: name"
            " them in one tier; exactly_one=[] takes them for separate columns"
        )
    return tuple(whole)


def ranks(tiers: Tiers, names: Sequence[str]) -> list[int]:
    """(p,) the tier of each feature, from 0; the last one for those that no tier names."""
    at = {name: i for i, tier in enumerate(tiers) for name in tier}
    return [at.get(name, len(tiers)) for name in names]
