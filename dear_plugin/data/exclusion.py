"""Exclusion: a kind of advice in; the argument of `Schema.infer` that excludes it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dear_plugin.data.attributes import Kind
from dear_plugin.data.feature import Feature
from dear_plugin.errors import SchemaError, unknown

# What `change` says of a number.
UP, DOWN = "up", "down"


@dataclass(frozen=True)
class Exclusion:
    """An argument of `Schema.infer` for one feature.

    Attributes:
        name: the feature.
        argument: its name; "excluded" names a level that nothing changes to.
        level: the level.
    """

    name: str
    argument: Literal["increasing", "decreasing", "immutable", "excluded"]
    level: Hashable = None

    @classmethod
    def of(cls, feature: Feature, change: str, new: Hashable) -> Exclusion:
        """What excludes a change of a feature.

        A number or two-valued feature may go the other way only, and is immutable if it may not
        go there either; of more categories, nothing changes to the new one.

        Args:
            feature: as it is.
            change: "up", "down", or anything else.
            new: the new value, of a category.
        """
        if feature.dummies:
            column = feature.dummies[feature.categories.index(str(new))]
            return cls(column.name, "decreasing", new)
        if feature.kind is Kind.CATEGORICAL:
            return cls(feature.name, "excluded", new)
        rises = change == UP
        if feature.kind is Kind.BINARY:
            rises = new == feature.categories[-1]
        elif change not in (UP, DOWN):
            return cls(feature.name, "immutable")
        if feature.direction == (1 if rises else -1):
            return cls(feature.name, "immutable")
        return cls(feature.name, "decreasing" if rises else "increasing")

    def __str__(self) -> str:
        """The argument as it is written."""
        if self.argument == "excluded":
            return f"excluded={{{self.name!r}: [{self.level!r}]}}"
        return f"{self.argument}=[{self.name!r}]"

    def applied(self, feature: Feature) -> Feature:
        """The feature with the argument."""
        if self.argument == "immutable":
            return dataclasses.replace(feature, immutable=True)
        if self.argument == "excluded" or feature.dummies:
            kept = [each for each in feature.excluded if each != self.level]
            dummies = tuple(
                dataclasses.replace(each, direction=-1) if each.name == self.name else each
                for each in feature.dummies
            )
            return dataclasses.replace(feature, excluded=(*kept, self.level), dummies=dummies)
        direction = 1 if self.argument == "increasing" else -1
        return dataclasses.replace(feature, direction=direction)


def without(features: Sequence[Feature], kinds: Any) -> tuple[Feature, ...]:
    """Features that exclude kinds of advice, one after another: see `Schema.excluding`.

    Raises:
        SchemaError: no lines of `recourses.advice()`, or an unknown feature.
    """
    if not {"feature", "change", "new"} <= set(getattr(kinds, "columns", ())):
        raise SchemaError("expected lines of recourses.advice(), such as advice.loc[[0, 2]]")
    out = {feature.name: feature for feature in features}
    for name, change, new in kinds[["feature", "change", "new"]].itertuples(index=False):
        if name not in out:
            raise SchemaError(unknown("features", [name], out))
        out[name] = Exclusion.of(out[name], change, new).applied(out[name])
    return tuple(out.values())
