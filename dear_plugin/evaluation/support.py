"""Support: the share of a counterfactual's nearest training rows with the target decision."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.evaluation.neighbours import NEIGHBOURS, Neighbours
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.target import Goal


@dataclass
class Support:
    """The support of rows, by Euclidean distance on the encoding.

    The support of a row is the share of its k = 5 nearest training rows that reach the goal by the
    model's scores (yNN of Pawelczyk et al. 2021, row by row).

    Attributes:
        neighbours: the training rows.
        classifier: the model.
        k: the number of neighbours.
    """

    neighbours: Neighbours
    classifier: Classifier
    k: int = NEIGHBOURS

    def of(self, reached: Tensor, goal: Goal) -> Tensor:
        """(m,) the support of rows (m, p), each with its own goal."""
        neighbours, scores = self._scored
        near = torch.from_numpy(neighbours.nearest(reached, self.k))
        rows = torch.arange(len(reached)).repeat_interleave(near.shape[1])
        accepted = goal.accepts(scores[near.flatten()], rows)
        return accepted.view(near.shape).float().mean(1)

    def of_each(self, reached: Tensor, goal: Goal, rows: Tensor) -> Tensor:
        """(n, r) the support of each of r rows, (r, p), for the goals of the rows at (n,)."""
        neighbours, scores = self._scored
        near = torch.from_numpy(neighbours.nearest(reached, self.k))
        each = scores[near.flatten()].repeat(len(rows), 1)
        accepted = goal.accepts(each, rows.repeat_interleave(near.numel()))
        return accepted.view(len(rows), *near.shape).float().mean(2)

    @lazy
    def _scored(self) -> tuple[Neighbours, Tensor]:
        """Training rows and their scores, complete rows only if the model needs them."""
        rows, scores = self.classifier.score_training_rows(self.neighbours.rows)
        if rows is self.neighbours.rows:
            return self.neighbours, scores
        return Neighbours(rows, self.classifier.encoder), scores
