"""The kinds of advice among the changes of all rows, a line for each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.results.changes import Line, amount_of, is_amount, rises
from dear_plugin.results.recourses import Recourses
from dear_plugin.tell.schemas import DOWN, UP, Exclusion

COLUMNS = (
    *("feature", "change", "rows", "share", "old", "new", "goes", "at_edge"),
    *("consistency", "agreement", "follows", "example", "excludes"),
)
# Indirect changes that a line names, each in at least this share of its rows.
MOST_FOLLOW, USUAL = 2, 0.5
SPECIAL = "from or to a special value"
# Of a change that rises, falls, or does neither; and of one that follows.
CHANGES = {True: UP, False: DOWN, None: SPECIAL}
HOW = {**CHANGES, None: ""}


def advice(result: Recourses) -> pd.DataFrame:
    """The kinds of advice of a result, the most frequent first: `COLUMNS`."""
    places = {name: j for j, name in enumerate(result.encoder.schema.names)}
    found: dict[tuple[int, int, int], list[tuple[int, Line]]] = {}
    counted = (result.actions["success"].to_numpy() & result.starts).tolist()
    for at, lines in compress(enumerate(result.lines), counted):
        for line in lines:
            if line.kind == "direct":
                key = places[line.feature], *_key(line)
                found.setdefault(key, []).append((at, line))
    table = [_line(result, j, *zip(*kind, strict=True)) for (j, *_), kind in sorted(found.items())]
    frame = pd.DataFrame(table, columns=COLUMNS)
    return frame.sort_values("rows", ascending=False, kind="stable", ignore_index=True)


def _key(line: Line) -> tuple[int, int]:
    """Changes with the same key are of one kind."""
    return (_direction if line.of.has_order else _labels)(line)


def _direction(line: Line) -> tuple[int, int]:
    return [*CHANGES].index(rises(line.of, line.old, line.new)), 0


def _labels(line: Line) -> tuple[int, int]:
    return int(line.of.place(line.old)), int(line.of.place(line.new))


def _line(result: Recourses, j: int, at: Sequence[int], lines: Sequence[Line]) -> tuple[Any, ...]:
    """The cells of a kind, in the order of `COLUMNS`, given the positions of its rows."""
    rows, (line, feature) = result.actions.iloc[[*at]], (lines[0], lines[0].of)
    old, new, change = (_of_amounts if feature.has_order else _of_labels)(feature, lines)
    consistency = [each.consistency for each in lines]
    credible = rows["credible"].to_numpy()
    return (
        *(feature.name, change, len(at), len(at) / int(result.starts.sum()), old, new),
        *(_extent(result, j, change, lines) if line.is_amount else ("", math.nan)),
        *(float(np.mean(consistency)), float(rows["agreement"].mean())),
        *(_follows(result, at), rows.index[credible.argmax()]),
        str(Exclusion.of(feature, change, new)),
    )


def _of_amounts(feature: Feature, lines: Sequence[Line]) -> tuple[Any, Any, str]:
    """The median of old and new values, and in which direction they change."""
    old, new = (_median(feature, [getattr(each, end) for each in lines]) for end in ("old", "new"))
    return old, new, CHANGES[rises(feature, lines[0].old, lines[0].new)]


def _of_labels(feature: Feature, lines: Sequence[Line]) -> tuple[Any, Any, str]:
    """The label before and after, as the feature has them: a frame may have 1.0 for 1."""
    old, new = (feature.categories[place] for place in _labels(lines[0]))
    return old, new, " → ".join(str(feature.called_level(each) or each) for each in (old, new))


def _extent(result: Recourses, j: int, change: str, lines: Sequence[Line]) -> tuple[str, float]:
    """How far a kind usually goes, and the share of rows in which it goes to the edge of the data.

    Of amounts: the median change, and nine tenths of them; the end of the central training values.
    """
    sizes, new = np.abs([line.low for line in lines]), np.array([line.new for line in lines])
    each = np.quantile(sizes, (0.05, 0.5, 0.95)).tolist()
    least, middle, most = (amount_of(lines[0].of, size) for size in each)
    goes = middle if least == most else f"{middle} ({least} to {most})"
    (low, high), step = (float(end[j]) for end in result.encoder.central), result.encoder.step[j]
    edge = new >= high - float(step) if change == UP else new <= low + float(step)
    return goes, float(edge.mean())


def _median(feature: Feature, values: Sequence[Any]) -> Any:
    """The median of numbers or levels, without special values; None where there is no other."""
    known = sorted((v for v in values if v in feature.levels), key=feature.place)
    if feature.ranked:
        return known[(len(known) - 1) // 2] if known else None
    middle = float(np.median([v for v in values if is_amount(feature, v)] or [math.nan]))
    return middle if feature.precision is None else round(middle, feature.precision)


def _follows(result: Recourses, at: Sequence[int]) -> str:
    """The features that change indirectly in most rows, with the share of these rows."""
    moved = Counter(
        f"{line.label} {how}"
        for i in at
        for line in result.lines[i]
        if line.kind == "indirect" and (how := _how(line))
    )
    usual = sorted(((n / len(at), text) for text, n in moved.items()), reverse=True)
    most = [each for each in usual if each[0] >= USUAL][:MOST_FOLLOW]
    return ", ".join(f"{text} in {share:.0%}" for share, text in most)


def _how(line: Line) -> str:
    """How what follows changes; "" of an amount from or to a special value."""
    return HOW[rises(line.of, line.old, line.new)] if line.of.has_order else "changes"
