"""CandidateScan: evaluates candidate values of single numbers, for many rows and sets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.search.candidates import grid_candidates, near_factual
from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.problem import SearchProblem

# Stands for a special level in distances: within [0, 1], no value is farther than a category.
MIDDLE = 0.5
# A module evaluates this many values of a pair side by side, which share its lookups.
PACK_WIDTH = 4
# From this share of values on, a module evaluates all of them.
DENSE_SHARE = 0.9


@dataclass(frozen=True)
class CandidateScan:
    """Candidate values of m pairs (row, set), each set a single number.

    Attributes:
        rows: (m,) the row.
        sets: (m,) the set.
        x: (m, 1) the factual value.
        values: (m, c) the candidate values, ascending.
        before: (m, c) the distance from x to the next candidate towards x.
        slack: the least margin of a success.
    """

    rows: Tensor
    sets: Tensor
    x: Tensor
    values: Tensor
    before: Tensor
    slack: float

    @classmethod
    def over(
        cls,
        problem: SearchProblem,
        pairs: Tensor,
        grids: Sequence[Tensor],
        slack: float,
        outer: int = 0,
    ) -> list[CandidateScan]:
        """One scan per grid, (s, c), of numeric singletons given as pairs, (n, s) bool.

        Range ends replace the outermost of the first `outer` values, see `grid_candidates`.
        """
        rows, sets, values = grid_candidates(problem, pairs, torch.cat(list(grids), 1), outer)
        x = _factual_values(problem, rows, sets)
        parts = values[..., 0].split([grid.shape[1] for grid in grids], 1)
        return [cls(rows, sets, x, part, _before(part, x), slack) for part in parts]

    @classmethod
    def near(cls, problem: SearchProblem, pairs: Tensor, slack: float) -> CandidateScan:
        """A scan of values near the factual, of numeric singletons given as pairs, (n, s)."""
        rows, sets, values = near_factual(problem, pairs)
        x = _factual_values(problem, rows, sets)
        return cls(rows, sets, x, values[..., 0], _before(values[..., 0], x), slack)

    def halves(self) -> tuple[CandidateScan, CandidateScan]:
        """The half of the values that is nearest to x, and the other half."""
        c = self.values.shape[1]
        half = c - c // 2
        # The window moves up while the value it drops is farther away than the one it gains.
        shift = self.values[:, : c - half] + self.values[:, half:] < 2.0 * self.x
        rotated = (torch.arange(c - half + 1)[:, None] + torch.arange(c)) % c
        near, far = rotated.index_select(0, shift.sum(1)).split([half, c - half], 1)
        return self.gather(near), self.gather(far)

    def restrict(self, pairs: Tensor) -> CandidateScan:
        """The scan of those of its pairs that are in pairs, (n, s) bool."""
        at = pairs[self.rows, self.sets].nonzero()[:, 0]
        rows, sets, x = self.rows[at], self.sets[at], self.x[at]
        return CandidateScan(rows, sets, x, self.values[at], self.before[at], self.slack)

    def gather(self, columns: Tensor) -> CandidateScan:
        """The scan of the values in columns, (m, h), of each pair."""
        values, before = self.values.gather(1, columns), self.before.gather(1, columns)
        return replace(self, values=values, before=before)

    def packed(self, mask: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """The values in a mask, (m, c) bool, in packs of `width` values of one pair.

        The last value of a pair fills its last pack.

        Returns:
            Rows and sets, (q,) each, and values, (q, width).
        """
        # Numpy, which finds few of many ten times as fast.
        flat, count = np.flatnonzero(mask.numpy()), mask.shape[1]
        owner = flat // count
        sizes = np.bincount(owner, minlength=len(mask))
        packs = -(-sizes // width)
        shift = (packs.cumsum() - packs) * width - (sizes.cumsum() - sizes)
        places = np.zeros(packs.sum() * width, dtype=np.int64)
        places[np.arange(len(flat)) + shift[owner]] = flat
        places = np.maximum.accumulate(places.reshape(-1, width), axis=1)
        at = torch.from_numpy(places[:, 0] // count)
        return self.rows[at], self.sets[at], self.values.reshape(-1)[torch.from_numpy(places)]

    def update(
        self, problem: SearchProblem, incumbents: Incumbents, mask: Tensor | None = None
    ) -> None:
        """Evaluate all values and update the incumbents.

        Args:
            problem: the search problem.
            incumbents: the best success of each pair so far.
            mask: (m, c) bool, the values that count; None for all.
        """
        if not self.values.numel():
            return
        values = self.values[..., None]
        evaluation = problem.evaluate(self.rows, self.sets, values, self.slack)
        if mask is not None:
            evaluation = evaluation.masked(mask)
        incumbents.update(self.rows, self.sets, values, evaluation)

    def search(self, problem: SearchProblem, incumbents: Incumbents) -> None:
        """Evaluate the values that may be a row's cheapest success and update the incumbents."""
        mask = self.can_improve(incumbents.cost_bound[self.rows, None])
        if not bool(mask.any()):
            return
        # A black box evaluates no value outside the mask.
        is_module = problem.classifier.is_module
        share, width = (DENSE_SHARE, PACK_WIDTH) if is_module else (1.0, 1)
        if mask.sum() >= share * mask.numel():
            self.update(problem, incumbents, mask)
            return
        rows, sets, packs = self.packed(mask, width)
        values = packs[..., None]
        evaluation = problem.evaluate(rows, sets, values, self.slack)
        incumbents.update(rows, sets, values, evaluation)

    def can_improve(self, bound: Tensor | float) -> Tensor:
        """(m, c) bool, the values that may lead to a cost below a bound, (m, 1).

        The direct cost is a lower bound of the cost. Hence neither a value nor what lies between
        it and the one before is cheaper than the bound, if the one before is not. Repeated values
        and the factual are left out as well.
        """
        # The same float operations as in `_before`, so that repeated values compare equal.
        return self.before < (self.values - self.x).abs_().clamp_max_(bound)


def _factual_values(problem: SearchProblem, rows: Tensor, sets: Tensor) -> Tensor:
    """(m, 1) the factual values of the pairs' features, with a number for special levels."""
    x = problem.x[rows, problem.sets.positions[sets, 0], None]
    return torch.where(is_special(x), MIDDLE, x)


def _before(values: Tensor, x: Tensor) -> Tensor:
    """(m, c) the distance from x, (m, 1), to the value before each of (m, c), towards x."""
    before = torch.zeros_like(values)
    torch.sub(values[:, :-1], x, out=before[:, 1:])
    before[:, :-1] = torch.maximum(before[:, :-1], x - values[:, 1:])
    return before.clamp_min_(0.0)
