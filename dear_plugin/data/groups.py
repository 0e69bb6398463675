"""Groups: binary columns of which exactly one is 1 in every row, as in one-hot tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.feature import Feature, Kind
from dear_plugin.errors import SchemaError, shown, unknown

# Fewer rows are no evidence of a group.
FEWEST_ROWS = 20
FLAGS = {("0", "1"), ("0.0", "1.0"), ("False", "True")}
# What separates the name of a group from that of a level, and what may follow the latter.
SEPARATORS, CLOSING = "_=.:- |/[(", "])"
# The columns that stand for a group without a name.
MOST_NAMED = 3

Names = tuple[str, ...]
Array = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """A group of columns, each of which is a level of one category.

    Attributes:
        name: what the names of its columns share, "job" of "job_civil" and "job_other"; where they
            share nothing, "civil/other".
        members: the positions of the columns, ascending.
        levels: the name of each column's level.
    """

    name: str
    members: tuple[int, ...]
    levels: Names

    @classmethod
    def of(cls, columns: Iterable[str], names: Sequence[str]) -> Group:
        """The group of some of the columns of a frame."""
        members = tuple(sorted(map(names.index, columns)))
        own = [names[j] for j in members]
        prefix = _shared(own)
        prefix = prefix[: max(prefix.rfind(each) for each in SEPARATORS) + 1]
        name = prefix.rstrip(SEPARATORS)
        if not name or name in names:
            more = ["..."] * (len(own) > MOST_NAMED)
            return cls("/".join([*own[:MOST_NAMED], *more]), members, tuple(own))
        levels = [each.removeprefix(prefix).rstrip(CLOSING) or each for each in own]
        return cls(name, members, tuple(levels))


def with_columns(
    names: Iterable[str], groups: Sequence[Group], columns: Sequence[str]
) -> list[str]:
    """Names of which those of a group, and of any of its columns, become all of its columns."""
    found: dict[str, list[str]] = {}
    for group in groups:
        own = [columns[j] for j in group.members]
        found |= dict.fromkeys([group.name, *own], own)
    return [column for name in names for column in found.get(name, [name])]


def infer_groups(
    frame: pd.DataFrame, features: Sequence[Feature], stated: Iterable[Iterable[str]] | None
) -> tuple[Names, ...]:
    """The names of the columns of each group; none in a frame of few rows.

    From each column on, those are added that are 1 where the ones before are 0, the most alike by
    name first, until every row has one.

    Args:
        frame: training rows.
        features: the features of its columns.
        stated: groups that are taken as they are; None infers them.
    """
    if stated is not None:
        return checked(stated, features)
    names = [feature.name for feature in features if is_flag(feature)]
    if len(names) < 2 or len(frame) < FEWEST_ROWS:
        return ()
    flags = np.stack([ones_of(frame[f.name], f) for f in features if is_flag(f)], 1)
    counts = flags.astype(np.float32)
    apart, left, groups = counts.T @ counts == 0, set(range(len(names))), []
    for first in range(len(names)):
        found = _group(first, names, flags, apart, left) if first in left else ()
        if found:
            left -= set(found)
            groups.append(tuple(names[j] for j in sorted(found)))
    return tuple(groups)


def is_flag(feature: Feature) -> bool:
    """Whether a feature is 0 or 1: as two values, words of a host, or a number of two values."""
    if feature.kind is Kind.BINARY:
        return tuple(map(str, feature.categories)) in FLAGS
    ends = feature.bounds == (0.0, 1.0) and feature.precision == 0
    return ends and feature.holds_numbers and not feature.special_levels


def is_countable(feature: Feature) -> bool:
    """Whether the row values of a feature are numbers: its own, or the 0 and 1 of a flag."""
    return feature.holds_numbers or is_flag(feature)


def ones_of(column: pd.Series, feature: Feature) -> Array:
    """(n,) bool, the rows with the 1 of a flag."""
    one = 1 if feature.holds_numbers else feature.categories[1]
    out: Array = (column == one).to_numpy(dtype=bool)
    return out


def _group(
    first: int, names: Sequence[str], flags: Array, apart: Array, left: Iterable[int]
) -> tuple[int, ...]:
    """The columns of the group of one, (n, q) bool flags; () if some row has none of them."""
    found, covered, free = [first], flags[:, first].copy(), set(left) - {first}
    while not covered.all():
        free = {j for j in free if apart[found[-1], j]}
        some = [j for j in free if flags[int(covered.argmin()), j]]
        if not some:
            return ()
        alike = {j: len(_shared([names[first], names[j]])) for j in some}
        found.append(min(some, key=lambda j: (-alike[j], abs(j - first))))
        covered |= flags[:, found[-1]]
    return tuple(found)


def _shared(names: Sequence[str]) -> str:
    """The longest start of all names."""
    first, last = min(names), max(names)
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in alike)


def checked(groups: Iterable[Iterable[str]], features: Sequence[Feature]) -> tuple[Names, ...]:
    """Groups as tuples.

    Raises:
        SchemaError: no list of lists, a column that is not binary with 0 and 1, in two groups, or
            alone.
    """
    groups = groups if isinstance(groups, str) else tuple(groups)
    if any(isinstance(group, str) for group in groups):
        raise SchemaError(
            "exactly_one must be lists of columns, such as"
            f' [["job_civil", "job_other"]]; got {shown(groups)}'
        )
    found = tuple(tuple(group) for group in groups)
    flags = [feature.name for feature in features if is_flag(feature)]
    named = [name for group in found for name in group]
    if wrong := [name for name in named if name not in flags]:
        raise SchemaError(f"exactly_one: {unknown('binary features with 0 and 1', wrong, flags)}")
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise SchemaError(f"exactly_one: {twice} are named more than once")
    if any(len(group) < 2 for group in found):
        raise SchemaError(f"exactly_one: a group has at least two columns, got {found}")
    return found


def with_whole_groups(features: Sequence[Feature], groups: Iterable[Names]) -> tuple[Feature, ...]:
    """Features of which a group is immutable, and has the cost stated, if one of its columns is.

    Raises:
        SchemaError: columns of a group have several costs.
    """
    by_name = {f.name: f for f in features}
    for group in groups:
        own = [by_name[name] for name in group]
        stated = sorted({f.cost for f in own} - {1.0}) or [1.0]
        if len(stated) > 1:
            raise SchemaError(f"the columns {list(group)} have one cost together, got {stated}")
        held = any(f.immutable for f in own)
        by_name |= {f.name: replace(f, immutable=held, cost=stated[0]) for f in own}
    return tuple(by_name[f.name] for f in features)
