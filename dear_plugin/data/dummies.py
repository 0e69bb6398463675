"""A category that a frame holds in several columns, of which exactly one is 1.

Each of the columns is a feature of its own that its kind reads and writes; above them there is one
feature, with a label for each. A row in which none or several are 1 has a label that no training
row has: it keeps these cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, takewhile

import numpy as np
import pandas as pd

from dear_plugin.data.cells import Positions, Reading, is_one, positions_of, read_column
from dear_plugin.data.feature import Feature, Kind, Mask, attributes, with_cells
from dear_plugin.data.numbers import Array
from dear_plugin.errors import SchemaError, require_known, shown

# What separates the name of a category from that of a level, and what may follow the latter.
SEPARATORS, CLOSING = "_=.:- |/[(", "])"
# The columns that name a category without a name.
MOST_JOINED = 3

Names = tuple[str, ...]


def read(
    feature: Feature,
    frame: pd.DataFrame,
    labels: Positions,
    accepted: Array | None = None,
    before: Array | None = None,
) -> Reading:
    """The row values of a feature of several columns.

    A row in which not exactly one of them is 1 keeps its cells, if it may.

    Args:
        feature: of the columns.
        frame: of n rows.
        labels: those that the feature has; of others, the cells.
        accepted: (n,) bool, the rows that may have others, if any may.
        before: (n,) the row values that another package changed: of columns, of which it may set
            one to 1 and leave another at 1, the one that it sets counts.
    """
    every = [read_column(each, frame[each.name]) for each in feature.members]
    wrong = [each for each in every if each.complaint]
    if any(each.reasons is None for each in wrong):
        return Reading(np.empty(0), "; ".join(each.complaint for each in wrong))
    flags = np.stack([each.values for each in every], 1).astype(np.float64)
    if before is not None:
        own = spread(feature, before, labels)
        enters = (flags == 1.0) & (own != 1.0)
        flags = np.where(enters.sum(1, keepdims=True) == 1, enters, own)
    ones = flags == 1.0
    odd = (ones.sum(1) != 1) | ((flags != 0.0) & ~ones).any(1)
    out = ones.argmax(1).astype(np.float64)
    if accepted is None and before is None:
        wrong += [_not_one(feature, frame, odd)] * bool(odd.any())
    else:
        out[odd] = positions_of(labels, map(tuple, flags[odd].tolist()))
    text = "; ".join(each.complaint for each in wrong)
    return Reading(out, text, lambda: chain.from_iterable(r.reasons() for r in wrong if r.reasons))


def _not_one(feature: Feature, frame: pd.DataFrame, odd: Mask) -> Reading:
    """The reading of a frame, (n, p), in which not exactly one column is 1 in some rows."""
    names = [each.name for each in feature.dummies]
    text = f"exactly one of {names} has to be 1, got none or several"
    at = np.flatnonzero(odd)
    complaint = f"{text}: rows {frame.index[at][:3].tolist()}"
    return Reading(np.empty(0), complaint, lambda: ((i, text) for i in at.tolist()))


def spread(feature: Feature, values: Array, labels: Positions) -> Array:
    """(n, q) the row values of each of q columns of frames, of the feature's own, (n,)."""
    if not feature.dummies:
        return values[:, None]
    out: Array = (values[:, None] == np.arange(len(feature.dummies))).astype(np.float64)
    if len(odd := np.flatnonzero(values >= len(feature.dummies))):
        known = [*labels]
        out[odd] = [known[int(value)] for value in values[odd]]
    return out


def shared(names: Sequence[str]) -> str:
    """The longest start of all names."""
    first, last = min(names), max(names)
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in alike)


def together(columns: Sequence[Feature], groups: Iterable[Names]) -> tuple[Feature, ...]:
    """The features of columns of a frame, of which those of a group are one, where the first is.

    Raises:
        SchemaError: see `checked_groups`; columns of one category that cannot be stated apart.
    """
    found = {name: group for group in checked_groups(groups, columns) for name in group}
    taken, out = {feature.name for feature in columns}, list[Feature]()
    for feature in columns:
        own = [each for each in columns if each.name in found.get(feature.name, ())]
        if not own:
            out.append(feature)
        elif own[0] is feature:
            out.append(_category(own, taken))
            taken.add(out[-1].name)
    return tuple(out)


def _category(own: Sequence[Feature], taken: Iterable[str]) -> Feature:
    """The feature of the columns of a group; what is stated of one of them holds for all."""
    name, levels = _named([each.name for each in own], taken)
    costs, labels = {f.cost for f in own} - {1.0}, {f.label for f in own}
    if len(costs) > 1:
        names = [each.name for each in own]
        raise SchemaError(f"the columns {names} have one cost together, got {sorted(costs)}")
    if up := [f.name for f in own if f.direction > 0]:
        raise SchemaError(
            f"increasing: {up} are levels of {name!r}, which have no order: decreasing= excludes"
            " levels, and immutable= holds all of them"
        )
    only = [f.name for f in own if not _may_be(f, 0)]
    barred = [f.name for f in own if not _may_be(f, 1) or (only and f.name not in only)]
    return Feature(
        name,
        Kind.CATEGORICAL,
        categories=levels,
        dtype=own[0].dtype,
        immutable=any(f.immutable for f in own),
        excluded=tuple(v for v, f in zip(levels, own, strict=True) if f.name in barred),
        actionable=any(f.actionable for f in own),
        identifier=any(f.identifier for f in own),
        label=own[0].label if len(labels) == 1 else "",
        level_labels=tuple(f.label for f in own) if len(labels) > 1 else (),
        cost=max(costs, default=1.0),
        dummies=tuple(own),
    )


def kept(features: Iterable[Feature], before: Iterable[Feature]) -> tuple[Feature, ...]:
    """Features, those of several columns with the texts and the excluded levels of before."""
    own = {each.name: each for each in before if each.dummies}
    same = (*(each.name for each in attributes() if each.metadata["texts"]), "excluded", "special")
    pairs = ((own.get(each.name, each), each) for each in features)
    return tuple(
        replace(new, **{n: getattr(old, n) or getattr(new, n) for n in same}) for old, new in pairs
    )


def _may_be(flag: Feature, value: int) -> bool:
    """Whether a flag may become 0, or 1."""
    low, high = flag.limits or (0.0, 1.0)
    barred = {*flag.categories[value : value + 1]} & {*flag.excluded}
    return low <= value <= high and not (barred or (value and flag.direction < 0))


def _named(columns: Sequence[str], taken: Iterable[str]) -> tuple[str, Names]:
    """What a category of some columns is called, and its levels.

    "job" for "job_civil" and "job_other"; where their names share nothing, "civil/other".
    """
    prefix = shared(columns)
    prefix = prefix[: max(prefix.rfind(each) for each in SEPARATORS) + 1]
    name = prefix.rstrip(SEPARATORS)
    levels = tuple(each.removeprefix(prefix).rstrip(CLOSING) or each for each in columns)
    if not name or name in taken or len({*levels}) < len(levels):
        more = ["..."] * (len(columns) > MOST_JOINED)
        while (name := "/".join([*columns[:MOST_JOINED], *more])) in taken:
            more = [*more, "..."]
        return name, tuple(columns)
    return name, levels


def labelled(frame: pd.DataFrame, features: Iterable[Feature]) -> pd.DataFrame:
    """A frame with a column of labels, too, for each feature of several columns."""
    return with_cells(frame, {f.name: _labels_in(f, frame) for f in features if f.dummies})


def _labels_in(feature: Feature, frame: pd.DataFrame) -> pd.Series:
    """(n,) the labels of the rows of a frame, None where not exactly one column is 1."""
    ones = np.stack([is_one(each, frame[each.name]) for each in feature.dummies], 1)
    which = np.where(ones.sum(1) == 1, ones.argmax(1), -1)
    return pd.Series(np.array([*feature.categories, None], dtype=object)[which], frame.index)


def checked_groups(
    groups: Iterable[Iterable[str]], features: Sequence[Feature]
) -> tuple[Names, ...]:
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
    flags = [feature.name for feature in features if feature.is_flag]
    named = [name for group in found for name in group]
    require_known("exactly_one", "binary features with 0 and 1", named, flags)
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise SchemaError(f"exactly_one: {twice} are named more than once")
    if any(len(group) < 2 for group in found):
        raise SchemaError(f"exactly_one: a group has at least two columns, got {found}")
    return found
