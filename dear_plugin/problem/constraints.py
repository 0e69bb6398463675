"""Constraints of one call, drawn up as limits for its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.columns import Resolution
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Feature, Kind
from dear_plugin.data.units import step_sizes
from dear_plugin.errors import ConstraintError, unknown
from dear_plugin.problem.feasible import FeasibleSet
from dear_plugin.problem.per_row import each, is_plural
from dear_plugin.problem.rules import Rules

# Of one unit of precision: a float32 0.1 is a hair above 0.1, and still 0.1.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Constraints:
    """What holds for one call of `generate`: each a value for all rows, or one per row.

    Attributes:
        frozen: features that stay as they are, besides the schema's immutable ones.
        act_on: the only features that may be acted on; the others may still move with them.
        ranges: `{numeric feature: (low, high)}` in user units; None leaves an end open, and an
            end may be an array with one value per row. A value outside stays, or comes inside.
        categories: `{binary or categorical feature: [allowed values]}`.
    """

    frozen: Sequence[Any] = ()
    act_on: Sequence[Any] | None = None
    ranges: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    categories: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None


def feasible_set(
    within: Constraints | None,
    x: Tensor,
    encoder: Encoder,
    grains: Sequence[Resolution],
) -> FeasibleSet:
    """Resolve the schema's marks and one call's constraints for n rows.

    Args:
        within: the call's constraints, or None.
        x: (n, p) the factual rows.
        encoder: the gate.
        grains: (p,) what the columns can hold, from `Encoder.grains`.

    Raises:
        ConstraintError: unknown features or categories, an empty range, or another number of
            values than rows.
    """
    within = within or Constraints()
    box = _Builder(encoder, x, grains)
    for rows, names in each(within.frozen, len(x), "frozen", str):
        box.freeze(rows, names)
    for rows, ranges in each(within.ranges, len(x), "ranges", Mapping):
        box.restrict(rows, ranges)
    for rows, levels in each(within.categories, len(x), "categories", Mapping):
        box.keep(rows, levels)
    for rows, names in each(within.act_on, len(x), "act_on", str):
        box.bar_others(rows, names)
    return box.build()


@dataclass(frozen=True)
class StaticBounds:
    """What holds for everybody: what the schema says of features and what their columns can hold.

    Attributes:
        low: (p,) double, the least value in user units.
        high: (p,) double, the greatest.
        immutable: (p,) bool.
        increasing_mask: (p,) bool, features that may only increase.
        decreasing_mask: (p,) bool, features that may only decrease.
        units: (p,) double, the units of precision; NaN where nothing is rounded.
        steps: (p,) the scaled size of one of these.
    """

    low: Tensor
    high: Tensor
    immutable: Tensor
    increasing_mask: Tensor
    decreasing_mask: Tensor
    units: Tensor
    steps: Tensor


# One person asks again and again, and nothing of this changes. It outlives the call that asks for
# it first, and so whatever mode and default device that one was made in.
@lru_cache(maxsize=32)
@torch.inference_mode(False)
def static_bounds(features: tuple[Feature, ...], grains: tuple[Resolution, ...]) -> StaticBounds:
    """The marks of features in columns of some dtypes."""
    places = np.array([np.nan if g.decimals is None else g.decimals for g in grains])
    low, high = np.array([_ends(*pair) for pair in zip(features, grains, strict=True)]).T
    low, high = _inward(low, high, places)
    direction = torch.tensor([f.direction for f in features], device="cpu")
    immutable = torch.tensor([f.immutable for f in features], device="cpu")
    ends, units = (torch.from_numpy(low), torch.from_numpy(high)), torch.from_numpy(10.0**-places)
    sizes = step_sizes(features, [g.decimals for g in grains])
    return StaticBounds(*ends, immutable, direction > 0, direction < 0, units, sizes)


class _Builder:
    """Limits while they are being drawn up: ends in user units, a category counts as its place."""

    def __init__(self, encoder: Encoder, x: Tensor, grains: Sequence[Resolution]) -> None:
        self.encoder, self.x, self.places = encoder, x, [g.decimals for g in grains]
        self.marks, shape = static_bounds(encoder.schema.features, tuple(grains)), x.shape
        # Copies: whoever writes on what one call hands out must not write on the marks of all.
        ends = self.marks.low.clone(), self.marks.high.clone()
        self.low, self.high = (end.expand(shape) for end in ends)
        self.frozen = self.marks.immutable.expand(shape).clone()
        self.not_actionable = torch.zeros(shape, dtype=torch.bool)
        self.allowed: Tensor | None = None
        self.rules = Rules.of(encoder)
        self._keep_out_of_missing()

    def _keep_out_of_missing(self) -> None:
        """No action ends in the missing level of a category, unless its feature lets it."""
        levels = self.encoder.levels
        if levels is None:
            return
        for j in ((levels.missing >= 0) & ~levels.enter).nonzero()[:, 0].tolist():
            self._allowed()[:, self.encoder.starts[j] + int(levels.missing[j])] = False

    def _allowed(self) -> Tensor:
        """(n, d) bool, which categories may be taken."""
        if self.allowed is None:
            self.allowed = torch.ones(len(self.x), self.encoder.d, dtype=torch.bool)
        return self.allowed

    def index(self, names: Iterable[str], where: str) -> tuple[int, ...]:
        known = self.encoder.schema.names
        strange = [n for n in names if n not in known]
        if strange:
            raise ConstraintError(f"{where}: {unknown('features', strange, known)}")
        return self.encoder.schema.index(names)

    def freeze(self, rows: slice | list[int], names: Iterable[str]) -> None:
        for j in self.index(names, "frozen"):
            self.frozen[rows, j] = True

    def own(self) -> None:
        """Ends of each row's own, where all had the same."""
        if not self.low.is_contiguous():
            self.low, self.high = self.low.contiguous(), self.high.contiguous()

    def restrict(self, rows: slice | list[int], ranges: Mapping[str, Any]) -> None:
        self.own()
        for j in self.index(ranges, "ranges"):
            feature = self.encoder.schema.features[j]
            count = len(self.low[rows, j])
            low, high = _interval(feature, ranges[feature.name], self.places[j], count)
            self.low[rows, j] = torch.maximum(self.low[rows, j], low)
            self.high[rows, j] = torch.minimum(self.high[rows, j], high)

    def keep(self, rows: slice | list[int], levels: Mapping[str, Any]) -> None:
        self.own()
        for j in self.index(levels, "categories"):
            feature = self.encoder.schema.features[j]
            codes = _codes(feature, levels[feature.name])
            if feature.kind is Kind.BINARY:
                self.low[rows, j] = torch.clamp_min(self.low[rows, j], min(codes))
                self.high[rows, j] = torch.clamp_max(self.high[rows, j], max(codes))
                continue
            kept = torch.zeros(feature.columns, dtype=torch.bool)
            kept[codes] = True
            start = self.encoder.starts[j]
            self._allowed()[rows, start : start + feature.columns] &= kept

    def bar_others(self, rows: slice | list[int], names: Iterable[str]) -> None:
        outside = torch.ones(self.encoder.p, dtype=torch.bool)
        outside[list(self.index(names, "act_on"))] = False
        self.not_actionable[rows, :] |= outside

    def build(self) -> FeasibleSet:
        x, encoder, marks = self.x, self.encoder, self.marks
        ends = _distinct(self.low), _distinct(self.high)
        # Ends that cross by a unit may meet once scaled, and nothing lies between them.
        empty = ends[0] > ends[1]
        low = encoder.units.scaled(ends[0].masked_fill(empty, math.inf))
        high = encoder.units.scaled(ends[1].masked_fill(empty, -math.inf))
        levels = encoder.levels
        special = torch.zeros_like(self.frozen) if levels is None else levels.mask(x)
        low = torch.where(marks.increasing_mask & ~special, torch.maximum(low, x), low)
        high = torch.where(marks.decreasing_mask & ~special, torch.minimum(high, x), high)
        stays = special if levels is None else special & ~levels.leave
        return FeasibleSet(
            low,
            high,
            torch.where(self.frozen, x, torch.where(special, low, torch.minimum(low, x))),
            torch.where(self.frozen, x, torch.where(special, high, torch.maximum(high, x))),
            self.not_actionable | self.frozen | stays,
            self.allowed,
            torch.tensor(encoder.starts),
            encoder.blocks,
            marks.steps.clone(),
            encoder.units.offsets,
            encoder.units.grid_residual(x, marks.units),
            (self.low, self.high),
            levels,
            self.rules,
            None if self.rules is None else self.rules.kept(x),
        )


def _distinct(ends: Tensor) -> Tensor:
    """Ends, (n, p), as (1, p) where they are the same for all."""
    return ends if ends.is_contiguous() else ends[:1]


def _ends(feature: Feature, grain: Resolution) -> tuple[float, float]:
    """The least and greatest value of a feature by its schema and its column."""
    if feature.kind is not Kind.NUMERIC:
        return 0.0, float(max(len(feature.categories) - 1, 0))
    low, high = max(feature.bounds[0], grain.low), min(feature.bounds[1], grain.high)
    if feature.limits is not None:
        low, high = max(low, feature.limits[0]), min(high, feature.limits[1])
    return low, high


def _inward(low: Any, high: Any, places: Any) -> tuple[Any, Any]:
    """Ends, any shape, moved inwards to values with so many decimals; NaN does not move them."""
    unit, free = np.power(10.0, places), np.isnan(places)
    inner = np.ceil(low * unit - TOLERANCE) / unit, np.floor(high * unit + TOLERANCE) / unit
    return np.where(free, low, inner[0]), np.where(free, high, inner[1])


def _interval(feature: Feature, pair: Any, places: int | None, n: int) -> tuple[Tensor, Tensor]:
    where = f"ranges[{feature.name!r}]"
    if feature.kind is not Kind.NUMERIC:
        raise ConstraintError(f"{where}: it has categories; use categories= instead")
    if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ConstraintError(f"{where}: a (low, high) is expected, {pair!r} came")
    low = _numbers(where, -math.inf if pair[0] is None else pair[0])
    high = _numbers(where, math.inf if pair[1] is None else pair[1])
    if any(end.shape not in ((), (n,)) for end in (low, high)):
        raise ConstraintError(f"{where}: an end is a number, or {n}, one per row; {pair!r} came")
    if not np.all(low <= high):
        raise ConstraintError(f"{where}: low must not exceed high, {pair!r} came")
    ends = _inward(low, high, np.nan if places is None else places)
    return torch.as_tensor(ends[0]), torch.as_tensor(ends[1])


def _numbers(where: str, end: Any) -> Any:
    try:
        return np.asarray(end, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConstraintError(
            f"{where}: an end is a number, or one per row, or None where it is open; {end!r} came"
        ) from error


def _codes(feature: Feature, levels: Any) -> list[int]:
    where = f"categories[{feature.name!r}]"
    if feature.kind is Kind.NUMERIC:
        raise ConstraintError(f"{where}: it is numeric; use ranges= instead")
    asked = list(levels) if is_plural(levels) else [levels]
    strange = [c for c in asked if c not in feature.categories]
    if strange:
        raise ConstraintError(f"{where}: {unknown('values', strange, feature.categories)}")
    if not asked:
        raise ConstraintError(f"{where}: [] came; name one of {list(feature.categories)} at least")
    return [feature.categories.index(c) for c in asked]
