"""Changes: a result in; what changes in each of its rows out, one line for each feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.results.spread import Ranges, Spread

Change: TypeAlias = Literal["direct", "forced", "indirect"]
KINDS: tuple[Change, ...] = ("direct", "forced", "indirect")
REALS = ("low", "high", "low_one", "high_one", "size")
DTYPES = {
    **dict.fromkeys(("rank", "agree", "redraws"), "int64"),
    **dict.fromkeys(REALS, "float64"),
    "exact": "bool",
}


class Line(NamedTuple):
    """What changes in one feature of one row; ranges are of changes in the feature's own unit.

    Attributes:
        row: the label of the row.
        rank: 0 for the answer of `generate`, from 1 on for alternatives.
        feature: its name, which is the column's where it has one column.
        label: what texts call it.
        kind: "direct", what is acted on; "forced", what a rule between columns sets with it;
            "indirect", what is expected to follow.
        old: the value of the factual.
        new: the value of the counterfactual.
        alone: the value with the action alone, and what it forces; `old` where it does nothing.
        least: from which value on, up to `new`, an indirect change must happen; `new` where other
            values may not do, `old` where it need not happen.
        low: the least change of a number on average of people like this, see `Ranges`;
            missing for categories.
        high: the largest one.
        low_one: the least change of one person.
        high_one: the largest one.
        agree: the redraws in which it changes.
        redraws: all of them; 0 for methods without any.
        size: the change in units of cost, see `Schema.infer`; 1 for a category.
        unit: of a number.
        exact: of what is forced, whether it must be just that value: not where an order only
            bounds it.
        of: the feature; the frame has its name.
    """

    row: Any
    rank: int
    feature: str
    label: str
    kind: Change
    old: Any
    new: Any
    alone: Any
    least: Any
    low: float
    high: float
    low_one: float
    high_one: float
    agree: int
    redraws: int
    size: float
    unit: str
    exact: bool
    of: Feature

    @property
    def is_amount(self) -> bool:
        """Whether both values are numbers, neither codes nor missing: only these have a range."""
        return not math.isnan(self.low)

    @property
    def is_uncertain(self) -> bool:
        """Whether a category changes in less than half of the redraws."""
        return not self.is_amount and 2 * self.agree < self.redraws

    @property
    def is_open(self) -> bool:
        """Whether it is open if the number of a row rises or falls, or if a category changes."""
        return self.low_one < 0.0 < self.high_one or self.is_uncertain

    @property
    def is_needed(self) -> bool:
        """Whether an indirect change must happen, at least a part of it."""
        return self.kind == "indirect" and not _same(self.least, self.old)

    @property
    def goes_on(self) -> bool:
        """Whether what follows moves it from where the action alone leaves it."""
        return not _same(self.alone, self.new)

    @property
    def is_forced(self) -> bool:
        """Whether the action alone moves what is not acted on."""
        return self.kind != "direct" and not _same(self.alone, self.old)


COLUMNS = Line._fields[:-1]


def lines(
    encoder: Encoder,
    rows: tuple[Tensor, Tensor, Tensor],
    direct: Tensor,
    *,
    frames: tuple[pd.DataFrame, pd.DataFrame],
    spread: Spread,
    ranges: Ranges,
    ranking: Tensor,
) -> list[list[Line]]:
    """(n,) the lines of each row: what is acted on first, then by the size of the change.

    Args:
        encoder: of the rows.
        rows: (n, p) each, the factuals, the answers, and the factuals with the action alone.
        direct: (n, p) bool, what is acted on.
        frames: the first two of `rows`, with a column for each feature.
        spread: of the answers.
        ranges: of their changes.
        ranking: (n,) their ranks.
    """
    (x, new, alone), schema, count = rows, encoder.schema, spread.count
    out: list[list[Line]] = [[] for _ in range(len(x))]
    codes, touched = _kinds(schema, rows, direct), (new != x) | (alone != x)
    four = torch.stack([ranges.low, ranges.high, ranges.low_one, ranges.high_one], 2)
    for j in touched.any(0).nonzero()[:, 0].tolist():
        at, feature = touched[:, j].nonzero()[:, 0], schema.features[j]
        columns = (frame[feature.name].iloc[at.numpy()] for frame in frames)
        before, after = (column.astype(object).tolist() for column in columns)
        cells = _cells(feature, (x[at, j], before), (new[at, j], after))
        table = zip(
            *(at.tolist(), frames[0].index[at.numpy()], ranking[at].tolist(), before, after),
            *(cells(alone[at, j]), cells(spread.least[at, j]), four[at, j].tolist()),
            *(codes[at, j].tolist(), spread.moved[at, j].tolist()),
            ((new - x)[at, j] / encoder.unit[j]).tolist(),
            strict=True,
        )
        exact = is_exact(schema, feature)
        for i, row, rank, old, now, only, least, found, code, moved, step in table:
            kind = KINDS[code]
            # What follows may move on what is forced.
            sure = kind == "direct" or (kind == "forced" and _same(only, now))
            amount = is_amount(feature, old, now)
            known = [float(now) - float(old)] * 4 if amount and sure else found
            ends = known if amount else [math.nan] * 4
            values = old, now, only, least if kind == "indirect" else now
            size = step if amount else 1.0
            rest = count if sure else moved, count, size, feature.unit, exact, feature
            head = row, rank, feature.name, feature.called, kind
            out[i].append(Line._make([*head, *values, *ends, *rest]))
    return [sorted(own, key=lambda line: (line.kind != "direct", -abs(line.size))) for own in out]


def frame(lines: Iterable[Line]) -> pd.DataFrame:
    """Lines as a frame; cells of features have the dtype object, whatever they are."""
    columns = list(zip(*lines, strict=True)) or [()] * len(Line._fields)
    each = zip(COLUMNS, columns, strict=False)
    out = pd.DataFrame({n: pd.Series(list(c), dtype=DTYPES.get(n, object)) for n, c in each})
    return out.assign(row=out["row"].infer_objects())


def only(frame: pd.DataFrame, schema: Schema, kept: Tensor) -> pd.DataFrame:
    """A frame, missing where features are not kept, (n, p) bool."""
    where = dict(zip(schema.column_names, schema.of_columns(kept).T, strict=True))
    none = np.zeros(len(frame), dtype=bool)
    columns = [_only(frame[name], where.get(name, none)) for name in frame]
    return pd.concat(columns, axis=1).set_axis(frame.columns, axis=1)


def is_amount(feature: Feature, *values: Any) -> bool:
    """Whether values are numbers, and neither codes nor missing."""
    return all(map(feature.is_amount, values))


def is_exact(schema: Schema, feature: Feature) -> bool:
    """Whether what forces a feature sets its value, and not only a bound of it."""
    relations = (relation for relation in schema.relations if relation.is_definition)
    bounded = feature.name in schema.numbers
    return not bounded or any(feature.name in each.members for each in relations)


def _same(one: Any, other: Any) -> bool:
    """Whether two cells are equal; missing ones are."""
    return one is other or bool(one == other) or (one != one and other != other)


def _only(column: pd.Series, kept: npt.NDArray[np.bool_]) -> pd.Series:
    """A column, missing where not kept, (n,) bool; its dtype becomes nullable where needed."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
        column = column.convert_dtypes()
    return column.where(kept)


def _kinds(schema: Schema, rows: tuple[Tensor, Tensor, Tensor], direct: Tensor) -> Tensor:
    """(n, p) the positions in `KINDS` of the changes; arguments as of `lines`."""
    x, new, alone = rows
    changed = new != x
    # What the action alone sets, or would.
    forced = (new == alone) | ~changed
    for each in (r for r in schema.relations if r.is_definition):
        own, *others = schema.index(each.members)
        # What follows moves what it defines.
        forced[:, own] |= changed[:, others].any(1)
    return torch.where(direct & changed, 0, torch.where(forced, 1, 2))


def _cells(
    feature: Feature, *known: tuple[Tensor, Sequence[Any]]
) -> Callable[[Tensor], list[Any]]:
    """A function from row values, (m,), to cells: those of known ones as they are in a frame."""

    def cells(values: Tensor) -> list[Any]:
        own: list[Any] = feature.cells(values.numpy()).tolist()
        for rows, frame in known[::-1]:
            pairs = zip(own, frame, (values == rows).tolist(), strict=True)
            own = [there if same else here for here, there, same in pairs]
        return own

    return cells
