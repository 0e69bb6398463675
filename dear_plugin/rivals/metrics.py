"""yNN: whether counterfactuals lie among rows that the model labels alike (CARLA, 2021)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.evaluation.trained import NEIGHBOURS, Neighbours
from dear_plugin.models.classifier import Classifier
from dear_plugin.results.recourses import Recourses


def neighbours(
    recourses: Recourses, everyone: Tensor, classifier: Classifier, k: int = NEIGHBOURS
) -> npt.NDArray[np.float64]:
    """(n,) the share of each counterfactual's neighbours with its label; NaN without success.

    Neighbours are the k nearest of all data, Euclidean on encoded columns, labelled by the model.
    An identical row does not count as its own neighbour.

    Args:
        recourses: the result, with two classes.
        everyone: (m, p) all rows, training and test.
        classifier: the model.
        k: the number of neighbours.
    """
    done = recourses.actions["success"].to_numpy(dtype=bool)
    shares = np.full(len(done), np.nan)
    if not done.any():
        return shares
    reached = recourses.proposal.rows[torch.tensor(done)]
    distances, near = Neighbours(everyone, classifier.encoder).query(reached, k + 1)
    # Drop the nearest if it is the row itself, else the farthest.
    identical = distances[:, :1] == 0.0
    near = torch.where(identical, near[:, 1:], near[:, :-1])
    labels, own = _labels(classifier, everyone), _labels(classifier, reached)
    shares[done] = 1.0 - (labels[near] - own[:, None]).abs().mean(1).numpy()
    return shares


def _labels(classifier: Classifier, rows: Tensor) -> Tensor:
    """(m,) the score columns of the predicted classes."""
    frame = classifier.encoder.frame(rows)
    return classifier.decided(frame, classifier.frame_scores(frame, rows)).float()
