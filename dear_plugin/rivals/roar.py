"""ROAR: counterfactuals that stay accepted when the weights of the model change a little.

Upadhyay, Joshi and Lakkaraju, "Towards Robust and Reliable Algorithmic Recourse", NeurIPS 2021:
minimise over x' the largest `loss(f_(w + delta)(x')) + lambda ||x' - x||_1` over all changes
delta of the weights w of a linear model with `|delta_i| <= delta_max`. The loss falls with the
margin, so it is largest at the smallest margin, `w x' + b - delta_max (||x'||_1 + 1)`. For other
models the authors use a local linear approximation (LIME); here it is the gradient at x'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dear_plugin.rivals.candidate_pool import CandidatePool
from dear_plugin.rivals.weights import (
    Descend,
    WeightedDescent,
    WeightSearch,
    margin_gradients,
    straight_through,
)

# The second derivative of the logistic loss is at most 1 / 4.
CURVATURE = 0.25


@dataclass(frozen=True)
class RoarConfig(WeightSearch):
    """The settings of ROAR, besides those of `WeightSearch`.

    Attributes:
        delta_max: the largest change of a weight or of the intercept, for encoded columns and
            margins in log-odds.

    Example:
        >>> from dear_plugin.rivals import RoarConfig
        >>> robust = RoarConfig(delta_max=0.2)
    """

    delta_max: float = 0.1


@final
class Roar(WeightedDescent[RoarConfig]):
    """ROAR, by proximal gradient steps on the logistic loss of the least margin.

    The answer is the cheapest row that succeeds with every change of the weights of the local
    linear model. If there is none, it is the accepted row with the largest of these margins.

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
        >>> from dear_plugin.rivals import Roar
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = torch.nn.Linear(Encoder(schema).d, 1)  # logits
        >>> Roar(model, schema).fit(frame)
        Roar(7 features, model Linear, fitted on 200 rows)
    """

    default_config = RoarConfig()

    def _descents(self) -> Sequence[Descend]:
        return [self._descend]

    def _descend(self, pool: CandidatePool, encoded: Tensor, weight: Tensor) -> Tensor:
        """Descend from rows, (m, d), with a lambda each, (m,); (m,) bool, which are robust."""
        x, delta_max = self.encoder.expand(pool.case.x), self.config.delta_max
        robust = torch.zeros(len(x), dtype=torch.bool)
        for _ in range(self.config.steps):
            rows, rounded = straight_through(pool, encoded)
            scores, margin, gradient = margin_gradients(pool, rounded)
            least = margin - pool.case.aim - delta_max * (rounded.abs().sum(1) + 1.0)
            found = pool.update(rows[:, None], scores=scores, loss=self._loss(pool, rows, least))
            robust |= found & (least >= 0.0)
            gradient, square = self._movable(pool, gradient - delta_max * rounded.sign())
            step = 1.0 / (CURVATURE * square)
            change = encoded - x + step * torch.sigmoid(-least)[:, None] * gradient
            encoded = self._proximal(pool, change, step * weight[:, None])
        return robust

    def _loss(self, pool: CandidatePool, rows: Tensor, least: Tensor) -> Tensor:
        """(m, 1) the cost of robust rows, (m, p); others follow, by their least margin, (m,)."""
        cost = self.encoder.distance(rows, pool.case.x).sum(1)
        others = len(self.schema) + torch.nn.functional.softplus(-least)
        return torch.where(least >= 0.0, cost, others)[:, None]
