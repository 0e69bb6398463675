"""Constraints: what one call of `generate` allows, resolved into the feasible set of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._validation.settings import Named
from dear_plugin.data.columns import Resolution
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.grid import Grid
from dear_plugin.data.schema import Feature, Schema
from dear_plugin.errors import ConstraintError, unknown
from dear_plugin.problem.arguments import among, codes_of, costs_of, each, in_order, interval
from dear_plugin.problem.feasible import FeasibleSet
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


def feasible_set(
    within: Constraints | None,
    x: Tensor,
    encoder: Encoder,
    resolutions: Sequence[Resolution],
) -> FeasibleSet:
    """The feasible set of n rows under the schema and the constraints of one call.

    Args:
        within: the call's constraints, or None.
        x: (n, p) the factual rows.
        encoder: the encoder of the rows.
        resolutions: (p,) what the columns can hold, from `columns.resolutions`.

    Raises:
        ConstraintError: unknown features or categories, an empty range, a cost that is not above
            0, or another number of values than rows.
    """
    within = within or Constraints()
    builder = _Builder(encoder, x, resolutions, held_cells(within, len(x), encoder.schema))
    for rows, ranges in each(within.ranges, len(x), "ranges", Mapping):
        builder.restrict_ranges(rows, ranges)
    for rows, levels in each(within.categories, len(x), "categories", Mapping):
        builder.restrict_categories(rows, levels)
    for rows, costs in each(within.costs, len(x), "costs", Mapping):
        builder.replace_costs(rows, costs)
    return builder.build()


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


class _Builder:
    """Builds a feasible set: bounds in user units, where a category is its position.

    Args:
        encoder: the encoder of the rows.
        x: (n, p) the factual rows.
        resolutions: (p,) what the columns can hold.
        held: (n, p) bool each, the cells that never change, and those that are not acted on.
    """

    def __init__(
        self,
        encoder: Encoder,
        x: Tensor,
        resolutions: Sequence[Resolution],
        held: tuple[Tensor, Tensor],
    ) -> None:
        self.encoder, self.x = encoder, x
        pairs = list(zip(encoder.schema, resolutions, strict=True))
        self.grid = Grid.of(r.decimals if f.is_number else 0 for f, r in pairs)
        ends = torch.tensor([_feature_bounds(*pair) for pair in pairs], dtype=torch.float64).T
        self.low, self.high = (each.expand(x.shape) for each in self.grid.inward(*ends))
        frozen, self.not_actionable = held
        self.rules = Rules.of(encoder)
        self.frozen = frozen | encoder.is_new(x)
        self.allowed: Tensor | None = None
        stated = bool((encoder.costs != 1.0).any())
        self.costs = encoder.costs.repeat(len(x), 1) if stated else None
        self.ranged = torch.tensor([f.limits is not None for f in encoder.schema]).repeat(
            len(x), 1
        )
        self._forbid_special_levels()

    def restrict_ranges(self, rows: Rows, ranges: Mapping[str, Any]) -> None:
        """Intersect the bounds of numbers with ranges."""
        self._expand_bounds()
        for name, j in zip(ranges, _index(self.encoder.schema, ranges, "ranges"), strict=True):
            feature = self.encoder.schema.features[j]
            count = len(self.low[rows, j])
            if name != feature.name:
                ends = interval(_flag(feature, name), ranges[name], count)
                may_be = [(ends[0] <= value) & (value <= ends[1]) for value in (0, 1)]
                self._restrict_flag(rows, j, name, may_be)
                continue
            low, high = self.grid.inward(*interval(feature, ranges[name], count), j)
            self.ranged[rows, j] = True
            self.low[rows, j], self.high[rows, j] = among(
                feature,
                torch.maximum(self.low[rows, j], low),
                torch.minimum(self.high[rows, j], high),
            )

    def restrict_categories(self, rows: Rows, levels: Mapping[str, Any]) -> None:
        """Intersect the allowed categories with those given."""
        schema = self.encoder.schema
        for name, j in zip(levels, _index(schema, levels, "categories"), strict=True):
            feature = schema.features[j]
            if name == feature.name:
                self._keep_categories(rows, j, codes_of(feature, levels[name]))
            else:
                codes = codes_of(_flag(feature, name), levels[name])
                self._restrict_flag(rows, j, name, [torch.tensor(v in codes) for v in (0, 1)])

    def replace_costs(self, rows: Rows, costs: Mapping[str, Any]) -> None:
        """Set what a unit of features costs."""
        if self.costs is None:
            self.costs = self.encoder.costs.repeat(len(self.x), 1)
        for name, j in zip(costs, _index(self.encoder.schema, costs, "costs"), strict=True):
            count = len(self.costs[rows, j])
            self.costs[rows, j] = costs_of(name, costs[name], count)

    def build(self) -> FeasibleSet:
        """The feasible set."""
        x, encoder, levels = self.x, self.encoder, self.encoder.levels
        direction = torch.tensor([f.direction for f in encoder.schema])
        low, high = (each if each.is_contiguous() else each[:1] for each in (self.low, self.high))
        empty = low > high
        low, high = low.masked_fill(empty, math.inf), high.masked_fill(empty, -math.inf)
        special = levels.mask(x)
        low = torch.where((direction > 0) & ~special, torch.maximum(low, x), low)
        high = torch.where((direction < 0) & ~special, torch.minimum(high, x), high)
        stays = special & ~levels.leave
        return FeasibleSet(
            low=low,
            high=high,
            floor=x.where(self.frozen, low.where(special, torch.minimum(low, x))),
            ceiling=x.where(self.frozen, high.where(special, torch.maximum(high, x))),
            not_actionable=self.not_actionable | self.frozen | stays,
            allowed=self.allowed,
            starts=torch.tensor(encoder.starts),
            blocks=encoder.blocks,
            grid=self.grid,
            ends=(encoder.low, encoder.high),
            levels=levels,
            rules=self.rules,
            observed={
                j: torch.tensor(sorted(f.observed), dtype=torch.float64)
                for j, f in enumerate(encoder.schema)
                if f.observed
            },
            required=self.rules.satisfied(x),
            stuck=stays & ~self.not_actionable & ~self.frozen,
            ranged=self.ranged,
            costs=self.costs,
        )

    def _forbid_special_levels(self) -> None:
        """Nothing sets a category to an excluded one, nor to a special one unless it may."""
        for j, feature in enumerate(self.encoder.schema):
            barred = {*feature.special, *([None] if feature.missing else [])}
            barred = {*feature.excluded, *(set() if feature.enter_special else barred)}
            if barred and not feature.is_number:
                codes = [i for i, c in enumerate(feature.categories) if c not in barred]
                self._keep_categories(slice(None), j, codes)

    def _keep_categories(self, rows: Rows, j: int, codes: Sequence[int]) -> None:
        """Intersect the allowed categories of a feature with those at some positions."""
        feature = self.encoder.schema.features[j]
        if not self.encoder.blocks[j]:
            self._expand_bounds()
            low, high = min(codes, default=math.inf), max(codes, default=-math.inf)
            self.low[rows, j] = torch.clamp_min(self.low[rows, j], low)
            self.high[rows, j] = torch.clamp_max(self.high[rows, j], high)
            return
        mask = torch.zeros(feature.columns, dtype=torch.bool)
        mask[list(codes)] = True
        start = self.encoder.starts[j]
        self._allowed_levels()[rows, start : start + feature.columns] &= mask

    def _restrict_flag(self, rows: Rows, j: int, name: str, may_be: Sequence[Tensor]) -> None:
        """Intersect the categories of feature j with those that its column `name` may show.

        Args:
            rows: the rows.
            j: the position of the feature.
            name: of one of its columns.
            may_be: () or (n,) bool, whether the column may be 0, and whether it may be 1.
        """
        own = torch.tensor([each.name == name for each in self.encoder.schema.features[j].dummies])
        start, (zero, one) = self.encoder.starts[j], (each[..., None] for each in may_be)
        allowed = torch.where(own, one, zero)
        self._allowed_levels()[rows, start : start + len(own)] &= allowed

    def _allowed_levels(self) -> Tensor:
        """(n, d) bool, the categories that may be taken."""
        if self.allowed is None:
            self.allowed = torch.ones(len(self.x), self.encoder.d, dtype=torch.bool)
        return self.allowed

    def _expand_bounds(self) -> None:
        """Allocate bounds per row, which were shared by all rows."""
        if not self.low.is_contiguous():
            self.low, self.high = self.low.contiguous(), self.high.contiguous()


def _are_names(value: Any) -> bool:
    """Whether a Series is a list of names, for all rows."""
    return isinstance(value, pd.Series) and all(isinstance(name, str) for name in value)


def _index(schema: Schema, names: Iterable[str], where: str) -> tuple[int, ...]:
    """The positions of features, each of which is named, or one of its columns is."""
    known = dict.fromkeys([*schema.names, *schema.column_names])
    if missing := [n for n in names if n not in known]:
        raise ConstraintError(f"{where}: {unknown('features', missing, known)}")
    return schema.index(names)


def _flag(feature: Feature, name: str) -> Feature:
    """One of the columns of a feature."""
    return next(each for each in feature.dummies if each.name == name)


def _feature_bounds(feature: Feature, resolution: Resolution) -> tuple[float, float]:
    """The least and greatest value of a feature by its schema and its column."""
    if not feature.is_number:
        return feature.ends
    low, high = max(feature.bounds[0], resolution.low), min(feature.bounds[1], resolution.high)
    if feature.limits is not None:
        low, high = max(low, feature.limits[0]), min(high, feature.limits[1])
    ends = among(feature, *torch.tensor([low, high], dtype=torch.float64))
    return float(ends[0]), float(ends[1])
