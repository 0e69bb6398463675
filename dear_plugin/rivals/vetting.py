"""The best candidate of each row that meets a requirement."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.search.criteria import RowCriteria

# Candidates of a row that are examined where not all of them are.
SOME = 64


@dataclass
class Vetting:
    """The candidates of m rows, by loss, and a requirement.

    Attributes:
        requirement: of the rows of a case.
        owner: (m,) the position in the case of each row.
        ranked: (m, c, p) the candidates, those that count first, by loss.
        order: (m, c) their positions.
        count: (m,) how many count.
    """

    requirement: RowCriteria
    owner: Tensor
    ranked: Tensor
    order: Tensor
    count: Tensor

    @classmethod
    def of(
        cls, requirement: RowCriteria, candidates: Tensor, owner: Tensor, loss: Tensor
    ) -> Vetting:
        """Rank candidates, (m, c, p), by loss, (m, c), infinite for those that do not count.

        Of equal candidates of equal loss the first counts.
        """
        least, order = loss.sort(dim=1, stable=True)
        ranked = candidates.take_along_dim(order[..., None], 1)
        counts = least.isfinite()
        counts[:, 1:] &= (ranked[:, 1:] != ranked[:, :-1]).any(2) | (least[:, 1:] != least[:, :-1])
        first = counts.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        ranked = ranked.take_along_dim(first[..., None], 1)
        return cls(requirement, owner, ranked, order.gather(1, first), counts.sum(1))

    def best(self, *, some: bool) -> Tensor:
        """(m,) the position of the first candidate that meets the requirement, -1 without one.

        Args:
            some: examine some candidates of each row, and bisect between the last that does not
                meet the requirement and the first that does; for candidates along a descent, where
                those of larger loss are likelier to meet it.
        """
        every = torch.arange(self.order.shape[1]).expand(self.order.shape)
        low, high = self._scan(_spaced(self.count) if some else every)
        while len(rows := (high - low > 1).nonzero()[:, 0]):
            middle = (low[rows] + high[rows]) // 2
            met = self._met(rows, middle[:, None])[:, 0]
            high[rows[met]], low[rows[~met]] = middle[met], middle[~met]
        best = self.order.gather(1, high.clamp_min(0)[:, None])[:, 0]
        return torch.where(high >= 0, best, -1)

    def _scan(self, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """(m,) the rank before the first one of (m, e) that meets it, (m,) that one; -1: none.

        Ranks are examined in rounds that double in size.
        """
        low, high = torch.full((2, len(ranks)), -1)
        unmet, start, stop = self.count > 0, 0, 1
        while start < ranks.shape[1] and len(rows := unmet.nonzero()[:, 0]):
            now = ranks[rows, start:stop].clamp_max(self.count[rows, None] - 1)
            met = self._met(rows, now)
            found, first = met.any(1), met.to(torch.uint8).argmax(1, keepdim=True)
            before = torch.cat([low[rows, None], now], 1).gather(1, first)[:, 0]
            high[rows[found]] = now.gather(1, first)[found, 0]
            low[rows] = torch.where(found, before, now[:, -1])
            unmet[rows[found]] = False
            unmet &= low < self.count - 1
            start, stop = stop, 2 * stop
        return torch.where(high >= 0, low, -1), high

    def _met(self, rows: Tensor, ranks: Tensor) -> Tensor:
        """(q, h) bool, whether the candidates of rows, (q,), at ranks, (q, h), meet it."""
        reached = self.ranked[rows[:, None], ranks].flatten(0, 1)
        owner = self.owner[rows].repeat_interleave(ranks.shape[1])
        return self.requirement.met(reached, owner).view(ranks.shape)


def _spaced(count: Tensor) -> Tensor:
    """(m, e) the ranks to examine of so many candidates, (m,): all of the first, then spaced."""
    ranks = torch.arange(SOME)
    spaced = count[:, None].double() ** ((ranks + 1.0) / SOME) - 1.0
    return torch.maximum(ranks, spaced.round().long())
