"""Scan: the values of a grid, asked about by many rows and sets until nothing cheaper is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.search.candidates import near, numbers
from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.problem import SearchProblem

# Where a special level is taken to lie: no value is farther away than a change of level costs.
INSIDE = 0.5
# Values of a pair that a module is asked about side by side: what they share is looked up once.
TOGETHER = 4
# The share of values from which on a module is sooner asked about all of them.
MOST = 0.9


@dataclass(frozen=True)
class CandidateScan:
    """Values that m pairs (row, set) of one number each may ask about.

    Attributes:
        rows: (m,) who acts.
        sets: (m,) on which set.
        x: (m, 1) the factual values.
        values: (m, c) values that an action may take, those of a grid ascending.
        before: (m, c) how far the value before each lies from x, on the way to it.
        slack: how far past the boundary to aim.
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
        asked: Tensor,
        grids: Sequence[Tensor],
        slack: float,
        outer: int = 0,
    ) -> list[CandidateScan]:
        """Of the numeric singletons asked for, (n, s) bool, the values of each grid, (s, c).

        Of the first `outer` values the outermost may give way, see `numbers`.
        """
        rows, sets, values = numbers(problem, asked, torch.cat(list(grids), 1), outer)
        x = problem.x[rows, problem.sets.positions[sets, 0], None]
        x = torch.where(is_special(x), INSIDE, x)
        parts = values[..., 0].split([grid.shape[1] for grid in grids], 1)
        return [cls(rows, sets, x, part, _before(part, x), slack) for part in parts]

    @classmethod
    def near(cls, problem: SearchProblem, asked: Tensor, slack: float) -> CandidateScan:
        """Of the numeric singletons asked for, (n, s), values near the factual; see `near`."""
        rows, sets, values = near(problem, asked)
        x = problem.x[rows, problem.sets.positions[sets, 0], None]
        x = torch.where(is_special(x), INSIDE, x)
        return cls(rows, sets, x, values[..., 0], _before(values[..., 0], x), slack)

    def halves(self) -> tuple[CandidateScan, CandidateScan]:
        """The half of the values that lies nearest to x, and the other one."""
        c = self.values.shape[1]
        half = c - c // 2
        # A window slides on for as long as what it loses is farther away than what it gains.
        gone = self.values[:, : c - half] + self.values[:, half:] < 2.0 * self.x
        turned = (torch.arange(c - half + 1)[:, None] + torch.arange(c)) % c
        near, far = turned.index_select(0, gone.sum(1)).split([half, c - half], 1)
        return self.at(near), self.at(far)

    def among(self, asked: Tensor) -> CandidateScan:
        """The same for those of its pairs that are asked for, (n, s) bool."""
        return self.part(asked[self.rows, self.sets].nonzero()[:, 0])

    def part(self, at: Tensor) -> CandidateScan:
        """The same for some of its pairs, (q,)."""
        rows, sets, x = self.rows[at], self.sets[at], self.x[at]
        return CandidateScan(rows, sets, x, self.values[at], self.before[at], self.slack)

    def at(self, places: Tensor) -> CandidateScan:
        """The values at places, (m, h), of each pair."""
        values, before = self.values.gather(1, places), self.before.gather(1, places)
        return replace(self, values=values, before=before)

    def packed(self, wanted: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Values wanted, (m, c) bool, so many of a pair side by side: its last one fills up.

        Returns:
            Rows and sets, (q,) each, and values, (q, width).
        """
        # Numpy finds some of many ten times as fast.
        flat, count = np.flatnonzero(wanted.numpy()), wanted.shape[1]
        owner = flat // count
        sizes = np.bincount(owner, minlength=len(wanted))
        packs = -(-sizes // width)
        room = (packs.cumsum() - packs) * width - (sizes.cumsum() - sizes)
        places = np.zeros(packs.sum() * width, dtype=np.int64)
        places[np.arange(len(flat)) + room[owner]] = flat
        places = np.maximum.accumulate(places.reshape(-1, width), axis=1)
        at = torch.from_numpy(places[:, 0] // count)
        return self.rows[at], self.sets[at], self.values.reshape(-1)[torch.from_numpy(places)]

    def update(
        self, problem: SearchProblem, incumbents: Incumbents, wanted: Tensor | None = None
    ) -> None:
        """Evaluate all values, and keep those that improve on the incumbents.

        Args:
            problem: what is asked.
            incumbents: the best of each pair so far.
            wanted: (m, c) bool, the values that count; None for all.
        """
        if not self.values.numel():
            return
        values = self.values[..., None]
        evaluation = problem.evaluate(self.rows, self.sets, values, self.slack)
        if wanted is not None:
            evaluation = evaluation.only(wanted)
        incumbents.update(self.rows, self.sets, values, evaluation)

    def search(self, problem: SearchProblem, incumbents: Incumbents) -> None:
        """Evaluate the values that may become a row's cheapest, and keep improvements."""
        wanted = self.cheaper(incumbents.known[self.rows, None])
        if not bool(wanted.any()):
            return
        # A black box is asked about nothing that is not wanted.
        most, width = (MOST, TOGETHER) if problem.classifier.is_module else (1.0, 1)
        if wanted.sum() >= most * wanted.numel():
            self.update(problem, incumbents, wanted)
            return
        rows, sets, packs = self.packed(wanted, width)
        values = packs[..., None]
        evaluation = problem.evaluate(rows, sets, values, self.slack)
        incumbents.update(rows, sets, values, evaluation)

    def cheaper(self, known: Tensor | float) -> Tensor:
        """(m, c) bool, the values that may cost less than is known, (m, 1).

        A value is passed over where even the one before it, on the way from the factual, costs
        more than is known: direct cost alone bounds the whole from below, so nothing cheaper is
        missed there or in between. So is one that comes again, and the factual's own.
        """
        # To the bit as in `_before`, or what comes again would not be known by it.
        return self.before < (self.values - self.x).abs_().clamp_max_(known)


def _before(values: Tensor, x: Tensor) -> Tensor:
    """(m, c) how far the value before each of (m, c) lies from x, (m, 1), on the way to it."""
    before = torch.zeros_like(values)
    torch.sub(values[:, :-1], x, out=before[:, 1:])
    before[:, :-1] = torch.maximum(before[:, :-1], x - values[:, 1:])
    return before.clamp_min_(0.0)
