"""The rows that a counterfactual may be, A_d of the paper, and why a row has none.

A `Case` holds the rows of a call with their targets; `Limits` say what each feature of each row
may be; `Admissible` adds rules.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum, StrEnum
from itertools import compress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import Array, Grid, nearest
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.goals import Goal
from dear_plugin.problem.rules import Rules

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


T = TypeVar("T", bound="DataclassInstance")


def selected(record: T, idx: Tensor) -> T:
    """The rows at positions (q,) of a record of n rows.

    Args:
        record: a dataclass. Its tensors, arrays, lists, frames, and what has `select` have an
            entry for each row; its other values hold for every row.
        idx: the positions.
    """
    own = {f.name: _part(getattr(record, f.name), idx) for f in fields(record) if f.init}
    return replace(record, **own)


def _part(value: Any, idx: Tensor) -> Any:
    """The entries of a value for the rows at positions (q,)."""
    if isinstance(value, Tensor):  # which may be on a GPU, or with a gradient
        return (value.detach() if value.requires_grad else value).cpu()[idx]
    if isinstance(value, pd.DataFrame):
        return value.iloc[idx.numpy()]
    if isinstance(value, np.ndarray):
        return value[idx.numpy()]
    if isinstance(value, list):
        return [value[i] for i in idx.tolist()]
    return value.select(idx) if hasattr(value, "select") else value


class OfRows:
    """A dataclass of n rows."""

    def select(self, idx: Tensor) -> Self:
        """The same of the rows at positions (q,)."""
        own: Any = self
        out: Self = selected(own, idx)
        return out


@dataclass(frozen=True)
class Case(OfRows):
    """m rows that a recourse method solves.

    Attributes:
        x: (m, p) the factual rows.
        goal: the targets of the rows.
        feasible: what is admissible of the rows.
        aim: (m,) the margin that the counterfactual of each row must have.
        requirement: `RowCriteria` that counterfactuals must meet besides; None for nothing. It may
            be expensive: a method that has several candidates of a row evaluates it for those
            that would be chosen, and proposes one that meets it.

    Example:
        A method sees its rows as a case:

        >>> from dear_plugin import Schema
        >>> from dear_plugin.rivals import NearestAccepted
        >>> from dear_plugin.datasets import load_loan
        >>> class Counting(NearestAccepted):
        ...     def _propose(self, case):
        ...         print(len(case), "of the rows are not accepted yet")
        ...         return super()._propose(case)
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = Counting(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> result = method.generate(frame.head(5))
        3 of the rows are not accepted yet
    """

    x: Tensor
    goal: Goal
    feasible: Admissible
    aim: Tensor
    requirement: Any = None

    def __len__(self) -> int:
        """The number of rows (m)."""
        return len(self.x)

    def reaches(self, scores: Tensor, idx: Tensor) -> Tensor:
        """(q,) bool, whether scores, (q, c), of the rows at positions (q,) have the aim."""
        return self.goal.margin(scores, idx) >= self.aim[idx]


@dataclass(frozen=True)
class Admissible(OfRows):
    """The admissible counterfactuals of n rows.

    Attributes:
        limits: what each feature may be.
        rules: what holds between features.
        required: (n, r) bool, the rules that the factual keeps, and its counterfactual must keep.
    """

    limits: Limits
    rules: Rules
    required: Array

    def project(
        self,
        x: Tensor,
        moved: Tensor,
        idx: Tensor,
        acted: Tensor | None = None,
        held: Tensor | None = None,
        alone: Tensor | None = None,
    ) -> Tensor:
        """(m, c, p) the nearest admissible rows: A_d of the paper, exactly.

        In this order; the last two undo or adapt what is not acted on:

        1. What is held stays.
        2. Numbers are rounded to the grid and clipped to ranges and directions; one outside of a
           range that does not contain x either stays, and what is frozen is x bit for bit.
        3. A special level is entered or left only by an action, where the schema allows that.
        4. A category that is not allowed is not taken.
        5. Changes that create a pair of values that no training row has are undone.
        6. What breaks a rule is set so that it holds again, see `Rules.repair`.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the decoder's rows.
            idx: (m,) the position of each factual row in this set.
            acted: (m, p) bool, the features acted on; None for all.
            held: (m, p) bool, those that do not move with them; None for none.
            alone: (m, p) the factual rows with an action alone, of which rules are repaired, too:
                they come first, of (m, 1 + c, p).
        """
        if held is not None:
            moved = torch.where(held[:, None], x[:, None], moved)
        out = self.limits.clipped(x, moved, idx, acted)
        if acted is None:
            return out
        if self.rules.pairs is not None:
            each = self.rules.pairs.repair(x.numpy(), out.numpy(), acted.numpy())
            out = torch.from_numpy(each)
        still = acted if held is None else acted | held
        if alone is None:
            return self.repair(x, out, still, idx)
        return self.repair(x, torch.cat([alone[:, None], out], 1), still, idx, alone=1)

    def creates_impossible(self, x: Tensor, reached: Tensor) -> Tensor:
        """(m,) bool: rows, (m, p), with an impossible pair that the factual, (m, p), lacks."""
        if self.rules.pairs is None:
            return torch.zeros(len(x), dtype=torch.bool)
        return torch.from_numpy(self.rules.pairs.created(x.numpy(), reached.numpy()))

    def is_possible(self, x: Tensor, part: Tensor, reached: Tensor, idx: Tensor) -> Tensor:
        """(m,) bool: rows that keep their rules, and create no pair that no training row has.

        A row that cannot be shows nothing, whatever the model says of it.

        Args:
            x: (m, p) the factual rows, whose pairs do not count.
            part: (m, p) the rows, with an action and a part of what follows.
            reached: (m, p) the answers, whose pairs do not count either.
            idx: (m,) the position of each factual row in this set.
        """
        kept = self.keeps_rules(part, idx)
        if (pairs := self.rules.pairs) is None:
            return kept
        new = [pairs.created(each.numpy(), part.numpy(), unseen=True) for each in (x, reached)]
        return kept & ~torch.from_numpy(new[0] & new[1])

    def repair(
        self, x: Tensor, reached: Tensor, still: Tensor, idx: Tensor, *, alone: int = 0
    ) -> Tensor:
        """(m, c, p) rows of which what is not acted on is set so that broken rules hold again.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the projected rows.
            still: (m, p) bool, the features acted on, and those that do not move with them.
            idx: (m,) the position of each factual row in this set.
            alone: so many of the c rows, the first, have the action alone: they are set by rules
                that hold in all rows, not by those that hold nearly always.
        """
        if not len(self.rules):
            return reached
        follows = np.arange(reached.shape[1])[:, None] >= alone
        required = self.required[idx.numpy(), None] & (self.rules.forces | follows)
        low, high = self.limits.settable
        given = x.numpy(), reached.numpy(), ~still.numpy(), low[idx].numpy(), high[idx].numpy()
        out = torch.from_numpy(self.rules.repair(*given, required))
        none = self.limits.allowed is None
        return out if none else out.where(self.limits.allows(out, idx), reached)

    def keeps_rules(self, reached: Tensor, idx: Tensor) -> Tensor:
        """(m,) bool: whether rows, (m, p), keep the rules required of factual rows (m,)."""
        kept = self.rules.hold(reached.numpy()) | ~self.required[idx.numpy()]
        return torch.from_numpy(kept.all(1))

    def broken_text(self, reached: Tensor, idx: Tensor) -> list[str]:
        """(m,) the names of the required rules that rows break, as text.

        Args:
            reached: (n, p) the counterfactuals of all rows.
            idx: (m,) positions among them.
        """
        broken = self.required[idx.numpy()] & ~self.rules.hold(reached[idx].numpy())
        return [", ".join(compress(self.rules.names, row)) for row in broken.tolist()]


@dataclass(frozen=True)
class Limits(OfRows):
    """The values that n rows may take: on the grid, within ranges and directions, allowed.

    Attributes:
        encoder: of the rows.
        grid: the decimals of the columns.
        low: (n, p) the least value that an action may set.
        high: (n, p) the greatest value that an action may set.
        floor: (n, p) the least value of a counterfactual: `low`, or the factual where that is
            lower.
        ceiling: (n, p) the greatest value of a counterfactual; `floor = ceiling = x` where frozen.
        not_actionable: (n, p) bool, features that may not be acted on.
        stuck: (n, p) bool, those among them of which only the special value may not be left.
        ranged: (n, p) bool, numbers of which the user states a range.
        allowed: (n, d) bool, which categories may be taken; None when all may.
        costs: (n, p) double, what a unit of cost of each feature costs; None where all cost 1.
    """

    encoder: Encoder
    grid: Grid
    low: Tensor
    high: Tensor
    floor: Tensor
    ceiling: Tensor
    not_actionable: Tensor
    stuck: Tensor
    ranged: Tensor
    allowed: Tensor | None = None
    costs: Tensor | None = None

    def without_extremes(self, x: Tensor) -> Limits:
        """The same, in which actions do not leave the central values, nor x farther from them.

        A stated range counts instead.

        Args:
            x: (n, p) the factual rows.
        """
        low, high = (end.expand_as(x) for end in self.encoder.central)
        known = self.encoder.amounts(x)
        low = torch.where(known, torch.minimum(low, x), low).masked_fill(self.ranged, -torch.inf)
        high = torch.where(known, torch.maximum(high, x), high).masked_fill(self.ranged, torch.inf)
        low, high = torch.maximum(self.low, low), torch.minimum(self.high, high)
        return replace(self, low=low, high=high)

    def may_act(self, sets: ActionSets) -> Tensor:
        """(n, s) bool: sets of actionable features, of which at least one has a value to take."""
        has_values = (self.low <= self.high)[:, sets.positions].any(2)
        return has_values & ~self.not_actionable[:, sets.positions].any(2)

    def why_nothing(self, row: int, acted: Tensor) -> str:
        """The reason of a row with nothing to act on, with its causes as far as they are known.

        Args:
            row: its position.
            acted: (p,) bool, the features of the action sets.
        """
        names = self.encoder.schema.names
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
        for j, known in self.encoder.observed.items():
            near = torch.from_numpy(nearest(values.numpy(), known))
            inside &= (values == near) | (feature != j)[:, None]
        if self.allowed is None:
            return inside
        level = torch.where(self.encoder.blocks[feature][:, None], values, 0.0).long()
        column = self._starts[feature][:, None] + level
        return inside & self.allowed[idx[:, None], column]

    def snap_rows(self, moved: Tensor, idx: Tensor | slice) -> Tensor:
        """(m, c, p) rows of which every value is the nearest one that an action may set.

        Args:
            moved: (m, c, p) row values.
            idx: (m,) the row.
        """
        bounds = self.low[idx][:, None], self.high[idx][:, None]
        # A bound may be the factual, which need not be on the grid.
        return self._round(torch.clamp(self._observed(moved), *bounds)).clamp_(*bounds)

    def allows(self, moved: Tensor, idx: Tensor | slice) -> Tensor:
        """(m, c, p) bool, whether rows, (m, c, p), have categories that may be taken."""
        if self.allowed is None:
            return torch.ones(moved.shape, dtype=torch.bool)
        level = torch.where(self.encoder.blocks & (moved < self.encoder.count), moved, 0.0)
        column = self._starts + level.long()
        return self.allowed[idx].gather(1, column.flatten(1)).view(moved.shape)

    def rounded(self, x: Tensor, moved: Tensor) -> Tensor:
        """(m, c, p) rows on the grid; a value that moves by less than half a step stays.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the unrounded rows.
        """
        here, off = x[:, None], x != self._round(x)
        moved = self._observed(moved, here)
        out = self._round(moved)
        if bool(off.any()):
            out = torch.where(off[:, None] & self.stays(here, moved), here, out)
        return out

    def stays(self, x: Tensor, moved: Tensor) -> Tensor:
        """(..., p) bool, the values that differ by no more than half a step."""
        return (moved - x).abs_().le(torch.from_numpy(self.grid.step / 2.0))

    def _round(self, values: Tensor) -> Tensor:
        """Values on the grid, in a new tensor."""
        return torch.from_numpy(self.grid.round(values.numpy()))

    def clipped(self, x: Tensor, moved: Tensor, idx: Tensor, acted: Tensor | None) -> Tensor:
        """(m, c, p) the nearest rows within the limits; see `Admissible.project`.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the rows.
            idx: (m,) the position of each factual row.
            acted: (m, p) bool, the features acted on; None for all.
        """
        out = self.rounded(x, moved)
        floor, ceiling = self.floor.index_select(0, idx), self.ceiling.index_select(0, idx)
        out.clamp_(floor[:, None], ceiling[:, None])
        if bool(self._starts_outside.any()):
            at = self._starts_outside[idx].nonzero()[:, 0]
            low, high = self.low[idx[at], None], self.high[idx[at], None]
            out[at] = out[at].where((out[at] >= low) & (out[at] <= high), x[at, None])
        out = self.encoder.keep_special(x, moved, out, acted)
        return out if self.allowed is None else out.where(self.allows(out, idx), x[:, None])

    @lazy
    def settable(self) -> tuple[Tensor, Tensor]:
        """(n, p) each, the least and greatest values to which a rule may set features."""
        low, high = torch.maximum(self.floor, self.low), torch.minimum(self.ceiling, self.high)
        return none_where_empty(low, high)

    def _observed(self, moved: Tensor, x: Tensor | None = None) -> Tensor:
        """Rows, (m, c, p), with the nearest observed values of features that take no others.

        Args:
            moved: the rows.
            x: (m, 1, p) the factual rows; a value with the same nearest one is kept.
        """
        for j, known in self.encoder.observed.items():
            value = torch.from_numpy(nearest(moved[..., j].numpy(), known))
            if x is not None:
                own = x[..., j]
                near = torch.from_numpy(nearest(own.numpy(), known))
                value = own.where((value == near) & self.encoder.amounts(own, at=j), value)
            moved = moved.index_copy(-1, torch.tensor([j]), value[..., None])
        return moved

    @lazy
    def _starts(self) -> Tensor:
        """(p,) int64, the first encoded column of each feature."""
        return torch.tensor(self.encoder.starts)

    @lazy
    def _starts_outside(self) -> Tensor:
        """(n,) bool, rows with a factual value outside the bounds of actions."""
        return ((self.floor < self.low) | (self.ceiling > self.high)).any(1)


def none_where_empty(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds of which none that exclude each other admit a value: infinite, and minus infinite.

    Between finite ones `clamp` would set the upper one, below the lower one.
    """
    empty = low > high
    return low.masked_fill(empty, torch.inf), high.masked_fill(empty, -torch.inf)


class Status(IntEnum):
    """What became of a row; from `UNREACHED` on it has no recourse."""

    # It has a recourse, or the method says in words why not.
    PROPOSED = 0
    ACCEPTED = 1
    # It has one, which is no answer of a search.
    NO_ADVICE = 2
    # It has none.
    UNREACHED = 3
    EXCLUDED = 4
    NO_MORE = 5


class Reason(StrEnum):
    """The texts of the column `reason`, those of other packages' errors excepted."""

    # Nothing is wanted.
    ACCEPTED = "already accepted"

    # No action was found.
    NOTHING_ADMISSIBLE = "nothing may be acted on"
    UNREACHED = "no change of {} was found that reaches the target"
    CLOSEST = "{}; acting on {} comes closest"
    EXCLUDED = "actions are left out that create values that never occur together"
    EXCLUDED_RULES = f"{EXCLUDED}, or break what holds between columns, such as: {{}}"
    NO_MORE = "no further recourse was found"
    REFUSED_ROUNDED = "the model refused the rounded row"
    ROUNDED_AWAY = "no action is left once the row is rounded"
    BREAKS_RULES = "the row would break what holds between columns: {}"
    OTHER_MISSES = "{}'s row misses the target once constraints are applied"

    # Of an action that the user gave.
    NOT_ACTED = "nothing is acted on"
    NOT_ACTIONABLE = "{} may not be acted on"
    NOT_THIS_VALUE = "{} may not become {}"
    NOT_OBSERVED = "{} may not become {}, only {}"
    NO_VALUE = "{} may not become {}: no value may be reached"
    OUTSIDE = "{} may not become {}, only {} to {}"
    NOT_ONE = "exactly one column of {} has to be 1"
    NOT_WANTED = "the decision is not the wanted one"

    # What an answer lacks.
    LACKING = "no credible action was found; the nearest has {}"
    UNCONFIRMED = (
        "{}, though in enough of those that the search saw; an alternative may be credible"
    )
    IN_THE_WAY = "{}; what cannot be acted on stands in the way: {}"
    LESS_MARGIN = "accepted, but by less than the required margin"
    LESS_FAR = "accepted, though less far past the boundary than the search aimed"
    NO_ADVICE = "the decoder's reconstruction of the row alone is accepted, which is no advice"

    @property
    def start(self) -> str:
        """The text up to the first field."""
        return self.partition("{}")[0]
