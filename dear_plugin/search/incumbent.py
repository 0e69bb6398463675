"""Incumbents: the best success of each row and set, and the nearest miss of each row."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.evaluation import Evaluation
from dear_plugin.search.problem import SearchProblem

# Relative rounding error of a margin, larger than that of a float32 model.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Incumbents:
    """The cheapest success of every row and set, and each row's nearest miss.

    Attributes:
        values: (n, s, w) the new values of the sets' features.
        cost: (n, s) the cost; infinite without a success.
        tried_values: (n, w) the action with the largest margin, for rows without a success.
        tried_set: (n,) its set, -1 where nothing was admissible.
        tried_margin: (n,) its margin.
        limit: (n,) successes that cost more than this are not searched for.
    """

    values: Tensor
    cost: Tensor
    tried_values: Tensor
    tried_set: Tensor
    tried_margin: Tensor
    limit: Tensor

    @classmethod
    def none(cls, problem: SearchProblem, limit: Tensor | None = None) -> Incumbents:
        """No incumbents; `limit`, (n,), is infinite where it is None."""
        n, (s, w) = len(problem), problem.sets.positions.shape
        return cls(
            torch.zeros(n, s, w),
            torch.full((n, s), torch.inf),
            torch.zeros(n, w),
            torch.full((n,), -1),
            torch.full((n,), -torch.inf),
            torch.full((n,), torch.inf) if limit is None else limit,
        )

    def select(self, rows: Tensor) -> Incumbents:
        """The incumbents of the rows at positions (q,)."""
        return Incumbents(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def cost_bound(self) -> Tensor:
        """(n,) the cost below which a success is an improvement."""
        return torch.minimum(self.cost.amin(1), self.limit)

    @property
    def solved_pairs(self) -> Tensor:
        """(n, s) bool: rows and sets with a success."""
        return self.cost < torch.inf

    @property
    def solved(self) -> Tensor:
        """(n,) bool: rows with a success."""
        return self.cost.amin(1) < torch.inf

    @property
    def successes(self) -> tuple[Tensor, Tensor, Tensor]:
        """The successful actions: rows (m,), sets (m,), values (m, 1, w)."""
        rows, sets = self.solved_pairs.nonzero(as_tuple=True)
        return rows, sets, self.values[rows, sets][:, None]

    def update(self, rows: Tensor, sets: Tensor, values: Tensor, evaluation: Evaluation) -> None:
        """Keep actions that improve on the incumbents; of equal ones, the first.

        Args:
            rows: (m,) the row; the actions of one pair (row, set) are consecutive.
            sets: (m,) the set acted on.
            values: (m, c, w) the new values.
            evaluation: (m, c) their evaluation.
        """
        valid_cost = evaluation.cost.masked_fill(~evaluation.valid, torch.inf)
        least, pairs = valid_cost.amin(1), rows * self.cost.shape[1] + sets
        cost = self.cost.view(-1)
        before = cost.index_select(0, pairs)
        cost.scatter_reduce_(0, pairs, least, "amin")
        won = ((least < before) & (least == cost.index_select(0, pairs))).numpy().nonzero()[0]
        if len(won):
            # A pair may occur several times, with equal costs; the first one counts.
            pair = pairs.numpy()[won]
            is_first = np.ones(len(pair), dtype=bool)
            np.not_equal(pair[1:], pair[:-1], out=is_first[1:])
            first, into = torch.from_numpy(won[is_first]), torch.from_numpy(pair[is_first])
            best = values[first, valid_cost[first].argmin(1)]
            self.values.flatten(0, 1).index_copy_(0, into, best.expand(-1, self.values.shape[2]))
        # Only rows without any success need their nearest miss.
        at = (~self.solved).index_select(0, rows).nonzero()[:, 0]
        if len(at):
            self._update_misses(rows[at], sets[at], values[at], evaluation.margin[at])

    def _update_misses(self, rows: Tensor, sets: Tensor, values: Tensor, margin: Tensor) -> None:
        # Of margins that differ by rounding only, the first counts: models round differently in
        # batches of another size, and a row's answer must not depend on the batch.
        most = margin.amax(1)
        top = self.tried_margin.scatter_reduce(0, rows, most, "amax")
        tolerance = TOLERANCE * top.abs()
        least, improved = top - tolerance, top > self.tried_margin + tolerance
        leads = (improved[rows] & (most >= least[rows])).nonzero()[:, 0]
        first = torch.full((len(top),), len(rows)).scatter_reduce(0, rows[leads], leads, "amin")
        chosen = first[first < len(rows)]
        at_rows = rows[chosen]
        at = (margin[chosen] >= least[at_rows, None]).int().argmax(1)
        self.tried_margin[at_rows] = top[at_rows]
        self.tried_set[at_rows] = sets[chosen]
        self.tried_values[at_rows] = values[chosen, at]
