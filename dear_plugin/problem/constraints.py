"""Constraints: what one call of `generate` allows, and with it what is admissible of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._validation.settings import Named
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.grid import Grid
from dear_plugin.data.schema import Feature, Schema
from dear_plugin.errors import ConstraintError, unknown
from dear_plugin.problem.admissible import Admissible
from dear_plugin.problem.arguments import among, codes_of, costs_of, each, in_order, interval
from dear_plugin.problem.limits import Limits, observed_values
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
        costs: `{feature: number}`, what a unit of it, or another category, costs a person who acts
            on it, in the place of the schema's; a number may be an array or a Series with one
            value per row. One column of a group stands for all, the last that is named.

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
        given = {k: v if _are_names(v) else in_order(v, index, k) for k, v in given.items()}
        if isinstance(given["ranges"], Mapping):
            given["ranges"] = {
                name: [in_order(end, index, f"ranges[{name!r}]") for end in pair]
                if isinstance(pair, tuple | list)
                else pair
                for name, pair in given["ranges"].items()
            }
        if isinstance(costs := given["costs"], Mapping):
            given["costs"] = {k: in_order(v, index, f"costs[{k!r}]") for k, v in costs.items()}
        return Constraints(**given)


def admissible(
    within: Constraints | None,
    x: Tensor,
    encoder: Encoder,
    ends: tuple[Tensor, Tensor, Grid],
) -> Admissible:
    """What is admissible of n rows under the schema and the constraints of one call.

    Args:
        within: the call's constraints, or None.
        x: (n, p) the factual rows.
        encoder: the encoder of the rows.
        ends: what the columns can hold, from `columns.column_limits`.

    Raises:
        ConstraintError: unknown features or categories, an empty range, a cost that is not above
            0, or another number of values than rows.
    """
    within, rules = within or Constraints(), Rules.of(encoder)
    frozen, held = held_cells(within, len(x), encoder.schema)
    limits = _limits(within, x, encoder, ends, (frozen | encoder.is_new(x), held))
    return Admissible(limits, rules, rules.hold(x))


def held_cells(within: Constraints | None, n: int, schema: Schema) -> tuple[Tensor, Tensor]:
    """(n, p) bool each: the cells that never change, and those that are not acted on.

    Args:
        within: the call's constraints, or None.
        n: the number of rows.
        schema: the features.

    Raises:
        ConstraintError: unknown features, or another number of values than rows.
    """
    within = within or Constraints()
    frozen = torch.tensor([f.immutable for f in schema]).repeat(n, 1)
    for rows, names in each(within.frozen, n, "frozen", str):
        frozen[rows, list(_index(schema, names, "frozen"))] = True
    not_acted = torch.zeros_like(frozen)
    for rows, names in each(within.act_on, n, "act_on", str):
        others = torch.ones(len(schema), dtype=torch.bool)
        others[list(_index(schema, names, "act_on"))] = False
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
    (low, high), grid = (end.repeat(len(x), 1) for end in ends[:2]), ends[2]
    ranged = torch.tensor([f.limits is not None for f in schema]).repeat(len(x), 1)
    for rows, j, least, most in _ranges(within, low, encoder, grid):
        ranged[rows, j] = True
        low[rows, j], high[rows, j] = among(
            schema.features[j],
            torch.maximum(low[rows, j], least),
            torch.minimum(high[rows, j], most),
        )
    masks = list(_masks(within, len(x), encoder))
    allowed = None
    for rows, j, may in masks:
        if encoder.blocks[j]:
            allowed = (
                x.new_ones(len(x), encoder.d, dtype=torch.bool) if allowed is None else allowed
            )
            allowed[rows, encoder.starts[j] : encoder.starts[j] + may.shape[-1]] &= may
            continue
        codes = may.nonzero()[:, 0].tolist()
        low[rows, j] = low[rows, j].clamp_min(min(codes, default=math.inf))
        high[rows, j] = high[rows, j].clamp_max(max(codes, default=-math.inf))
    empty = low > high
    low, high = low.masked_fill(empty, math.inf), high.masked_fill(empty, -math.inf)
    direction, special = torch.tensor([f.direction for f in schema]), encoder.special(x)
    low = torch.where((direction > 0) & ~special, torch.maximum(low, x), low)
    high = torch.where((direction < 0) & ~special, torch.minimum(high, x), high)
    stays = special & ~encoder.leave
    return Limits(
        encoder,
        grid,
        observed_values(schema),
        low=low,
        high=high,
        floor=x.where(frozen, low.where(special, torch.minimum(low, x))),
        ceiling=x.where(frozen, high.where(special, torch.maximum(high, x))),
        not_actionable=not_acted | frozen | stays,
        stuck=stays & ~not_acted & ~frozen,
        ranged=ranged,
        allowed=allowed,
        costs=_costs(within, len(x), encoder),
    )


def _ranges(
    within: Constraints, low: Tensor, encoder: Encoder, grid: Grid
) -> Iterator[tuple[Rows, int, Tensor, Tensor]]:
    """Rows, a number, and the ends, () or (m,) each, to which a range restricts it."""
    schema = encoder.schema
    for rows, ranges in each(within.ranges, len(low), "ranges", Mapping):
        for name, j in zip(ranges, _index(schema, ranges, "ranges"), strict=True):
            if name == schema.names[j]:
                ends = interval(schema.features[j], ranges[name], len(low[rows]))
                yield rows, j, *grid.inward(*ends, j)


def _masks(within: Constraints, n: int, encoder: Encoder) -> Iterator[tuple[Rows, int, Tensor]]:
    """Rows, a category, and which of its l levels they may take, (l,) or (m, l) bool.

    Nothing sets a category to an excluded level, nor to a special one unless it may. One of the
    columns of a feature may be restricted, too, as a number or as a category.
    """
    schema = encoder.schema
    for j, feature in enumerate(schema):
        special = {*feature.special, *([None] if feature.missing else [])}
        barred = {*feature.excluded, *(set() if feature.enter_special else special)}
        if barred and not feature.is_number:
            yield slice(None), j, torch.tensor([c not in barred for c in feature.categories])
    for rows, levels in each(within.categories, n, "categories", Mapping):
        for name, j in zip(levels, _index(schema, levels, "categories"), strict=True):
            column = _column(schema.features[j], name)
            codes = codes_of(column, levels[name])
            may = torch.tensor([i in codes for i in range(len(column.choices))])
            yield rows, j, _by_column(schema.features[j], name, may)
    for rows, ranges in each(within.ranges, n, "ranges", Mapping):
        for name, j in zip(ranges, _index(schema, ranges, "ranges"), strict=True):
            if name != schema.names[j]:
                count = n if isinstance(rows, slice) else len(rows)
                low, high = interval(_column(schema.features[j], name), ranges[name], count)
                may = torch.stack([(low <= value) & (value <= high) for value in (0, 1)], -1)
                yield rows, j, _by_column(schema.features[j], name, may)


def _costs(within: Constraints, n: int, encoder: Encoder) -> Tensor | None:
    """(n, p) what a unit of features costs; None where all cost 1."""
    given = list(each(within.costs, n, "costs", Mapping))
    if not given and not bool((encoder.costs != 1.0).any()):
        return None
    out = encoder.costs.repeat(n, 1)
    for rows, costs in given:
        for name, j in zip(costs, _index(encoder.schema, costs, "costs"), strict=True):
            out[rows, j] = costs_of(name, costs[name], len(out[rows]))
    return out


def _are_names(value: Any) -> bool:
    """Whether a Series is a list of names, for all rows."""
    return isinstance(value, pd.Series) and all(isinstance(name, str) for name in value)


def _index(schema: Schema, names: Iterable[str], where: str) -> tuple[int, ...]:
    """The positions of features, each of which is named, or one of its columns is."""
    known = dict.fromkeys([*schema.names, *schema.column_names])
    if missing := [n for n in names if n not in known]:
        raise ConstraintError(f"{where}: {unknown('features', missing, known)}")
    return schema.index(names)


def _column(feature: Feature, name: str) -> Feature:
    """A feature, or one of its columns, by name."""
    return next((each for each in feature.dummies if each.name == name), feature)


def _by_column(feature: Feature, name: str, may: Tensor) -> Tensor:
    """(..., l) bool, the levels of a feature, of which it or one of its columns is restricted."""
    if name == feature.name:
        return may
    own = torch.tensor([each.name == name for each in feature.dummies])
    return torch.where(own, may[..., 1:], may[..., :1])
