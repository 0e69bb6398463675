"""The sets of features S: those that `act_on` names, and those that a search adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.data.schema import Feature, Schema
from dear_plugin.errors import MOST_NAMED, ConstraintError

ActOn = Iterable[str | Sequence[str]]


@dataclass(frozen=True)
class ActionSets:
    """s sets of features; an action changes the features of one set directly.

    Attributes:
        members: (s,) the schema positions of each set's features, ascending.
        features: (p,) the names of the features.

    Example:
        >>> from dear_plugin import ActionSets, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> ActionSets.of(schema, ["income", ("savings", "duration")]).labels
        ('income', 'duration + savings')
    """

    members: tuple[tuple[int, ...], ...]
    features: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema, act_on: ActOn | None = None) -> ActionSets:
        """Build the sets from `act_on`.

        Args:
            schema: the features.
            act_on: feature names, or lists of them; None takes `schema.actionable`, one at a
                time. One of a feature's several columns stands for it.

        Raises:
            ConstraintError: no set, an empty or repeated set, or an immutable feature in a set.
            SchemaError: an unknown feature.
        """
        if isinstance(act_on, str):
            raise ConstraintError(f"act_on must be a list of features, got {act_on!r}")
        requested = schema.actionable if act_on is None else act_on
        sets = tuple((s,) if isinstance(s, str) else tuple(s) for s in requested)
        found: dict[tuple[int, ...], None] = {}
        for names in sets:
            members = _members(schema, names)
            # Several columns of one feature stand for the same set.
            if members in found and {*names} <= {*schema.names}:
                raise ConstraintError(f"act_on names a set twice: {list(sets)}")
            found[members] = None
        if not sets:
            raise ConstraintError(_why_none(schema, act_on))
        return cls(tuple(found), schema.names)

    @classmethod
    def pairs(cls, schema: Schema, names: Iterable[str] | None = None) -> ActionSets:
        """All pairs of the named features; None pairs the actionable ones."""
        return cls.of(schema, list(combinations(schema.actionable if names is None else names, 2)))

    @classmethod
    def acted_on(cls, acted: Tensor, schema: Schema) -> tuple[ActionSets, Tensor]:
        """The sets of the features that m rows, at least one, act on; (m,) the set of each row.

        Args:
            acted: (m, p) bool, the features that each row acts on, some of every row.
            schema: the features.
        """
        masks, which = acted.unique(dim=0, return_inverse=True)
        return cls(tuple(tuple(m.nonzero()[:, 0].tolist()) for m in masks), schema.names), which

    def extended(self, members: Sequence[tuple[int, ...]]) -> ActionSets:
        """These sets, then others, given by the positions of features."""
        return replace(self, members=(*self.members, *members))

    def only(self, some: Iterable[int]) -> ActionSets:
        """Some of the sets."""
        return replace(self, members=tuple(self.members[i] for i in some))

    def __len__(self) -> int:
        """The number of sets (s)."""
        return len(self.members)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """(s,) the names of the features of each set."""
        return tuple(tuple(self.features[j] for j in each) for each in self.members)

    @property
    def labels(self) -> tuple[str, ...]:
        """(s,) a display name per set, `a + b`."""
        return tuple(" + ".join(n) for n in self.names)

    @lazy
    def masks(self) -> Tensor:
        """(s, p) bool: the features in each set."""
        masks = torch.zeros(len(self), len(self.features), dtype=torch.bool)
        for i, positions in enumerate(self.members):
            masks[i, list(positions)] = True
        return masks

    @lazy
    def positions(self) -> Tensor:
        """(s, w) int64: the features of each set; shorter sets repeat their first feature."""
        width = max(map(len, self.members))
        return torch.tensor([m + m[:1] * (width - len(m)) for m in self.members])


def _why_none(schema: Schema, act_on: ActOn | None) -> str:
    """The message on no action sets, with the true cause."""
    text, choices = "nothing to act on", list(schema.mutable)[:MOST_NAMED]
    if not choices:
        return f"{text}: every feature is {why_fixed(schema.features)}"
    if act_on is not None:
        return f"{text}: act_on is empty; it takes features such as {choices}"
    return (
        f"{text}: every feature that is not immutable has many levels, or others determine it,"
        f" {choices}; act_on=[...] names those to act on"
    )


def _members(schema: Schema, names: tuple[str, ...]) -> tuple[int, ...]:
    """The positions of the features of a set, ascending, that may be acted on together."""
    if not names or len(set(names)) < len(names):
        raise ConstraintError(f"a set to act on needs distinct features, got {names!r}")
    members = tuple(sorted({*schema.index(names, "act_on")}))
    if fixed := [schema.features[i] for i in members if schema.features[i].immutable]:
        named = [feature.name for feature in fixed]
        raise ConstraintError(f"{named} cannot be acted on: {why_fixed(fixed)}")
    return members


def why_fixed(features: Sequence[Feature]) -> str:
    """Why immutable features are, with the names of those that the data decide."""
    named = [f.name for f in features if f.identifier]
    constant = [f.name for f in features if f.ends[0] == f.ends[1] and not f.identifier]
    text = "immutable" + f", {constant[:MOST_NAMED]} as constant in the data" * bool(constant)
    if not named:
        return text
    return (
        f"{text}; {named} look like identifiers: Schema.infer(numeric={named}) says that they are"
        " amounts, categorical= that they are categories"
    )
