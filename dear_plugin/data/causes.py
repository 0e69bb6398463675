"""Which features may be causes of which, and so what may follow an action.

Tiers and graphs are two ways to state the same relation. In a graph a feature has the causes that
it names. With tiers every feature of its own and of earlier tiers may be a cause; features that no
tier names form one more tier at the end. Where nothing is stated, every other feature may be one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from dear_plugin.data.feature import Feature, Mask
from dear_plugin.data.relations import Lookup, Relation
from dear_plugin.errors import SchemaError, require_known, shown


class CausalOrder:
    """Which features may be causes of which, as far as tiers or a graph say it.

    Nothing follows an action through an immutable feature, which keeps its value.

    Args:
        features: the p features.
        tiers: their tiers, or ().
        causes: the graph, or ().

    Attributes:
        is_stated: whether tiers or a graph are stated.
    """

    def __init__(self, features: Sequence[Feature], tiers: Tiers, causes: Causes) -> None:
        names = [feature.name for feature in features]
        self.is_stated = bool(tiers or causes)
        self._mutable = np.array([not feature.immutable for feature in features], dtype=bool)
        rank = np.array(ranks(tiers, names))
        # Whether the feature of a row may be a cause of that of a column.
        self._may_cause: Mask = rank[:, None] <= rank
        if causes:
            self._may_cause = np.zeros_like(self._may_cause)
            at = {name: i for i, name in enumerate(names)}
            for name, own in causes:
                self._may_cause[[at[cause] for cause in own], at[name]] = True

    def held(self, members: Iterable[int]) -> tuple[int, ...]:
        """The positions of the features that do not move with an action set, ascending.

        They are the immutable features, and those that cannot follow from what is acted on.

        Args:
            members: the positions of the features of the set.
        """
        acted = self._mask(members)
        return _positions(~(acted | self._moved(acted)))

    def conditioned(self, members: Iterable[int]) -> tuple[int, ...]:
        """The positions of the held features that what follows is conditioned on, ascending.

        They are the possible causes of what is acted on (Pearl 2009, 3.3). An immutable feature
        through which an effect would pass, as if it were acted on at its own value, has its
        possible causes conditioned on, too.

        Args:
            members: the positions of the features of the set.
        """
        acted = self._mask(members)
        moved, every = self._moved(acted), np.ones_like(acted)
        below = _reached(self._may_cause, acted, every)
        above = _reached(self._may_cause.T, moved, every)
        passed = below & above & ~self._mutable
        causes = self._may_cause[:, acted | passed].any(1)
        return _positions((passed | causes) & ~(acted | moved))

    def mates(self, acted: Mask) -> Mask:
        """(n, p) bool, what may be a cause of what is acted on and follow from it, too.

        Its changes are associations: within a tier, or where nothing is stated. What else follows
        is an effect.

        Args:
            acted: (n, p) bool, what each of n rows acts on.
        """
        out: Mask = acted @ (self._may_cause & self._may_cause.T)
        return out

    def parts(self, members: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """The features of an action set in parts, causes before what may follow from them.

        Args:
            members: the positions of the features of the set.
        """
        if not self.is_stated or len(members) == 1:
            return (members,)
        every = np.ones_like(self._mutable)
        below = {j: _reached(self._may_cause, self._mask([j]), every) for j in members}
        before = {i: [j for j in members if below[j][i] and not below[i][j]] for i in members}
        level: dict[int, int] = {}
        for i in sorted(members, key=lambda i: len(before[i])):
            level[i] = 1 + max((level[j] for j in before[i]), default=-1)
        used = range(max(level.values()) + 1)
        return tuple(tuple(j for j in members if level[j] == each) for each in used)

    def _moved(self, acted: Mask) -> Mask:
        """(p,) bool, what may follow: what is reached through mutable features only."""
        return _reached(self._may_cause, acted, self._mutable) & ~acted

    def _mask(self, members: Iterable[int]) -> Mask:
        """(p,) bool, the features at some positions."""
        mask = np.zeros(len(self._mutable), dtype=bool)
        mask[list(members)] = True
        return mask


def _reached(edges: Mask, start: Mask, through: Mask) -> Mask:
    """(p,) bool, what edges, (p, p), lead to from some features, through some."""
    found, new = np.zeros_like(start), np.flatnonzero(start)
    while len(new) and len(left := np.flatnonzero(through & ~found)):
        new = left[edges[np.ix_(new, left)].any(0)]
        found[new] = True
    return found


def _positions(mask: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())


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


StatedCauses: TypeAlias = Mapping[str, Iterable[str]] | DirectedGraph | Causes


def causes_of(stated: StatedCauses | None) -> Causes:
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


def checked_causes(
    stated: StatedCauses | None,
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
    require_known("causes", "features", dict.fromkeys(used), owners)
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


def tell_causes(causes: Causes, mutable: Sequence[str]) -> None:
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


Tiers = tuple[tuple[str, ...], ...]


def checked_tiers(
    tiers: Iterable[Iterable[str]], owners: Mapping[str, str], target: str | None = None
) -> Tiers:
    """Tiers of features.

    Args:
        tiers: lists of names, the earliest first.
        owners: the feature that each name stands for: its own, or that of one of its columns.
        target: the column that is no feature.

    Raises:
        SchemaError: a tier that is empty or no list, or a name that is unknown, repeated or the
            target.
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
    named = [name for tier in found for name in tier]
    if target is not None and target in named:
        raise SchemaError(f"tiers: {target!r} is the target, which is no feature: leave it out")
    require_known("tiers", "features", named, owners)
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
