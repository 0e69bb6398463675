"""Wachter: the nearest row that the model accepts, with every feature independent.

Wachter, Mittelstadt and Russell, "Counterfactual Explanations without Opening the Black Box",
Harvard JOLT 31(2), 2018: descent on `(f(x') - y')^2 + lambda d(x, x')`, with a search for lambda.
With a score for f and l1 for d it is SCFE of Pawelczyk et al., "Exploring Counterfactual
Explanations Through the Lens of Adversarial Examples", AISTATS 2022, a baseline of the DEAR paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from torch import Tensor

from dear_plugin.methods.base import Case
from dear_plugin.problem.goals import RangeGoal
from dear_plugin.rivals.candidate_pool import CandidatePool
from dear_plugin.rivals.weights import (
    Descend,
    WeightedDescent,
    WeightSearch,
    margin_gradients,
    straight_through,
)

# Multiples of the aim; only the first, unless a case has a requirement that no success meets.
FARTHER = (1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class WachterConfig(WeightSearch):
    """The settings of Wachter, besides those of `WeightSearch`.

    Attributes:
        aim: the margin that is aimed for; past the boundary, since the l1 cost pulls back.

    Example:
        >>> from dear_plugin.rivals import WachterConfig
        >>> thorough = WachterConfig(rounds=20)
    """

    aim: float = 0.5


@final
class Wachter(WeightedDescent[WachterConfig]):
    """SCFE: `(margin(x') - aim)^2 + lambda ||x' - x||_1`, by proximal gradient steps.

    The proximal step solves the l1 term exactly, so changes are sparse. The length of a step is
    that of the linearised model. Rows on a plateau, where the model has no gradient, start again
    from random points, as Wachter et al. do against local minima.

    Args:
        model: a torch module.
        schema: the features.
        config: the settings.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box has no gradient.

    Example:
        >>> from dear_plugin import Encoder, Schema
        >>> from dear_plugin.rivals import Wachter
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = torch.nn.Linear(Encoder(schema).d, 1)  # logits
        >>> Wachter(model, schema).fit(frame)
        Wachter(7 features, model Linear, fitted on 200 rows)
    """

    default_config = WachterConfig()

    def _descents(self) -> Sequence[Descend]:
        return [partial(self._descend, factor=factor) for factor in FARTHER]

    def _descend(
        self, pool: CandidatePool, encoded: Tensor, weight: Tensor, *, factor: float
    ) -> Tensor:
        """Descend from rows, (m, d), with a lambda each, (m,); (m,) bool, which succeed."""
        x, aim = self.encoder.expand(pool.case.x), self._aim(pool.case, factor)
        tried: list[tuple[Tensor, Tensor]] = []
        for _ in range(self.config.steps):
            rows, rounded = straight_through(pool, encoded)
            scores, margin, gradient = margin_gradients(pool, rounded)
            tried.append((rows, scores))
            gradient, square = self._movable(pool, gradient)
            change = encoded - x - (margin - aim)[:, None] * gradient / square
            encoded = self._proximal(pool, change, weight[:, None] / 2.0 / square)
        candidates, known = (torch.stack(each, 1) for each in zip(*tried, strict=True))
        return pool.update(candidates, scores=known.flatten(0, 1), descent=True)

    def _aim(self, case: Case, factor: float) -> Tensor:
        """(m,) the margin aimed for, by a factor; in a range, at most half-way to its middle."""
        goal = case.goal
        width = goal.high - goal.low if isinstance(goal, RangeGoal) else torch.inf
        most = (torch.as_tensor(width / 2.0) - case.aim).clamp_min(0.0) / 2.0
        return case.aim + most.clamp_max(factor * self.config.aim)
