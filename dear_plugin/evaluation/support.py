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

    def of(self, reached: Tensor, goal: Goal, idx: Tensor) -> Tensor:
        """The support of rows, (r, p), for the goals of the rows at `idx`: (r,), or (n, r)."""
        scores, k = self._near_scores(reached)
        scores = scores.repeat(idx.numel() // max(len(reached), 1), 1)
        accepted = goal.accepts(scores, idx.flatten().repeat_interleave(k))
        return accepted.view(*idx.shape, k).float().mean(-1)

    def _near_scores(self, reached: Tensor) -> tuple[Tensor, int]:
        """(r k, c) the scores of the k nearest training rows of rows, (r, p), and k."""
        neighbours, scores = self._scored
        near = torch.from_numpy(neighbours.nearest(reached, self.k))
        return scores[near.flatten()], near.shape[1]

    @lazy
    def _scored(self) -> tuple[Neighbours, Tensor]:
        """Training rows and their scores, complete rows only if the model needs them."""
        rows, scores = self.classifier.score_training_rows(self.neighbours.rows)
        if rows is self.neighbours.rows:
            return self.neighbours, scores
        return Neighbours(rows, self.classifier.encoder), scores
