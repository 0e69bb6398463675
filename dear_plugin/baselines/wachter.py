"""Wachter: the nearest row that the model accepts, every feature moving by itself.

Wachter, Mittelstadt and Russell, "Counterfactual Explanations without Opening the Black Box",
Harvard JOLT 31(2), 2018: descent on `(f(x') - y')^2 + lambda d(x, x')` with lambda searched for.
With a score for f and l1 for d it is SCFE of Pawelczyk et al., "Exploring Counterfactual
Explanations Through the Lens of Adversarial Examples", AISTATS 2022, which the DEAR paper compares
itself with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dear_plugin.baselines.base import Baseline, need_gradient
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.baselines.gradients import rounded, slopes
from dear_plugin.baselines.weights import Weights
from dear_plugin.data.encoder import Encoder
from dear_plugin.methods.base import Case
from dear_plugin.problem.target import Goal, RangeGoal
from dear_plugin.results.proposal import Proposal

# The square of a slope below which a step is no longer.
LEAST_SLOPE = 1e-6


@dataclass(frozen=True)
class WachterConfig:
    """How Wachter descends.

    Attributes:
        aim: the margin that is aimed for; past the boundary, for l1 pulls back from it.
        weight: the first lambda.
        rounds: how many lambdas are tried.
        steps: steps for each.
        starts: how often those without a success start again, elsewhere.
        seed: of where they then start; nothing global is seeded.
    """

    aim: float = 0.5
    weight: float = 1.0
    rounds: int = 10
    steps: int = 50
    starts: int = 5
    seed: int = 0


@final
class Wachter(Baseline[WachterConfig]):
    """SCFE: `(margin(x') - aim)^2 + lambda ||x' - x||_1`, by proximal gradient steps.

    The proximal step solves the l1 term exactly, so what need not move does not. A step is as long
    as the linearised model asks for. Rows on a plateau, where the model has no gradient, start
    again from random places, as Wachter et al. do against local minima.

    Args:
        model: a torch module.
        schema: the features.
        config: how to descend.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box has no gradient.
    """

    def _default_config(self) -> WachterConfig:
        return WachterConfig()

    def _validate_model(self) -> None:
        need_gradient(self)

    def _learn(self, rows: Tensor) -> None:
        """There is nothing to learn."""

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        rng = torch.Generator().manual_seed(self.config.seed)
        for share, part in pool.attempts(self.config.starts):
            self._search(part, torch.rand(self.encoder.d, generator=rng), share)
        return pool.proposal("no descent from here reaches the target")

    def _search(self, pool: CandidatePool, place: Tensor, share: float) -> None:
        """Try lambda after lambda, from a share of the way to a place, (d,), in the unit box."""
        x, (low, high) = self.encoder.expand(pool.case.x), pool.ends
        start = x + share * (low + (high - low) * place - x)
        weights = Weights.starting(self.config.weight, len(pool.case))
        for _ in range(self.config.rounds):
            weights = weights.after(self._descend(pool, start, weights.now))

    def _descend(self, pool: CandidatePool, here: Tensor, weight: Tensor) -> Tensor:
        """Descend from rows, (m, d), with one lambda each, (m,); who succeeds, (m,) bool."""
        x, (low, high) = self.encoder.expand(pool.case.x), pool.ends
        won = torch.zeros(len(x), dtype=torch.bool)
        aim, tangent = self._aim(pool.case.goal), along_blocks(self.encoder)
        shrink = weight[:, None] * self.encoder.weights / 2.0
        for _ in range(self.config.steps):
            rows, shown = rounded(pool, here)
            scores, margin, slope = slopes(pool, shown)
            won |= pool.update(rows[:, None], scores=scores)
            slope = torch.where(low < high, slope @ tangent, 0.0)
            scale = slope.square().sum(1, keepdim=True).clamp_min(LEAST_SLOPE)
            delta = here - x - (margin - aim)[:, None] * slope / scale
            delta = delta.sign() * (delta.abs() - shrink / scale).clamp_min(0.0)
            here = torch.clamp(x + delta, low, high)
        return won

    def _aim(self, goal: Goal) -> float:
        """The margin aimed for: no farther into a range than half-way to its middle."""
        width = goal.high - goal.low if isinstance(goal, RangeGoal) else torch.inf
        return min(self.config.aim, width / 4.0)


def along_blocks(encoder: Encoder) -> Tensor:
    """(d, d) takes slopes along one-hot blocks, in which what one category gains others lose."""
    of = encoder.feature_of
    together = (of[:, None] == of) & encoder.blocks[of]
    return torch.eye(encoder.d) - together / together.sum(1).clamp_min(1)
