"""Changes: a result in; what changes in each of its rows out, one line for each feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data import kinds
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.feature import Feature, Kind
from dear_plugin.data.groups import Group
from dear_plugin.data.schema import Schema
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Spread
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
        feature: the column, or the name that the columns of a one-hot group share.
        label: what texts call it.
        kind: "direct", what is acted on; "forced", what a rule between columns sets with it;
            "indirect", what is expected to follow.
        old: the value of the factual.
        new: the value of the counterfactual.
        alone: the value with the action alone, and what it forces; `old` where it does nothing.
        least: the value up to which an indirect change must happen; `old` where it need not.
        low: the least mean change over redraws of the training rows; missing for categories.
        high: the largest one.
        low_one: the least change of one person; missing where it is not estimated.
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
    def factuals(self) -> pd.DataFrame:
        """The n rows of the query."""

    @property
    def counterfactuals(self) -> pd.DataFrame:
        """The same with their answers."""

    @property
    def encoder(self) -> Encoder:
        """Of the rows."""

    @property
    def proposal(self) -> Proposal:
        """The answers."""

    @property
    def spread(self) -> Spread:
        """What redraws give."""

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
    merged = torch.zeros_like(touched)
    for group in result.encoder.schema.groups:
        for at, line in _of_group(result, group, merged):
            out[at].append(line)
    for j in (touched & ~merged).any(0).nonzero()[:, 0].tolist():
        where = (touched & ~merged)[:, j].nonzero()[:, 0]
        for i, line in zip(where.tolist(), _of_feature(result, j, where), strict=True):
            out[i].append(line)
    return [sorted(each, key=_order) for each in out]


def frame(lines: Iterable[Line]) -> pd.DataFrame:
    """Lines as a frame; cells of features have the dtype object, whatever they are."""
    columns = list(zip(*lines, strict=True)) or [()] * len(Line._fields)
    each = zip(Line._fields, columns, strict=True)
    out = pd.DataFrame({n: pd.Series(list(c), dtype=DTYPES.get(n, object)) for n, c in each})
    return out.assign(row=out["row"].infer_objects())


def features(schema: Schema) -> dict[str, Feature]:
    """What the lines of a schema may name: its features, and each one-hot group as a category."""
    return {f.name: f for f in schema} | {g.name: _category(schema, g) for g in schema.groups}


def is_open(line: Line) -> bool:
    """Whether redraws leave open if a number rises or falls, or if a category changes."""
    return line.low < 0.0 < line.high or is_uncertain(line)


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
    schema, spread, idx = result.encoder.schema, result.spread, at.numpy()
    feature, name = schema.features[j], schema.names[j]
    x, new, alone = (rows[at, j] for rows in (result.x, result.proposal.rows, result.alone))
    before, after = (
        frame[name].iloc[idx].astype(object).tolist()
        for frame in (result.factuals, result.counterfactuals)
    )
    cells = _cells(feature, (x, before), (new, after))
    known = {r.members for r in schema.relations if r.is_definition}
    exact = any(name in members for members in known)
    which = _kinds(result, j, at)
    steps = ((new - x) / result.encoder.unit[j]).tolist()
    ends = [each[at, j].tolist() for each in (spread.low, spread.high, spread.moved)]
    middle = cells(alone), cells(spread.least[at, j])
    table = zip(
        which, before, after, *middle, steps, *ends, result.ranking[at].tolist(), strict=True
    )
    for i, (kind, old, now, only, least, step, low, high, moved, rank) in zip(
        idx, table, strict=True
    ):
        amount = is_amount(feature, old) and is_amount(feature, now)
        sure = kind != "indirect"
        own = float(now) - float(old) if amount else math.nan
        yield Line(
            result.factuals.index[i],
            rank,
            name,
            feature.called,
            kind,
            old,
            now,
            only,
            now if sure else least,
            own if sure or not amount else low,
            own if sure or not amount else high,
            own if sure else math.nan,
            own if sure else math.nan,
            spread.count if sure else moved,
            spread.count,
            step if amount else 1.0,
            feature.unit,
            exact or not feature.holds_numbers,
        )


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
        own: list[Any] = kinds.of(feature).cells(feature, values.numpy()).tolist()
        for rows, frame in known[::-1]:
            pairs = zip(own, frame, (values == rows).tolist(), strict=True)
            own = [there if same else here for here, there, same in pairs]
        return own

    return cells


def _category(schema: Schema, group: Group) -> Feature:
    """A one-hot group as one category."""
    labels = {schema.features[j].label for j in group.members}
    label = labels.pop() if len(labels) == 1 else ""
    return Feature(group.name, Kind.CATEGORICAL, categories=group.levels, label=label)


def _of_group(result: Answers, group: Group, merged: Tensor) -> Iterator[tuple[int, Line]]:
    """The lines of a one-hot group by the position of the row; what they tell is `merged`."""
    members, feature = list(group.members), _category(result.encoder.schema, group)
    x, rows, alone = (r[:, members] for r in (result.x, result.proposal.rows, result.alone))
    one = ((x == 1.0).sum(1) == 1) & ((rows == 1.0).sum(1) == 1)
    old, new, only = (each.argmax(1).tolist() for each in (x, rows, alone))
    direct, moved = result.proposal.direct[:, members], result.spread.moved[:, members]
    for at in (one & (x.argmax(1) != rows.argmax(1))).nonzero()[:, 0].tolist():
        merged[at, members] = True
        before, after, count = old[at], new[at], result.spread.count
        acted = bool(direct[at, before] & direct[at, after])
        kind: Change = "direct" if acted else "forced" if only[at] == after else "indirect"
        sure, least = kind != "indirect", int(result.spread.least[at, members].argmax())
        levels = (group.levels[k] for k in (before, after, only[at], after if sure else least))
        ends = (math.nan,) * 4
        agree = count if sure else int(moved[at, after])
        label, rank = result.factuals.index[at], int(result.ranking[at])
        head = label, rank, group.name, feature.called, kind
        yield at, Line._make([*head, *levels, *ends, agree, count, 1.0, "", True])
