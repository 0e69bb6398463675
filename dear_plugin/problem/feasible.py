"""FeasibleSet: the admissible rows A_d of the paper's problem, exactly, for n factual rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.grid import Grid
from dear_plugin.data.kinds.categories import NEW
from dear_plugin.data.special_values import SpecialLevels, is_special
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.reasons import Reason
from dear_plugin.problem.rules import Rules
from dear_plugin.problem.seen_pairs import SeenPairs

# The attributes with a value for each row.
PER_ROW = (
    *("low", "high", "floor", "ceiling", "not_actionable", "required", "stuck", "ranged"),
    *("allowed", "costs"),
)


@dataclass(frozen=True)
class FeasibleSet:
    """The admissible changes of n rows: rounds to the decimals of columns, clips to ranges.

    Attributes:
        low: (n, p) the least value that an action may set.
        high: (n, p) the greatest value that an action may set.
        floor: (n, p) the least value of a counterfactual: `low`, or the factual where that is
            lower.
        ceiling: (n, p) the greatest value of a counterfactual; `floor = ceiling = x` where frozen.
        not_actionable: (n, p) bool, features that may not be acted on.
        allowed: (n, d) bool, which categories may be taken; None when all may.
        starts: (p,) int64, the first encoded column of each feature.
        blocks: (p,) bool, features of m > 2 categories.
        grid: the decimals of the columns.
        ends: (p,) double each, the least and greatest observed value.
        observed: the only values, ascending, of the features that take no others, by feature.
        levels: where rows may be missing or special.
        rules: the constraints between columns.
        required: (n, r + u + g) bool, the relations, rules and groups that the factual satisfies,
            and its counterfactual must satisfy.
        stuck: (n, p) bool, features that may not be acted on only because their value is special,
            and the schema forbids to leave it.
        ranged: (n, p) bool, numbers of which the user states a range.
        seen_pairs: which pairs of values changes may create; None allows all.
        costs: (n, p) double, what a unit of cost of each feature costs who acts on it; None where
            all cost 1.
    """

    low: Tensor
    high: Tensor
    floor: Tensor
    ceiling: Tensor
    not_actionable: Tensor
    allowed: Tensor | None
    starts: Tensor
    blocks: Tensor
    grid: Grid
    ends: tuple[Tensor, Tensor]
    observed: dict[int, Tensor]
    levels: SpecialLevels
    rules: Rules
    required: Tensor
    stuck: Tensor
    ranged: Tensor
    seen_pairs: SeenPairs | None = None
    costs: Tensor | None = None

    @property
    def has_rules(self) -> bool:
        """Whether the schema has orders, relations, rules or groups."""
        return self.required.shape[1] > 0

    def select(self, idx: Tensor) -> FeasibleSet:
        """The feasible set of the rows at positions (q,)."""
        columns = {name: getattr(self, name) for name in PER_ROW}
        some: dict[str, Any] = {n: None if t is None else t[idx] for n, t in columns.items()}
        return replace(self, **some)

    def without_extremes(self, x: Tensor, central: tuple[Tensor, Tensor]) -> FeasibleSet:
        """The same, in which actions do not leave the central values, nor x farther from them.

        A stated range counts instead.

        Args:
            x: (n, p) the factual rows.
            central: (p,) each, the least and greatest central value.
        """
        low, high = (end.expand_as(x) for end in central)
        known = ~is_special(x)
        low = torch.where(known, torch.minimum(low, x), low).masked_fill(self.ranged, -torch.inf)
        high = torch.where(known, torch.maximum(high, x), high).masked_fill(self.ranged, torch.inf)
        low, high = torch.maximum(self.low, low), torch.minimum(self.high, high)
        return replace(self, low=low, high=high)

    def may_act(self, sets: ActionSets) -> Tensor:
        """(n, s) bool: sets of actionable features, of which at least one has a value to take."""
        has_values = (self.low <= self.high)[:, sets.positions].any(2)
        return has_values & ~self.not_actionable[:, sets.positions].any(2)

    def why_nothing(self, row: int, acted: Tensor, names: Sequence[str]) -> str:
        """The reason of a row with nothing to act on, with its causes as far as they are known.

        Args:
            row: its position.
            acted: (p,) bool, the features of the action sets.
            names: (p,) the features' names.
        """
        empty = (self.low[row] > self.high[row]) & ~self.not_actionable[row] & acted
        special, out = (list(compress(names, each)) for each in (self.stuck[row] & acted, empty))
        causes = [
            f"special values (codes, missing values) are kept of {', '.join(special)}: allow"
            f" actions to leave them with schema.replace({special[0]!r}, leave_special=True)"
            for _ in special[:1]
        ]
        causes += [f"no observed value is in the range of {', '.join(out)}" for _ in out[:1]]
        return ": ".join([Reason.NOTHING_ADMISSIBLE, *filter(None, ["; ".join(causes)])])

    def admits(self, values: Tensor, feature: Tensor, idx: Tensor) -> Tensor:
        """(m, c) bool: whether an action may set a feature to a value.

        Args:
            values: (m, c) row values.
            feature: (m,) the feature.
            idx: (m,) the row.
        """
        low, high = self.low[idx, feature], self.high[idx, feature]
        inside = (values >= low[:, None]) & (values <= high[:, None])
        for j, known in self.observed.items():
            inside &= (values == nearest(values, known)) | (feature != j)[:, None]
        if self.allowed is None:
            return inside
        level = torch.where(self.blocks[feature][:, None], values, 0.0).long()
        column = self.starts[feature][:, None] + level
        return inside & self.allowed[idx[:, None], column]

    def snap(self, values: Tensor, feature: Tensor, idx: Tensor) -> Tensor:
        """(m, c) the nearest values that an action may set: inside the bounds, on the grid.

        Args:
            values: (m, c) row values.
            feature: (m,) the feature.
            idx: (m,) the row.
        """
        bounds = self.low[idx, feature][:, None], self.high[idx, feature][:, None]
        for j, known in self.observed.items():
            values = torch.where((feature == j)[:, None], nearest(values, known), values)
        # A bound may be the factual, which need not be on the grid.
        return self.grid.round(torch.clamp(values, *bounds), feature[:, None]).clamp_(*bounds)

    def snap_rows(self, moved: Tensor, idx: Tensor | slice) -> Tensor:
        """(m, c, p) rows of which every value is the nearest one that an action may set.

        Args:
            moved: (m, c, p) row values.
            idx: (m,) the row.
        """
        bounds = self.low[idx][:, None], self.high[idx][:, None]
        return self.grid.round(torch.clamp(self._observed(moved), *bounds)).clamp_(*bounds)

    def allows(self, moved: Tensor, idx: Tensor | slice) -> Tensor:
        """(m, c, p) bool, whether rows, (m, c, p), have categories that may be taken."""
        if self.allowed is None:
            return torch.ones(moved.shape, dtype=torch.bool)
        column = self.starts + torch.where(self.blocks & (moved < NEW), moved, 0.0).long()
        return self.allowed[idx].gather(1, column.flatten(1)).view(moved.shape)

    def rounded(self, x: Tensor, moved: Tensor) -> Tensor:
        """(m, c, p) rows on the grid; a value that moves by less than half a step stays.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the unrounded rows.
        """
        here, off = x[:, None], x != self.grid.round(x)
        moved = self._observed(moved, here)
        out = self.grid.round(moved)
        if bool(off.any()):
            out = torch.where(off[:, None] & self.stays(here, moved), here, out)
        return out

    def stays(self, x: Tensor, moved: Tensor) -> Tensor:
        """(..., p) bool, the values that differ by no more than half a step."""
        stays: Tensor = (moved - x).abs_() <= self.grid.step / 2.0
        return stays

    def project(
        self,
        x: Tensor,
        moved: Tensor,
        idx: Tensor,
        acted: Tensor | None = None,
        held: Tensor | None = None,
    ) -> Tensor:
        """(m, c, p) the nearest admissible rows: A_d of the paper, exactly.

        In this order; the last two undo or adapt what is not acted on:

        1. What is held stays.
        2. Numbers are rounded to the grid and clipped to ranges and directions; one outside of a
           range that does not contain x either stays, and what is frozen is x bit for bit.
        3. A special level is entered or left only by an action, where the schema allows that.
        4. A category that is not allowed is not taken.
        5. Changes that create a pair of values that no training row has are undone.
        6. What breaks an order or relation is set so that it holds again, see `repair`.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the decoder's rows.
            idx: (m,) the position of each factual row in this set.
            acted: (m, p) bool, the features acted on; None for all.
            held: (m, p) bool, those that do not move with them; None for none.
        """
        if held is not None:
            moved = torch.where(held[:, None], x[:, None], moved)
        out = self.levels.restrict(x, moved, self._clipped(x, moved, idx), acted)
        if self.allowed is not None:
            out = out.where(self.allows(out, idx), x[:, None])
        if acted is None:
            return out
        if self.seen_pairs is not None:
            out = self.seen_pairs.repair(x, out, acted)
        return self.repair(x, out, acted if held is None else acted | held, idx)

    def _clipped(self, x: Tensor, moved: Tensor, idx: Tensor) -> Tensor:
        """The second step of `project`."""
        out = self.rounded(x, moved)
        floor, ceiling = (each.index_select(0, idx) for each in (self.floor, self.ceiling))
        out.clamp_(floor[:, None], ceiling[:, None])
        if bool(self._starts_outside.any()):
            at = self._starts_outside[idx].nonzero()[:, 0]
            out[at] = self._undo_outside(x[at], out[at], idx[at])
        return out

    def creates_impossible(self, x: Tensor, reached: Tensor) -> Tensor:
        """(m,) bool: rows, (m, p), with an impossible pair that the factual, (m, p), lacks."""
        if self.seen_pairs is None:
            return torch.zeros(len(x), dtype=torch.bool)
        return self.seen_pairs.created(x, reached)

    def repair(
        self, x: Tensor, reached: Tensor, still: Tensor, idx: Tensor, *, forced: bool = False
    ) -> Tensor:
        """(m, c, p) rows whose indirect changes are adapted to orders and relations.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the projected rows.
            still: (m, p) bool, the features acted on, and those that do not move with them.
            idx: (m,) the position of each factual row in this set.
            forced: only to what defines a value, not to relations that hold nearly always.
        """
        if not self.has_rules:
            return reached
        low = torch.maximum(self.floor, self.low).index_select(0, idx)
        high = torch.minimum(self.ceiling, self.high).index_select(0, idx)
        relations = self.rules.relations
        required = self.required[idx, : len(relations)]
        if forced:
            required = required & ~self.rules.near[: len(relations)]
        out = relations.repair(x, reached, ~still, (low, high), required)
        return out if self.allowed is None else out.where(self.allows(out, idx), reached)

    def satisfies_rules(
        self, reached: Tensor, idx: Tensor, alone: Tensor | bool = False
    ) -> Tensor:
        """(m,) bool: whether rows, (m, p), satisfy the rules required of factual rows (m,).

        Relations that hold nearly always are not asked of rows with an action alone, (m,) bool.
        """
        exempt = self.rules.near & torch.as_tensor(alone)[..., None]
        return (self.rules.satisfied(reached) | ~self.required[idx] | exempt).all(1)

    def broken_text(self, reached: Tensor, idx: Tensor) -> list[str]:
        """(m,) the names of the required rules that rows violate, as text.

        Args:
            reached: (n, p) the counterfactuals of all rows.
            idx: (m,) positions among them.
        """
        return self.rules.broken_text(reached[idx], self.required[idx])

    def _observed(self, moved: Tensor, x: Tensor | None = None) -> Tensor:
        """Rows, (m, c, p), with the nearest observed values of features that take no others.

        Args:
            moved: the rows.
            x: (m, 1, p) the factual rows; a value with the same nearest one is kept.
        """
        for j, known in self.observed.items():
            value = nearest(moved[..., j], known)
            if x is not None:
                own = x[..., j]
                same = (value == nearest(own, known)) & ~is_special(own)
                value = torch.where(same, own, value)
            moved = moved.index_copy(-1, torch.tensor([j]), value[..., None])
        return moved

    @lazy
    def _starts_outside(self) -> Tensor:
        """(n,) bool, rows with a factual value outside the bounds of actions."""
        return ((self.floor < self.low) | (self.ceiling > self.high)).any(1)

    def _undo_outside(self, x: Tensor, moved: Tensor, idx: Tensor) -> Tensor:
        """Rows, (m, c, p), with the factual values where they are outside the bounds."""
        low, high = self.low[idx][:, None], self.high[idx][:, None]
        inside = (moved >= low) & (moved <= high)
        return torch.where(inside, moved, x[:, None])


def nearest(values: Tensor, known: Tensor) -> Tensor:
    """The nearest of known values, (l,) ascending, to values of any shape."""
    out: Tensor = known[torch.bucketize(values.contiguous(), (known[1:] + known[:-1]) / 2.0)]
    return out
