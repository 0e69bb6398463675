"""What one call of `generate` allows, and the admissible rows that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._validation import Named
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import Grid, among
from dear_plugin.data.schema import Feature, Schema
from dear_plugin.errors import ConstraintError
from dear_plugin.problem.feasible import Admissible, Limits, none_where_empty
from dear_plugin.problem.goals import codes_of, costs_of, each, in_order, interval
from dear_plugin.problem.rules import Rules

Rows = slice | list[int]


@dataclass(frozen=True)
class Constraints(Named):
    """Constraints of one call of `generate`: each a value for all rows, or one per row.

    A list or an array has the values of rows in their order; a Series has them by its index.

    Attributes:
        frozen: features that keep their value, besides the schema's immutable ones.
        act_on: the only features that may be acted on; the others may still change indirectly.
        ranges: `{numeric feature: (low, high)}` in user units; None leaves an end open, and an
            end may be an array or a Series with one value per row. A factual value outside the
            range is kept or moved inside.
        categories: `{binary or categorical feature: [allowed values]}`.
        costs: `{feature: number}`, what a unit of it, or another category, costs, in the place of
            the schema's; a number may be an array or a Series with one value per row. One column
            of a group stands for all, the last that is named.

    Example:
        >>> within = Constraints(frozen=["age"], ranges={"savings": (None, 40.0)})  # of `generate`
    """

    frozen: Sequence[Any] = ()
    act_on: Sequence[Any] | None = None
    ranges: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    categories: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    costs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None

    def for_rows(self, index: pd.Index) -> Constraints:
        """The same for rows of an index, (n,), with lists in their order in the place of Series.

        Raises:
            ConstraintError: a Series of another index.
        """
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return Constraints(**{name: _in_order(v, index, name) for name, v in given.items()})


def admissible(
    within: Constraints | None,
    x: Tensor,
    encoder: Encoder,
    ends: tuple[Tensor, Tensor, Grid],
    rules: Rules | None = None,
) -> Admissible:
    """What is admissible of n rows under the schema and the constraints of one call.

    Args:
        within: the call's constraints, or None.
        x: (n, p) the factual rows.
        encoder: the encoder of the rows.
        ends: what the columns can hold, from `Encoder.held`.
        rules: those of the schema by default.

    Raises:
        ConstraintError: unknown features or categories, an empty range, a cost that is not above
            0, or another number of values than rows.
    """
    within, rules = within or Constraints(), Rules.of(encoder) if rules is None else rules
    frozen, held = held_cells(within, len(x), encoder.schema)
    limits = _limits(within, x, encoder, ends, (frozen | encoder.is_new(x), held))
    return Admissible(limits, rules, rules.hold(x.numpy()))


def held_cells(within: Constraints, n: int, schema: Schema) -> tuple[Tensor, Tensor]:
    """(n, p) bool each: the cells that never change, and those that are not acted on.

    Args:
        within: the call's constraints.
        n: the number of rows.
        schema: the features.

    Raises:
        ConstraintError: unknown features, or another number of values than rows.
    """
    frozen = torch.tensor([f.immutable for f in schema]).repeat(n, 1)
    for rows, names in each(within.frozen, n, "frozen", str):
        frozen[rows, list(schema.index(names, "frozen", ConstraintError))] = True
    not_acted = torch.zeros_like(frozen)
    for rows, names in each(within.act_on, n, "act_on", str):
        others = torch.ones(len(schema), dtype=torch.bool)
        others[list(schema.index(names, "act_on", ConstraintError))] = False
        not_acted[rows] |= others
    return frozen, not_acted


def _limits(
    within: Constraints,
    x: Tensor,
    encoder: Encoder,
    ends: tuple[Tensor, Tensor, Grid],
    held: tuple[Tensor, Tensor],
) -> Limits:
    """The limits of n rows; of arguments see `admissible` and `held_cells`."""
    schema, (frozen, not_acted) = encoder.schema, held
    n, (low, high, grid) = len(x), ends
    low, high = low.repeat(n, 1), high.repeat(n, 1)
    ranged = torch.tensor([f.limits is not None for f in schema]).repeat(n, 1)
    masks: list[tuple[Rows, int, Tensor]]
    masks = [(slice(None), j, may) for j, f in enumerate(schema) for may in _enterable(f)]
    for rows, j, column, names in _named(within, "categories", n, schema):
        codes = torch.tensor(codes_of(column, names))
        may = torch.isin(torch.arange(len(column.choices)), codes)
        masks.append((rows, j, _by_column(schema.features[j], column, may)))
    for rows, j, column, pair in _named(within, "ranges", n, schema):
        least, most = interval(column, pair, len(low[rows]))
        if column is not schema.features[j]:
            may = torch.stack([(least <= value) & (value <= most) for value in (0, 1)], -1)
            masks.append((rows, j, _by_column(schema.features[j], column, may)))
            continue
        inner = grid.inward(least.numpy(), most.numpy(), j)
        if j in encoder.observed:
            inner = among(encoder.observed[j], *inner)
        least, most = map(torch.as_tensor, inner)
        low[rows, j] = torch.maximum(low[rows, j], least)
        high[rows, j] = torch.minimum(high[rows, j], most)
        ranged[rows, j] = True
    allowed = torch.ones(n, encoder.d, dtype=torch.bool)
    for rows, j, may in masks:
        if encoder.blocks[j]:
            allowed[rows, encoder.starts[j] : encoder.starts[j] + may.shape[-1]] &= may
            continue
        codes = may.nonzero()[:, 0]
        low[rows, j] = low[rows, j].clamp_min(float(codes[0]) if len(codes) else math.inf)
        high[rows, j] = high[rows, j].clamp_max(float(codes[-1]) if len(codes) else -math.inf)
    direction, special = torch.tensor([f.direction for f in schema]), encoder.special(x)
    low = torch.where((direction > 0) & ~special, torch.maximum(low, x), low)
    high = torch.where((direction < 0) & ~special, torch.minimum(high, x), high)
    low, high = none_where_empty(low, high)
    stays = special & ~encoder.leave
    return Limits(
        encoder,
        grid,
        low=low,
        high=high,
        floor=x.where(frozen, low.where(special, torch.minimum(low, x))),
        ceiling=x.where(frozen, high.where(special, torch.maximum(high, x))),
        not_actionable=not_acted | frozen | stays,
        stuck=stays & ~not_acted & ~frozen,
        ranged=ranged,
        allowed=None if bool(allowed.all()) else allowed,
        costs=_costs(within, n, encoder),
    )


def _costs(within: Constraints, n: int, encoder: Encoder) -> Tensor | None:
    """(n, p) what a unit of features costs; None where all cost 1."""
    out = encoder.costs.repeat(n, 1)
    for rows, j, column, cost in _named(within, "costs", n, encoder.schema):
        out[rows, j] = costs_of(column.name, cost, len(out[rows]))
    return None if bool((out == 1.0).all()) else out


def _enterable(feature: Feature) -> Iterator[Tensor]:
    """(l,) bool, the levels that an action may set, of a category that has others.

    Nothing sets a category to an excluded level, nor to a special one unless it may.
    """
    special = {*feature.special, *([None] if feature.missing else [])}
    barred = {*feature.excluded, *(set() if feature.enter_special else special)}
    if barred & {*feature.categories}:
        yield torch.tensor([c not in barred for c in feature.categories])


def _named(
    within: Constraints, where: str, n: int, schema: Schema
) -> Iterator[tuple[Rows, int, Feature, Any]]:
    """Rows, the position of a feature, it or one of its columns, and what is stated of that."""
    for rows, given in each(getattr(within, where), n, where, Mapping):
        for name, j in zip(given, schema.index(given, where, ConstraintError), strict=True):
            columns = {
                each.name: each for each in (*schema.features[j].dummies, schema.features[j])
            }
            yield rows, j, columns[name], given[name]


def _in_order(value: Any, index: pd.Index, where: str) -> Any:
    """A value of `Constraints` with lists in the order of rows in the place of Series."""
    if isinstance(value, pd.Series) and all(isinstance(name, str) for name in value):
        return value  # names, for all rows
    if isinstance(value, Mapping) and where != "categories":
        return {k: _in_order(v, index, f"{where}[{k!r}]") for k, v in value.items()}
    if isinstance(value, tuple | list) and where.startswith("ranges["):
        return [in_order(end, index, where) for end in value]
    return in_order(value, index, where)


def _by_column(feature: Feature, column: Feature, may: Tensor) -> Tensor:
    """(..., l) bool, the levels of a feature, of which it or one of its columns is restricted."""
    if column is feature:
        return may
    own = torch.tensor([each is column for each in feature.dummies])
    return torch.where(own, may[..., 1:], may[..., :1])
