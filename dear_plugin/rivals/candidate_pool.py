"""The best successful candidate of each row among many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.vetting import Vetting

T = TypeVar("T")


@dataclass(frozen=True)
class CandidatePool:
    """m rows and the best candidate of each so far.

    The baselines treat features as independent, so that every change is direct. A feature that is
    not actionable keeps its value, and a changed one ends inside its range.

    Attributes:
        case: the rows, their targets and feasible sets.
        classifier: the model.
        fixed: (m, p) bool, the features that cannot change.
        best: (m, p) the success with the smallest loss, or else the row with the largest margin.
        loss: (m,) its cost, or the objective of the method; infinite without a success.
        margin: (m,) its margin.
    """

    case: Case
    classifier: Classifier
    fixed: Tensor
    best: Tensor
    loss: Tensor
    margin: Tensor

    @classmethod
    def of(cls, case: Case, classifier: Classifier) -> CandidatePool:
        """An empty pool."""
        feasible, infinite = case.feasible.limits, torch.full((len(case),), torch.inf)
        fixed = feasible.not_actionable | (feasible.low > feasible.high)
        fixed |= feasible.encoder.special(case.x)
        return cls(case, classifier, fixed, case.x.clone(), infinite, -infinite)

    def select(self, idx: Tensor) -> CandidatePool:
        """An empty pool for the rows at some positions, (q,)."""
        return CandidatePool.of(self.case.select(idx), self.classifier)

    def parts(
        self, size: int, idx: Tensor | None = None
    ) -> Iterator[tuple[Tensor, CandidatePool]]:
        """Positions, (q,), or all of them, at most `size` at a time, each with an empty pool."""
        for some in (torch.arange(len(self.case)) if idx is None else idx).split(max(1, size)):
            yield some, self.select(some)

    @property
    def solved(self) -> Tensor:
        """(m,) bool, the rows with a success."""
        return self.loss.isfinite()

    @lazy
    def bounds(self) -> tuple[Tensor, Tensor]:
        """(m, d) the smallest and the largest value of every encoded column, with the factual."""
        feasible, encoder = self.case.feasible.limits, self.classifier.encoder
        feature, x = encoder.feature_of, encoder.expand(self.case.x)
        numeric, fixed = ~encoder.blocks[feature], self.fixed[:, feature] | encoder.is_level
        most = torch.ones_like(x) if feasible.allowed is None else feasible.allowed.to(x.dtype)
        floor, ceiling = (encoder.scaled(e).float() for e in (feasible.floor, feasible.ceiling))
        low = torch.where(numeric, floor[:, feature], 0.0)
        high = torch.where(numeric, ceiling[:, feature], torch.maximum(most, x))
        return torch.where(fixed, x, low), torch.where(fixed, x, high)

    def project(self, moved: Tensor, owner: Tensor | None = None) -> Tensor:
        """The nearest feasible rows, (m, c, p).

        Numbers end inside their ranges, on the grid. A feature that moves by no more than half a
        step stays, bit for bit.

        Args:
            moved: (m, c, p) the rows that a method proposes.
            owner: (m,) the position in the case of each row; None for all of them, in order.
        """
        idx = slice(None) if owner is None else owner
        feasible, x = self.case.feasible.limits, self.case.x[idx][:, None]
        whole = feasible.snap_rows(moved, idx)
        stays = feasible.stays(x, moved) | feasible.stays(x, whole) | self.fixed[idx][:, None]
        stays |= feasible.encoder.special(moved)
        return torch.where(stays | ~feasible.allows(whole, idx), x, whole)

    def feasible_mask(self, rows: Tensor) -> Tensor:
        """(m, r) bool: which of r rows, (r, p), are feasible for which of the m.

        Identifiers are ignored, since answers keep those of the factual.
        """
        feasible, x = self.case.feasible.limits, self.case.x
        m, everything = len(x), torch.arange(len(x))
        mask = torch.ones(m, len(rows), dtype=torch.bool)
        for j in self.classifier.encoder.shares.nonzero()[:, 0].tolist():
            values = rows[:, j]
            feature = torch.full((m,), j)
            admitted = feasible.admits(values.expand(m, -1), feature, everything)
            unchanged = (values - x[:, j, None]).abs() <= feasible.grid.step[j] / 2.0
            mask &= unchanged | (admitted & ~self.fixed[:, j, None])
        return mask

    def update(
        self,
        candidates: Tensor,
        owner: Tensor | None = None,
        *,
        scores: Tensor | None = None,
        loss: Tensor | None = None,
        descent: bool = False,
    ) -> Tensor:
        """Evaluate feasible candidates, (m, c, p), and keep those better than the best so far.

        A success must meet the requirement of the case.

        Args:
            candidates: (m, c, p).
            owner: (m,) the position in the case of each row; None for all of them, in order.
            scores: (m c, classes) the model's scores of the candidates, where known.
            loss: (m, c) the objective among successes; None for the cost.
            descent: whether candidates lie along a descent; fewer are then evaluated.

        Returns:
            (m,) bool, the rows with a success among these candidates.
        """
        m, c, _ = candidates.shape
        owner = torch.arange(m) if owner is None else owner
        flat, idx = candidates.flatten(0, 1), owner.repeat_interleave(c)
        scores = self.classifier.scores(flat) if scores is None else scores
        margin = self.case.goal.margin(scores, idx)
        valid = margin >= self.case.aim[idx]
        satisfied = self.case.feasible.keeps_rules(flat, idx)
        margin = margin.float().masked_fill(~satisfied, -torch.inf).view(m, c)
        valid = (valid & satisfied).view(m, c)
        if loss is None:
            loss = self.classifier.encoder.distance(candidates, self.case.x[owner][:, None]).sum(2)
        loss = torch.where(valid, loss, torch.inf).float()
        if self.case.requirement is not None:
            # Only candidates that would improve on the best are evaluated.
            loss = torch.where(loss < self.loss[owner][:, None], loss, torch.inf)
            vetting = Vetting.of(self.case.requirement, candidates, owner, loss)
            chosen = torch.arange(c) == vetting.best(some=descent)[:, None]
            loss = torch.where(chosen, loss, torch.inf)
        self._keep_best(candidates, owner, loss, margin)
        return valid.any(1) & self.solved[owner]

    def attempts(self, values: Iterable[T]) -> Iterator[tuple[T, Tensor, CandidatePool]]:
        """Each value with the rows still without a success, their positions (q,) and a pool.

        The successes of such a pool are kept for the next value.
        """
        for value in values:
            unsolved = (~self.solved).nonzero()[:, 0]
            if not len(unsolved):
                return
            part = self.select(unsolved)
            yield value, unsolved, part
            self._keep_best(part.best[:, None], unsolved, part.loss[:, None], part.margin[:, None])

    def restarts(self, count: int) -> Iterator[tuple[float, CandidatePool]]:
        """`count` shares from 0 to 1, each with a pool, see `attempts`."""
        for share, _, part in self.attempts(torch.linspace(0.0, 1.0, count).tolist()):
            yield share, part

    def proposal(self, reason: str) -> Proposal:
        """The best candidates; rows without a success have the reason."""
        direct = self.best != self.case.x
        reasons = ["" if solved else reason for solved in self.solved.tolist()]
        return Proposal(self.best, direct, torch.zeros(len(self.case)), reasons)

    def _keep_best(self, candidates: Tensor, owner: Tensor, loss: Tensor, margin: Tensor) -> None:
        """Keep the smallest loss among successes, or else the largest margin; ties by position."""
        least, cheapest = loss.min(1)
        most, nearest = margin.max(1)
        nearer = least.isinf() & self.loss[owner].isinf() & (most > self.margin[owner])
        better = (least < self.loss[owner]) | nearer
        best = torch.where(least.isfinite(), cheapest, nearest)
        chosen = better.nonzero()[:, 0]
        self.best[owner[chosen]] = candidates[chosen, best[chosen]]
        self.loss[owner[chosen]] = least[chosen]
        self.margin[owner[chosen]] = margin[chosen, best[chosen]]
