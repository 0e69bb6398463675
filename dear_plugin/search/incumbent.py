"""Found: the best that was found so far, and what was said of those for whom nothing was."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.problem import Evaluation, SearchProblem

# Of a margin, whatever its unit: more than a float32 loses on its way through a model.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Incumbents:
    """The cheapest success of every row and set, and each row's nearest miss.

    Attributes:
        values: (n, s, w) the new values of the sets' features.
        cost: (n, s) the cost; infinite where no success was found.
        tried_values: (n, w) the action with the largest margin, for rows without a success.
        tried_set: (n,) its set, -1 where nothing was admissible.
        tried_margin: (n,) its margin.
        limit: (n,) the cost from which on nothing is looked for.
    """

    values: Tensor
    cost: Tensor
    tried_values: Tensor
    tried_set: Tensor
    tried_margin: Tensor
    limit: Tensor

    @classmethod
    def none(cls, problem: SearchProblem, limit: Tensor | None = None) -> Incumbents:
        """Nothing found yet; what costs more than a limit, (n,), is not looked for."""
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
        """What was found for some rows, (q,)."""
        return Incumbents(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def known(self) -> Tensor:
        """(n,) the cost below which it is worth to look any further."""
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
        """The actions that succeed: rows (m,), sets (m,), values (m, 1, w)."""
        rows, sets = self.solved_pairs.nonzero(as_tuple=True)
        return rows, sets, self.values[rows, sets][:, None]

    def update(self, rows: Tensor, sets: Tensor, values: Tensor, evaluation: Evaluation) -> None:
        """Keep what is better than the incumbents; of equals, the first.

        Args:
            rows: (m,) which rows act; the actions of one pair (row, set) stand together.
            sets: (m,) on which set.
            values: (m, c, w) the new values.
            evaluation: (m, c) what came of them.
        """
        price = evaluation.cost.masked_fill(~evaluation.valid, torch.inf)
        least, pairs, cost = price.amin(1), rows * self.cost.shape[1] + sets, self.cost.view(-1)
        before = cost.index_select(0, pairs)
        cost.scatter_reduce_(0, pairs, least, "amin")
        won = ((least < before) & (least == cost.index_select(0, pairs))).numpy().nonzero()[0]
        if len(won):
            # Of a pair that stands there several times several may win.
            pair = pairs.numpy()[won]
            lead = np.ones(len(pair), dtype=bool)
            np.not_equal(pair[1:], pair[:-1], out=lead[1:])
            first, into = torch.from_numpy(won[lead]), torch.from_numpy(pair[lead])
            best = values[first, price[first].argmin(1)]
            self.values.flatten(0, 1).index_copy_(0, into, best.expand(-1, self.values.shape[2]))
        # The nearest miss matters to rows without any success only.
        at = (~self.solved).index_select(0, rows).nonzero()[:, 0]
        if len(at):
            self._update_misses(rows[at], sets[at], values[at], evaluation.margin[at])

    def _update_misses(self, rows: Tensor, sets: Tensor, values: Tensor, margin: Tensor) -> None:
        # Margins that differ by rounding alone are equal, and the first wins: models round
        # differently in batches of another size, and a row's answer must not depend on the batch.
        most = margin.amax(1)
        top = self.tried_margin.scatter_reduce(0, rows, most, "amax")
        tolerance = TOLERANCE * top.abs()
        least, farther = top - tolerance, top > self.tried_margin + tolerance
        ahead = farther[rows] & (most >= least[rows])
        leads = ahead.nonzero()[:, 0]
        first = torch.full((len(top),), len(rows)).scatter_reduce(0, rows[leads], leads, "amin")
        chosen = first[first < len(rows)]
        missed = rows[chosen]
        at = (margin[chosen] >= least[missed, None]).int().argmax(1)
        self.tried_margin[missed] = top[missed]
        self.tried_set[missed] = sets[chosen]
        self.tried_values[missed] = values[chosen, at]
