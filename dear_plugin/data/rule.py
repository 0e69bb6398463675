"""Rule: what holds between the columns of a row, and what makes it hold again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._threads import users_threads
from dear_plugin.data.special_values import or_nan
from dear_plugin.errors import SchemaError, shown, unknown

# What says of a frame of features, (n, p), whether each row is possible, (n,) bool.
Condition = Callable[[pd.DataFrame], Any]


@dataclass(frozen=True)
class Cells:
    """Rows by the names of their features.

    Attributes:
        rows: (..., p) row values.
        at: the position of each feature.
        as_frame: rows, (m, p), as a frame.
    """

    rows: Tensor
    at: Mapping[str, int]
    as_frame: Callable[[Tensor], pd.DataFrame]

    def __getitem__(self, name: str) -> Tensor:
        """(...) double: the numbers of a feature, NaN where it has none; the places of labels."""
        return or_nan(self.rows[..., self.at[name]])

    @lazy
    def frame(self) -> pd.DataFrame:
        """The rows, (m, p), as a frame."""
        return self.as_frame(self.rows)


class Rule(ABC):
    """What holds between some features of a row, and what makes it hold again.

    Every answer keeps the rules that its factual keeps. After an action the members that are not
    acted on are set, within their ranges and decimals, in the order of `members`: the first alone
    with which the rule holds, else several. That is forced, no estimate: see `recourses.direct`.

    Attributes:
        members: the names of the features that may be set; () sets none, and rules answers out.
        forces: whether an action alone must keep it, too; False for what holds nearly always.
        text: what messages call it; by default the name of its class.

    Example:
        >>> import pandas as pd
        >>> from dear_plugin import DEAR, Rule, Schema
        >>> class Household(Rule):
        ...     members = ("persons", "adults", "children")
        ...
        ...     def holds(self, rows):
        ...         return rows["persons"] == rows["adults"] + rows["children"]
        ...
        ...     def repair(self, rows, before, member):
        ...         persons, adults, children = (rows[name] for name in self.members)
        ...         return {"persons": adults + children, "adults": persons - children}.get(
        ...             member, persons - adults
        ...         )
        >>> adults, children = [1, 2, 2, 3] * 25, [0, 1, 2, 3, 4] * 20
        >>> frame = pd.DataFrame({"adults": adults, "children": children, "persons": 0})
        >>> frame["persons"] = frame["adults"] + frame["children"]
        >>> schema = Schema.infer(frame, rules=[Household()], definitions={})
        >>> dear = DEAR(lambda rows: (rows["persons"] < 4) * 1.0, schema).fit(frame)
        >>> changed = dear.apply(frame[frame["persons"] == 7].head(1), {"children": 0})
        >>> changed.counterfactuals[["adults", "children", "persons"]].to_numpy().tolist()
        [[3, 0, 3]]
    """

    @property
    def members(self) -> Sequence[str]:
        """None, by default."""
        return ()

    @property
    def forces(self) -> bool:
        """Always, by default."""
        return True

    @property
    def text(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @abstractmethod
    def holds(self, rows: Cells) -> Tensor:
        """(...) bool: whether it holds in rows; True where a value that it needs is missing.

        Args:
            rows: `rows["income"]` is a feature's column, (...) double, NaN where it is missing.
        """

    def repair(self, rows: Cells, before: Cells, member: str) -> Tensor:
        """(q,) the values of a member with which it holds; NaN where there is none.

        Args:
            rows: q rows in which it is broken.
            before: the factual rows.
            member: the name of the feature.
        """
        return torch.full_like(rows[member], torch.nan)


class Stated(Rule):
    """A condition on frames, which no repair keeps.

    Args:
        condition: what says of a frame which rows are possible.
    """

    def __init__(self, condition: Condition) -> None:
        self.condition = condition

    @property
    def text(self) -> str:
        """The name of the function."""
        return str(getattr(self.condition, "__name__", repr(self.condition)))

    def holds(self, rows: Cells) -> Tensor:
        """See `Rule`; of rows, (m, p).

        Raises:
            SchemaError: it does not return one truth value a row.
        """
        count = len(rows.rows)
        if not count:
            return torch.ones(0, dtype=torch.bool)
        with users_threads():
            found = np.asarray(self.condition(rows.frame.copy()))
        if found.shape != (count,) or found.dtype.kind not in "bO":
            raise SchemaError(
                f"a rule must return {count} truth values for a frame of {count} rows, got shape"
                f" {found.shape} of {found.dtype} from {self.condition!r}"
            )
        return torch.from_numpy(found.astype(bool))


def check_rules(rules: Iterable[Any], names: Sequence[str]) -> None:
    """Raise an error unless rules are rules or conditions, of features with these names.

    Raises:
        SchemaError: they are not.
    """
    for rule in rules:
        if isinstance(rule, Rule):
            if wrong := [name for name in rule.members if name not in names]:
                raise SchemaError(f"rules, {rule.text}: {unknown('features', wrong, names)}")
        elif not callable(rule):
            raise SchemaError(
                "rules must be callables of a frame that return a mask, or a Rule, got"
                f" {shown(rules)}"
            )
