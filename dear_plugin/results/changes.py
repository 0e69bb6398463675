"""Changes: a result in; what changes in each of its rows out, one line for each feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.feature import Feature
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Ranges, Spread
from dear_plugin.results.values import is_amount

Change: TypeAlias = Literal["direct", "forced", "indirect"]
REALS = ("low", "high", "low_one", "high_one", "size")
DTYPES = {
    **dict.fromkeys(("rank", "agree", "redraws"), "int64"),
    **dict.fromkeys(REALS, "float64"),
    "exact": "bool",
}
KINDS: tuple[Change, ...] = ("direct", "forced", "indirect")


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
        least: the value up to which an indirect change must happen; `old` where it need not.
        low: the least change of a number on average of people like the row, see `Ranges`; missing
            for categories.
        high: the largest one.
        low_one: the least change of one person.
        high_one: the largest one.
        agree: the redraws in which it changes.
        redraws: all of them; 0 for methods without any.
        size: the change in units of cost, see `Schema.infer`; 1 for a category.
        unit: of a number.
        exact: whether the value must be just `new`: False where an order only bounds it.
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


class Answers(Protocol):
    """What lines are made of: see `Result`."""

    @property
    def labelled(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The factuals and counterfactuals, n rows each, with a column for each feature."""

    @property
    def encoder(self) -> Encoder:
        """Of the rows."""

    @property
    def proposal(self) -> Proposal:
        """The answers."""

    @property
    def spread(self) -> Spread:
        """What becomes of them under redraws."""

    @property
    def ranges(self) -> Ranges:
        """Between which ends numbers change."""

    @property
    def x(self) -> Tensor:
        """(n, p) the factual rows."""

    @property
    def alone(self) -> Tensor:
        """(n, p) the same with the action alone."""

    @property
    def ranking(self) -> Tensor:
        """(n,) the rank of each answer."""


def lines(result: Answers) -> list[list[Line]]:
    """(n,) the lines of each row: what is acted on first, then by the size of the change."""
    out: list[list[Line]] = [[] for _ in range(len(result.x))]
    touched = (result.proposal.rows != result.x) | (result.alone != result.x)
    for j in touched.any(0).nonzero()[:, 0].tolist():
        where = touched[:, j].nonzero()[:, 0]
        for i, line in zip(where.tolist(), _of_feature(result, j, where), strict=True):
            out[i].append(line)
    return [sorted(each, key=_order) for each in out]


def frame(lines: Iterable[Line]) -> pd.DataFrame:
    """Lines as a frame; cells of features have the dtype object, whatever they are."""
    columns = list(zip(*lines, strict=True)) or [()] * len(Line._fields)
    each = zip(Line._fields, columns, strict=True)
    out = pd.DataFrame({n: pd.Series(list(c), dtype=DTYPES.get(n, object)) for n, c in each})
    return out.assign(row=out["row"].infer_objects())


def is_open(line: Line) -> bool:
    """Whether it is open if a person's number rises or falls, or if a category changes."""
    return line.low_one < 0.0 < line.high_one or is_uncertain(line)


def is_uncertain(line: Line) -> bool:
    """Whether a category changes in less than half of the redraws."""
    return math.isnan(line.low) and 2 * line.agree < line.redraws


def is_needed(line: Line) -> bool:
    """Whether an indirect change must happen, at least a part of it."""
    return line.kind == "indirect" and not _same(line.least, line.old)


def is_forced(line: Line) -> bool:
    """Whether the action alone moves what is not acted on."""
    return line.kind != "direct" and not _same(line.alone, line.old)


def _order(line: Line) -> tuple[bool, float]:
    return line.kind != "direct", -abs(line.size)


def _same(one: Any, other: Any) -> bool:
    """Whether two cells are equal; missing ones are."""
    return one is other or bool(one == other) or (one != one and other != other)


def _of_feature(result: Answers, j: int, at: Tensor) -> Iterator[Line]:
    """The lines of a feature in rows at positions, (m,)."""
    schema, spread, ranges = result.encoder.schema, result.spread, result.ranges
    feature, name, count = schema.features[j], schema.names[j], spread.count
    x, new, alone = (rows[at, j] for rows in (result.x, result.proposal.rows, result.alone))
    factuals, counterfactuals = (frame.iloc[at.numpy()] for frame in result.labelled)
    before, after = (f[name].astype(object).tolist() for f in (factuals, counterfactuals))
    cells = _cells(feature, (x, before), (new, after))
    defined = {name for r in schema.relations if r.is_definition for name in r.members}
    exact = name in defined or not feature.holds_numbers
    four = (ranges.low, ranges.high, ranges.low_one, ranges.high_one)
    table = zip(
        *(factuals.index, result.ranking[at].tolist(), _kinds(result, j, at), before, after),
        *(cells(alone), cells(spread.least[at, j]), torch.stack([e[at, j] for e in four], 1)),
        *(spread.moved[at, j].tolist(), ((new - x) / result.encoder.unit[j]).tolist()),
        strict=True,
    )
    for row, rank, kind, old, now, only, least, found, moved, step in table:
        amount, sure = is_amount(feature, old) and is_amount(feature, now), kind != "indirect"
        known = [float(now) - float(old)] * 4 if amount and sure else found.tolist()
        ends = known if amount else [math.nan] * 4
        values = old, now, only, now if sure else least
        rest = count if sure else moved, count, step if amount else 1.0, feature.unit, exact
        yield Line._make([row, rank, name, feature.called, kind, *values, *ends, *rest])


def _kinds(result: Answers, j: int, at: Tensor) -> list[Change]:
    """How a feature changes in rows at positions, (m,)."""
    rows = result.proposal.rows[at]
    changed = rows != result.x[at]
    direct = result.proposal.direct[at] & changed
    # What the action alone sets, or would.
    forced = (rows == result.alone[at])[:, j] | ~changed[:, j]
    for each in (r for r in result.encoder.schema.relations if r.is_definition):
        own, *others = result.encoder.schema.index(each.members)
        # What follows moves what it defines.
        if own == j:
            forced |= changed[:, others].any(1)
    codes = torch.where(direct[:, j], 0, torch.where(forced, 1, 2)).tolist()
    return [KINDS[code] for code in codes]


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
