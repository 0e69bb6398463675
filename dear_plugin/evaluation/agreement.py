"""Agreement: the share of copies of the model, trained again, that accept a counterfactual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.target import Goal


@dataclass(frozen=True)
class Agreement:
    """Whether copies of the model accept counterfactuals.

    Attributes:
        copies: the c copies; at least one.
    """

    copies: Sequence[Classifier]

    def of(
        self, reached: Tensor, goal: Goal, idx: Tensor, least: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """The share of the copies that accept rows, with one call of each copy.

        Args:
            reached: (r, p) the rows.
            goal: the targets of n rows.
            idx: (r,), or (m, r), the row whose target each should meet.
            least: the share to reach.

        Returns:
            The share, of the shape of `idx`, and by how much the margin falls short in the copy
            that decides whether `least` is reached; 0 where none does.
        """
        each = [self._evaluated(copy, reached, goal, idx) for copy in self.copies]
        margins, valid = (torch.stack(some, -1) for some in zip(*each, strict=True))
        count = len(self.copies)
        may_fail = min(int((1.0 - least) * count + 1e-6), count - 1)
        short = -margins.kthvalue(may_fail + 1, dim=-1).values
        more = torch.where(short.isfinite(), short, 0.0).clamp_min(0.0)
        return valid.float().mean(-1), more

    @staticmethod
    def _evaluated(
        copy: Classifier, reached: Tensor, goal: Goal, idx: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The margins by a copy, and whether it accepts, both of the shape of `idx`."""
        scores = copy.scores(reached)
        scores = scores.repeat(idx.numel() // max(len(reached), 1), 1)
        margin, valid = goal.margin(scores, idx.flatten()), goal.accepts(scores, idx.flatten())
        return margin.float().view(idx.shape), valid.view(idx.shape)
