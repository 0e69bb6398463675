"""CausalOrder: which features may be causes of which; action sets in, what follows them out.

Tiers and graphs are two ways to state the same relation: in a graph a feature has the causes that
it names, with tiers every feature of its own and of earlier tiers may be one, and where nothing is
stated every other feature may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dear_plugin.data.feature import Feature
from dear_plugin.data.graph import Causes
from dear_plugin.data.kinds.cells import Mask
from dear_plugin.data.tiers import Tiers, ranks


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
