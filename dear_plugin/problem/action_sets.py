"""ActionSets: which features S may be acted on together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.schema import Schema
from dear_plugin.errors import ConstraintError

ActOn = Iterable[str | Sequence[str]]


@dataclass(frozen=True)
class ActionSets:
    """s sets of features, each to be acted on as one.

    Attributes:
        names: per set, the names of its features.
        members: per set, the positions of its features in the schema.
        p: how many features the schema has.
    """

    names: tuple[tuple[str, ...], ...]
    members: tuple[tuple[int, ...], ...]
    p: int

    @classmethod
    def of(cls, schema: Schema, act_on: ActOn | None = None) -> ActionSets:
        """The sets a user asks for.

        Args:
            schema: the features.
            act_on: feature names, or groups of them; None means every mutable feature but what
                looks like an identifier, one at a time.

        Raises:
            ConstraintError: no set, an empty or doubled set, or an immutable feature in a set.
            SchemaError: an unknown feature.
        """
        if isinstance(act_on, str):
            raise ConstraintError(f"act_on must be a list of features, {act_on!r} came")
        asked = schema.actionable if act_on is None else act_on
        sets = tuple((s,) if isinstance(s, str) else tuple(s) for s in asked)
        members = tuple(schema.index(s) for s in sets)
        for group, where in zip(sets, members, strict=True):
            _check(schema, group, where)
        if not sets:
            raise ConstraintError("nothing to act on: every feature is immutable, or act_on is []")
        if len({frozenset(m) for m in members}) < len(members):
            raise ConstraintError(f"act_on names a set twice: {list(sets)}")
        return cls(sets, members, len(schema))

    @classmethod
    def pairs(cls, schema: Schema, names: Iterable[str] | None = None) -> ActionSets:
        """All pairs of some features (None: of the actionable ones)."""
        return cls.of(schema, list(combinations(schema.actionable if names is None else names, 2)))

    def __len__(self) -> int:
        """How many sets there are (s)."""
        return len(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """One readable name per set."""
        return tuple(" + ".join(n) for n in self.names)

    @lazy
    def masks(self) -> Tensor:
        """(s, p) bool: which features are in which set."""
        masks = torch.zeros(len(self), self.p, dtype=torch.bool)
        for i, where in enumerate(self.members):
            masks[i, list(where)] = True
        return masks

    @lazy
    def positions(self) -> Tensor:
        """(s, w) int64: the features of each set; a shorter set repeats its first one."""
        width = max(map(len, self.members))
        return torch.tensor([m + m[:1] * (width - len(m)) for m in self.members])

    @property
    def single(self) -> Tensor:
        """(s,) bool: sets of one feature."""
        return torch.tensor([len(m) == 1 for m in self.members])


def _check(schema: Schema, group: tuple[str, ...], where: tuple[int, ...]) -> None:
    if not group or len(set(group)) < len(group):
        raise ConstraintError(f"a set to act on needs distinct features, {group!r} came")
    fixed = [schema.features[i].name for i in where if schema.features[i].immutable]
    if fixed:
        raise ConstraintError(f"{fixed} cannot be acted on: immutable (or constant in the data)")
