"""Graph: the causes of each feature as a user states them; a mapping or a directed graph in."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol, TypeAlias, runtime_checkable

from dear_plugin.data.relations import Lookup, Relation
from dear_plugin.errors import SchemaError, shown, unknown

# Each feature with its causes, all in frame order.
Causes = tuple[tuple[str, tuple[str, ...]], ...]

logger = logging.getLogger(__name__)


@runtime_checkable
class DirectedGraph(Protocol):
    """What is read of a `networkx.DiGraph`, which need not be installed."""

    @property
    def nodes(self) -> Iterable[Any]:
        """The names of features."""

    @property
    def edges(self) -> Iterable[Any]:
        """Pairs of a cause and its effect."""

    def is_directed(self) -> bool:
        """Whether edges have a direction."""


Stated: TypeAlias = Mapping[str, Iterable[str]] | DirectedGraph | Causes


def causes_of(stated: Stated | None) -> Causes:
    """The causes of each feature that a mapping or graph names.

    Raises:
        SchemaError: neither, or causes that are no list.
    """
    expected = 'causes must be {feature: its causes}, such as {"income": ["education", "age"]}'
    if isinstance(stated, DirectedGraph):
        if not stated.is_directed():
            raise SchemaError(f"causes: expected a directed graph, got a {type(stated).__name__}")
        found: dict[Any, list[Any]] = {node: [] for node in stated.nodes}
        for cause, effect, *_ in stated.edges:
            found[effect].append(cause)
        return tuple((name, tuple(causes)) for name, causes in found.items())
    if stated is not None and not isinstance(stated, Mapping | tuple):
        raise SchemaError(f"{expected}, or a networkx.DiGraph; got {shown(stated)}")
    pairs = dict(stated or ())
    for name, causes in pairs.items():
        if isinstance(causes, str) or not isinstance(causes, Iterable):
            raise SchemaError(f"{expected}; got {shown(causes)} for {name!r}")
    return tuple((name, tuple(causes)) for name, causes in pairs.items())


def checked(
    stated: Stated | None,
    owners: Mapping[str, str],
    relations: Iterable[Relation | Lookup] = (),
    target: str | None = None,
) -> Causes:
    """The causes of every feature.

    Args:
        stated: the causes of some features; the target may be one of these.
        owners: the feature that each name stands for: its own, or that of one of its columns.
        relations: those of features: a definition states the causes of one that the graph leaves
            out.
        target: the column that is no feature.

    Raises:
        SchemaError: unknown names, the target as a cause, or a cycle.
    """
    given = {name: causes for name, causes in causes_of(stated) if name != target}
    if not given:
        return ()
    used = [*given, *(cause for causes in given.values() for cause in causes)]
    if target in used:
        raise SchemaError(f"causes: {target!r} is the target, which is no cause of a feature")
    names = tuple(dict.fromkeys(owners.values()))
    if absent := [name for name in dict.fromkeys(used) if name not in owners]:
        raise SchemaError(f"causes: {unknown('features', absent, owners)}")
    # Dictionaries, of which the order is the same in every process.
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    for name, causes in given.items():
        found[owners[name]] |= dict.fromkeys(owners[cause] for cause in causes)
    _add_definitions(found, relations)
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        raise SchemaError(
            f"causes: {' -> '.join(error.args[1])} is a cycle: leave one of these causes out, or"
            " state tiers=[[...], [...]] with what causes each other in one tier"
        ) from None
    return tuple((n, tuple(c for c in names if c in found[n])) for n in names)


def tell(causes: Causes, mutable: Sequence[str]) -> None:
    """Say which features a graph connects with no other one, and which stop what follows."""
    connected = _connected(dict(causes))
    if alone := [name for name, _ in causes if name not in connected]:
        logger.info("causes= names no cause or effect of %s: only actions move them", alone)
    if stops := [n for n, own in causes if n not in mutable and {*own} & {*mutable}]:
        logger.info(
            "%s have causes and are immutable: nothing follows through them; to let one follow,"
            " make it mutable and leave it out of act_on",
            stops,
        )


def _add_definitions(
    causes: dict[str, dict[str, None]], relations: Iterable[Relation | Lookup]
) -> None:
    """Set the causes of columns that a graph leaves out and others define."""
    connected = _connected(causes)
    defined = {each.name: each.members[1:] for each in relations if each.is_definition}
    for name, others in defined.items():
        # Of two columns that define each other, neither is set.
        if name not in connected and not {*others} & (defined.keys() - connected):
            causes[name] = dict.fromkeys(others)
            connected |= {name, *others}


def _connected(causes: Mapping[str, Iterable[str]]) -> set[str]:
    """The features that have a cause, or are one."""
    return {name for effect, own in causes.items() for name in own and (effect, *own)}
