"""Trial: what people may become when every feature is acted on by itself, and the best of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.results.proposal import Proposal

# A float32 end of a range is a hair off what the user wrote.
TOLERANCE = 1e-7


@dataclass(frozen=True)
class CandidatePool:
    """m people who try rows, and the best success of each.

    The rivals of DEAR treat features as independent: whatever changes was acted on, so a barred
    feature stays, and a changed one ends inside its range.

    Attributes:
        case: who asks for what.
        classifier: the model.
        fixed: (m, p) bool, the features that cannot change.
        rows: (m, p) the best success of each; else the row with the largest margin.
        loss: (m,) what it costs, or what the method minimises; infinite without a success.
        margin: (m,) its margin.
    """

    case: Case
    classifier: Classifier
    fixed: Tensor
    rows: Tensor
    loss: Tensor
    margin: Tensor

    @classmethod
    def of(cls, case: Case, classifier: Classifier) -> CandidatePool:
        """Nothing tried yet."""
        feasible, m = case.feasible, len(case)
        nothing, refused = torch.full((m,), torch.inf), torch.full((m,), -torch.inf)
        fixed = feasible.not_actionable | (feasible.low > feasible.high)
        if feasible.levels is not None:
            fixed = fixed | feasible.levels.mask(case.x)
        return cls(case, classifier, fixed, case.x.clone(), nothing, refused)

    @property
    def solved(self) -> Tensor:
        """(m,) bool: who has a success."""
        return self.loss.isfinite()

    @lazy
    def ends(self) -> tuple[Tensor, Tensor]:
        """(m, d) the least and greatest value of every encoded column, x among them."""
        feasible, encoder = self.case.feasible, self.classifier.encoder
        of, here = encoder.feature_of, encoder.expand(self.case.x)
        number, fixed = ~encoder.blocks[of], self.fixed[:, of] | encoder.is_level
        most = (
            torch.ones_like(here) if feasible.allowed is None else feasible.allowed.to(here.dtype)
        )
        low = torch.where(number, feasible.floor[:, of], 0.0)
        high = torch.where(number, feasible.ceiling[:, of], torch.maximum(most, here))
        return torch.where(fixed, here, low), torch.where(fixed, here, high)

    def project(self, moved: Tensor, who: Tensor | None = None) -> Tensor:
        """The admissible rows nearest to where a method would go, (m, c, p).

        Numbers end inside their ranges, in whole steps; what moves by less than half a step stays
        as it is, bit for bit.

        Args:
            moved: (m, c, p).
            who: (m,) which person each belongs to; None when all are there, in order.
        """
        at = slice(None) if who is None else who
        feasible, x = self.case.feasible, self.case.x[at][:, None]
        low, high = feasible.low[at][:, None], feasible.high[at][:, None]
        inside = torch.minimum(torch.maximum(moved, low), high).double()
        steps, origins = feasible.steps.double(), feasible.offsets
        whole = (((inside + origins) / steps).round() * steps - origins).float()
        whole = torch.minimum(torch.maximum(whole, low), high)
        half = feasible.steps / 2.0
        still = ((moved - x).abs() < half) | ((whole - x).abs() < half) | self.fixed[at][:, None]
        if feasible.levels is not None:
            still |= feasible.levels.mask(moved)
        if feasible.allowed is not None:
            column = feasible.starts + torch.where(feasible.blocks, whole, 0.0).long()
            fine = feasible.allowed[at].gather(1, column.flatten(1)).view(whole.shape)
            still |= ~fine
        return torch.where(still, x, whole)

    def feasible_mask(self, rows: Tensor) -> Tensor:
        """Who may become which of some rows, (r, p) -> (m, r) bool."""
        feasible, x = self.case.feasible, self.case.x
        fine = torch.ones(len(x), len(rows), dtype=torch.bool)
        for j in range(rows.shape[1]):
            low, high = feasible.low[:, j] - TOLERANCE, feasible.high[:, j] + TOLERANCE
            values = rows[:, j]
            inside = (values >= low[:, None]) & (values <= high[:, None]) & ~self.fixed[:, j, None]
            if feasible.allowed is not None and bool(feasible.blocks[j]):
                inside &= feasible.allowed[:, feasible.starts[j] + values.long()]
            fine &= inside | ((values - x[:, j, None]).abs() < feasible.steps[j] / 2.0)
        return fine

    def update(
        self,
        rows: Tensor,
        who: Tensor | None = None,
        *,
        scores: Tensor | None = None,
        loss: Tensor | None = None,
    ) -> Tensor:
        """Try admissible rows, (m, c, p): keep what is better than what was known.

        Args:
            rows: (m, c, p).
            who: (m,) which person each belongs to; None when all are there, in order.
            scores: (m c, classes) what the model says of them, where that is known.
            loss: (m, c) what to minimise among successes; None is the cost.

        Returns:
            (m,) bool, who had a success among these.
        """
        m, c, _ = rows.shape
        at = torch.arange(m) if who is None else who
        whose = at.repeat_interleave(c)
        told = self.classifier.scores(rows.flatten(0, 1)) if scores is None else scores
        margin = self.case.goal.margin(told, whose).view(m, c).float()
        good = self.case.goal.accepts(told, whose, self.case.slack)
        if self.case.feasible.rules is not None:
            lawful = self.case.feasible.satisfies_rules(rows.flatten(0, 1), whose)
            good, margin = good & lawful, margin.masked_fill(~lawful.view(m, c), -torch.inf)
        good = good.view(m, c)
        if loss is None:
            loss = self.classifier.encoder.distance(rows, self.case.x[at][:, None]).sum(2)
        self._keep(rows, at, torch.where(good, loss, torch.inf), margin)
        return good.any(1)

    def attempts(self, count: int) -> Iterator[tuple[float, CandidatePool]]:
        """Shares from 0 to 1, each with a trial of those who have no success by then.

        What they find by the next turn is kept.
        """
        for share in torch.linspace(0.0, 1.0, count).tolist():
            stuck = (~self.solved).nonzero()[:, 0]
            if not len(stuck):
                return
            part = CandidatePool.of(self.case.select(stuck), self.classifier)
            yield share, part
            self.update(part.rows[:, None], stuck, loss=part.loss[:, None])

    def proposal(self, reason: str) -> Proposal:
        """What was found; failures are the nearest misses, for one reason."""
        direct = self.rows != self.case.x
        reasons = ["" if done else reason for done in self.solved.tolist()]
        return Proposal(self.rows, direct, torch.zeros(len(self.case)), reasons)

    def _keep(self, rows: Tensor, at: Tensor, loss: Tensor, margin: Tensor) -> None:
        """Lower loss wins among successes, larger margin among misses; the first of equals."""
        least, lowest = loss.min(1)
        most, nearest = margin.max(1)
        missed = least.isinf() & self.loss[at].isinf() & (most > self.margin[at])
        better = (least < self.loss[at]) | missed
        best = torch.where(least.isfinite(), lowest, nearest)
        chosen = better.nonzero()[:, 0]
        self.rows[at[chosen]] = rows[chosen, best[chosen]]
        self.loss[at[chosen]] = least[chosen]
        self.margin[at[chosen]] = margin[chosen, best[chosen]]
