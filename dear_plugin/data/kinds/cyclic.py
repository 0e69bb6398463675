"""Cyclic: labels in a circle, such as hours of the day; a stated circle in, a feature out.

After the last label comes the first one: from 23 to 1 are 2 hours. Models get cells as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import pandas as pd

from dear_plugin.data.attributes import Kind
from dear_plugin.data.column import Special
from dear_plugin.data.kinds.cells import missing_of
from dear_plugin.data.kinds.labels import Labels, not_known, plain, stored_in
from dear_plugin.errors import SchemaError, shown

# Of fewer labels, all are as far from each other.
LEAST = 4


class Cyclic(Labels):
    """A column of labels in a circle; those that are special or missing are last and outside."""

    @classmethod
    def takes(cls, kind: Any, given: Mapping[str, Any]) -> bool:
        """Categories that are said to be cyclic."""
        return kind == Kind.CATEGORICAL and bool(given.get("cyclic"))

    @classmethod
    def stated(cls, column: pd.Series, name: str, stated: Any, special: Special) -> Self:
        """The feature of a training column, (n,), with the circle that a user states.

        Nothing changes to a label of the circle that no row has.

        Args:
            column: its cells.
            name: its name.
            stated: the labels in their order, or their number: 24 for 0 to 23, and for 1 to 24
                where a row has 24.
            special: labels outside of the circle; None for those that say "not known".

        Raises:
            SchemaError: no circle, or values of the column that are not on it.
        """
        found = plain(name, column.dropna().unique())
        circle = _circle(name, stated, found)
        outside = tuple(not_known(found) if special is None else special)
        absent = [label for label in found if label not in {*circle, *outside}]
        if len(set(circle)) < max(len(circle), LEAST) or absent or {*circle} & {*outside}:
            raise SchemaError(
                f"cyclic[{name!r}]: expected all values of the column, each once and at least"
                f" {LEAST}, as range(24) has the hours, or their number, 24; got {shown(stated)}"
                + f", without {absent[:5]}"
                * bool(absent)
            )
        stored, is_ordered = stored_in(column)
        levels = (*stored, *circle, *outside) if stored else ()
        missing = missing_of(column)
        return cls(
            name,
            Kind.CATEGORICAL,
            categories=(*circle, *outside, *([None] if missing else [])),
            dtype=str(column.dtype),
            immutable=len(found) + bool(missing) == 1,
            levels=tuple(dict.fromkeys(levels)),
            ordered=is_ordered,
            special=outside,
            excluded=tuple(label for label in circle if label not in found),
            missing=missing,
            cyclic=True,
        )

    @property
    def circle(self) -> tuple[Hashable, ...]:
        """See `Column`; all labels but the special and missing ones, which are last."""
        return tuple(c for c in self.categories if c is not None and c not in self.special)

    @property
    def complaint(self) -> str:
        """See `Feature`."""
        text = f"{self.name!r} is cyclic: it has no end, so it cannot be increasing or decreasing"
        return text if self.direction else ""


def _circle(name: str, stated: Any, found: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """The labels of a circle that is stated by these or their number; () if it is not."""
    if isinstance(stated, int) and not isinstance(stated, bool):
        first = int(stated in found)
        return tuple(range(first, first + stated))
    labels = isinstance(stated, Sequence) and not isinstance(stated, str)
    return plain(name, stated) if labels else ()
