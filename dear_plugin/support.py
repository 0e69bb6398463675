"""Support: do a counterfactual's nearest neighbours get the wanted decision?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.classifier import Classifier
from dear_plugin.lazy import lazy
from dear_plugin.target import Goal

NEIGHBOURS = 5


@dataclass
class Support:
    """Neighbourhoods of the fit frame, Euclidean on the encoding.

    The support of a row is the share of its k = 5 nearest training rows that the model gives the
    wanted decision (yNN of Pawelczyk et al. 2021, one row at a time).

    Attributes:
        rows: (n, p) the training rows.
        classifier: the model whose decisions count.
        k: how many neighbours.
    """

    rows: Tensor
    classifier: Classifier
    k: int = NEIGHBOURS

    def of(self, reached: Tensor, goal: Goal) -> Tensor:
        """(m,) the support of rows (m, p), each with its own goal."""
        near = torch.from_numpy(self._nearest(reached))
        rows = torch.arange(len(reached)).repeat_interleave(near.shape[1])
        accepted = goal.accepts(self._scored[1][near.flatten()], rows)
        return accepted.view(near.shape).float().mean(1)

    def _nearest(self, reached: Tensor) -> npt.NDArray[np.int64]:
        """(m, k) int64 indices of the nearest training rows that have a score."""
        points = self.classifier.encoder.expand(reached).double().numpy()
        k = min(self.k, len(self._scored[0]))
        _, near = self._tree.query(points, k=list(range(1, k + 1)))
        return np.asarray(near, dtype=np.int64)

    @lazy
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        # Cut at midpoints: atoms make balanced trees slow to search, three times as slow on Adult.
        points = self.classifier.encoder.expand(self._scored[0]).double().numpy()
        return cKDTree(points, leafsize=32, balanced_tree=False)

    @lazy
    def _scored(self) -> tuple[Tensor, Tensor]:
        """Training rows and their scores; complete ones where the model takes no others."""
        levels = self.classifier.encoder.levels
        try:
            return self.rows, self.classifier.scores(self.rows)
        except Exception:
            complete = None if levels is None else (self.rows != levels.missing).all(1)
            if complete is None or bool(complete.all()) or not bool(complete.any()):
                raise
            return self.rows[complete], self.classifier.scores(self.rows[complete])
